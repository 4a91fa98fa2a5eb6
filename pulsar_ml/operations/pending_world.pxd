# The world of the pending reads' operations: the requests, a storage with outstanding reads,
# and how often each position was delivered.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsar_ml.harness.subjects.subject cimport PmlViolation
from pulsar_ml.operations.support cimport dirty, mix, violate
from pulsar_ml.structures.entry cimport (
    EntryPool, Payload, entry_at, entry_new, entry_payload, entry_pool_destroy, entry_pool_init,
    entry_references, entry_release, payload_bytes, payload_new, payload_release,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.pending_reads cimport (
    pending_reads_complete, pending_reads_destroy, pending_reads_fail, pending_reads_init,
    pending_reads_running,
)
from pulsar_ml.structures.pending_table cimport (
    PENDING_CLOSED, PENDING_DELIVERED, PENDING_FAILED, PendingReads, PendingStatus,
)
from pulsar_ml.structures.position cimport position
from pulsar_ml.structures.read_count cimport read_count_new, read_count_release, read_count_retain
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i32_fetch_add_relaxed, i32_load_relaxed, i32_store_relaxed, i32_store_release,
    i64_fetch_add_relaxed, i64_store_relaxed, pml_i32, pml_i64, pml_u32,
    u32_load_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    PR_MOST_THREADS = 64
    PR_REQUESTS = 4         # of one thread
    PR_LEDGERS = 2
    PR_KEYS = 24            # entries of a ledger
    PR_OUTSTANDING = 512    # of the storage; beyond that it refuses
    PR_ANSWERED = 40        # entries of one answer, the foreign ones included
    PR_READS = 1 << 30      # expected of a position at first: more than any program makes


# States of a request.
cdef enum:
    PR_FREE = 0
    PR_WAITS = 1
    PR_TOLD = 2


# The violations that a listener can see.
cdef enum:
    PR_TOLD_TWICE = 1
    PR_WRONG_COUNT = 2
    PR_WRONG_ENTRY = 3
    PR_WRONG_BYTES = 4
    PR_UNDER_MONITOR = 5


cdef struct PendingRequested:
    pml_i32 state
    pml_i32 answers
    int64_t ledger
    int64_t first
    int64_t count


cdef struct PendingOwner:
    PendingRequested[4] requests
    int64_t started         # reads, by requests of this thread


cdef struct StorageRead:
    uint64_t token
    int64_t ledger
    int64_t first, last
    # which one an answer was given to: whose request started it, and its number
    int64_t tag


# The expected reads of a position: the shared count, and what it should be.
cdef struct PendingExpected:
    uint32_t handle
    pml_i64 reads


cdef struct PendingRun:
    EntryPool entries
    PendingReads reads
    int32_t threads
    bint immediate
    bint closes             # in the end
    bint quiet              # no thread is inside: a thread that holds the monitor is the caller
    PendingStatus closed
    pml_i32 wrong
    pml_i64 clock
    pml_i64 delivered
    pml_i64 failed
    PendingExpected[48] expected
    pml_u32 storage_monitor
    int64_t outstanding     # under the storage's monitor, like the next
    StorageRead[512] storage
    PendingOwner[64] owners


cdef inline void* pending_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    # Owners stand last: those that will not come are left out.
    cdef PendingRun* run = <PendingRun*>allocate_zeroed(
        1, sizeof(PendingRun) - <size_t>(PR_MOST_THREADS - threads) * sizeof(PendingOwner))
    cdef int32_t i
    if run is NULL:
        return NULL
    run.threads = threads
    run.immediate = settings[0] != 0
    run.closes = settings[2] != 0
    run.closed = PENDING_CLOSED
    dirty(&run.reads, sizeof(PendingReads))
    # A failed init of the reads leaves nothing to give back.
    if (entry_pool_init(&run.entries, 4, 1 << 14) != PML_OK
            or pending_reads_init(&run.reads, &run.entries, storage_start, run, settings[1], 2,
                                  1 << 12) != PML_OK):
        entry_pool_destroy(&run.entries)
        release(run)
        return NULL
    for i in range(PR_LEDGERS * PR_KEYS):
        run.expected[i].handle = read_count_new(&run.entries.read_counts, PR_READS)
        if not run.expected[i].handle:
            pending_run_release(run)
            return NULL
        i64_store_relaxed(&run.expected[i].reads, PR_READS)
    return run


cdef inline void pending_run_release(PendingRun* run) noexcept nogil:
    pending_reads_destroy(&run.reads)
    entry_pool_destroy(&run.entries)
    release(run)


# Also without a check before: answers all waiting requests, so that nothing is left behind.
cdef inline void pending_run_destroy(void* instance) noexcept nogil:
    cdef PendingRun* run = <PendingRun*>instance
    cdef int32_t i
    run.quiet = True
    pending_reads_fail(&run.reads, PENDING_CLOSED)
    for i in range(PR_LEDGERS * PR_KEYS):
        read_count_release(&run.entries.read_counts, run.expected[i].handle)
    pending_run_release(run)


# Entries -----------------------------------------------------------------------------------------

cdef inline uint64_t storage_pattern(int64_t ledger, int64_t entry_id) noexcept nogil:
    return mix(<uint64_t>ledger << 48 ^ <uint64_t>entry_id)


# An entry as it comes from the storage, or 0 without memory. Positions that are never delivered
# have no expected reads.
cdef inline uint32_t storage_entry(PendingRun* run, int64_t ledger, int64_t entry_id) noexcept nogil:
    cdef Payload* payload = payload_new(&run.entries.payloads, 8)
    cdef uint64_t pattern = storage_pattern(ledger, entry_id)
    cdef uint32_t read_count = 0
    cdef uint32_t entry
    if payload is NULL:
        return 0
    memcpy(payload_bytes(payload), &pattern, 8)
    if 0 <= ledger < PR_LEDGERS and 0 <= entry_id < PR_KEYS:
        read_count = run.expected[ledger * PR_KEYS + entry_id].handle
        read_count_retain(&run.entries.read_counts, read_count)
    entry = entry_new(&run.entries, position(ledger, entry_id), payload, read_count, True)
    if not entry:
        payload_release(&run.entries.payloads, payload)
        if read_count:
            read_count_release(&run.entries.read_counts, read_count)
    return entry


# The storage --------------------------------------------------------------------------------------

cdef inline void storage_start(
    void* context, uint64_t token, int64_t argument, int64_t ledger_id, int64_t first, int64_t last
) noexcept nogil:
    cdef PendingRun* run = <PendingRun*>context
    cdef PendingOwner* owner = &run.owners[argument >> 8]
    cdef StorageRead read
    cdef bint kept = False
    owner.started += 1
    read.tag = (argument >> 8) << 32 | owner.started
    read.token = token
    read.ledger = ledger_id
    read.first = first
    read.last = last
    if run.immediate and first % 4 == 0:
        storage_answer(run, &read, 0)
        return
    monitor_enter(&run.storage_monitor)
    if run.outstanding < PR_OUTSTANDING:
        run.storage[run.outstanding] = read
        run.outstanding += 1
        kept = True
    monitor_leave(&run.storage_monitor)
    if not kept:
        pending_reads_complete(&run.reads, token, PENDING_FAILED, NULL, 0)


cdef inline int64_t storage_count(PendingRun* run) noexcept nogil:
    cdef int64_t count
    monitor_enter(&run.storage_monitor)
    count = run.outstanding
    monitor_leave(&run.storage_monitor)
    return count


# Takes out one of the outstanding reads: even numbers count from the oldest, odd ones from the
# newest.
cdef inline bint storage_pick(PendingRun* run, int64_t which, StorageRead* read) noexcept nogil:
    cdef int64_t i
    cdef bint found = False
    monitor_enter(&run.storage_monitor)
    if run.outstanding:
        found = True
        i = (which >> 1) % run.outstanding
        if which & 1:
            i = run.outstanding - 1 - i
        read[0] = run.storage[i]
        run.outstanding -= 1
        while i < run.outstanding:
            run.storage[i] = run.storage[i + 1]
            i += 1
    monitor_leave(&run.storage_monitor)
    return found


# Answers a read: 0 and 1 rightly, 2 with a failure, 3 without the last entry, 4 from the last to
# the first with foreign entries and one twice, 5 with foreign entries in the place of the first and
# the last one twice, 6 with a failure and entries, 7 with nothing. Whether the answer was taken.
cdef inline bint storage_answer(PendingRun* run, const StorageRead* read, int64_t kind) noexcept nogil:
    cdef uint32_t[40] entries
    cdef int64_t[40] ids
    cdef int64_t[40] ledgers
    cdef PendingStatus status = PENDING_DELIVERED
    cdef int64_t count = 0
    cdef int64_t first = read.first
    cdef int64_t last = read.last
    cdef int64_t i
    if kind == 2 or kind == 6:
        status = PENDING_FAILED
    if kind == 3:
        last -= 1
    elif kind == 2 or kind == 7:
        last = first - 1
    elif kind == 5:
        first += 1
    for i in range(first, last + 1):
        ledgers[count] = read.ledger
        ids[count] = last - (i - first) if kind == 4 else i
        count += 1
    if kind == 4 or kind == 5:
        # 2^32 further, another ledger, beyond either end, and a position that was there.
        for i in range(5 if kind == 4 or read.last > read.first else 4):
            ledgers[count] = read.ledger if i != 1 else 1 - read.ledger
            ids[count] = read.last if i == 4 and kind == 5 else read.first
            if i == 0:
                ids[count] += <int64_t>1 << 32
            elif i == 2:
                ids[count] -= 1
            elif i == 3:
                ids[count] = read.last + 1
            count += 1
    for i in range(count):
        entries[i] = storage_entry(run, ledgers[i], ids[i])
        if not entries[i]:
            status = PENDING_FAILED
    return pending_reads_complete(&run.reads, read.token, status, entries, count)


# Listeners ---------------------------------------------------------------------------------------

# Looks at an entry that was delivered, and gives it back: that is when it counts as read.
cdef inline void pending_look(
    PendingRun* run, const PendingRequested* request, int64_t i, uint32_t entry
) noexcept nogil:
    cdef int64_t entry_id = request.first + i
    cdef uint64_t pattern
    if (entry_at(&run.entries, entry).ledger_id != request.ledger
            or entry_at(&run.entries, entry).entry_id != entry_id
            or entry_references(&run.entries, entry) != 1):
        i32_store_relaxed(&run.wrong, PR_WRONG_ENTRY)
        return
    memcpy(&pattern, payload_bytes(entry_payload(entry_at(&run.entries, entry))), 8)
    if pattern != storage_pattern(request.ledger, entry_id):
        i32_store_relaxed(&run.wrong, PR_WRONG_BYTES)
    i64_fetch_add_relaxed(&run.expected[request.ledger * PR_KEYS + entry_id].reads, -1)
    entry_release(&run.entries, entry, 1)


cdef inline void pending_listener(
    void* context, int64_t argument, PendingStatus status, uint64_t failed, const uint32_t* entries,
    int64_t count
) noexcept nogil:
    cdef PendingRun* run = <PendingRun*>context
    cdef PendingRequested* request = &run.owners[argument >> 8].requests[argument & 0xFF]
    cdef int64_t i
    # Takes the monitor (I84). At quiescence that would hang, so it is only looked at.
    if run.quiet and u32_load_relaxed(&run.reads.monitor):
        i32_store_relaxed(&run.wrong, PR_UNDER_MONITOR)
    else:
        pending_reads_running(&run.reads)
    if i32_fetch_add_relaxed(&request.answers, 1) or i32_load_relaxed(&request.state) != PR_WAITS:
        i32_store_relaxed(&run.wrong, PR_TOLD_TWICE)
        return
    if count != (request.count if status == PENDING_DELIVERED else 0):
        i32_store_relaxed(&run.wrong, PR_WRONG_COUNT)
        return
    for i in range(count):
        if entries[i]:
            pending_look(run, request, i, entries[i])
        else:
            i32_store_relaxed(&run.wrong, PR_WRONG_COUNT)
    i64_fetch_add_relaxed(&run.delivered if status == PENDING_DELIVERED else &run.failed, 1)
    # The request's thread goes on from here: the last access.
    i32_store_release(&request.state, PR_TOLD)


cdef inline void pending_report(PendingRun* run, PmlViolation* violation) noexcept nogil:
    cdef int32_t wrong = i32_load_relaxed(&run.wrong)
    if wrong == PR_TOLD_TWICE:
        violate(violation, b"I82", b"a request was answered that did not wait", 0, 0, 0)
    elif wrong == PR_WRONG_COUNT:
        violate(violation, b"I85", b"an answer is not the whole range", 0, 0, 0)
    elif wrong == PR_WRONG_ENTRY:
        violate(violation, b"I85", b"an answer has another entry in the place of one", 0, 0, 0)
    elif wrong == PR_UNDER_MONITOR:
        violate(violation, b"I84", b"a request was answered under the monitor", 0, 0, 0)
    elif wrong == PR_WRONG_BYTES:
        violate(violation, b"I2", b"an answer has other bytes than the storage", 0, 0, 0)
