# Three first-in first-out queues: a small one for what is new, a main one, and a ghost that
# remembers.
#
# Origin       S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, "FIFO Queues Are All You Need for Cache
#              Eviction", SOSP 2023), in bytes: the small queue's part is a tenth of the bytes that
#              the cache has when a size pass begins, the ghost's nine tenths.
# Threads      Steps: under the monitor. A hit (s3_touch): any thread, without waiting.
# Invariants   S3-1 (I22, I23) a wrapper is in the intake, the small or the main queue, at most
#              once.
#              S3-2 an entry that was hit more than once leaves the small queue for the main one; a
#              hit entry goes round in the main queue and loses a hit each time.
#              S3-3 an entry that a size pass removed from the small queue goes to the main queue
#              when it is put again while the ghost remembers it.
#              S3-4 (I51, I53) a time pass removes entries older than its threshold, hit or not.
#              S3-5 (I57) a pass keeps at most four times as many wrappers as there were when it
#              began.
# Ordering     Hits are relaxed; see monitor.pxd and mpsc_queue.pxd for the rest.
# Reclamation  As for the removal queue.
# Not promised That every hit is counted: two at a time may count as one. That expected reads or the
#              settings of the queues matter. Order between the intake and a hit.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsar_ml.structures.entry_wrapper cimport (
    EntryWrapper, wrapper_at, wrapper_is_empty, wrapper_key, wrapper_recycle,
)
from pulsar_ml.structures.ghost_list cimport GhostList, ghost_add, ghost_destroy, ghost_key, ghost_take
from pulsar_ml.structures.map_pages cimport place_visits
from pulsar_ml.structures.mpsc_queue cimport mpsc_peek, mpsc_poll
from pulsar_ml.structures.policy_intake cimport PolicyIntake
from pulsar_ml.structures.policy_pass cimport (
    MISSING, REMOVE, REQUEUE, STOP, EvictionPass, PolicyBase, PolicyRow, PassVerdict, pass_give_up,
    pass_is_before, pass_mark_requeued, pass_remove, policy_row,
)
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.range_cache cimport range_cache_of
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.structures.value_ring cimport (
    RingSlot, ValueRing, ring_at, ring_count, ring_destroy, ring_has_room, ring_pop, ring_push,
)
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, pml_u8, u32_load_acquire, u32_load_relaxed, u8_load_relaxed, u8_store_relaxed,
)


cdef enum:
    S3_MOST_VISITS = 3      # two bits
    # of one wrapper in a pass: once in each round that a visit is worth, and one more
    S3_MOST_KEEPS = 4


# The queue from which a turn of a size pass takes its victim.
cdef enum:
    S3_CHOOSE = 0
    S3_SMALL = 1
    S3_MAIN = 2


cdef struct S3Fifo:
    ValueRing small         # handles with the bytes counted for them
    ValueRing main
    uint64_t small_bytes    # wrappers that were emptied meanwhile included, like the next
    uint64_t main_bytes
    uint64_t capacity       # bytes that the cache had when the last size pass began
    GhostList ghost


cdef inline void s3_destroy(PolicyBase* base) noexcept nogil:
    cdef S3Fifo* s3 = <S3Fifo*>base.state
    ring_destroy(&s3.small)
    ring_destroy(&s3.main)
    ghost_destroy(&s3.ghost)


# A hit.
cdef inline void s3_touch(PolicyIntake* intake, uint32_t handle, EntryWrapper* wrapper) noexcept nogil:
    # Pairs with the release in wrapper_fill: the page.
    cdef uint32_t place = u32_load_acquire(&wrapper.place)
    cdef pml_u8* cell
    cdef uint32_t visits
    if not place:  # removed meanwhile
        return
    # The intake is the first field of its policy.
    cell = place_visits(&(<PolicyBase*>intake).memory.map, place)
    visits = u8_load_relaxed(cell)
    if visits < S3_MOST_VISITS:
        u8_store_relaxed(cell, visits + 1)


# Takes what was put meanwhile into the small queue, or into the main one when the ghost remembers
# it. What there is no memory for stays in the intake. Under the monitor.
cdef inline void s3_collect(PolicyBase* base, S3Fifo* s3, EvictionPass* run) noexcept nogil:
    cdef uint32_t handle, owner
    cdef EntryWrapper* wrapper
    cdef Position key
    cdef uint64_t size
    cdef bint empty
    while True:
        handle = mpsc_peek(&base.intake.queue)
        if not handle or not ring_has_room(&s3.small) or not ring_has_room(&s3.main):
            return
        wrapper = wrapper_at(&base.memory.wrappers, handle)
        stamped_lock_write(&wrapper.lock)
        empty = wrapper_is_empty(wrapper)
        if not empty:
            key = wrapper_key(wrapper, &base.memory.map)
            owner = range_cache_of(base.memory, wrapper).number
        size = wrapper.size
        stamped_unlock_write(&wrapper.lock)
        mpsc_poll(&base.intake.queue)
        if empty:
            run.missing += 1
            wrapper_recycle(&base.memory.wrappers, handle)
        elif ghost_take(&s3.ghost, ghost_key(owner, <uint64_t>key.ledger_id, <uint64_t>key.entry_id)):
            ring_push(&s3.main, handle, size)
            s3.main_bytes += size
        else:
            ring_push(&s3.small, handle, size)
            s3.small_bytes += size


cdef inline bint s3_step(PolicyBase* base, EvictionPass* run) noexcept nogil:
    cdef S3Fifo* s3 = <S3Fifo*>base.state
    s3_collect(base, s3, run)
    if not run.begun:
        run.begun = True
        run.round_end = S3_MOST_KEEPS * (ring_count(&s3.small) + ring_count(&s3.main))
        if not run.by_time:
            s3.capacity = s3.small_bytes + s3.main_bytes
    if run.by_time:
        return s3_step_by_time(base, s3, run)
    return s3_step_by_size(base, s3, run)


# The small queue up to what is not older, then the main one.
cdef inline bint s3_step_by_time(PolicyBase* base, S3Fifo* s3, EvictionPass* run) noexcept nogil:
    if not run.second:
        if ring_count(&s3.small) and s3_handle(base, s3, run, True) != STOP:
            return True
        run.second = True
    if ring_count(&s3.main):
        return s3_handle(base, s3, run, False) != STOP
    return s3_handle_waiting(base, run) != STOP


cdef inline bint s3_step_by_size(PolicyBase* base, S3Fifo* s3, EvictionPass* run) noexcept nogil:
    cdef PassVerdict verdict
    if not ring_count(&s3.small) and not ring_count(&s3.main):
        return s3_handle_waiting(base, run) != STOP
    if run.index == S3_CHOOSE:
        run.index = S3_SMALL if s3.small_bytes * 10 >= s3.capacity else S3_MAIN
    # A turn goes on in the queue it began in, until something left the cache or the queue is empty.
    if run.index == S3_SMALL and not ring_count(&s3.small):
        run.index = S3_MAIN
    elif run.index == S3_MAIN and not ring_count(&s3.main):
        run.index = S3_SMALL
    verdict = s3_handle(base, s3, run, run.index == S3_SMALL)
    if verdict == REMOVE:
        run.index = S3_CHOOSE
    return verdict != STOP


# Inside the write section of a wrapper that holds a value: decides, removes or marks.
cdef inline PassVerdict s3_judge(
    PolicyBase* base, S3Fifo* s3, EvictionPass* run, uint32_t handle, EntryWrapper* wrapper, bint small
) noexcept nogil:
    cdef pml_u8* cell = place_visits(&base.memory.map, u32_load_relaxed(&wrapper.place))
    cdef uint32_t visits = u8_load_relaxed(cell)
    if run.by_time:
        if not pass_is_before(i64_load_relaxed(&wrapper.timestamp), run.threshold):
            return STOP
        pass_remove(base, run, handle, wrapper)
        return REMOVE
    if run.removed.bytes >= run.target:
        return STOP
    if visits > <uint32_t>small and <uint64_t>run.requeued < run.round_end:
        u8_store_relaxed(cell, 0 if small else visits - 1)
        pass_mark_requeued(base, wrapper, run.now, 0)
        return REQUEUE
    pass_remove(base, run, handle, wrapper)
    if small:
        ghost_add(
            &s3.ghost,
            ghost_key(run.last.owner, <uint64_t>run.last.key.ledger_id, <uint64_t>run.last.key.entry_id),
            <uint64_t>run.last.size, s3.capacity - s3.capacity // 10)
    return REMOVE


# Handles the oldest of the small or of the main queue, which is not empty.
cdef inline PassVerdict s3_handle(PolicyBase* base, S3Fifo* s3, EvictionPass* run, bint small) noexcept nogil:
    cdef ValueRing* ring = &s3.small if small else &s3.main
    cdef uint32_t handle = <uint32_t>ring_at(ring, ring.head).value
    cdef EntryWrapper* wrapper = wrapper_at(&base.memory.wrappers, handle)
    cdef PassVerdict verdict = MISSING
    cdef RingSlot slot
    stamped_lock_write(&wrapper.lock)
    if not wrapper_is_empty(wrapper):
        verdict = s3_judge(base, s3, run, handle, wrapper, small)
    stamped_unlock_write(&wrapper.lock)
    if verdict == STOP:
        return STOP
    slot = ring_pop(ring)
    if small:
        s3.small_bytes -= slot.size
    else:
        s3.main_bytes -= slot.size
    if verdict == REQUEUE:
        if ring_push(&s3.main, handle, slot.size):
            s3.main_bytes += slot.size
            run.requeued += 1
        else:
            pass_give_up(base, run, handle, wrapper)
            return REMOVE
        return REQUEUE
    run.missing += verdict == MISSING
    wrapper_recycle(&base.memory.wrappers, handle)
    return verdict


# Handles the oldest of the intake where it is: there is no memory for it in a queue.
cdef inline PassVerdict s3_handle_waiting(PolicyBase* base, EvictionPass* run) noexcept nogil:
    cdef uint32_t handle = mpsc_peek(&base.intake.queue)
    cdef EntryWrapper* wrapper
    cdef PassVerdict verdict = MISSING
    if not handle:
        return STOP
    wrapper = wrapper_at(&base.memory.wrappers, handle)
    stamped_lock_write(&wrapper.lock)
    if not wrapper_is_empty(wrapper):
        verdict = REMOVE
        if run.by_time:
            if not pass_is_before(i64_load_relaxed(&wrapper.timestamp), run.threshold):
                verdict = STOP
        elif run.removed.bytes >= run.target:
            verdict = STOP
        if verdict == REMOVE:
            pass_remove(base, run, handle, wrapper)
    stamped_unlock_write(&wrapper.lock)
    if verdict == STOP:
        return STOP
    mpsc_poll(&base.intake.queue)
    run.missing += verdict == MISSING
    wrapper_recycle(&base.memory.wrappers, handle)
    return verdict


cdef inline int64_t s3_held(const PolicyBase* base) noexcept nogil:
    cdef const S3Fifo* s3 = <const S3Fifo*>base.state
    return <int64_t>(ring_count(&s3.small) + ring_count(&s3.main))


cdef inline PolicyRow s3_fifo_row() noexcept nogil:
    cdef PolicyRow row = policy_row(b"s3_fifo", b"S3-FIFO", s3_step)
    row.state_bytes = sizeof(S3Fifo)
    row.destroy = s3_destroy
    row.held = s3_held
    row.touch = s3_touch
    row.most_keeps = S3_MOST_KEEPS
    return row
