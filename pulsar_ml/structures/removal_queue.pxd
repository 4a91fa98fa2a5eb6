# The order in which entries of all caches leave: a first-in first-out queue of wrappers and the
# passes that drop, requeue or stop at its head. Three rules for what is kept: two released ones and
# the mended one.
#
# Origin       RangeCacheRemovalQueue (PIP-430) of Pulsar 4.2.4 is the kind released_queue, that of
#              5.0.1 released_5, whose size pass keeps in its first round only. central_queue keeps
#              an entry in the first round of any pass only, and an access does not use up the
#              extensions that expected reads have.
# Threads      Inserting (through range_cache_put) takes no monitor. Steps run under it.
# Invariants   RQ-1 (I22, I23) a wrapper is queued at most once and leaves for the pool once.
#              RQ-2 (I25, I26) only the consumer recycles queued wrappers, after polling them.
#              RQ-3 (I51, I52) a time pass removes nothing at or past its threshold and stops at the
#              first head that is not expired.
#              RQ-4 (I53, I54) a size pass stops as soon as enough bytes are free, or the queue is
#              empty.
#              RQ-5 (I55, I56, I59) a kept wrapper goes to the tail, marked in one write section.
#              RQ-6 (I60) a wrapper that was emptied meanwhile is dropped and counted nowhere.
#              RQ-7 (I61, I66, I101) passes exclude each other; the monitor comes before wrapper
#              locks.
#              RQ-8 (I57) central_queue: a pass requeues only wrappers that were queued before it
#              began, each once at most, whatever readers do; released_5: a size pass likewise.
# Ordering     See monitor.pxd, mpsc_queue.pxd, entry_wrapper.pxd.
# Reclamation  The consumer gives a wrapper back after the poll; it was emptied in a write section.
# Not promised The queue is only nearly sorted by time: an expired wrapper behind a younger head
#              stays until a later pass. released_queue: one size pass can spend every extension of
#              an entry, and entries that readers keep touching can keep a size pass busy.

from libc.stdint cimport uint32_t

from pulsar_ml.structures.entry cimport entry_has_expected_reads, entry_was_accessed
from pulsar_ml.structures.entry_wrapper cimport EntryWrapper, wrapper_at, wrapper_is_empty, wrapper_requeues
from pulsar_ml.structures.mpsc_queue cimport mpsc_offer, mpsc_peek, mpsc_poll, mpsc_tail
from pulsar_ml.structures.object_pool cimport pool_chain
from pulsar_ml.structures.policy_pass cimport (
    MISSING, REMOVE, REQUEUE, STOP, EvictionPass, PolicyBase, PolicyRow, PassVerdict, pass_give_up,
    pass_is_before, pass_mark_requeued, pass_remove, policy_row,
)
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport i64_load_relaxed, u32_load_relaxed


# Inside the wrapper's write section, the wrapper holding a value.
cdef inline bint removal_accessed(const PolicyBase* base, const EntryWrapper* wrapper) noexcept nogil:
    return (base.settings.extend_recently_accessed
            and entry_was_accessed(&base.memory.entries, u32_load_relaxed(&wrapper.value)))


cdef inline bint removal_expected(const PolicyBase* base, const EntryWrapper* wrapper) noexcept nogil:
    return (wrapper_requeues(wrapper, &base.memory.map) < base.settings.max_requeue_count
            and entry_has_expected_reads(&base.memory.entries, u32_load_relaxed(&wrapper.value)))


# True if the head was queued before the pass began. Wrappers that the pass requeues stand behind.
cdef inline bint removal_first_round(const PolicyBase* base, const EvictionPass* run) noexcept nogil:
    return base.intake.queue.head < run.round_end


# True if a pass keeps wrappers that came after it began, or that it requeued itself:
# released_queue, and a time pass of released_5.
cdef inline bint removal_keeps_again(const PolicyBase* base, const EvictionPass* run) noexcept nogil:
    return base.most_keeps < 0 or (base.one_budget and run.by_time)


# Decides, and marks what is kept (I59).
cdef inline PassVerdict removal_judge(
    const PolicyBase* base, EntryWrapper* wrapper, const EvictionPass* run
) noexcept nogil:
    if run.by_time:
        if not pass_is_before(i64_load_relaxed(&wrapper.timestamp), run.threshold):
            return STOP
    elif run.removed.bytes >= run.target:
        return STOP
    if not removal_first_round(base, run) and not removal_keeps_again(base, run):
        return REMOVE
    if removal_accessed(base, wrapper):
        pass_mark_requeued(base, wrapper, run.now, base.one_budget)
        return REQUEUE
    if removal_expected(base, wrapper):
        pass_mark_requeued(base, wrapper, run.now, 1)
        return REQUEUE
    return REMOVE


# Handles the head of the queue; False when the pass is over. Under the monitor.
cdef inline bint removal_step(PolicyBase* base, EvictionPass* run) noexcept nogil:
    cdef uint32_t handle = mpsc_peek(&base.intake.queue)
    cdef EntryWrapper* wrapper
    cdef PassVerdict verdict
    if not run.begun:
        run.begun = True
        run.round_end = mpsc_tail(&base.intake.queue)
    if not handle:
        return False
    wrapper = wrapper_at(&base.memory.wrappers, handle)
    stamped_lock_write(&wrapper.lock)
    if wrapper_is_empty(wrapper):
        verdict = MISSING
    else:
        verdict = removal_judge(base, wrapper, run)
        if verdict == REMOVE:
            pass_remove(base, run, handle, wrapper)
    stamped_unlock_write(&wrapper.lock)
    if verdict == STOP:
        return False
    mpsc_poll(&base.intake.queue)
    if verdict == REQUEUE:
        removal_requeue(base, handle, wrapper, run)
        return True
    run.missing += verdict == MISSING
    pool_chain(&run.dropped, handle, &wrapper.timestamp)
    return True


# Puts a wrapper that was polled back at the tail. Without memory for that its entry is removed: a
# wrapper outside the queue would stay for ever.
cdef inline void removal_requeue(
    PolicyBase* base, uint32_t handle, EntryWrapper* wrapper, EvictionPass* run
) noexcept nogil:
    if mpsc_offer(&base.intake.queue, handle) == PML_OK:
        run.requeued += 1
    else:
        pass_give_up(base, run, handle, wrapper)


cdef inline PolicyRow central_queue_row() noexcept nogil:
    cdef PolicyRow row = policy_row(
        b"central_queue", b"the default: PIP-430 with its weaknesses mended", removal_step)
    row.keeps_accessed = True
    return row


cdef inline PolicyRow released_queue_row() noexcept nogil:
    cdef PolicyRow row = policy_row(
        b"released_queue", b"PIP-430 as Pulsar 4.2.4 has it", removal_step)
    row.keeps_accessed = True
    row.one_budget = True
    row.counts_of_4 = True
    row.most_keeps = -1
    return row


cdef inline PolicyRow released_5_row() noexcept nogil:
    cdef PolicyRow row = policy_row(b"released_5", b"PIP-430 as Pulsar 5.0.1 has it", removal_step)
    row.keeps_accessed = True
    row.one_budget = True
    return row
