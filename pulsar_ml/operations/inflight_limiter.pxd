# The in-flight read limiter's operations for the harness: requests that wait, permits held for a
# while or by copies that threads pass on, time that goes on, and callbacks that refuse what they
# are granted.
#
# A request above the maximum is one for the maximum: with nothing in flight it is granted that, and
# while it waits, something is in flight. A callback reads how many permits remain: one that was run
# under the monitor would wait for itself. After each operation the queue is looked at under the
# monitor.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.hands cimport HANDS, Hands, hands_pass, hands_pick, hands_put
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, expect_equal, operation_argument, table_operation, table_setting, table_start,
    violate,
)
from pulsar_ml.structures.inflight_limiter cimport (
    PERMITS_GRANTED, PERMITS_REFUSED, PERMITS_WAITING, Acquired, InflightLimiter, limiter_acquire,
    limiter_close, limiter_copy_released, limiter_destroy, limiter_expire, limiter_init,
    limiter_next_expiry, limiter_release, limiter_remaining, limiter_share, limiter_try_acquire,
    limiter_waiter,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.object_pool cimport pool_in_use
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i32_fetch_add_relaxed, i32_load_acquire, i32_load_relaxed, i32_store_relaxed, i32_store_release,
    i64_fetch_add_relaxed, i64_load_relaxed, i64_store_relaxed, pml_i32, pml_i64, pml_u64,
    u64_load_relaxed, u64_store_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    IL_MOST_THREADS = 64
    IL_REQUESTS = 4         # of one thread
    IL_MAILBOXES = 4
    IL_MOST_SHARES = 256


# Statuses; the first three are those of limiter_acquire.
cdef enum:
    IL_NOTHING = 3          # there is nothing of that kind
    IL_FULL = 4             # the thread has no room for it


cdef enum:
    IL_ACQUIRE
    IL_RELEASE
    IL_SHARE
    IL_PASS
    IL_DROP
    IL_EXPIRE
    IL_TRY
    # Mistakes.
    IL_RELEASE_AND_KEEP
    IL_LOSE
    IL_TELL_AGAIN
    IL_FORGET_TO_GRANT


# States of a request.
cdef enum:
    IL_FREE = 0
    IL_WAITS = 1
    IL_HELD = 2             # granted
    IL_FAILED = 3           # answered: it failed
    IL_DECLINED = 4         # answered: it was granted, and declined that


# The violations that a callback can see.
cdef enum:
    IL_TOLD_TWICE = 1
    IL_WRONG_PERMITS = 2
    IL_FAILED_EARLY = 3


cdef struct LimiterRequest:
    pml_i32 state
    pml_i32 answers
    int64_t permits         # requested; the thread's, as the next
    bint declines


cdef struct LimiterThread:
    LimiterRequest[4] requests
    Hands copies            # handles of shares


cdef struct LimiterRun:
    InflightLimiter limiter
    # The settings, and the permits of each share, as they were asked for: no check reads them from
    # the limiter, which it judges.
    int64_t maximum
    int64_t timeout
    int64_t queue_size
    pml_i64[257] shared
    int32_t threads
    pml_i32 wrong
    pml_i64 clock
    pml_i64 answers
    pml_i64 failed
    pml_u64[4] mailboxes
    LimiterThread[64] owners


cdef inline void* limiter_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    # Owners stand last: those that will not come are left out.
    cdef LimiterRun* run = <LimiterRun*>allocate_zeroed(
        1, sizeof(LimiterRun) - <size_t>(IL_MOST_THREADS - threads) * sizeof(LimiterThread))
    if run is NULL:
        return NULL
    run.threads = threads
    run.maximum, run.timeout, run.queue_size = settings[0], settings[1], settings[2]
    dirty(&run.limiter, sizeof(InflightLimiter))
    if limiter_init(&run.limiter, settings[0], settings[1], <uint32_t>settings[2], <uint32_t>settings[3],
                    IL_MOST_SHARES) != PML_OK:
        release(run)
        return NULL
    return run


cdef inline void limiter_run_destroy(void* instance) noexcept nogil:
    limiter_destroy(&(<LimiterRun*>instance).limiter)
    release(instance)


cdef inline bint limiter_told(
    void* context, int64_t argument, int64_t permits, bint granted
) noexcept nogil:
    cdef LimiterRun* run = <LimiterRun*>context
    cdef LimiterRequest* request = &run.owners[argument >> 8].requests[argument & 0xFF]
    # Takes the monitor (I84).
    limiter_remaining(&run.limiter)
    i64_fetch_add_relaxed(&run.answers, 1)
    if i32_fetch_add_relaxed(&request.answers, 1) or i32_load_relaxed(&request.state) != IL_WAITS:
        i32_store_relaxed(&run.wrong, IL_TOLD_TWICE)
        return True
    if permits != (request.permits if granted else 0):
        i32_store_relaxed(&run.wrong, IL_WRONG_PERMITS)
    if not granted:
        # Only the last check closes, when all threads have ended.
        if run.timeout <= 0 and not run.limiter.closed:
            i32_store_relaxed(&run.wrong, IL_FAILED_EARLY)
        i64_fetch_add_relaxed(&run.failed, 1)
        # The request's thread goes on from here: the last access. Likewise below.
        i32_store_release(&request.state, IL_FAILED)
        return True
    if request.declines:
        i32_store_release(&request.state, IL_DECLINED)
        return False
    i32_store_release(&request.state, IL_HELD)
    return True


# Checks the invariants that hold while the monitor is free.
cdef inline void limiter_audit(LimiterRun* run, PmlResult* result, PmlViolation* violation) noexcept nogil:
    cdef InflightLimiter* limiter = &run.limiter
    cdef uint32_t handle, length
    cdef int64_t remaining
    monitor_enter(&limiter.monitor)
    remaining = limiter.remaining
    result.words[0] = remaining
    result.words[1] = limiter.waiting
    if run.maximum > 0 and not 0 <= remaining <= run.maximum:
        violate(violation, b"I87", b"%lld permits remain of %lld", remaining, run.maximum, 0)
    if limiter.first:
        if limiter_waiter(limiter, limiter.first).permits <= remaining:
            violate(violation, b"I90", b"a request for %lld permits waits while %lld remain",
                    limiter_waiter(limiter, limiter.first).permits, remaining, 0)
        if remaining == run.maximum:
            violate(violation, b"IL-6", b"a request for %lld permits waits while nothing is in flight",
                    limiter_waiter(limiter, limiter.first).permits, 0, 0)
        if run.timeout > 0 and limiter.now - limiter_waiter(limiter, limiter.first).since >= run.timeout:
            violate(violation, b"I90", b"a request of time %lld waits at %lld with a timeout of %lld",
                    limiter_waiter(limiter, limiter.first).since, limiter.now, run.timeout)
    length = 0
    handle = limiter.first
    while handle and length <= run.queue_size:
        length += 1
        handle = limiter_waiter(limiter, handle).next
    expect_equal(violation, b"IL-3", b"requests in the queue", length, limiter.waiting)
    if length > run.queue_size:
        violate(violation, b"IL-3", b"more than %lld requests wait", run.queue_size, 0, 0)
    # Inside: a request that is answered later was taken off the queue later, or by a call that is
    # still under way.
    result.words[2] = i64_load_relaxed(&run.answers)
    monitor_leave(&limiter.monitor)
    limiter_report(run, violation)


cdef inline void limiter_report(LimiterRun* run, PmlViolation* violation) noexcept nogil:
    cdef int32_t wrong = i32_load_relaxed(&run.wrong)
    if wrong == IL_TOLD_TWICE:
        violate(violation, b"I82", b"a request that did not wait was answered", 0, 0, 0)
    elif wrong == IL_WRONG_PERMITS:
        violate(violation, b"I88", b"a request was answered with other permits than it requested", 0, 0, 0)
    elif wrong == IL_FAILED_EARLY:
        violate(violation, b"IL-7", b"a request failed although there is no timeout", 0, 0, 0)


cdef inline void limiter_ask(
    LimiterRun* run, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef LimiterThread* me = &run.owners[thread]
    cdef LimiterRequest* request
    cdef int64_t i
    cdef int64_t taken = 0
    cdef Acquired acquired
    for i in range(IL_REQUESTS):
        request = &me.requests[i]
        if i32_load_relaxed(&request.state) == IL_FREE:
            break
    else:
        result.status = IL_FULL
        return
    request.permits = call.arguments[0]
    if 0 < run.maximum < request.permits:
        request.permits = run.maximum
    request.declines = call.code == IL_ACQUIRE and call.arguments[1] != 0
    i32_store_relaxed(&request.answers, 0)
    i32_store_relaxed(&request.state, IL_WAITS)
    if call.code == IL_TRY:
        acquired = (PERMITS_GRANTED if limiter_try_acquire(&run.limiter, call.arguments[0], &taken)
                    else PERMITS_REFUSED)
    else:
        acquired = limiter_acquire(&run.limiter, call.arguments[0], i64_load_relaxed(&run.clock),
                                   limiter_told, run, <int64_t>thread << 8 | i, &taken)
    result.status = acquired
    if acquired == PERMITS_GRANTED:
        if run.maximum > 0 and taken != request.permits:
            violate(violation, b"I88", b"%lld of %lld permits were granted", taken, request.permits, 0)
        request.permits = taken
        i32_store_relaxed(&request.state, IL_HELD)
    elif acquired == PERMITS_REFUSED:
        # A handle that failed is released like any other, as users do.
        limiter_release(&run.limiter, taken)
        i32_store_relaxed(&request.state, IL_FREE)


cdef inline void limiter_with(
    LimiterRun* run, int32_t thread, const PmlCall* call, PmlResult* result
) noexcept nogil:
    cdef LimiterThread* me = &run.owners[thread]
    cdef LimiterRequest* request = &me.requests[call.arguments[0] % IL_REQUESTS]
    cdef int32_t state = i32_load_acquire(&request.state)
    cdef uint32_t share
    cdef int64_t i
    if state == IL_WAITS:
        result.status = PERMITS_WAITING
    elif call.code == IL_TELL_AGAIN:
        limiter_told(run, <int64_t>thread << 8 | call.arguments[0] % IL_REQUESTS, request.permits, True)
    elif state == IL_FREE or (call.code != IL_RELEASE and state != IL_HELD):
        result.status = IL_NOTHING
    elif call.code == IL_SHARE:
        if me.copies.held + call.arguments[1] > HANDS:
            result.status = IL_FULL
            return
        share = limiter_share(&run.limiter, request.permits, <int32_t>call.arguments[1])
        if not share:
            result.status = PERMITS_REFUSED
            return
        i64_store_relaxed(&run.shared[share], request.permits)
        for i in range(call.arguments[1]):
            hands_put(&me.copies, share)
        i32_store_relaxed(&request.state, IL_FREE)
    elif call.code == IL_RELEASE_AND_KEEP:
        limiter_release(&run.limiter, request.permits)
    elif call.code == IL_FORGET_TO_GRANT:
        monitor_enter(&run.limiter.monitor)
        run.limiter.remaining += request.permits
        monitor_leave(&run.limiter.monitor)
        i32_store_relaxed(&request.state, IL_FREE)
    else:
        if call.code == IL_RELEASE:
            limiter_release(&run.limiter, request.permits if state == IL_HELD else 0)
        i32_store_relaxed(&request.state, IL_FREE)


cdef inline void limiter_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef LimiterRun* run = <LimiterRun*>instance
    cdef LimiterThread* me = &run.owners[thread]
    cdef int64_t now
    if call.code == IL_ACQUIRE or call.code == IL_TRY:
        limiter_ask(run, thread, call, result, violation)
    elif call.code == IL_PASS:
        # A thread that is full passes on first, and takes at most what it left.
        if not hands_pass(&me.copies, &run.mailboxes[call.arguments[0]]):
            result.status = IL_NOTHING
    elif call.code == IL_DROP:
        if me.copies.held:
            limiter_copy_released(&run.limiter, <int64_t>hands_pick(&me.copies, call.arguments[0]))
        else:
            result.status = IL_NOTHING
    elif call.code == IL_EXPIRE:
        now = i64_fetch_add_relaxed(&run.clock, call.arguments[0]) + call.arguments[0]
        limiter_expire(&run.limiter, now)
        if limiter_next_expiry(&run.limiter, &result.words[3]):
            result.words[3] -= now
            if result.words[3] <= 0:
                violate(violation, b"I90", b"the next request was due %lld ago, at %lld",
                        -result.words[3], now, 0)
        else:
            result.words[3] = -1
    else:
        limiter_with(run, thread, call, result)
    limiter_audit(run, result, violation)


# Permits out: those of requests that hold theirs, and those of copies in hands and mailboxes.
cdef inline int64_t limiter_permits_out(LimiterRun* run) noexcept nogil:
    cdef bint[257] seen
    cdef int64_t out = 0
    cdef int32_t thread, i
    for i in range(IL_MOST_SHARES + 1):
        seen[i] = False
    for thread in range(run.threads):
        for i in range(IL_REQUESTS):
            if i32_load_acquire(&run.owners[thread].requests[i].state) == IL_HELD:
                out += run.owners[thread].requests[i].permits
        for i in range(run.owners[thread].copies.held):
            seen[run.owners[thread].copies.words[i]] = True
    for i in range(IL_MAILBOXES):
        seen[u64_load_relaxed(&run.mailboxes[i])] = True
    for i in range(1, IL_MOST_SHARES + 1):
        if seen[i]:
            out += i64_load_relaxed(&run.shared[i])
    return out


cdef inline void limiter_release_all(LimiterRun* run, PmlViolation* violation) noexcept nogil:
    cdef LimiterRequest* request
    cdef uint64_t copy
    cdef int32_t thread, i
    limiter_close(&run.limiter)
    for thread in range(run.threads):
        for i in range(IL_REQUESTS):
            request = &run.owners[thread].requests[i]
            if i32_load_acquire(&request.state) == IL_WAITS:
                violate(violation, b"I82", b"request %lld of thread %lld was never answered", i, thread, 0)
            elif i32_load_relaxed(&request.state) == IL_HELD:
                limiter_release(&run.limiter, request.permits)
            i32_store_relaxed(&request.state, IL_FREE)
        while run.owners[thread].copies.held:
            limiter_copy_released(&run.limiter, <int64_t>hands_pick(&run.owners[thread].copies, 0))
    for i in range(IL_MAILBOXES):
        copy = u64_load_relaxed(&run.mailboxes[i])
        u64_store_relaxed(&run.mailboxes[i], 0)
        if copy:
            limiter_copy_released(&run.limiter, <int64_t>copy)


cdef inline void limiter_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef LimiterRun* run = <LimiterRun*>instance
    cdef PmlResult ignored
    limiter_audit(run, &ignored, violation)
    if run.maximum > 0:
        expect_equal(violation, b"I88", b"permits that remain and that are out",
                     run.limiter.remaining + limiter_permits_out(run), run.maximum)
    expect_equal(violation, b"I87", b"permits that the limiter says remain", limiter_remaining(&run.limiter),
                 run.limiter.remaining if run.maximum > 0 else -1)
    if violation.found:
        return
    limiter_release_all(run, violation)
    limiter_report(run, violation)
    if run.maximum > 0:
        expect_equal(violation, b"I89", b"permits that remain at the end", run.limiter.remaining, run.maximum)
    expect_equal(violation, b"OP-1", b"waiters in use", pool_in_use(&run.limiter.waiters), 0)
    expect_equal(violation, b"OP-1", b"shares in use", pool_in_use(&run.limiter.shares), 0)


cdef inline void inflight_limiter_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    cdef int32_t code
    table_start(table, b"inflight_limiter", b"Permits of reads under way, with a queue and a timeout.",
                limiter_run_create, limiter_apply, limiter_check, limiter_run_destroy)
    table.subject.max_threads = IL_MOST_THREADS
    table_setting(table, b"maximum", -1, 64)
    table_setting(table, b"timeout", -6, 20)
    table_setting(table, b"queue_size", 1, 8)
    table_setting(table, b"chunk_bits", 0, 3)
    operation = table_operation(table, IL_ACQUIRE, b"acquire", 12, 0)
    operation_argument(operation, b"permits", 0, 40)
    operation_argument(operation, b"declines", 0, 1)
    operation = table_operation(table, IL_RELEASE, b"release", 10, 0)
    operation_argument(operation, b"which", 0, IL_REQUESTS - 1)
    operation = table_operation(table, IL_SHARE, b"share", 4, 0)
    operation_argument(operation, b"which", 0, IL_REQUESTS - 1)
    operation_argument(operation, b"copies", 1, 4)
    operation = table_operation(table, IL_PASS, b"pass_on", 4, 0)
    operation_argument(operation, b"mailbox", 0, IL_MAILBOXES - 1)
    operation = table_operation(table, IL_DROP, b"drop", 8, 0)
    operation_argument(operation, b"which", 0, HANDS - 1)
    operation = table_operation(table, IL_EXPIRE, b"expire", 3, 0)
    operation_argument(operation, b"ticks", 0, 12)
    operation = table_operation(table, IL_TRY, b"try_acquire", 4, 0)
    operation_argument(operation, b"permits", 0, 40)
    operation = table_operation(table, IL_RELEASE_AND_KEEP, b"release_and_keep", 0, 0)
    operation_argument(operation, b"which", 0, IL_REQUESTS - 1)
    operation = table_operation(table, IL_LOSE, b"lose", 0, 0)
    operation_argument(operation, b"which", 0, IL_REQUESTS - 1)
    operation = table_operation(table, IL_TELL_AGAIN, b"tell_again", 0, 0)
    operation_argument(operation, b"which", 0, IL_REQUESTS - 1)
    operation = table_operation(table, IL_FORGET_TO_GRANT, b"forget_to_grant", 0, 0)
    operation_argument(operation, b"which", 0, IL_REQUESTS - 1)
