# The first revision's policy: what still expects reads is stashed until it was read or is too old.
#
# Origin       RangeCacheRemovalQueue with its stash, in the first revision of PIP-430 (#24444):
#              results REMOVE, STASH, STOP and MISSING, the stash before the queue, a second time to
#              live for entries with expected reads, trimming. The release replaced it by
#              requeueing.
# Threads      Steps: under the monitor.
# Invariants   SQ-1 (I22, I23) a wrapper is in the queue or in the stash, at most once.
#              SQ-2 (I51, I53) time and size passes stop as those of the removal queue do.
#              SQ-3 no entry that expects reads is removed before it is time_to_live_max old.
# Ordering     See monitor.pxd and mpsc_queue.pxd.
# Reclamation  As for the removal queue; a hole in the stash is closed when half of it is holes.
# Not promised That a size pass reaches its target: entries that are stashed and not old stay. A
#              pass looks at the whole stash first, however long it is.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsar_ml.structures.entry cimport entry_has_expected_reads
from pulsar_ml.structures.entry_wrapper cimport EntryWrapper, wrapper_at, wrapper_is_empty, wrapper_recycle
from pulsar_ml.structures.mpsc_queue cimport mpsc_peek, mpsc_poll
from pulsar_ml.structures.policy_pass cimport (
    MISSING, REMOVE, REQUEUE, STOP, EvictionPass, PolicyBase, PolicyRow, PassVerdict, pass_give_up,
    pass_is_before, pass_remove, policy_row,
)
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.structures.value_ring cimport (
    RingSlot, ValueRing, ring_at, ring_count, ring_destroy, ring_pop, ring_push,
)
from pulsar_ml.sync.atomics cimport i64_load_relaxed, u32_load_relaxed


cdef struct Stash:
    ValueRing ring          # handles; 0 for a hole
    uint64_t holes
    uint64_t serial         # changes when indices do


# Inside the write section of a wrapper that holds a value. REQUEUE means: into the stash, or stay
# there.
cdef inline PassVerdict stash_judge(
    const PolicyBase* base, const EntryWrapper* wrapper, const EvictionPass* run
) noexcept nogil:
    cdef bint expects = entry_has_expected_reads(&base.memory.entries, u32_load_relaxed(&wrapper.value))
    # Unsigned: a clock may be negative.
    cdef int64_t oldest = <int64_t>(<uint64_t>run.now - <uint64_t>base.settings.time_to_live_max)
    if run.by_time:
        if not pass_is_before(i64_load_relaxed(&wrapper.timestamp), run.threshold):
            return STOP
    elif run.removed.bytes >= run.target:
        return STOP
    if expects and not pass_is_before(i64_load_relaxed(&wrapper.timestamp), oldest):
        return REQUEUE
    return REMOVE


cdef inline PassVerdict stash_decide(
    const PolicyBase* base, uint32_t handle, EvictionPass* run
) noexcept nogil:
    cdef EntryWrapper* wrapper = wrapper_at(&base.memory.wrappers, handle)
    cdef PassVerdict verdict = MISSING
    stamped_lock_write(&wrapper.lock)
    if not wrapper_is_empty(wrapper):
        verdict = stash_judge(base, wrapper, run)
        if verdict == REMOVE:
            pass_remove(base, run, handle, wrapper)
    stamped_unlock_write(&wrapper.lock)
    return verdict


# Handles the next wrapper of the stash, then of the queue; False when the pass is over. Under the
# monitor.
cdef inline bint stash_step(PolicyBase* base, EvictionPass* run) noexcept nogil:
    cdef Stash* stash = <Stash*>base.state
    if not run.begun or (not run.second and run.serial != stash.serial):
        run.begun = True
        run.serial = stash.serial
        run.index = stash.ring.head
    if not run.second:
        if run.index < stash.ring.head:
            run.index = stash.ring.head
        while run.index < stash.ring.tail and not ring_at(&stash.ring, run.index).value:
            run.index += 1
        if run.index < stash.ring.tail:
            return stash_step_inside(base, stash, run)
        run.second = True
        stash_maybe_trim(stash)
    return stash_step_queue(base, stash, run)


cdef inline bint stash_step_inside(PolicyBase* base, Stash* stash, EvictionPass* run) noexcept nogil:
    cdef RingSlot* slot = ring_at(&stash.ring, run.index)
    cdef uint32_t handle = <uint32_t>slot.value
    cdef PassVerdict verdict = stash_decide(base, handle, run)
    if verdict == STOP:
        return False
    run.index += 1
    if verdict == REQUEUE:
        return True
    slot.value = 0
    stash.holes += 1
    while ring_count(&stash.ring) and not ring_at(&stash.ring, stash.ring.head).value:
        ring_pop(&stash.ring)
        stash.holes -= 1
    run.missing += verdict == MISSING
    wrapper_recycle(&base.memory.wrappers, handle)
    return True


cdef inline bint stash_step_queue(PolicyBase* base, Stash* stash, EvictionPass* run) noexcept nogil:
    cdef uint32_t handle = mpsc_peek(&base.intake.queue)
    cdef PassVerdict verdict
    if not handle:
        return False
    verdict = stash_decide(base, handle, run)
    if verdict == STOP:
        return False
    mpsc_poll(&base.intake.queue)
    if verdict == REQUEUE:
        if ring_push(&stash.ring, handle, 0):
            run.requeued += 1
        else:
            pass_give_up(base, run, handle, wrapper_at(&base.memory.wrappers, handle))
        return True
    run.missing += verdict == MISSING
    wrapper_recycle(&base.memory.wrappers, handle)
    return True


# Closes the holes when they are more than half.
cdef inline void stash_maybe_trim(Stash* stash) noexcept nogil:
    cdef uint64_t index, kept = stash.ring.head
    if stash.holes * 2 <= ring_count(&stash.ring):
        return
    for index in range(stash.ring.head, stash.ring.tail):
        if ring_at(&stash.ring, index).value:
            ring_at(&stash.ring, kept)[0] = ring_at(&stash.ring, index)[0]
            kept += 1
    stash.ring.tail = kept
    stash.holes = 0
    stash.serial += 1


cdef inline void stash_destroy(PolicyBase* base) noexcept nogil:
    ring_destroy(&(<Stash*>base.state).ring)


cdef inline int64_t stash_held(const PolicyBase* base) noexcept nogil:
    cdef const Stash* stash = <const Stash*>base.state
    return <int64_t>(ring_count(&stash.ring) - stash.holes)


cdef inline PolicyRow stash_queue_row() noexcept nogil:
    cdef PolicyRow row = policy_row(b"stash_queue", b"the first revision of PIP-430", stash_step)
    row.state_bytes = sizeof(Stash)
    row.destroy = stash_destroy
    row.held = stash_held
    row.merges_counts = True
    row.frees_target = False
    row.most_keeps = -1     # the stash takes wrappers that come during the pass, too
    return row
