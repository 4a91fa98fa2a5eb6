"""Why a weaker order, or an ignored lock, is noticed by nothing, one by one.

Key: file without its ending, function, line of the source, what was done instead. Orders that are stronger
than they have to be stay where they cost nothing on the machines that there are, or where the weaker one
would need an argument across several files.
"""

from __future__ import annotations

from collections.abc import Mapping

LATE = (
    "Needed, untested: the message that is late is read under the table's locks, which are exchanges; the "
    "engine performs those in the order of the program, so it cannot show that one overtakes the other."
)
CHANGE_BEHIND = (
    "Needed, untested: a task that counts a change and reads the settings from before leaves the size above "
    "the new threshold. It has to find nothing to free just then; no program of the suites came to that."
)

KNOWN: Mapping[tuple[str, str, str, str], str] = {
    (
        "mpsc_queue",
        "mpsc_new_chunk",
        "cdef void* spare = ptr_load_acquire(&queue.spare)",
        "relaxed",
    ): ("Over-strong: the chunk is used only after the exchange, which acquires."),
    (
        "mpsc_queue",
        "mpsc_new_chunk",
        "if spare is not NULL and ptr_cas_strong_acq_rel(&queue.spare, &spare, NULL):",
        "acquire",
    ): "Over-strong: NULL is stored, behind which nobody looks.",
    (
        "mpsc_queue",
        "mpsc_new_chunk",
        "if spare is not NULL and ptr_cas_strong_acq_rel(&queue.spare, &spare, NULL):",
        "release",
    ): (
        "Needed, untested: the load before it acquires as well, but the same chunk may have been "
        "taken and dropped "
        "again in between, and then only the exchange orders what was cleared meanwhile."
    ),
    (
        "mpsc_queue",
        "mpsc_drop_chunk",
        "if not ptr_cas_strong_acq_rel(&queue.spare, &none, chunk):",
        "release",
    ): "Over-strong: it reads NULL, behind which it does not look.",
    ("mpsc_queue", "mpsc_offer", "ptr_store_release(&chunk.next, next_chunk)", "relaxed"): (
        "Over-strong: the release of the slot comes after it, and the consumer acquires the slot first."
    ),
    (
        "mpsc_queue",
        "mpsc_poll",
        "queue.head_chunk = <MpscChunk*>ptr_load_acquire(&chunk.next)",
        "relaxed",
    ): ("Over-strong: the consumer acquired the last slot, which was filled after the link."),
    ("mpsc_queue", "mpsc_peek", "if u64_load_acquire(&queue.tail) == queue.head:", "relaxed"): (
        "Over-strong: it is compared only; the slot is acquired afterwards."
    ),
    ("object_pool", "pool_take", "if u64_cas_weak_acquire(&pool.head, &seen, after):", "relaxed"): (
        "Over-strong: the tag makes each head unique, so the exchange reads the store that the load acquired."
    ),
    (
        "ack_state",
        "ack_state_pause",
        "while not u32_cas_weak_acq_rel(&state.paused, &seen, seen | bit if waits else seen & ~bit):",
        "acquire",
    ): "Over-strong: the fences order the word against `open`, and it carries nothing else.",
    (
        "ack_state",
        "ack_state_pause",
        "while not u32_cas_weak_acq_rel(&state.paused, &seen, seen | bit if waits else seen & ~bit):",
        "release",
    ): "Over-strong: the fences order the word against `open`, and it carries nothing else.",
    ("ack_state", "ack_state_leave", "return u32_exchange_acq_rel(&state.paused, 0)", "acquire"): (
        "Over-strong: the fences order the word against `open`, and it carries nothing else."
    ),
    ("ack_state", "ack_state_leave", "return u32_exchange_acq_rel(&state.paused, 0)", "release"): (
        "Over-strong: the fences order the word against `open`, and it carries nothing else."
    ),
    ("ack_state", "ack_state_may_dispatch", "if not u32_load_acquire(&state.open):", "relaxed"): (
        "Over-strong: whatever the dispatcher asks next it reads under the lock."
    ),
    ("active_cursors", "active_cursors_add", "ptr_store_release(&cursor.group, NULL)", "relaxed"): (
        "Over-strong: NULL is stored, which nobody follows."
    ),
    ("active_groups", "groups_leave", "ptr_store_release(&cursor.group, NULL)", "relaxed"): (
        "Over-strong: NULL is stored, which nobody follows."
    ),
    (
        "active_groups",
        "cursor_hand_over",
        "ptr_store_release(&a.group, cursor_group(b))",
        "relaxed",
    ): ("Over-strong: NULL is stored, which nobody follows."),
    (
        "active_cursors",
        "active_rank",
        "group = <CursorGroup*>ptr_load_acquire(&cursor.group)",
        "relaxed",
    ): (
        "Needed, untested: a query that goes on with an older stamp may come to a group whose memory "
        "another thread has just made. What it reads there is thrown away, so only the reading itself is "
        "wrong."
    ),
    ("active_groups", "groups_join", "ptr_store_release(&cursor.group, group)", "relaxed"): (
        "Needed, untested: a query that goes on with an older stamp may come to a group whose memory "
        "another thread has just made. What it reads there is thrown away, so only the reading itself is "
        "wrong."
    ),
    ("active_groups", "cursor_hand_over", "ptr_store_release(&b.group, group)", "relaxed"): (
        "Needed, untested: a query that goes on with an older stamp may come to a group whose memory "
        "another thread has just made. What it reads there is thrown away, so only the reading itself is "
        "wrong."
    ),
    (
        "cache_manager",
        "cache_manager_added",
        "size = i64_fetch_add_acq_rel(&manager.size, length) + length",
        "acquire",
    ): ("Over-strong: who acquires the size looks for settings, which an insert does not write."),
    (
        "cache_manager",
        "cache_manager_look",
        "if i64_fetch_add_acq_rel(&manager.size, 0) <= i64_load_relaxed(&manager.threshold):",
        "release",
    ): (
        "Over-strong: the settings are this thread's own, and what inserts did the exchange itself reads."
    ),
    (
        "cache_manager",
        "cache_manager_mark",
        "if u32_exchange_acq_rel(&manager.marker, 1) != 0:",
        "release",
    ): (
        "Needed, untested: else a task may be counted as begun before the last one is counted as ended. The"
        " engine performs exchanges in the order of the program, so it cannot show that."
    ),
    (
        "cache_manager",
        "cache_manager_task",
        "u32_exchange_acq_rel(&manager.marker, 0)",
        "acquire",
    ): (
        "Needed, untested: else a task may be counted as begun before the last one is counted as ended. The"
        " engine performs exchanges in the order of the program, so it cannot show that."
    ),
    ("entry", "entry_adopt_reads", "cdef uint32_t seen = u32_load_acquire(cell)", "relaxed"): (
        "Over-strong: the exchange acquires what it replaces; the load is compared only."
    ),
    (
        "entry",
        "entry_adopt_reads",
        "while not u32_cas_strong_acq_rel(cell, &seen, (seen & ~<uint32_t>EXTRA_HANDLE) | adopted):",
        "acquire",
    ): (
        "Over-strong in a cache: the caller is inside the wrapper's write section, which began with a "
        "release fence."
    ),
    (
        "entry",
        "entry_hold_reads",
        "if u32_cas_strong_acq_rel(cell, &seen, seen | fresh):",
        "release",
    ): (
        "Needed, untested: the count that is given back may lie in memory that another thread has just "
        "made; in the suites this thread knows the chunk by then."
    ),
    ("entry", "entry_hold_reads", "fresh = u32_load_acquire(cell)", "relaxed"): (
        "Over-strong: retaining acquired what the last owner of the count did, so an older value of the "
        "cell cannot be read."
    ),
    (
        "entry",
        "entry_not_delivered",
        "while not u32_cas_strong_acq_rel(&entry.extra, &seen, seen & ~<uint32_t>EXTRA_COUNTS_READ):",
        "acquire",
    ): (
        "Over-strong: it clears a flag that whoever deallocates the entry reads after the last release; an "
        "exchange goes on with the release before it."
    ),
    (
        "entry",
        "entry_not_delivered",
        "while not u32_cas_strong_acq_rel(&entry.extra, &seen, seen & ~<uint32_t>EXTRA_COUNTS_READ):",
        "release",
    ): (
        "Over-strong: it clears a flag that whoever deallocates the entry reads after the last release; an "
        "exchange goes on with the release before it."
    ),
    (
        "ledger_scan",
        "scan_cache",
        "if ptr_load_acquire(&memory.caches.chunks[number >> memory.caches.chunk_bits]) is NULL:",
        "relaxed",
    ): ("Needed, untested: the suites make all caches before their threads start."),
    (
        "ledger_scan",
        "scan_cache",
        "return cache if u32_load_acquire(&cache.open) else NULL",
        "relaxed",
    ): ("Needed, untested: the suites make all caches before their threads start."),
    ("map_directory", "directory_spare", "fence_release()", "none"): (
        "Over-strong: the change holds the directory's lock, whose release fence stands before the same "
        "stores."
    ),
    (
        "map_directory",
        "array_copy",
        "u64_store_release(&target.records[at].branch, u64_load_relaxed(&source.records[i].branch))",
        "relaxed",
    ): (
        "Over-strong: the change holds the directory's lock, whose release fence stands before the same "
        "stores."
    ),
    (
        "map_directory",
        "directory_add",
        "u64_store_release(&fresh.records[index].branch, branch)",
        "relaxed",
    ): (
        "Over-strong: the change holds the directory's lock, whose release fence stands before the same "
        "stores."
    ),
    ("map_pages", "node_is_sealed", "return i32_load_acquire(&node.count) == SEALED", "relaxed"): (
        "Needed, untested: who seals a page gives it back, and its next user must find the slots empty that"
        " others emptied before they left; a third thread would have to read one of them."
    ),
    ("map_pages", "node_leave", "if i32_cas_weak_acq_rel(&node.count, &seen, after):", "release"): (
        "Needed, untested: as above, where another thread reserved and left between the load and the "
        "exchange."
    ),
    (
        "position_map",
        "branch_unlink",
        "if u64_cas_strong_acq_rel(&branch.pages[slot], &seen, ((seen >> 32) + 1) << 32):",
        "acquire",
    ): ("Over-strong: 0 is stored, behind which nobody looks."),
    (
        "position_map",
        "map_remove",
        "if u32_cas_strong_acq_rel(&page.slots[map_entry_slot(at.entry_id)], &seen, 0):",
        "acquire",
    ): ("Over-strong: 0 is stored, behind which nobody looks."),
    (
        "position_map",
        "branch_unlink",
        "if u64_cas_strong_acq_rel(&branch.pages[slot], &seen, ((seen >> 32) + 1) << 32):",
        "release",
    ): (
        "Over-strong: the tag makes each link unique, so the exchange reads the store that the load acquired."
    ),
    (
        "position_map",
        "map_reserve_page",
        "if u64_cas_strong_acq_rel(&branch.pages[slot], &seen, ((seen >> 32) + 1) << 32 | handle):",
        "release",
    ): (
        "Over-strong: the tag makes each link unique, so the exchange reads the store that the load acquired."
    ),
    (
        "position_map",
        "map_put_if_absent",
        "if u32_cas_strong_acq_rel(&page.slots[map_entry_slot(at.entry_id)], &seen, handle):",
        "acquire",
    ): (
        "Over-strong in a cache: the put holds the wrapper's write section, which began with a release fence."
    ),
    (
        "position_map",
        "map_put_if_absent",
        "if u32_cas_strong_acq_rel(&page.slots[map_entry_slot(at.entry_id)], &seen, handle):",
        "release",
    ): ("Over-strong: it reads 0, behind which it does not look."),
    ("position_map", "map_remove", "page_handle = <uint32_t>u64_load_acquire(", "relaxed"): (
        "Over-strong: the caller is inside the write section of a wrapper that was linked in this page "
        "before."
    ),
    (
        "position_map",
        "map_remove",
        "if u32_cas_strong_acq_rel(&page.slots[map_entry_slot(at.entry_id)], &seen, 0):",
        "release",
    ): (
        "Over-strong: the caller is inside the write section of a wrapper that was linked in this page "
        "before."
    ),
    ("cache_manager", "cache_manager_configure", "&manager.work", "ignored"): (
        "Needed, untested: without it the wake-up may come between the thread's last look and its wait, and"
        " the old interval lasts once more; no invariant has a time."
    ),
    ("cache_manager", "cache_manager_run", "&manager.monitor", "ignored"): (
        "Needed, untested: beside another pass a size pass frees too much; where passes of other kinds run,"
        " the suite cannot tell what is too much."
    ),
    ("eviction_thread", "eviction_thread_go_on", "&manager.monitor", "ignored"): (
        "Untested: it stands around a fork, which no suite makes; tests of the Python face do."
    ),
    ("eviction_thread", "eviction_thread_go_on", "&manager.work", "ignored"): (
        "Untested: it stands around a fork, which no suite makes; tests of the Python face do."
    ),
    ("eviction_thread", "eviction_thread_serves", "&manager.work", "ignored"): (
        "Untested: only the Python face asks."
    ),
    ("inflight_limiter", "limiter_close", "&limiter.monitor", "ignored"): (
        "Untested: the suite asks, closes or empties it when nobody else is inside."
    ),
    ("pending_reads", "pending_reads_fail", "&reads.monitor", "ignored"): (
        "Untested: the suite asks, closes or empties it when nobody else is inside."
    ),
    ("pending_reads", "pending_reads_running", "&reads.monitor", "ignored"): (
        "Untested: the suite asks, closes or empties it when nobody else is inside."
    ),
    ("map_directory", "directory_destroy", "&directory.lock", "ignored"): (
        "Untested: the suite asks, closes or empties it when nobody else is inside."
    ),
    ("range_cache", "range_cache_delete", "&cache.intake.monitor", "ignored"): (
        "Untested: the suite asks, closes or empties it when nobody else is inside."
    ),
    ("inflight_limiter", "limiter_remaining", "&limiter.monitor", "ignored"): (
        "Untested: the suite asks while others are inside, and drops the answer; the compiler then drops "
        "the read."
    ),
    ("delayed_tracker", "delayed_tracker_bytes", "&tracker.monitor", "ignored"): (
        "Untested: only a benchmark calls it."
    ),
    ("delayed_manager", "delayed_view_free", "&manager.factory.monitor", "ignored"): (
        "Untested: the suite gives views back when nobody else is inside."
    ),
    ("policy_pass", "pass_give_up", "&wrapper.lock", "ignored"): (
        "Untested: it runs when memory for a queue's chunk ran out, which the suites' programs do not let "
        "happen beside other threads."
    ),
    ("range_cache", "range_cache_adopt", "&wrapper.lock", "ignored"): (
        "Needed, untested: an evictor in the section reads the number of a count that may be another "
        "entry's by then; no suite knows which number is right."
    ),
    (
        "position_map",
        "map_reserve_page (2)",
        "seen = u64_load_acquire(&branch.pages[slot])",
        "relaxed",
    ): "Over-strong: it is compared only; what is unlinked is read again, and the exchange acquires.",
    (
        "cache_manager",
        "cache_manager_set",
        "i64_fetch_add_release(&manager.changes, 1)",
        "relaxed",
    ): (CHANGE_BEHIND),
    (
        "cache_manager",
        "cache_manager_task",
        "changes = i64_load_acquire(&manager.changes)",
        "relaxed",
    ): (CHANGE_BEHIND),
    (
        "delayed_manager",
        "manager_late",
        "if i64_cas_weak_release(&view.late, &seen, key):",
        "relaxed",
    ): LATE,
    (
        "delayed_manager",
        "view_due",
        "cdef DelayCursor cursor = view_from(view, i64_load_acquire(&view.late))",
        "relaxed",
    ): LATE,
    (
        "delayed_manager",
        "delayed_view_scheduled",
        "view.cursor = view_from(view, i64_exchange_acquire(&view.late, INT64_MAX))",
        "relaxed",
    ): LATE,
    ("delayed_manager", "delayed_view_count", "n = table_count_above(", "relaxed"): LATE,
    ("delayed_manager", "delayed_view_should_pause", "lookahead) >= lookahead)", "relaxed"): LATE,
    (
        "position_map",
        "map_find",
        "found = u32_load_acquire(&page_at(map.memory, page).slots[map_entry_slot(at.entry_id)])",
        "relaxed",
    ): "Over-strong: the acquire fence of the proof comes behind it.",
}
