# A queue of small chunks, many producers and one consumer, as operations for the harness.
#
# A handle says who offered it and as which one of that producer, so the consumer knows the next one
# of each producer. Beside it the producer leaves a plain note that the offer publishes.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, expect_equal, mix, operation_argument, table_operation, table_setting,
    table_start, violate,
)
from pulsar_ml.structures.mpsc_queue cimport (
    MpscQueue, mpsc_destroy, mpsc_init, mpsc_offer, mpsc_peek, mpsc_poll, mpsc_size,
)
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i64_fetch_add_release, i64_load_acquire, i64_store_release, pml_i64,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    MQ_MOST_THREADS = 64
    MQ_THREAD_BITS = 6
    MQ_PENDING = 64         # handles of one producer in the queue; more it does not offer
    MQ_CONSUMER = 1         # the role


cdef enum:
    MQ_DONE = 0
    MQ_EMPTY = 1
    MQ_BEHIND = 2           # the producer has as many handles in the queue as it may
    MQ_NO_MEMORY = 3


cdef enum:
    MQ_OFFER
    MQ_OFFER_AFTER
    MQ_POLL
    MQ_POLL_KNOWN
    MQ_SIZE
    # Wrong on purpose.
    MQ_OFFER_TWICE
    MQ_OFFER_LOST
    MQ_OFFER_UNWRITTEN


# The note that a producer writes before it offers a handle.
cdef struct MpscNote:
    uint64_t pattern
    int64_t after           # offers finished before this one began, 0 when it did not look


cdef struct MpscProducer:
    uint32_t offered
    uint32_t known          # how many of them the producer knows to be polled
    pml_i64 polled          # by the consumer
    char[112] apart
    MpscNote[64] notes


cdef struct MpscRun:
    MpscQueue queue
    char[128] apart
    int64_t polled          # the consumer's
    int32_t threads
    char[112] aside
    # Counted after each offer. Only offer_after and poll_known look at it, with an acquire: it
    # would hide missing orders of the queue from the others.
    pml_i64 finished
    MpscProducer[64] producers


cdef inline void* mpsc_create(const int64_t* settings, int32_t threads) noexcept nogil:
    # Producers stand last: those that will not come are left out.
    cdef MpscRun* run = <MpscRun*>allocate_zeroed(
        1, sizeof(MpscRun) - <size_t>(MQ_MOST_THREADS - threads) * sizeof(MpscProducer))
    if run is NULL:
        return NULL
    run.threads = threads
    dirty(&run.queue, sizeof(MpscQueue))
    if mpsc_init(&run.queue, <uint32_t>settings[0]) != PML_OK:
        release(run)
        return NULL
    return run


cdef inline void mpsc_run_destroy(void* instance) noexcept nogil:
    mpsc_destroy(&(<MpscRun*>instance).queue)
    release(instance)


cdef inline void mpsc_produce(
    MpscRun* run, int32_t thread, const PmlCall* call, PmlResult* result
) noexcept nogil:
    cdef MpscProducer* producer = &run.producers[thread]
    cdef uint32_t number = producer.offered + 1
    cdef uint32_t handle = number << MQ_THREAD_BITS | <uint32_t>thread
    cdef MpscNote* note = &producer.notes[number % MQ_PENDING]
    if producer.offered - producer.known >= MQ_PENDING:
        # Pairs with the consumer's release: it has read the note that is written next.
        producer.known = <uint32_t>i64_load_acquire(&producer.polled)
        if producer.offered - producer.known >= MQ_PENDING:
            result.status = MQ_BEHIND
            return
    if call.code != MQ_OFFER_UNWRITTEN:
        note.pattern = mix(handle)
    note.after = i64_load_acquire(&run.finished) if call.code == MQ_OFFER_AFTER else 0
    if call.code != MQ_OFFER_LOST and mpsc_offer(&run.queue, handle) != PML_OK:
        result.status = MQ_NO_MEMORY
        return
    if call.code == MQ_OFFER_TWICE:
        mpsc_offer(&run.queue, handle)
    producer.offered = number
    i64_fetch_add_release(&run.finished, 1)
    result.words[0] = number


# Polls one handle; False when the queue said that it is empty.
cdef inline bint mpsc_consume(MpscRun* run, PmlResult* result, PmlViolation* violation) noexcept nogil:
    cdef uint32_t handle = mpsc_peek(&run.queue)
    cdef int64_t thread = handle & (MQ_MOST_THREADS - 1)
    cdef int64_t number = handle >> MQ_THREAD_BITS
    cdef MpscProducer* producer = &run.producers[thread]
    cdef MpscNote* note = &producer.notes[number % MQ_PENDING]
    cdef int64_t expected
    if not handle:
        return False
    if mpsc_peek(&run.queue) != handle:
        violate(violation, b"MQ-1", b"peek answered %lld and then %lld", handle, mpsc_peek(&run.queue), 0)
    mpsc_poll(&run.queue)
    expected = i64_load_acquire(&producer.polled) + 1
    if number != expected:
        violate(violation, b"MQ-1", b"handle %lld of producer %lld was polled, its next one is %lld",
                number, thread, expected)
        return True
    if note.pattern != mix(handle):
        violate(violation, b"MQ-1", b"handle %lld of producer %lld was polled before its note was visible",
                number, thread, 0)
    if note.after > run.polled:
        violate(violation, b"MQ-1", b"%lld offers were finished before handle %lld was offered, but only "
                b"%lld were polled before it", note.after, handle, run.polled)
    run.polled += 1
    # Pairs with the producer's acquire before it writes the note again.
    i64_store_release(&producer.polled, number)
    result.words[0] = number
    result.words[1] = thread
    return True


cdef inline void mpsc_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef MpscRun* run = <MpscRun*>instance
    cdef int64_t finished
    cdef int64_t size
    if call.code == MQ_POLL:
        if not mpsc_consume(run, result, violation):
            result.status = MQ_EMPTY
    elif call.code == MQ_POLL_KNOWN:
        finished = i64_load_acquire(&run.finished)
        if not mpsc_consume(run, result, violation):
            result.status = MQ_EMPTY
            if finished > run.polled:
                violate(violation, b"MQ-1", b"the queue is empty after %lld of %lld finished offers",
                        run.polled, finished, 0)
    elif call.code == MQ_SIZE:
        size = <int64_t>mpsc_size(&run.queue)
        if not 0 <= size <= run.threads * MQ_PENDING:
            violate(violation, b"MQ-1", b"the size is %lld; at most %lld handles can be queued", size,
                    run.threads * MQ_PENDING, 0)
        result.words[0] = size
    else:
        mpsc_produce(run, thread, call, result)


cdef inline void mpsc_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef MpscRun* run = <MpscRun*>instance
    cdef PmlResult result
    cdef int64_t offered = 0
    cdef int thread
    for thread in range(run.threads):
        offered += run.producers[thread].offered
    expect_equal(violation, b"MQ-1", b"handles queued", <int64_t>mpsc_size(&run.queue),
                 offered - run.polled)
    while not violation.found and mpsc_consume(run, &result, violation):
        pass
    for thread in range(run.threads):
        expect_equal(violation, b"MQ-1", b"handles polled of one producer",
                     i64_load_acquire(&run.producers[thread].polled), run.producers[thread].offered)
    if not violation.found:
        expect_equal(violation, b"MQ-1", b"handles queued at the end", <int64_t>mpsc_size(&run.queue), 0)


cdef inline void mpsc_queue_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"mpsc_queue", b"An unbounded queue in chunks with one consumer.", mpsc_create,
                mpsc_apply, mpsc_check, mpsc_run_destroy)
    table.subject.max_threads = MQ_MOST_THREADS
    table_setting(table, b"chunk_bits", 1, 4)
    operation = table_operation(table, MQ_OFFER, b"offer", 6, 0)
    operation = table_operation(table, MQ_OFFER_AFTER, b"offer_after", 1, 0)
    operation = table_operation(table, MQ_POLL, b"poll", 6, MQ_CONSUMER)
    operation = table_operation(table, MQ_POLL_KNOWN, b"poll_known", 1, MQ_CONSUMER)
    operation = table_operation(table, MQ_SIZE, b"size", 1, MQ_CONSUMER)
    operation = table_operation(table, MQ_OFFER_TWICE, b"offer_twice", 0, 0)
    operation = table_operation(table, MQ_OFFER_LOST, b"offer_lost", 0, 0)
    operation = table_operation(table, MQ_OFFER_UNWRITTEN, b"offer_unwritten", 0, 0)
