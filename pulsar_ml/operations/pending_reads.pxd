# The pending reads' operations for the harness: requests for ranges of two ledgers, and a storage
# whose outstanding reads the threads complete, in any order, rightly and wrongly, once and twice.
#
# Beside each position stands how many of its copies were delivered. A listener looks at every
# entry, and reads the number of reads under way: one that was called under the monitor would
# wait for itself. After each operation the lists are looked at under the monitor.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.pending_world cimport (
    PR_FREE, PR_KEYS, PR_LEDGERS, PR_MOST_THREADS, PR_REQUESTS, PR_WAITS, PendingRequested, PendingRun,
    StorageRead, pending_listener, pending_report, pending_run_create, pending_run_destroy, storage_answer,
    storage_count, storage_entry, storage_pick,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, operation_argument, table_operation, table_setting, table_start, violate,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.object_pool cimport pool_in_use
from pulsar_ml.structures.pending_reads cimport (
    pending_reads_expire, pending_reads_fail, pending_reads_invalidate, pending_reads_read,
    pending_reads_running,
)
from pulsar_ml.structures.pending_table cimport (
    PENDING_CLOSED, PendingCounts, PendingPart, PendingRead, PendingReads, pending_begin, pending_find,
    pending_index_add, pending_index_remove, pending_part_at, pending_read_at, pending_unlink,
    pending_was_token,
)
from pulsar_ml.structures.read_count cimport read_count_mark_read, read_count_value
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i32_load_acquire, i32_load_relaxed, i32_store_relaxed, i64_fetch_add_relaxed, i64_load_relaxed,
    u32_load_relaxed,
)


cdef enum:
    PR_DONE = 0
    PR_WAITING = 1          # the request is not answered yet
    PR_NOTHING = 2          # there is nothing of that kind
    PR_FULL = 3             # the thread waits for as many requests as it can
    PR_NO_MEMORY = 4


cdef enum:
    PR_READ
    PR_ANSWER
    PR_COLLECT
    PR_EXPIRE
    PR_INVALIDATE
    PR_COUNTS
    # Mistakes.
    PR_FORGET
    PR_TELL_AGAIN
    PR_LOSE_ENTRY
    PR_MARK_UNSEEN
    PR_OVERLAP
    PR_HIDE
    PR_ANSWER_INSIDE


# Under the monitor: what must hold of each read under way.
cdef inline void pending_audit_read(
    PendingReads* reads, uint32_t handle, PmlViolation* violation
) noexcept nogil:
    cdef PendingRead* read = pending_read_at(reads, handle)
    cdef PendingRead* other
    cdef PendingPart* part
    cdef uint32_t listener = read.listeners
    cdef uint32_t after
    if not listener:
        violate(violation, b"I82", b"nobody waits for the read of %lld..%lld", read.first, read.last, 0)
    while listener and not violation.found:
        part = pending_part_at(reads, listener)
        if part.token != (<uint64_t>read.generation << 32 | handle):
            violate(violation, b"I83", b"a request waits for another read than the one it joined", 0, 0, 0)
        if part.first < read.first or part.last > read.last or part.request.ledger_id != read.ledger_id:
            violate(violation, b"I85", b"a request waits for %lld..%lld of a read that ends at %lld",
                    part.first, part.last, read.last)
        listener = part.next_listener
    after = read.after
    while after and not violation.found:
        other = pending_read_at(reads, after)
        if (other.joinable and read.joinable and other.ledger_id == read.ledger_id
                and other.first <= read.last and other.last >= read.first):
            violate(violation, b"PR-7", b"reads from %lld and from %lld overlap", read.first, other.first, 0)
        after = other.after
    if (not violation.found
            and (pending_find(reads, read.ledger_id, read.first, read.last) == handle) != read.joinable):
        violate(violation, b"PR-9", b"a search for %lld..%lld misses that read, or finds it too late",
                read.first, read.last, 0)


cdef inline void pending_audit(PendingRun* run, PmlResult* result, PmlViolation* violation) noexcept nogil:
    cdef PendingReads* reads = &run.reads
    cdef int64_t running = 0
    cdef uint32_t handle
    monitor_enter(&reads.monitor)
    handle = reads.oldest
    while handle and not violation.found:
        pending_audit_read(reads, handle, violation)
        running += 1
        handle = pending_read_at(reads, handle).after
    expect_equal(violation, b"PR-8", b"reads in the list", running, reads.running)
    # All of one moment: what is started or answered later belongs to calls that are under way now.
    if not result.words[0]:
        result.words[0] = storage_count(run)
    result.words[1] = running
    result.words[2] = i64_load_relaxed(&run.delivered)
    result.words[3] = i64_load_relaxed(&run.failed)
    monitor_leave(&reads.monitor)
    pending_report(run, violation)


cdef inline void pending_ask(
    PendingRun* run, int32_t thread, const PmlCall* call, PmlResult* result
) noexcept nogil:
    cdef PendingRequested* request
    cdef int64_t i, last
    for i in range(PR_REQUESTS):
        request = &run.owners[thread].requests[i]
        if i32_load_relaxed(&request.state) == PR_FREE:
            break
    else:
        result.status = PR_FULL
        return
    request.ledger = call.arguments[0]
    request.first = call.arguments[1]
    last = min(request.first + call.arguments[2], PR_KEYS) - 1
    request.count = last - request.first + 1
    i32_store_relaxed(&request.answers, 0)
    i32_store_relaxed(&request.state, PR_WAITS)
    if pending_reads_read(&run.reads, request.ledger, request.first, last, i64_load_relaxed(&run.clock),
                          pending_listener, run, <int64_t>thread << 8 | i) != PML_OK:
        i32_store_relaxed(&request.state, PR_FREE)
        result.status = PR_NO_MEMORY


# answer(which, kind, again): completes an outstanding read of the storage; `again`: and once more.
# Answers which read that was, in the place of how many are outstanding: threads start reads and
# pick them in any order, and the model should judge reads.
cdef inline void pending_complete(
    PendingRun* run, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef StorageRead read
    if not storage_pick(run, call.arguments[0], &read):
        result.status = PR_NOTHING
        return
    if call.code == PR_FORGET:
        return
    result.words[0] = read.tag
    if not pending_was_token(&run.reads, read.token) or pending_was_token(&run.reads, 0):
        violate(violation, b"PR-10", b"the token of the read of %lld..%lld is said to be none", read.first,
                read.last, 0)
    storage_answer(run, &read, call.arguments[1])
    if call.arguments[2] and storage_answer(run, &read, 0):
        violate(violation, b"PR-8", b"the read of %lld..%lld was completed twice", read.first, read.last, 0)


# Fails what is older than the timeout, and looks for anything that was left.
cdef inline void pending_pass_time(PendingRun* run, int64_t ticks, PmlViolation* violation) noexcept nogil:
    cdef int64_t now = i64_fetch_add_relaxed(&run.clock, ticks) + ticks
    cdef uint32_t handle
    cdef PendingRead* read
    pending_reads_expire(&run.reads, now)
    if run.reads.timeout <= 0:
        return
    monitor_enter(&run.reads.monitor)
    handle = run.reads.oldest
    while handle:
        read = pending_read_at(&run.reads, handle)
        if now - read.since >= run.reads.timeout:
            violate(violation, b"I82", b"a read of time %lld is under way at %lld with a timeout of %lld",
                    read.since, now, run.reads.timeout)
        handle = read.after
    monitor_leave(&run.reads.monitor)


cdef inline void pending_read_counts(PendingRun* run, int64_t which, PmlResult* result) noexcept nogil:
    cdef PendingCounts counts
    monitor_enter(&run.reads.monitor)
    counts = run.reads.counts
    monitor_leave(&run.reads.monitor)
    if which == 0:
        result.words[0] = counts.read
        result.words[1] = counts.not_read
        result.words[2] = counts.matched
        result.words[3] = counts.matched_included
    else:
        result.words[0] = counts.missed
        result.words[1] = counts.matched_overlapping_miss_left
        result.words[2] = counts.matched_overlapping_miss_right
        result.words[3] = counts.matched_overlapping_miss_both


# A second read of what is being read, taken out again after the look.
cdef inline void pending_overlap(PendingRun* run, PmlResult* result, PmlViolation* violation) noexcept nogil:
    cdef PendingRead* read
    cdef uint32_t twin
    monitor_enter(&run.reads.monitor)
    if run.reads.oldest:
        read = pending_read_at(&run.reads, run.reads.oldest)
        twin = pending_begin(&run.reads, read.ledger_id, read.first, read.last)
        pending_audit_read(&run.reads, run.reads.oldest, violation)
        pending_unlink(&run.reads, twin)
    monitor_leave(&run.reads.monitor)


# A read that no search finds, until the look is over.
cdef inline void pending_hide(PendingRun* run, PmlViolation* violation) noexcept nogil:
    monitor_enter(&run.reads.monitor)
    if run.reads.oldest:
        pending_index_remove(&run.reads, run.reads.oldest)
        pending_audit_read(&run.reads, run.reads.oldest, violation)
        pending_index_add(&run.reads, run.reads.oldest)
    monitor_leave(&run.reads.monitor)


cdef inline void pending_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef PendingRun* run = <PendingRun*>instance
    cdef PendingRequested* request
    if call.code == PR_READ:
        pending_ask(run, thread, call, result)
    elif call.code == PR_ANSWER or call.code == PR_FORGET:
        pending_complete(run, call, result, violation)
    elif call.code == PR_COLLECT or call.code == PR_TELL_AGAIN:
        request = &run.owners[thread].requests[call.arguments[0]]
        if call.code == PR_TELL_AGAIN:
            pending_listener(run, <int64_t>thread << 8 | call.arguments[0], run.closed, 0, NULL, 0)
        elif i32_load_acquire(&request.state) == PR_WAITS:
            result.status = PR_WAITING
        elif i32_load_relaxed(&request.state) == PR_FREE:
            result.status = PR_NOTHING
        else:
            i32_store_relaxed(&request.state, PR_FREE)
    elif call.code == PR_EXPIRE:
        pending_pass_time(run, call.arguments[0], violation)
    elif call.code == PR_INVALIDATE:
        pending_reads_invalidate(&run.reads, call.arguments[0])
    elif call.code == PR_LOSE_ENTRY:
        storage_entry(run, 0, 0)
    elif call.code == PR_MARK_UNSEEN:
        read_count_mark_read(&run.entries.read_counts, run.expected[0].handle, False)
    elif call.code == PR_ANSWER_INSIDE:
        run.quiet = True
        monitor_enter(&run.reads.monitor)
        pending_listener(run, <int64_t>thread << 8, run.closed, 0, NULL, 0)
        monitor_leave(&run.reads.monitor)
    elif call.code == PR_OVERLAP:
        pending_overlap(run, result, violation)
    elif call.code == PR_HIDE:
        pending_hide(run, violation)
    if call.code == PR_COUNTS:
        pending_read_counts(run, call.arguments[0], result)
    else:
        pending_audit(run, result, violation)


cdef inline void pending_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef PendingRun* run = <PendingRun*>instance
    cdef PmlResult ignored
    cdef StorageRead read
    cdef int32_t thread, i
    run.quiet = True
    ignored.words[0] = 0
    pending_audit(run, &ignored, violation)
    # The storage is closed: its answers come too late.
    if run.closes and not violation.found:
        pending_reads_fail(&run.reads, PENDING_CLOSED)
        expect_equal(violation, b"I82", b"reads under way after all were failed",
                     pending_reads_running(&run.reads), 0)
    while not violation.found and storage_pick(run, 0, &read):
        storage_answer(run, &read, 0)
    pending_report(run, violation)
    for thread in range(run.threads):
        for i in range(PR_REQUESTS):
            if i32_load_acquire(&run.owners[thread].requests[i].state) == PR_WAITS:
                violate(violation, b"I82", b"request %lld of thread %lld was never answered", i, thread, 0)
    for i in range(PR_LEDGERS * PR_KEYS):
        expect_equal(violation, b"I68", b"expected reads of a position",
                     read_count_value(&run.entries.read_counts, run.expected[i].handle),
                     i64_load_relaxed(&run.expected[i].reads))
    expect_equal(violation, b"I86", b"entries in use at the end", pool_in_use(&run.entries.entries), 0)
    expect_equal(violation, b"I86", b"whether the next read has a token",
                 pending_was_token(&run.reads, u32_load_relaxed(&run.reads.reads.used)), 0)
    expect_equal(violation, b"OP-1", b"reads in use", pool_in_use(&run.reads.reads), 0)
    expect_equal(violation, b"OP-1", b"parts in use", pool_in_use(&run.reads.parts), 0)


cdef inline void pending_reads_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"pending_reads", b"Storage reads under way, joined and split.", pending_run_create,
                pending_apply, pending_check, pending_run_destroy)
    table.subject.max_threads = PR_MOST_THREADS
    table_setting(table, b"immediate", 0, 1)
    table_setting(table, b"timeout", 0, 20)
    table_setting(table, b"closes", 0, 1)
    operation = table_operation(table, PR_READ, b"read", 12, 0)
    operation_argument(operation, b"ledger", 0, PR_LEDGERS - 1)
    operation_argument(operation, b"first", 0, PR_KEYS - 1)
    operation_argument(operation, b"entries", 1, 8)
    operation = table_operation(table, PR_ANSWER, b"answer", 12, 0)
    operation_argument(operation, b"which", 0, 15)
    operation_argument(operation, b"kind", 0, 7)
    operation_argument(operation, b"again", 0, 1)
    operation = table_operation(table, PR_COLLECT, b"collect", 12, 0)
    operation_argument(operation, b"which", 0, PR_REQUESTS - 1)
    operation = table_operation(table, PR_EXPIRE, b"expire", 2, 0)
    operation_argument(operation, b"ticks", 0, 6)
    operation = table_operation(table, PR_INVALIDATE, b"invalidate", 1, 0)
    operation_argument(operation, b"ledger", 0, PR_LEDGERS - 1)
    operation = table_operation(table, PR_COUNTS, b"counts", 1, 0)
    operation_argument(operation, b"which", 0, 1)
    operation = table_operation(table, PR_FORGET, b"forget", 0, 0)
    operation_argument(operation, b"which", 0, 15)
    operation = table_operation(table, PR_TELL_AGAIN, b"tell_again", 0, 0)
    operation_argument(operation, b"which", 0, PR_REQUESTS - 1)
    table_operation(table, PR_LOSE_ENTRY, b"lose_entry", 0, 0)
    table_operation(table, PR_MARK_UNSEEN, b"mark_unseen", 0, 0)
    table_operation(table, PR_OVERLAP, b"overlap", 0, 0)
    table_operation(table, PR_HIDE, b"hide", 0, 0)
    table_operation(table, PR_ANSWER_INSIDE, b"answer_inside", 0, 0)
