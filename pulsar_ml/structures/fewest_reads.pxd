# A size pass takes the entries with the fewest expected reads first, and among those the oldest.
#
# Origin       Alternative 2 of PIP-430, which the proposal rejects because read counts change while
#              entries are queued: a priority queue by expected reads, then timestamp. Here a size
#              pass notes all counts when it begins and orders them then, once. A time pass is that
#              of the first revision (stash_queue).
# Threads      Steps: under the monitor.
# Invariants   PQ-1 (I22, I23) a wrapper is in the intake or in the list, at most once.
#              PQ-2 (I53, I54) a size pass removes by the expected reads that it noted when it
#              began, fewest first, then by time of the put, oldest first, until enough is free;
#              what was put meanwhile comes after all those.
#              PQ-3 (I51) a time pass goes by arrival up to the first entry that is not older than
#              its threshold, and leaves what expects reads until that is time_to_live_max old.
#              PQ-4 (I57) neither pass keeps a wrapper twice.
# Ordering     See monitor.pxd and mpsc_queue.pxd.
# Reclamation  Nodes as in lru.pxd; the plan of a size pass is reused and goes with the policy.
# Not promised That a change of expected reads during a size pass matters to it. Without memory for
#              a plan a size pass goes by arrival. The first step of a size pass looks at every
#              wrapper, however many there are.

from libc.stdint cimport INT32_MIN, int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.structures.entry cimport entry_read_count
from pulsar_ml.structures.entry_wrapper cimport EntryWrapper, wrapper_at, wrapper_is_empty, wrapper_recycle
from pulsar_ml.structures.lru cimport (
    LruList, lru_collect, lru_destroy, lru_init, lru_node, lru_unlink,
)
from pulsar_ml.structures.mpsc_queue cimport mpsc_peek, mpsc_poll
from pulsar_ml.structures.policy_pass cimport (
    MISSING, REMOVE, REQUEUE, STOP, EvictionPass, PassVerdict, PolicyBase, PolicyRow, pass_is_before,
    pass_remove, policy_row,
)
from pulsar_ml.structures.read_count cimport read_count_value
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.structures.stash_queue cimport stash_judge
from pulsar_ml.sync.atomics cimport i64_load_relaxed, u32_load_relaxed
from pulsar_ml.sync.memory cimport allocate_zeroed, release


# A wrapper in the order of a size pass; empty ones come first.
cdef struct Planned:
    int64_t timestamp
    int32_t expected
    uint32_t arrival
    uint32_t handle


cdef struct PriorityQueue:
    LruList list            # in order of arrival; first, for the functions of lru.pxd
    Planned* plan           # a binary heap, the next victim at its top
    uint32_t planned
    uint32_t capacity
    uint64_t serial         # changes when a wrapper leaves the list


cdef inline void priority_destroy(PolicyBase* base) noexcept nogil:
    lru_destroy(base)
    release((<PriorityQueue*>base.state).plan)


# True if `one` leaves before `other`.
cdef inline bint planned_before(const Planned* one, const Planned* other) noexcept nogil:
    if one.expected != other.expected:
        return one.expected < other.expected
    if one.timestamp != other.timestamp:
        return pass_is_before(one.timestamp, other.timestamp)
    return one.arrival < other.arrival


cdef inline void plan_sift_down(PriorityQueue* queue, uint32_t index) noexcept nogil:
    cdef Planned moved = queue.plan[index]
    cdef uint32_t child = 2 * index + 1
    while child < queue.planned:
        if child + 1 < queue.planned and planned_before(&queue.plan[child + 1], &queue.plan[child]):
            child += 1
        if not planned_before(&queue.plan[child], &moved):
            break
        queue.plan[index] = queue.plan[child]
        index = child
        child = 2 * index + 1
    queue.plan[index] = moved


cdef inline void plan_pop(PriorityQueue* queue) noexcept nogil:
    queue.planned -= 1
    queue.plan[0] = queue.plan[queue.planned]
    if queue.planned:
        plan_sift_down(queue, 0)


# Notes the expected reads of everything in the list and orders it. False without memory.
cdef inline bint plan_make(const PolicyBase* base, PriorityQueue* queue) noexcept nogil:
    cdef uint32_t handle = queue.list.oldest
    cdef uint32_t index = 0
    queue.planned = 0
    if queue.list.count > queue.capacity:
        release(queue.plan)
        # Half as many again, so that a cache that grows seldom comes here.
        queue.capacity = queue.list.count + queue.list.count // 2
        queue.plan = <Planned*>allocate_zeroed(queue.capacity, sizeof(Planned))
        if queue.plan is NULL:
            queue.capacity = 0
            return False
    while handle:
        queue.plan[index] = planned_of(base, handle, index)
        index += 1
        handle = lru_node(&queue.list, handle).newer
    queue.planned = index
    index //= 2
    while index:
        index -= 1
        plan_sift_down(queue, index)
    return True


cdef inline Planned planned_of(
    const PolicyBase* base, uint32_t handle, uint32_t arrival
) noexcept nogil:
    cdef EntryWrapper* wrapper = wrapper_at(&base.memory.wrappers, handle)
    cdef Planned planned = Planned(0, INT32_MIN, arrival, handle)
    cdef uint32_t read_count
    stamped_lock_write(&wrapper.lock)
    if not wrapper_is_empty(wrapper):
        read_count = entry_read_count(&base.memory.entries, u32_load_relaxed(&wrapper.value))
        planned.timestamp = i64_load_relaxed(&wrapper.timestamp)
        planned.expected = (read_count_value(&base.memory.entries.read_counts, read_count)
                            if read_count else 0)
    stamped_unlock_write(&wrapper.lock)
    return planned


# Inside the write section of a wrapper that holds a value. REQUEUE means: it stays where it is.
cdef inline PassVerdict priority_judge(
    const PolicyBase* base, const EntryWrapper* wrapper, const EvictionPass* run
) noexcept nogil:
    if run.by_time:
        return stash_judge(base, wrapper, run)
    return STOP if run.removed.bytes >= run.target else REMOVE


cdef inline PassVerdict priority_decide(
    const PolicyBase* base, uint32_t handle, EvictionPass* run
) noexcept nogil:
    cdef EntryWrapper* wrapper = wrapper_at(&base.memory.wrappers, handle)
    cdef PassVerdict verdict = MISSING
    stamped_lock_write(&wrapper.lock)
    if not wrapper_is_empty(wrapper):
        verdict = priority_judge(base, wrapper, run)
        if verdict == REMOVE:
            pass_remove(base, run, handle, wrapper)
    stamped_unlock_write(&wrapper.lock)
    return verdict


# The wrapper that a pass looks at next, 0 for none in the list. Under the monitor.
cdef inline uint32_t priority_next(
    const PolicyBase* base, PriorityQueue* queue, EvictionPass* run
) noexcept nogil:
    if run.by_time:
        # Another pass removed something meanwhile: the walk begins again.
        if not run.begun or run.serial != queue.serial:
            run.begun = True
            run.serial = queue.serial
            run.index = queue.list.oldest
        return <uint32_t>run.index
    if not run.begun or (not queue.planned and not run.unplanned):
        run.begun = True
        run.unplanned = not plan_make(base, queue)
    if run.unplanned:
        return queue.list.oldest
    return queue.plan[0].handle if queue.planned else 0


# Takes a wrapper out of the list, and with `popped` off the top of the plan.
cdef inline void priority_drop(
    const PolicyBase* base, PriorityQueue* queue, uint32_t handle, bint popped
) noexcept nogil:
    if popped:
        plan_pop(queue)
    else:
        # It may be anywhere in the plan: a size pass makes another.
        queue.planned = 0
    lru_unlink(&queue.list, handle)
    queue.serial += 1
    wrapper_recycle(&base.memory.wrappers, handle)


# Handles one wrapper; False when the pass is over. Under the monitor.
cdef inline bint priority_step(PolicyBase* base, EvictionPass* run) noexcept nogil:
    cdef PriorityQueue* queue = <PriorityQueue*>base.state
    cdef bint collected = lru_collect(&base.intake, &queue.list)
    cdef uint32_t handle = priority_next(base, queue, run)
    cdef PassVerdict verdict
    cdef uint32_t newer
    if not handle:
        return not collected and priority_step_waiting(base, run)
    verdict = priority_decide(base, handle, run)
    if verdict == STOP:
        return False
    newer = lru_node(&queue.list, handle).newer
    if verdict == REQUEUE:
        run.index = newer
        return True
    run.missing += verdict == MISSING
    priority_drop(base, queue, handle, not run.by_time and not run.unplanned)
    if run.by_time:
        run.index = newer
        run.serial = queue.serial
    return True


# Handles the oldest of the intake where it is: there is no memory for a node.
cdef inline bint priority_step_waiting(PolicyBase* base, EvictionPass* run) noexcept nogil:
    cdef uint32_t handle = mpsc_peek(&base.intake.queue)
    cdef PassVerdict verdict
    if not handle:
        return False
    verdict = priority_decide(base, handle, run)
    if verdict == STOP or verdict == REQUEUE:
        return False
    mpsc_poll(&base.intake.queue)
    run.missing += verdict == MISSING
    wrapper_recycle(&base.memory.wrappers, handle)
    return True


cdef inline int64_t priority_held(const PolicyBase* base) noexcept nogil:
    return (<const PriorityQueue*>base.state).list.count


cdef inline PolicyRow priority_queue_row() noexcept nogil:
    cdef PolicyRow row = policy_row(
        b"priority_queue", b"fewest expected reads first: alternative 2 of PIP-430", priority_step)
    row.state_bytes = sizeof(PriorityQueue)
    row.init = lru_init
    row.destroy = priority_destroy
    row.held = priority_held
    return row
