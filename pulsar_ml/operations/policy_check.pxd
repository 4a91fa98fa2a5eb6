# EP-6: the books of a policy against its lists, while no operation is under way. A list that only
# grows would answer rightly and take all memory.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlViolation
from pulsar_ml.operations.support cimport expect_equal, violate
from pulsar_ml.structures.eviction_policy cimport EvictionPolicy
from pulsar_ml.structures.fewest_reads cimport PriorityQueue, planned_before, priority_held
from pulsar_ml.structures.ghost_list cimport GhostList
from pulsar_ml.structures.lru cimport LruList, lru_held, lru_node
from pulsar_ml.structures.s3_fifo cimport S3Fifo, s3_held
from pulsar_ml.structures.stash_queue cimport Stash, stash_held
from pulsar_ml.structures.value_ring cimport RingSlot, ValueRing, ring_at, ring_count


# The bytes of the values of a ring; `values` counts them, and not what was taken out of the middle.
cdef inline int64_t ring_bytes(const ValueRing* ring, int64_t* values) noexcept nogil:
    cdef uint64_t index
    cdef RingSlot* slot
    cdef int64_t size = 0
    values[0] = 0
    for index in range(ring.head, ring.tail):
        slot = ring_at(ring, index)
        if slot.value:
            values[0] += 1
            size += <int64_t>slot.size
    return size


# Each key in the list has one cell, which knows its place.
cdef inline void ghost_check(const GhostList* ghost, PmlViolation* violation) noexcept nogil:
    cdef int64_t keys, cells = 0
    cdef int64_t size = ring_bytes(&ghost.ring, &keys)
    cdef uint64_t i
    expect_equal(violation, b"EP-6", b"keys of the ghost list", <int64_t>ghost.count, keys)
    expect_equal(violation, b"EP-6", b"bytes of the ghost list", <int64_t>ghost.bytes, size)
    if ghost.cells is NULL:
        return
    for i in range(ghost.mask + 1):
        if not ghost.cells[i].key:
            continue
        cells += 1
        if not ghost.ring.head <= ghost.cells[i].index < ghost.ring.tail:
            violate(violation, b"EP-6", b"a key of the ghost list has place %lld, which is none of %lld to "
                    b"%lld", <int64_t>ghost.cells[i].index, <int64_t>ghost.ring.head,
                    <int64_t>ghost.ring.tail)
        elif ring_at(&ghost.ring, ghost.cells[i].index).value != ghost.cells[i].key:
            violate(violation, b"EP-6", b"place %lld of the ghost list has another key",
                    <int64_t>ghost.cells[i].index, 0, 0)
    expect_equal(violation, b"EP-6", b"cells of the ghost list", cells, keys)


cdef inline void s3_check(const S3Fifo* s3, PmlViolation* violation) noexcept nogil:
    cdef int64_t values
    expect_equal(violation, b"EP-6", b"bytes of the small queue", <int64_t>s3.small_bytes,
                 ring_bytes(&s3.small, &values))
    expect_equal(violation, b"EP-6", b"bytes of the main queue", <int64_t>s3.main_bytes,
                 ring_bytes(&s3.main, &values))
    ghost_check(&s3.ghost, violation)


cdef inline void stash_check(const Stash* stash, PmlViolation* violation) noexcept nogil:
    cdef int64_t values
    ring_bytes(&stash.ring, &values)
    expect_equal(violation, b"EP-6", b"holes of the stash", <int64_t>stash.holes,
                 <int64_t>ring_count(&stash.ring) - values)


# After a pass that went through the stash while nobody else made holes: half of it at most are.
cdef inline void stash_check_trimmed(const EvictionPolicy* policy, PmlViolation* violation) noexcept nogil:
    cdef const Stash* stash = <const Stash*>policy.base.state
    if policy.row.held == stash_held and 2 * stash.holes > ring_count(&stash.ring):
        violate(violation, b"EP-6", b"%lld of %lld places of the stash are holes", <int64_t>stash.holes,
                <int64_t>ring_count(&stash.ring), 0)


# Both ways through the list.
cdef inline void lru_check(const LruList* list, PmlViolation* violation) noexcept nogil:
    cdef uint32_t handle = list.oldest
    cdef uint32_t before = 0
    cdef int64_t count = 0
    while handle and count <= list.count:
        if not lru_node(list, handle).listed or lru_node(list, handle).older != before:
            violate(violation, b"EP-6", b"wrapper %lld of the list is behind %lld", handle, before, 0)
        before = handle
        handle = lru_node(list, handle).newer
        count += 1
    expect_equal(violation, b"EP-6", b"wrappers of the list", count, list.count)
    expect_equal(violation, b"EP-6", b"the newest of the list", before, list.newest)


# What leaves first is at the top of each part of the heap.
cdef inline void plan_check(const PriorityQueue* queue, PmlViolation* violation) noexcept nogil:
    cdef uint32_t i
    for i in range(1, queue.planned):
        if planned_before(&queue.plan[i], &queue.plan[(i - 1) // 2]):
            violate(violation, b"EP-6", b"place %lld of the plan leaves before place %lld", i,
                    (i - 1) // 2, 0)


cdef inline void policy_check(const EvictionPolicy* policy, PmlViolation* violation) noexcept nogil:
    if policy.row.name is NULL or policy.row.summary is NULL or (
            policy.row.frees_target and not policy.row.queued):
        violate(violation, b"EP-6", b"the policy has no name or summary, or frees more than it can find",
                0, 0, 0)
    if policy.row.held == s3_held:
        s3_check(<const S3Fifo*>policy.base.state, violation)
    elif policy.row.held == stash_held:
        stash_check(<const Stash*>policy.base.state, violation)
    elif policy.row.held == lru_held:
        lru_check(<const LruList*>policy.base.state, violation)
    elif policy.row.held == priority_held:
        lru_check(&(<const PriorityQueue*>policy.base.state).list, violation)
        plan_check(<const PriorityQueue*>policy.base.state, violation)


# A mistake, for the tests.
cdef inline void policy_misbook(EvictionPolicy* policy) noexcept nogil:
    if policy.row.held == s3_held:
        (<S3Fifo*>policy.base.state).ghost.count += 1
    elif policy.row.held == stash_held:
        (<Stash*>policy.base.state).holes += 1
    elif policy.row.held == lru_held or policy.row.held == priority_held:
        (<LruList*>policy.base.state).newest += 1
