# Receive buffers that threads fill, cut into entries, cache and pass on, as operations for the
# harness.
#
# Each thread receives into a buffer of its own. An entry's serial says its length, its bytes follow
# from it. Four slots stand for a cache: what lies in one is pinned.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.entry cimport entry_byte, entry_position, entry_wrong_byte
from pulsar_ml.operations.hands cimport (
    Hands, hands_at, hands_full, hands_operation, hands_pass, hands_pick, hands_put,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, expect_equal, mix, operation_argument, table_operation, table_setting,
    table_start, violate,
)
from pulsar_ml.structures.entry cimport (
    EntryPool, Payload, entry_at, entry_copy, entry_copy_bytes, entry_length, entry_matches, entry_new,
    entry_payload, entry_pool_destroy, entry_pool_init, entry_references, entry_release, payload_bytes,
    payload_release, payload_slice, payload_source,
)
from pulsar_ml.structures.object_pool cimport pool_in_use
from pulsar_ml.structures.receive_buffer cimport (
    BufferBooks, ReceiveBuffer, buffer_books_pinned, receive_buffer_append, receive_buffer_new,
    receive_buffer_pin, receive_buffer_release, receive_buffer_unpin,
)
from pulsar_ml.structures.receive_size cimport (
    ReceiveSize, receive_size_init, receive_size_next, receive_size_record,
)
from pulsar_ml.structures.refcount cimport RELEASED_LAST
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, pml_u64, u64_cas_weak_acq_rel, u64_exchange_acquire, u64_load_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    RB_MOST_THREADS = 64
    RB_MOST_HANDLES = 64
    RB_SLOTS = 4
    RB_MOST_BYTES = 60
    RB_FIRST_CAPACITY = 64
    RB_LARGEST = 1 << 30    # size of a receive buffer
    RB_STEP = 16            # bytes, between the small sizes of a receive buffer


cdef enum:
    RB_DONE = 0
    RB_NO_MEMORY = 1        # no handle or no memory left
    RB_NOT_HELD = 2         # the thread holds nothing, nothing was called
    RB_HANDS_FULL = 3
    RB_LAST = 4             # released, and it was the last reference
    RB_TAKEN = 5            # something is cached in that slot
    RB_EMPTY = 6            # nothing is
    RB_NO_ROOM = 7          # the buffer has not that many bytes left


cdef enum:
    RB_RECEIVE
    RB_GUESS
    RB_CUT
    RB_COPY
    RB_COPY_BYTES
    RB_PASS
    RB_CACHE
    RB_UNCACHE
    RB_READ
    RB_RELEASE
    # Wrong on purpose.
    RB_WRITE
    RB_UNPIN
    RB_PIN
    RB_LOSE
    RB_LOSE_BUFFER


# The buffer of one receiving thread.
cdef struct Receiver:
    int64_t size_shift
    ReceiveBuffer* buffer
    uint64_t number         # serials drawn so far
    ReceiveSize size
    char[80] apart


# A reference is serial << 8 | handle. A serial is (number << 6 | thread) << 8 | bytes.
cdef struct BufferRun:
    EntryPool pool
    BufferBooks books
    int32_t threads
    pml_u64[4] mailboxes
    pml_u64[4] slots
    Hands[64] hands
    Receiver[64] receivers


# So many steps above the least size: with a shift as large as sizes may be.
cdef inline uint32_t buffer_size(const int64_t* settings, int64_t steps) noexcept nogil:
    return <uint32_t>min((settings[2] + RB_STEP * steps) << settings[5], <int64_t>RB_LARGEST)


cdef inline void* buffer_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef BufferRun* run = <BufferRun*>allocate_zeroed(1, sizeof(BufferRun))
    cdef bint complete
    cdef int i
    if run is NULL:
        return NULL
    run.threads = threads
    complete = entry_pool_init(&run.pool, <uint32_t>settings[0], <uint32_t>settings[1]) == PML_OK
    for i in range(threads):
        dirty(&run.receivers[i].size, sizeof(ReceiveSize))
        receive_size_init(&run.receivers[i].size, buffer_size(settings, 0),
                          buffer_size(settings, settings[3]),
                          buffer_size(settings, settings[3] + settings[4]))
        run.receivers[i].size_shift = settings[5]
        run.receivers[i].buffer = receive_buffer_new(&run.books, RB_FIRST_CAPACITY)
        complete = complete and run.receivers[i].buffer is not NULL
    if not complete:
        buffer_destroy(run)
        return NULL
    return run


# Checks the invariants that a holder of a reference can rely on.
cdef inline void buffer_look(BufferRun* run, uint64_t held, PmlViolation* violation) noexcept nogil:
    cdef uint32_t handle = held & 0xFF
    cdef int64_t wrong
    if not entry_matches(&run.pool, handle, entry_position(held >> 8)):
        violate(violation, b"I18", b"entry %lld is %lld now, but its holder retained %lld", handle,
                entry_at(&run.pool, handle).entry_id, <int64_t>(held >> 8))
        return
    wrong = entry_wrong_byte(entry_at(&run.pool, handle), held >> 8)
    if wrong >= 0:
        violate(violation, b"I2", b"byte %lld of entry %lld (serial %lld) changed while it was held", wrong,
                handle, <int64_t>(held >> 8))


cdef inline ReceiveBuffer* buffer_of(const BufferRun* run, uint64_t held) noexcept nogil:
    return payload_source(entry_payload(entry_at(&run.pool, held & 0xFF)))


cdef inline int64_t buffer_length(const BufferRun* run, uint64_t held) noexcept nogil:
    return entry_length(&run.pool, held & 0xFF)


# Operations --------------------------------------------------------------------------------------

# The next buffer of a thread; the slices of the last one keep it.
cdef inline void buffer_receive(
    BufferRun* run, Receiver* receiver, uint32_t capacity, PmlResult* result
) noexcept nogil:
    cdef ReceiveBuffer* buffer = receive_buffer_new(&run.books, capacity)
    if buffer is NULL:
        result.status = RB_NO_MEMORY
        return
    receive_buffer_release(receiver.buffer)
    receiver.buffer = buffer


# Appends bytes to the thread's buffer and takes them as an entry.
cdef inline void buffer_cut(
    BufferRun* run, int32_t thread, uint32_t length, PmlResult* result
) noexcept nogil:
    cdef Receiver* receiver = &run.receivers[thread]
    cdef ReceiveBuffer* buffer = receiver.buffer
    cdef uint64_t serial = ((receiver.number + 1) << 6 | <uint64_t>thread) << 8 | length
    cdef uint64_t pattern = mix(serial)
    cdef uint32_t handle = 0, i
    cdef Payload* payload
    cdef uint32_t start = buffer.filled
    cdef char* place = receive_buffer_append(buffer, length)
    if place is NULL:
        result.status = RB_NO_ROOM
        return
    for i in range(length):
        place[i] = entry_byte(pattern, i)
    payload = payload_slice(buffer, start, length)
    if payload is not NULL:
        handle = entry_new(&run.pool, entry_position(serial), payload, 0, False)
        if not handle:
            payload_release(&run.pool.payloads, payload)
    if not handle:
        buffer.filled = start
        result.status = RB_NO_MEMORY
        return
    receiver.number += 1
    hands_put(&run.hands[thread], serial << 8 | handle)


# Puts a reference from the hands into a slot. Pinned before anybody can find it there.
cdef inline void buffer_cache(
    BufferRun* run, Hands* hands, const PmlCall* call, PmlResult* result
) noexcept nogil:
    cdef uint64_t held = hands_at(hands, call.arguments[0])
    cdef ReceiveBuffer* source = buffer_of(run, held)
    cdef int64_t length = buffer_length(run, held)
    cdef uint64_t seen = 0
    if source is not NULL:
        receive_buffer_pin(source, length)
    # Fails for no reason or because another thread was there first.
    while seen == 0:
        if u64_cas_weak_acq_rel(&run.slots[call.arguments[1]], &seen, held):
            hands_pick(hands, call.arguments[0])
            return
    if source is not NULL:
        receive_buffer_unpin(source, length)
    result.status = RB_TAKEN


cdef inline void buffer_uncache(
    BufferRun* run, Hands* hands, int64_t slot, PmlResult* result
) noexcept nogil:
    cdef uint64_t held = u64_exchange_acquire(&run.slots[slot], 0)
    cdef ReceiveBuffer* source
    if not held:
        result.status = RB_EMPTY
        return
    source = buffer_of(run, held)
    if source is not NULL:
        receive_buffer_unpin(source, buffer_length(run, held))
    hands_put(hands, held)


cdef inline void buffer_copy(
    BufferRun* run, Hands* hands, uint64_t held, bint own, PmlResult* result
) noexcept nogil:
    cdef uint32_t copy
    if hands_full(hands):
        result.status = RB_HANDS_FULL
        return
    if own:
        copy = entry_copy_bytes(&run.pool, held & 0xFF, False)
    else:
        copy = entry_copy(&run.pool, held & 0xFF, False)
    if copy:
        hands_put(hands, held >> 8 << 8 | copy)
    else:
        result.status = RB_NO_MEMORY


cdef inline void buffer_with(
    BufferRun* run, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef Hands* hands = &run.hands[thread]
    cdef uint64_t held = hands_at(hands, call.arguments[0])
    cdef ReceiveBuffer* source = buffer_of(run, held)
    buffer_look(run, held, violation)
    if violation.found:
        return
    if call.code == RB_COPY or call.code == RB_COPY_BYTES:
        buffer_copy(run, hands, held, call.code == RB_COPY_BYTES, result)
    elif call.code == RB_CACHE:
        buffer_cache(run, hands, call, result)
    elif call.code == RB_READ:
        result.words[1] = source is not NULL
    elif call.code == RB_RELEASE:
        hands_pick(hands, call.arguments[0])
        if entry_release(&run.pool, held & 0xFF, 1) == RELEASED_LAST:
            result.status = RB_LAST
    elif call.code == RB_WRITE:
        payload_bytes(entry_payload(entry_at(&run.pool, held & 0xFF)))[0] += 1
    elif call.code == RB_UNPIN:
        receive_buffer_unpin(source, buffer_length(run, held))
    elif call.code == RB_PIN:
        receive_buffer_pin(source, 0)
    elif call.code == RB_LOSE:
        hands_pick(hands, call.arguments[0])


cdef inline void buffer_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef BufferRun* run = <BufferRun*>instance
    cdef Hands* hands = &run.hands[thread]
    cdef Receiver* receiver = &run.receivers[thread]
    if call.code == RB_RECEIVE:
        buffer_receive(run, receiver, <uint32_t>call.arguments[0], result)
    elif call.code == RB_GUESS:
        # Reads of a size, and of one byte less or more: a size changes at those.
        receive_size_record(&receiver.size, max(
            (RB_STEP * call.arguments[0] << receiver.size_shift) + call.arguments[1], <int64_t>0))
        result.words[1] = receive_size_next(&receiver.size)
    elif call.code == RB_PASS:
        result.words[1] = hands_pass(hands, &run.mailboxes[call.arguments[0]]) != 0
    elif call.code == RB_LOSE_BUFFER:
        receiver.buffer = NULL
    elif (call.code == RB_CUT or call.code == RB_UNCACHE) and hands_full(hands):
        result.status = RB_HANDS_FULL
    elif call.code == RB_CUT:
        buffer_cut(run, thread, <uint32_t>call.arguments[0], result)
    elif call.code == RB_UNCACHE:
        buffer_uncache(run, hands, call.arguments[0], result)
    elif hands.held == 0:
        result.status = RB_NOT_HELD
    else:
        buffer_with(run, thread, call, result, violation)
    result.words[0] = hands.held


# Quiescence --------------------------------------------------------------------------------------

# Buffers seen so far, each once; at most one for an entry and one for a thread.
cdef struct SeenBuffers:
    int32_t count
    int64_t bytes
    int64_t[128] buffers    # addresses


cdef inline void buffer_see(SeenBuffers* seen, ReceiveBuffer* buffer) noexcept nogil:
    cdef int i
    if buffer is NULL:
        return
    for i in range(seen.count):
        if seen.buffers[i] == <int64_t>buffer:
            return
    seen.buffers[seen.count] = <int64_t>buffer
    seen.count += 1
    seen.bytes += buffer.capacity


cdef inline void buffer_note(uint64_t word, uint64_t* held, int32_t* references) noexcept nogil:
    if word:
        held[word & 0xFF] = word
        references[word & 0xFF] += 1


# The references of all threads, mailboxes and slots, by entry.
cdef inline void buffer_count_references(
    const BufferRun* run, uint64_t* held, int32_t* references
) noexcept nogil:
    cdef int i, thread
    for i in range(RB_MOST_HANDLES):
        references[i] = 0
        held[i] = 0
    for i in range(RB_SLOTS):
        buffer_note(u64_load_relaxed(&run.mailboxes[i]), held, references)
        buffer_note(u64_load_relaxed(&run.slots[i]), held, references)
    for thread in range(run.threads):
        for i in range(run.hands[thread].held):
            buffer_note(run.hands[thread].words[i], held, references)


cdef inline void buffer_check_books(
    BufferRun* run, const uint64_t* held, const int32_t* references, PmlViolation* violation
) noexcept nogil:
    cdef SeenBuffers living, cached
    cdef int64_t sliced = 0, counted = 0, own = 0
    cdef uint64_t word
    cdef int i
    living.count = cached.count = 0
    living.bytes = cached.bytes = 0
    for i in range(run.threads):
        buffer_see(&living, run.receivers[i].buffer)
    for i in range(RB_MOST_HANDLES):
        if references[i]:
            buffer_see(&living, buffer_of(run, held[i]))
    for i in range(RB_SLOTS):
        word = u64_load_relaxed(&run.slots[i])
        if not word:
            continue
        counted += buffer_length(run, word)
        if buffer_of(run, word) is NULL:
            own += buffer_length(run, word)
        else:
            buffer_see(&cached, buffer_of(run, word))
            sliced += buffer_length(run, word)
    expect_equal(violation, b"I17", b"bytes of buffers that exist", i64_load_relaxed(&run.books.allocated),
                 living.bytes)
    expect_equal(violation, b"RB-2", b"bytes of buffers pinned", i64_load_relaxed(&run.books.pinned),
                 cached.bytes)
    expect_equal(violation, b"RB-3", b"bytes of cached slices", i64_load_relaxed(&run.books.sliced), sliced)
    expect_equal(violation, b"RB-2", b"bytes that the cache pins", buffer_books_pinned(&run.books, counted),
                 own + cached.bytes)


cdef inline void buffer_give_all(
    BufferRun* run, const uint64_t* held, const int32_t* references
) noexcept nogil:
    cdef PmlResult ignored
    cdef Hands hands
    cdef uint64_t word
    cdef int i
    for i in range(RB_SLOTS):
        hands.held = 0
        buffer_uncache(run, &hands, i, &ignored)
    for i in range(RB_MOST_HANDLES):
        if references[i]:
            entry_release(&run.pool, i, references[i])
    for i in range(RB_SLOTS):
        hands.held = 0
        hands_pass(&hands, &run.mailboxes[i])
    for i in range(run.threads):
        run.hands[i].held = 0
        if run.receivers[i].buffer is not NULL:
            receive_buffer_release(run.receivers[i].buffer)
        run.receivers[i].buffer = NULL


cdef inline void buffer_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef BufferRun* run = <BufferRun*>instance
    cdef uint64_t[64] held
    cdef int32_t[64] references
    cdef int64_t live = 0
    cdef int i
    buffer_count_references(run, held, references)
    for i in range(RB_MOST_HANDLES):
        if references[i]:
            live += 1
            buffer_look(run, held[i], violation)
            expect_equal(violation, b"I17", b"references of an entry", entry_references(&run.pool, i),
                         references[i])
    expect_equal(violation, b"I17", b"entries in use", pool_in_use(&run.pool.entries), live)
    if not violation.found:
        buffer_check_books(run, held, references, violation)
    if violation.found:
        return
    buffer_give_all(run, held, references)
    expect_equal(violation, b"I17", b"entries in use after all were released", pool_in_use(&run.pool.entries),
                 0)
    expect_equal(violation, b"I70", b"read counts in use after all were released",
                 pool_in_use(&run.pool.read_counts), 0)
    expect_equal(violation, b"I17", b"bytes of buffers after all were released",
                 i64_load_relaxed(&run.books.allocated), 0)
    expect_equal(violation, b"RB-2", b"bytes pinned after all were released",
                 buffer_books_pinned(&run.books, 0), 0)


# Also without a check before: gives back what is held.
cdef inline void buffer_destroy(void* instance) noexcept nogil:
    cdef BufferRun* run = <BufferRun*>instance
    cdef uint64_t[64] held
    cdef int32_t[64] references
    buffer_count_references(run, held, references)
    buffer_give_all(run, held, references)
    entry_pool_destroy(&run.pool)
    release(run)


cdef inline void receive_buffer_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"receive_buffer", b"Receive buffers, entries that are slices of them, and the books.",
                buffer_create, buffer_apply, buffer_check, buffer_destroy)
    table.subject.max_threads = RB_MOST_THREADS
    table_setting(table, b"chunk_bits", 0, 4)
    table_setting(table, b"limit", 2, RB_MOST_HANDLES)
    table_setting(table, b"least", 1, 64)
    table_setting(table, b"first_above", 0, 8)
    table_setting(table, b"most_above", 0, 40)
    table_setting(table, b"size_shift", 0, 24)
    operation = table_operation(table, RB_RECEIVE, b"receive", 4, 0)
    operation_argument(operation, b"capacity", 1, 128)
    operation = table_operation(table, RB_GUESS, b"guess", 4, 0)
    operation_argument(operation, b"steps", 0, 40)
    operation_argument(operation, b"bytes", -1, 1)
    operation = table_operation(table, RB_CUT, b"cut", 6, 0)
    operation_argument(operation, b"bytes", 0, RB_MOST_BYTES)
    hands_operation(table, RB_COPY, b"copy", 3)
    hands_operation(table, RB_COPY_BYTES, b"copy_bytes", 2)
    operation = table_operation(table, RB_PASS, b"pass_on", 4, 0)
    operation_argument(operation, b"mailbox", 0, RB_SLOTS - 1)
    operation = hands_operation(table, RB_CACHE, b"cache", 8)
    operation_argument(operation, b"slot", 0, RB_SLOTS - 1)
    operation = table_operation(table, RB_UNCACHE, b"uncache", 5, 0)
    operation_argument(operation, b"slot", 0, RB_SLOTS - 1)
    hands_operation(table, RB_READ, b"read", 3)
    hands_operation(table, RB_RELEASE, b"release", 6)
    hands_operation(table, RB_WRITE, b"write", 0)
    hands_operation(table, RB_UNPIN, b"unpin", 0)
    hands_operation(table, RB_PIN, b"pin", 0)
    hands_operation(table, RB_LOSE, b"lose", 0)
    table_operation(table, RB_LOSE_BUFFER, b"lose_buffer", 0, 0)
