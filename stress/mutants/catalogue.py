"""The catalogue of mutants: for each bug its origin, the text it replaces and what must catch it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One wrong change of the native core.

    Attributes:
        id: short name, also on the command line.
        title: the mistake in a few words.
        origin: the issue or pull request of Apache Pulsar where it was seen, or "port" for a mistake that a
            port may make.
        file: path below ``pulsar_ml/``.
        old: lines that occur exactly once in the file; they may be indented further there.
        new: lines in their place.
        suite: the suite that must report it.
        breaks: invariants it breaks, for the reader.
        rare: real threads need some hundreds of trials or more; swept only when it is named.
        mode: "" for what real threads show. Otherwise only the controlled engine looks for it, in this
            mode: it takes weak memory, or a moment that real threads hardly meet.
        helper: functions to put before the function that is changed.
        cimports: declarations that the new text needs.
    """

    id: str
    title: str
    origin: str
    file: str
    old: str
    new: str
    suite: str
    breaks: str
    rare: bool = False
    helper: str = ""
    cimports: str = ""
    mode: str = ""


REFCOUNT = "structures/refcount.pxd"
WRAPPER = "structures/entry_wrapper.pxd"
RANGE_CACHE = "structures/range_cache.pxd"
REMOVAL_QUEUE = "structures/removal_queue.pxd"
STAMPED_LOCK = "structures/stamped_lock.pxd"
OBJECT_POOL = "structures/object_pool.pxd"
MPSC_QUEUE = "structures/mpsc_queue.pxd"
POSITION_MAP = "structures/position_map.pxd"
DIRECTORY = "structures/map_directory.pxd"

RELEASE = """
if i32_cas_weak_release(count, &seen, seen - references):
    if seen > references:
        return RELEASED
    # Reads the zero just written, the end of every release's sequence. A load and not a
    # fence, because thread sanitizers understand it.
    i32_load_acquire(count)
    return RELEASED_LAST
"""

LINK = """
status = map_put_if_absent(&cache.map, key, handle)
"""

REMOVE_ONE = """
wrapper = wrapper_at(&cache.memory.wrappers, handle)
stamped_lock_write(&wrapper.lock)
if wrapper_holds(wrapper, key, cache.number):
    range_cache_unlink(cache, key, handle, wrapper, &removed)
stamped_unlock_write(&wrapper.lock)
"""

JUDGE = """
if run.by_time:
    # The difference, not the values, is compared: clocks may be negative or wrap.
    age = <uint64_t>run.threshold - <uint64_t>i64_load_relaxed(&wrapper.timestamp)
    if <int64_t>age <= 0:
        return STOP
elif run.removed.bytes >= run.target:
    return STOP
"""

FOUND_PAGE = """    found[0] = handle
    return page
"""

CATALOGUE: tuple[Mutant, ...] = (
    Mutant(
        id="H01",
        title="retain adds first and looks afterwards",
        origin="#2993, fixed by #2995",
        file=REFCOUNT,
        old="""
while 0 < seen < INT32_MAX:
    if i32_cas_weak_acquire(count, &seen, seen + 1):
        return True
return False
""",
        new="""
if i32_fetch_add_relaxed(count, 1) > 0:
    return True
i32_fetch_sub_relaxed(count, 1)
return False
""",
        suite="refcount",
        breaks="I12, I18",
        cimports="from pulsar_ml.sync.atomics cimport i32_fetch_add_relaxed, i32_fetch_sub_relaxed",
    ),
    Mutant(
        id="H02",
        title="two removers give back the reference of one entry",
        origin="#10433, fixed by #22789",
        file=RANGE_CACHE,
        old=REMOVE_ONE,
        new="""
remove_whatever_is_there(cache, key, handle, wrapper_at(&cache.memory.wrappers, handle), &removed)
""",
        helper="""
cdef inline void remove_whatever_is_there(
    RangeCache* cache, Position key, uint32_t handle, EntryWrapper* wrapper, Removed* removed
) noexcept nogil:
    cdef uint32_t entry = u32_load_relaxed(&wrapper.value)
    cdef int64_t size
    if not entry:
        return
    stamped_lock_write(&wrapper.lock)
    map_remove(&cache.map, key, handle)
    size = wrapper_clear(wrapper, key, entry, cache.number)
    entry_release(&cache.memory.entries, entry, 1)
    if size >= 0:
        removed.bytes += size
        removed.entries += 1
    stamped_unlock_write(&wrapper.lock)
""",
        suite="range_cache",
        breaks="I16, I32, I14",
    ),
    Mutant(
        id="H03",
        title="put counts and reports success before it knows who won the position",
        origin="#21301, fixed by #21302",
        file=RANGE_CACHE,
        old=LINK,
        new="""
status = map_put_if_absent(&cache.map, key, handle)
if status == PML_EXISTS:
    i64_fetch_add_relaxed(&cache.size, length)
    wrapper_empty(wrapper)
    stamped_unlock_write(&wrapper.lock)
    wrapper_recycle(&memory.wrappers, handle)
    return PML_OK
""",
        suite="range_cache",
        breaks="I35, I17, I46",
    ),
    Mutant(
        id="H06",
        title="a read does not look at the wrapper again after it retained the entry",
        origin="like #22789; found here by the range_cache suite",
        file=RANGE_CACHE,
        old="""
if entry_retain(&memory.entries, entry):
    if wrapper_unchanged(wrapper, stamp):
        break
    entry_release(&memory.entries, entry, 1)
elif wrapper_unchanged(wrapper, stamp):
    return 0
""",
        new="""
if entry_retain(&memory.entries, entry):
    break
return 0
""",
        suite="broker_cache",
        breaks="I11, I1",
        rare=True,
    ),
    Mutant(
        id="H08",
        title="an optimistic read is used without validation",
        origin="the step from #22814 to #22818",
        file=WRAPPER,
        old="""
if not stamped_validate(&wrapper.lock, stamp[0]):
    stamped_lock_read(&wrapper.lock)
    stamp[0] = stamped_optimistic(&wrapper.lock)
    ledger_id = i64_load_relaxed(&wrapper.ledger_id)
    entry_id = i64_load_relaxed(&wrapper.entry_id)
    value = u32_load_relaxed(&wrapper.value)
    holder = u32_load_relaxed(&wrapper.owner)
    stamped_unlock_read(&wrapper.lock)
""",
        new="pass",
        suite="entry_wrapper",
        breaks="I9",
    ),
    Mutant(
        id="H10",
        title="removal retains twice and releases once",
        origin="introduced by #23903, fixed by #23955",
        file=RANGE_CACHE,
        old="retained = entry_retain(&memory.entries, entry)",
        new="""
retained = entry_retain(&memory.entries, entry)
entry_retain(&memory.entries, entry)
""",
        suite="range_cache",
        breaks="I16, I17",
    ),
    Mutant(
        id="H12",
        title="the size is measured again at removal",
        origin="before #22789",
        file=RANGE_CACHE,
        old="removed.bytes += wrapper_clear(wrapper, key, entry, cache.number)",
        new="""
wrapper_clear(wrapper, key, entry, cache.number)
removed.bytes += entry_payload(entry_at(&memory.entries, entry)).length
""",
        suite="range_cache",
        breaks="I44, I43",
        cimports="from pulsar_ml.structures.entry cimport entry_at, entry_payload",
    ),
    Mutant(
        id="H13",
        title="the wrapper is queued before the map is asked",
        origin="#24363 before it was merged",
        file=RANGE_CACHE,
        old=LINK,
        new="""
mpsc_offer(cache.queue, handle)
status = map_put_if_absent(&cache.map, key, handle)
if status == PML_OK:
    i64_fetch_add_relaxed(&cache.size, length)
    stamped_unlock_write(&wrapper.lock)
    return PML_OK
""",
        suite="removal_queue",
        breaks="I22, I23, I24, I26",
    ),
    Mutant(
        id="M13",
        title="release loads, subtracts and stores",
        origin="port",
        file=REFCOUNT,
        old=RELEASE,
        new="""
i32_store_relaxed(count, seen - references)
return RELEASED if seen > references else RELEASED_LAST
""",
        suite="refcount",
        breaks="I13, I14",
        cimports="from pulsar_ml.sync.atomics cimport i32_store_relaxed",
    ),
    Mutant(
        id="M17",
        title="the remover recycles the wrapper instead of the queue's consumer",
        origin="port",
        file=RANGE_CACHE,
        old=REMOVE_ONE,
        new="""
wrapper = wrapper_at(&cache.memory.wrappers, handle)
stamped_lock_write(&wrapper.lock)
if wrapper_holds(wrapper, key, cache.number):
    range_cache_unlink(cache, key, handle, wrapper, &removed)
    stamped_unlock_write(&wrapper.lock)
    wrapper_recycle(&cache.memory.wrappers, handle)
else:
    stamped_unlock_write(&wrapper.lock)
""",
        suite="removal_queue",
        breaks="I25, I22",
    ),
    Mutant(
        id="M20",
        title="a wrapper found empty is polled and never recycled",
        origin="port",
        file=REMOVAL_QUEUE,
        old="""
run.missing += verdict == MISSING
wrapper_recycle(&queue.memory.wrappers, handle)
""",
        new="""
run.missing += verdict == MISSING
if verdict != MISSING:
    wrapper_recycle(&queue.memory.wrappers, handle)
""",
        suite="removal_queue",
        breaks="I23",
    ),
    Mutant(
        id="M21",
        title="a wrapper found empty counts as a removal",
        origin="port",
        file=REMOVAL_QUEUE,
        old="""
verdict = MISSING
""",
        new="""
verdict = MISSING
run.removed.entries += 1
""",
        suite="removal_queue",
        breaks="I60, I47",
    ),
    Mutant(
        id="M22",
        title="a size pass removes one more at an exact fit",
        origin="port",
        file=REMOVAL_QUEUE,
        old=JUDGE,
        new=JUDGE.replace("run.removed.bytes >= run.target", "run.removed.bytes > run.target"),
        suite="removal_queue",
        breaks="I53",
    ),
    Mutant(
        id="M24",
        title="requeued bytes count as freed",
        origin="port",
        file=REMOVAL_QUEUE,
        old="wrapper_mark_requeued(wrapper, run.now)",
        new="""
wrapper_mark_requeued(wrapper, run.now)
run.removed.bytes += wrapper.size
""",
        suite="removal_queue",
        breaks="I54, I46",
    ),
    Mutant(
        id="M26",
        title="a time pass removes what is exactly at the threshold",
        origin="port",
        file=REMOVAL_QUEUE,
        old=JUDGE,
        new=JUDGE.replace("<int64_t>age <= 0", "<int64_t>age < 0"),
        suite="removal_queue",
        breaks="I51",
    ),
    Mutant(
        id="M29",
        title="a requeue leaves the accessed mark",
        origin="port",
        file=WRAPPER,
        old="""
i64_store_relaxed(&wrapper.timestamp, now)
u8_store_relaxed(&wrapper.accessed, 0)
""",
        new="i64_store_relaxed(&wrapper.timestamp, now)",
        suite="removal_queue",
        breaks="I59",
    ),
    Mutant(
        id="M31",
        title="a new incarnation starts with requeues",
        origin="port",
        file=WRAPPER,
        old="""
wrapper.requeue_count = 0
u8_store_relaxed(&wrapper.accessed, 0)
""",
        new="""
wrapper.requeue_count = 2
u8_store_relaxed(&wrapper.accessed, 0)
""",
        suite="entry_wrapper",
        breaks="I30, I56",
    ),
    Mutant(
        id="M32",
        title="one requeue too many",
        origin="port",
        file=REMOVAL_QUEUE,
        old="""
return (wrapper.requeue_count < queue.max_requeue_count
        and entry_has_expected_reads(&queue.memory.entries, u32_load_relaxed(&wrapper.value)))
""",
        new="""
return (wrapper.requeue_count <= queue.max_requeue_count
        and entry_has_expected_reads(&queue.memory.entries, u32_load_relaxed(&wrapper.value)))
""",
        suite="removal_queue",
        breaks="I56",
    ),
    Mutant(
        id="M35",
        title="the size is taken off twice",
        origin="port",
        file=REMOVAL_QUEUE,
        old="i64_fetch_sub_relaxed(&cache.size, removed.bytes - before)",
        new="i64_fetch_sub_relaxed(&cache.size, 2 * (removed.bytes - before))",
        suite="removal_queue",
        breaks="I40, I45",
    ),
    Mutant(
        id="M37",
        title="the size is added by load and store",
        origin="port",
        file=RANGE_CACHE,
        old="i64_fetch_add_relaxed(&cache.size, length)",
        new="i64_store_relaxed(&cache.size, i64_load_relaxed(&cache.size) + length)",
        suite="range_cache",
        breaks="I41, I45",
    ),
    Mutant(
        id="M54",
        title="a read is marked by load and store",
        origin="port",
        file="structures/read_count.pxd",
        old="i32_fetch_sub_relaxed(&read_count_at(pool, handle).expected, 1)",
        new="""
i32_store_relaxed(&read_count_at(pool, handle).expected,
                  i32_load_relaxed(&read_count_at(pool, handle).expected) - 1)
""",
        suite="read_count",
        breaks="I67",
    ),
    # Of the controlled engine ------------------------------------------------------------------------
    Mutant(
        id="M01",
        title="an optimistic read is validated without the acquire fence",
        origin="port",
        file=STAMPED_LOCK,
        old="fence_acquire()",
        new="pass",
        suite="stamped_lock",
        breaks="I9",
        mode="c11",
    ),
    Mutant(
        id="M02",
        title="a write section begins without the release fence",
        origin="port",
        file=STAMPED_LOCK,
        old="fence_release()",
        new="pass",
        suite="stamped_lock",
        breaks="I9",
        mode="c11",
    ),
    Mutant(
        id="M02b",
        title="a write section ends with a relaxed store",
        origin="port",
        file=STAMPED_LOCK,
        old="u64_store_release(lock, u64_load_relaxed(lock) + STAMPED_WRITER)",
        new="u64_store_relaxed(lock, u64_load_relaxed(lock) + STAMPED_WRITER)",
        suite="stamped_lock",
        breaks="I9, SL-2",
        cimports="from pulsar_ml.sync.atomics cimport u64_store_relaxed",
        mode="c11",
    ),
    Mutant(
        id="M06",
        title="an object is given back by a relaxed exchange",
        origin="port",
        file=OBJECT_POOL,
        old="""
if u64_cas_weak_release(&pool.head, &seen, ((seen >> 32) + 1) << 32 | first):
    return
""",
        new="""
if u64_cas_weak_relaxed(&pool.head, &seen, ((seen >> 32) + 1) << 32 | first):
    return
""",
        suite="object_pool",
        breaks="OP-2, I34",
        cimports="from pulsar_ml.sync.atomics cimport u64_cas_weak_relaxed",
        mode="c11",
    ),
    Mutant(
        id="M09b",
        title="a page is linked in its branch by a relaxed exchange",
        origin="port",
        file=POSITION_MAP,
        old="""
if u64_cas_strong_acq_rel(&branch.pages[slot], &seen, ((seen >> 32) + 1) << 32 | handle):
    u32_store_relaxed(&page.node.parent, parent)
    found[0] = handle
    return page
""",
        new="""
if u64_cas_weak_relaxed(&branch.pages[slot], &seen, ((seen >> 32) + 1) << 32 | handle):
    u32_store_relaxed(&page.node.parent, parent)
    found[0] = handle
    return page
""",
        suite="position_map",
        breaks="I38",
        cimports="from pulsar_ml.sync.atomics cimport u64_cas_weak_relaxed",
        mode="c11",
    ),
    Mutant(
        id="M09c",
        title="the branch of a directory's record is read relaxed",
        origin="found here by the engine in the position_map suite",
        file=DIRECTORY,
        old="return <uint32_t>u64_load_acquire(&array.records[index].branch)",
        new="return <uint32_t>u64_load_relaxed(&array.records[index].branch)",
        suite="position_map",
        breaks="I38",
        mode="c11",
    ),
    Mutant(
        id="M11",
        title="a reference is given back by a relaxed exchange",
        origin="port",
        file=REFCOUNT,
        old=RELEASE,
        new=RELEASE.replace("i32_cas_weak_release", "i32_cas_weak_relaxed"),
        suite="refcount",
        breaks="I2, I14",
        cimports="from pulsar_ml.sync.atomics cimport i32_cas_weak_relaxed",
        mode="c11",
    ),
    Mutant(
        id="M11b",
        title="the last release does not acquire the others'",
        origin="port",
        file=REFCOUNT,
        old=RELEASE,
        new=RELEASE.replace("i32_load_acquire(count)", "pass"),
        suite="refcount",
        breaks="I2, I14",
        mode="c11",
    ),
    Mutant(
        id="M14b",
        title="a count is published by a relaxed store",
        origin="port",
        file=REFCOUNT,
        old="i32_store_release(count, 1)",
        new="i32_store_relaxed(count, 1)",
        suite="refcount",
        breaks="I12, I34",
        cimports="from pulsar_ml.sync.atomics cimport i32_store_relaxed",
        mode="c11",
    ),
    Mutant(
        id="Q01",
        title="a producer fills its slot by a relaxed store",
        origin="port",
        file=MPSC_QUEUE,
        old="u32_store_release(&chunk.slots[place], handle)",
        new="u32_store_relaxed(&chunk.slots[place], handle)",
        suite="mpsc_queue",
        breaks="MQ-1",
        mode="c11",
    ),
    Mutant(
        id="D01",
        title="a reserved page is taken for the linked one by its label alone",
        origin="found here by the engine in the position_map suite",
        file=POSITION_MAP,
        old="""
if (node_serves(&page.node, map, at.ledger_id, first_id)
        and u64_load_relaxed(&branch.pages[slot]) == seen):
"""
        + FOUND_PAGE,
        new="if node_serves(&page.node, map, at.ledger_id, first_id):\n" + FOUND_PAGE,
        suite="position_map",
        breaks="I7, I39",
        mode="c11",
        rare=True,
    ),
    Mutant(
        id="D02",
        title="a reserved branch is taken for the one in the directory by its label alone",
        origin="found here by the engine in the position_map suite",
        file=POSITION_MAP,
        old="""
if (node_serves(&branch.node, map, at.ledger_id, first_id)
        and directory_proved(&map.directory, proof)):
    return handle
""",
        new="""
if node_serves(&branch.node, map, at.ledger_id, first_id):
    return handle
""",
        suite="position_map",
        breaks="I7, I39",
        mode="c11",
        rare=True,
    ),
)
