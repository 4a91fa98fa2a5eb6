"""Why a weaker order is noticed by nothing, one by one.

Key: file without its ending, function, line of the source, the order tried in its place.
"""

from __future__ import annotations

from collections.abc import Mapping

KNOWN: Mapping[tuple[str, str, str, str], str] = {
    ("mpsc_queue", "mpsc_new_chunk", "cdef void* spare = ptr_load_acquire(&queue.spare)", "relaxed"): (
        "Over-strong: the chunk is used only after the exchange, which acquires."
    ),
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
    ("mpsc_queue", "mpsc_poll", "queue.head_chunk = <MpscChunk*>ptr_load_acquire(&chunk.next)", "relaxed"): (
        "Over-strong: the consumer acquired the last slot, which was filled after the link."
    ),
    ("mpsc_queue", "mpsc_peek", "if u64_load_acquire(&queue.tail) == queue.head:", "relaxed"): (
        "Over-strong: it is compared only; the slot is acquired afterwards."
    ),
    ("mpsc_queue", "mpsc_peek", "handle = u32_load_acquire(&queue.head_chunk.slots[place])", "relaxed"): (
        "Needed, untested: like the load before the wait, but no program of the suite met the wait "
        "and then used "
        "what only this slot orders."
    ),
    ("object_pool", "pool_take", "if u64_cas_weak_acquire(&pool.head, &seen, after):", "relaxed"): (
        "Over-strong: the tag makes each head unique, so the exchange reads the store that the load acquired."
    ),
}
