# A small memory of released payloads, whose blocks all threads take and give back, as operations
# for the harness.
#
# The holder of a block writes its first and its last eight bytes, which nobody else does: a thread
# that finds other bytes shares the block, or has less room than it asked for.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, expect_equal, mix, operation_argument, table_operation, table_setting,
    table_start, violate,
)
from pulsar_ml.structures.payload_memory cimport (
    BLOCK_SIZES, BLOCK_STEP_BITS, BlockChain, KeptBlock, PayloadMemory, payload_memory_chain,
    payload_memory_destroy, payload_memory_give, payload_memory_give_all, payload_memory_init,
    payload_memory_take,
)
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport u32_load_relaxed
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    PM_MOST_THREADS = 64
    PM_MOST_HELD = 8


cdef enum:
    PM_DONE = 0
    PM_NO_MEMORY = 1
    PM_NOT_HELD = 2         # the thread holds nothing, nothing was called
    PM_HANDS_FULL = 3       # nothing was called


cdef enum:
    PM_TAKE
    PM_TAKE_LARGE
    PM_GIVE
    PM_GIVE_CHAIN
    PM_READ
    # Wrong on purpose.
    PM_GIVE_AND_KEEP
    PM_LOSE
    PM_WRITE_GIVEN


cdef struct HeldBlock:
    char* block
    uint32_t bytes
    uint64_t pattern


cdef struct BlockHolder:
    int32_t held
    uint64_t serial
    HeldBlock[8] blocks
    char* former            # the block given back last
    char[40] apart


cdef struct PayloadMemoryRun:
    PayloadMemory memory
    int32_t threads
    BlockHolder[64] holders


cdef inline void* payload_memory_create(const int64_t* settings, int32_t threads) noexcept nogil:
    # Holders stand last: those that will not come are left out.
    cdef PayloadMemoryRun* run = <PayloadMemoryRun*>allocate_zeroed(
        1, sizeof(PayloadMemoryRun) - <size_t>(PM_MOST_THREADS - threads) * sizeof(BlockHolder))
    if run is NULL:
        return NULL
    run.threads = threads
    dirty(&run.memory, sizeof(PayloadMemory))
    if payload_memory_init(&run.memory, settings[0]) != PML_OK:
        release(run)
        return NULL
    return run


cdef inline void payload_memory_end(void* instance) noexcept nogil:
    payload_memory_destroy(&(<PayloadMemoryRun*>instance).memory)
    release(instance)


cdef inline uint64_t block_word(const char* at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, sizeof(word))
    return word


cdef inline void block_look(const HeldBlock* held, int32_t thread, PmlViolation* violation) noexcept nogil:
    if block_word(held.block) != held.pattern:
        violate(violation, b"BM-1", b"the first of %lld bytes of a block changed in the hands of thread %lld",
                held.bytes, thread, 0)
    elif block_word(held.block + held.bytes - 8) != ~held.pattern:
        violate(violation, b"BM-1", b"the last of %lld bytes of a block changed in the hands of thread %lld",
                held.bytes, thread, 0)


cdef inline void block_take(
    PayloadMemoryRun* run, int32_t thread, uint32_t bytes, PmlResult* result
) noexcept nogil:
    cdef BlockHolder* holder = &run.holders[thread]
    cdef HeldBlock* held = &holder.blocks[holder.held]
    cdef uint64_t last
    held.block = <char*>payload_memory_take(&run.memory, bytes)
    if held.block is NULL:
        result.status = PM_NO_MEMORY
        return
    holder.serial += 1
    held.bytes = bytes
    held.pattern = mix(<uint64_t>thread << 48 ^ holder.serial)
    last = ~held.pattern
    memcpy(held.block, &held.pattern, 8)
    memcpy(held.block + bytes - 8, &last, 8)
    holder.held += 1


# The thread's block number `which`, no longer among those it holds.
cdef inline HeldBlock block_pick(BlockHolder* holder, int64_t which) noexcept nogil:
    cdef int64_t index = which % holder.held
    cdef HeldBlock picked = holder.blocks[index]
    holder.held -= 1
    holder.blocks[index] = holder.blocks[holder.held]
    return picked


cdef inline void block_give(
    PayloadMemoryRun* run, int32_t thread, int64_t which, PmlViolation* violation
) noexcept nogil:
    cdef HeldBlock picked = block_pick(&run.holders[thread], which)
    block_look(&picked, thread, violation)
    run.holders[thread].former = picked.block
    payload_memory_give(&run.memory, picked.block, picked.bytes)


# Gives several blocks back together.
cdef inline void block_give_many(
    PayloadMemoryRun* run, int32_t thread, int64_t many, PmlViolation* violation
) noexcept nogil:
    cdef BlockHolder* holder = &run.holders[thread]
    cdef BlockChain chain = BlockChain(NULL, NULL, 0, 0)
    cdef HeldBlock picked
    while many > 0 and holder.held:
        picked = block_pick(holder, 0)
        block_look(&picked, thread, violation)
        holder.former = picked.block
        payload_memory_chain(&run.memory, picked.block, picked.bytes, &chain)
        many -= 1
    payload_memory_give_all(&run.memory, &chain)


cdef inline void payload_memory_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef PayloadMemoryRun* run = <PayloadMemoryRun*>instance
    cdef BlockHolder* holder = &run.holders[thread]
    cdef HeldBlock* held
    if call.code == PM_TAKE or call.code == PM_TAKE_LARGE:
        if holder.held == PM_MOST_HELD:
            result.status = PM_HANDS_FULL
        else:
            block_take(run, thread, <uint32_t>call.arguments[0], result)
    elif call.code == PM_WRITE_GIVEN:
        if holder.former is not NULL:
            holder.former[0] += 1
    elif holder.held == 0:
        result.status = PM_NOT_HELD
    elif call.code == PM_GIVE:
        block_give(run, thread, call.arguments[0], violation)
    elif call.code == PM_GIVE_CHAIN:
        block_give_many(run, thread, call.arguments[0], violation)
    elif call.code == PM_READ:
        block_look(&holder.blocks[call.arguments[0] % holder.held], thread, violation)
    elif call.code == PM_LOSE:
        block_pick(holder, call.arguments[0])
    else:
        held = &holder.blocks[call.arguments[0] % holder.held]
        payload_memory_give(&run.memory, held.block, held.bytes)
    result.words[0] = holder.held


# The kept blocks: as many bytes as are counted, and no more than the most; nobody holds one.
cdef inline void payload_memory_check_kept(PayloadMemoryRun* run, PmlViolation* violation) noexcept nogil:
    cdef int64_t kept = 0
    cdef uint32_t size
    cdef KeptBlock* block
    cdef int32_t thread, i
    if run.memory.first is NULL:
        return
    for size in range(<uint32_t>BLOCK_SIZES):
        block = run.memory.first[size]
        # A list with a ring in it ends, too: it has more bytes than are counted.
        while block is not NULL and kept <= run.memory.bytes:
            kept += <int64_t>size << BLOCK_STEP_BITS
            for thread in range(run.threads):
                for i in range(run.holders[thread].held):
                    if run.holders[thread].blocks[i].block == <char*>block:
                        violate(
                            violation, b"BM-1", b"a block of %lld bytes is kept while thread %lld holds it",
                            run.holders[thread].blocks[i].bytes, thread, 0)
                        return
            block = block.next
    expect_equal(violation, b"BM-1", b"bytes of the kept blocks", kept, run.memory.bytes)
    if run.memory.bytes > run.memory.most:
        violate(violation, b"BM-3", b"%lld bytes are kept; at most %lld", run.memory.bytes,
                run.memory.most, 0)
    expect_equal(violation, b"BM-1", b"threads inside", u32_load_relaxed(&run.memory.busy), 0)


cdef inline void payload_memory_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef PayloadMemoryRun* run = <PayloadMemoryRun*>instance
    cdef int32_t thread
    payload_memory_check_kept(run, violation)
    for thread in range(run.threads):
        while run.holders[thread].held and not violation.found:
            block_give(run, thread, 0, violation)
    if not violation.found:
        payload_memory_check_kept(run, violation)


cdef inline void payload_memory_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(
        table, b"payload_memory", b"Memory of released payloads, kept by size for the next ones.",
        payload_memory_create, payload_memory_apply, payload_memory_check, payload_memory_end)
    table.subject.max_threads = PM_MOST_THREADS
    table_setting(table, b"most", 0, 1 << 20)
    operation = table_operation(table, PM_TAKE, b"take", 10, 0)
    operation_argument(operation, b"bytes", 16, 80)
    operation = table_operation(table, PM_TAKE_LARGE, b"take_large", 1, 0)
    operation_argument(operation, b"large", 4064, 4112)
    operation = table_operation(table, PM_GIVE, b"give", 5, 0)
    operation_argument(operation, b"which", 0, PM_MOST_HELD - 1)
    operation = table_operation(table, PM_GIVE_CHAIN, b"give_chain", 2, 0)
    operation_argument(operation, b"most", 1, 4)
    operation = table_operation(table, PM_READ, b"read", 2, 0)
    operation_argument(operation, b"which", 0, PM_MOST_HELD - 1)
    operation = table_operation(table, PM_GIVE_AND_KEEP, b"give_and_keep", 0, 0)
    operation_argument(operation, b"which", 0, PM_MOST_HELD - 1)
    operation = table_operation(table, PM_LOSE, b"lose", 0, 0)
    operation_argument(operation, b"which", 0, PM_MOST_HELD - 1)
    operation = table_operation(table, PM_WRITE_GIVEN, b"write_given", 0, 0)
