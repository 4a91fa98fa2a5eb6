"""Answers that are wrong only beside other calls and break no invariant: only models see them."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize
from stress.mutants.catalogue.cursor_heap import UPDATE
from stress.mutants.catalogue.entry_wrapper import VALIDATED
from stress.mutants.catalogue.mutant import Mutant
from stress.mutants.catalogue.range_cache import REMOVE_ONE, RETAIN

BREAKS = "linearizability"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="AS1",
        title="a stamp is refused while a shared holder is inside",
        origin="port",
        file="structures/stamped_lock.pxd",
        old="""
return (not stamp & STAMPED_WRITER
        and not ((u32_load_relaxed(lock) ^ stamp) & ~<uint32_t>STAMPED_READERS))
""",
        new="return not stamp & STAMPED_WRITER and u32_load_relaxed(lock) == stamp",
        suite="stamped_lock",
        breaks=BREAKS,
        executions=1_000,
        programs=ControlledSize(mix={"write": 1, "read_shared": 3, "read_optimistic": 3}),
    ),
    Mutant(
        id="AP1",
        title="a take that loses the race for the free list finds it empty",
        origin="port",
        file="structures/object_pool.pxd",
        old="seen = u64_load_acquire(&pool.head)",
        new="break",
        suite="object_pool",
        breaks=BREAKS,
        executions=3_000,
        settings={"limit": (3, 4)},
        programs=ControlledSize(operations=(4, 6), mix={"take": 4, "give": 2, "give_chain": 2}),
    ),
    Mutant(
        id="AW1",
        title="a read beside a write section finds nothing",
        origin="port",
        file="structures/entry_wrapper.pxd",
        old=VALIDATED,
        new="""
if not stamped_validate(&wrapper.lock, stamp):
    return 0
""",
        suite="entry_wrapper",
        breaks=BREAKS,
        executions=4_000,
    ),
    Mutant(
        id="AW2",
        title="a read that had to wait combines the values of both attempts",
        origin="port",
        file="structures/entry_wrapper.pxd",
        old=VALIDATED,
        new="""
if not stamped_validate(&wrapper.lock, stamp):
    stamped_lock_read(&wrapper.lock)
    holds = wrapper_holds(wrapper, memory, owner, key)
    value = (value & ~<uint32_t>63) | (u32_load_relaxed(&wrapper.value) & 63)
    stamped_unlock_read(&wrapper.lock)
""",
        suite="entry_wrapper",
        breaks=BREAKS,
        executions=6_000,
        settings={"keys": (1, 2)},
        programs=ControlledSize(
            operations=(5, 6),
            mix={"fill": 4, "read": 2, "read_stale": 3, "clear": 3, "drain": 2, "churn": 1},
        ),
    ),
    Mutant(
        id="AR1",
        title="a removal adds its bytes to the size before it takes them off",
        origin="port",
        file="structures/range_cache.pxd",
        old="i64_fetch_sub_relaxed(&cache.size, removed.bytes)",
        new="""
i64_fetch_add_relaxed(&cache.size, removed.bytes)
i64_fetch_sub_relaxed(&cache.size, 2 * removed.bytes)
""",
        suite="range_cache",
        breaks=BREAKS,
        executions=4_000,
        settings={"caches": (1, 1)},
        programs=ControlledSize(mix={"put": 4, "remove_range": 2, "size": 3}),
    ),
    Mutant(
        id="AR2",
        title="a read beside a requeue finds nothing",
        origin="port",
        file="structures/range_cache.pxd",
        old=RETAIN,
        new="""
if not refcount_retain_marked(&held.references):
    return 0
if wrapper_unchanged(wrapper, stamp):
    break
entry_release(&memory.entries, entry, 1)
return 0
""",
        suite="removal_queue",
        breaks=BREAKS,
        executions=8_000,
        settings={"caches": (1, 1), "policy": (0, 1), "max_requeue": (5, 5)},
        programs=ControlledSize(mix={"put": 3, "read_range": 4, "expire": 2}),
    ),
    Mutant(
        id="AR3",
        title="two removals beside a pass over the entry both report that they removed it",
        origin="port",
        file="structures/range_cache.pxd",
        old=REMOVE_ONE,
        new="""
wrapper = wrapper_at(&cache.memory.wrappers, handle)
found = range_cache_first_inside(wrapper) and wrapper_holds(wrapper, &cache.memory.map, cache, key)
if found:
    range_cache_unlink(cache, key, handle, wrapper, &removed)
stamped_unlock_write(&wrapper.lock)
if found and cache.queue is NULL:
    wrapper_recycle(&cache.memory.wrappers, handle)
""",
        helper="""
cdef inline bint range_cache_first_inside(EntryWrapper* wrapper) noexcept nogil:
    cdef uint32_t seen = stamped_optimistic(&wrapper.lock)
    stamped_lock_write(&wrapper.lock)
    return ((u32_load_relaxed(&wrapper.lock) ^ seen) & ~<uint32_t>STAMPED_READERS) == STAMPED_WRITER
""",
        cimports="""
from pulsar_ml.structures.stamped_lock cimport STAMPED_READERS, STAMPED_WRITER, stamped_optimistic
""",
        suite="removal_queue",
        breaks=BREAKS,
        executions=10_000,
        settings={"caches": (1, 1), "policy": (0, 1)},
        calls=(
            (("put", 0, 1, 0), ("remove_range", 0, 1, 0), ("get", 0, 1)),
            (("get", 0, 1), ("remove_range", 0, 1, 0), ("get", 0, 1)),
            (("expire", 0, 1),),
        ),
    ),
    Mutant(
        id="AM1",
        title="an insert is counted twice for a moment",
        origin="port",
        file="structures/cache_manager.pxd",
        old="size = i64_fetch_add_acq_rel(&manager.size, length) + length",
        new="""
i64_fetch_add_relaxed(&manager.size, length)
size = i64_fetch_add_acq_rel(&manager.size, length)
i64_fetch_sub_relaxed(&manager.size, length)
""",
        suite="cache_manager",
        breaks=BREAKS,
        executions=2_000,
        settings={"max_size": (4096, 4096)},
        programs=ControlledSize(mix={"put": 3, "stats": 3, "get": 1}),
    ),
    Mutant(
        id="AX1",
        title="an expected read is added twice for a moment",
        origin="port",
        file="structures/entry.pxd",
        old="""
read_count_increment(&pool.read_counts, read_count)
read_count_release(&pool.read_counts, read_count)
return True
""",
        new="""
read_count_increment(&pool.read_counts, read_count)
read_count_increment(&pool.read_counts, read_count)
read_count_mark_read(&pool.read_counts, read_count, False)
read_count_release(&pool.read_counts, read_count)
return True
""",
        suite="expected_reads",
        breaks=BREAKS,
        executions=10_000,
        settings={"keys": (4, 4), "policy": (0, 0), "max_size": (4096, 4096)},
        calls=(
            (("put_alone", 0, 0, 2), ("hold", 0, 0, 0), ("expect", 0)),
            (("get", 0, 0), ("get", 0, 0), ("get", 0, 0)),
        ),
    ),
    Mutant(
        id="AE1",
        title="a size pass of LRU ends at a wrapper that another thread emptied",
        origin="port",
        file="structures/lru.pxd",
        old="verdict = MISSING",
        new="verdict = MISSING if run.by_time else STOP",
        suite="eviction_policy",
        breaks=BREAKS,
        executions=3_000,
        settings={"caches": (1, 1), "policy": (4, 4)},
        programs=ControlledSize(mix={"put": 4, "remove_range": 2, "free": 3}),
    ),
    Mutant(
        id="A20",
        title="an update answers the slowest position from before its section",
        origin="port",
        file="structures/cursor_heap.pxd",
        old=UPDATE,
        new="""
change.previous = cursor_heap_slowest(heap)
stamped_lock_write(&heap.registry.lock)
cursor = <HeapCursor*>registry_find(&heap.registry, id)
if cursor is not NULL and cursor.index != HEAP_NOWHERE:
    heap_set(heap, cursor, target)
    change.slowest = registry_slowest(&heap.registry)
    version = registry_changed(&heap.registry)
""",
        suite="cursor_heap",
        breaks=BREAKS,
        executions=4_000,
        programs=ControlledSize(mix={"add": 3, "update": 6}, operations=(4, 6)),
    ),
    Mutant(
        id="A21",
        title="a removal answers the data version from after its section",
        origin="port",
        file="structures/cursor_heap.pxd",
        old="""
if version:
    registry_give(&heap.registry, &cursor.node)
""",
        new="""
if version:
    version = registry_version(&heap.registry)
    registry_give(&heap.registry, &cursor.node)
""",
        suite="cursor_heap",
        breaks=BREAKS,
        cimports="from pulsar_ml.structures.cursor_registry cimport registry_version",
        executions=24_000,
    ),
    Mutant(
        id="A22",
        title="the end of the grace period is decided before the size is read",
        origin="port",
        file="structures/cursor_registry.pxd",
        old="""
if i64_load_acquire(&registry.size) > 0:
    return False
""",
        new="return registry_idle_backwards(registry, now, grace)",
        helper="""
cdef inline bint registry_idle_backwards(
    const CursorRegistry* registry, int64_t now, int64_t grace
) noexcept nogil:
    cdef int64_t left_at = i64_load_relaxed(&registry.left_at)
    if i64_load_acquire(&registry.size) > 0:
        return False
    return grace <= 0 or <int64_t>(<uint64_t>now - <uint64_t>left_at) >= grace
""",
        suite="active_cursors",
        breaks=BREAKS,
        executions=20_000,
        programs=ControlledSize(mix={"add": 2, "remove": 3, "should_cache": 4}, operations=(4, 6)),
        settings={"grace": (40, 50), "cursors": (4, 4)},
    ),
    Mutant(
        id="A23",
        title="the split of a request is counted in a separate section",
        origin="port",
        file="structures/pending_reads.pxd",
        old="""
if split:
    pending_add_counts(&reads.counts, &counts)
else:
    pending_detach(reads, request)
monitor_leave(&reads.monitor)
""",
        new="""
if not split:
    pending_detach(reads, request)
monitor_leave(&reads.monitor)
monitor_enter(&reads.monitor)
if split:
    pending_add_counts(&reads.counts, &counts)
monitor_leave(&reads.monitor)
""",
        suite="pending_reads",
        breaks=BREAKS,
        executions=20_000,
        programs=ControlledSize(mix={"read": 8, "counts": 4}, operations=(3, 5)),
    ),
    Mutant(
        id="AI1",
        title="the permits of a release come back in two halves",
        origin="port",
        file="structures/inflight_limiter.pxd",
        old="limiter_tell(limiter, limiter_give_back(limiter, permits))",
        new="""
limiter_tell(limiter, limiter_give_back(limiter, permits // 2))
limiter_tell(limiter, limiter_give_back(limiter, permits - permits // 2))
""",
        suite="inflight_limiter",
        breaks=BREAKS,
        executions=4_000,
        settings={"maximum": (40, 64)},
    ),
)
