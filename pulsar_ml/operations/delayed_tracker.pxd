# The delayed tracker's operations for the harness: messages that come and become due, clocks that
# go on, and an inspection of all buckets and of the timer under the monitor. Each answer is that of
# one call.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.delay_world cimport (
    DELAY_APART, DELAY_BATCH, DELAY_CHUNK, DELAY_ERAS, DELAY_LEDGER_BITS, DELAY_NOTED, DelayClocks,
    DelayNotes, delay_clocks_init, delay_inspect_bucket, delay_latest, delay_note_time,
    delay_notes_init, delay_position, delay_since, delay_start, delay_stride, delay_take, delay_time,
    delay_time_apart, raise_to,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, expect_equal, operation_argument, table_operation, table_setting, table_start,
    violate,
)
from pulsar_ml.structures.delay_bucket cimport (
    DelayBucket, add_saturating, bucket_at, bucket_pool_init,
)
from pulsar_ml.structures.delay_index cimport index_first
from pulsar_ml.structures.delayed_tracker cimport (
    DELAY_TRACKED, TIMER_OFF, DelayedTracker, delayed_tracker_add, delayed_tracker_bytes,
    delayed_tracker_clear,
    delayed_tracker_count, delayed_tracker_destroy, delayed_tracker_fire, delayed_tracker_has_message,
    delayed_tracker_init, delayed_tracker_next_fire, delayed_tracker_scheduled, delayed_tracker_set_tick,
    delayed_tracker_should_pause,
)
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.object_pool cimport Pool, pool_destroy, pool_in_use
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i32_load_relaxed, i32_store_relaxed, i64_fetch_add_relaxed, i64_load_relaxed, pml_i32,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    DT_ADD
    DT_PASS_TIME
    DT_SCHEDULED
    DT_HAS_MESSAGE
    DT_COUNT
    DT_SHOULD_PAUSE
    DT_CLEAR
    DT_SET_TICK
    DT_FIRE
    DT_TIMER
    DT_ADD_MANY             # many calls; enough for bitmaps
    DT_BYTES
    DT_ADD_SPAN             # likewise
    DT_ADD_APART            # many calls; enough for several pages of the index
    # Mistakes.
    DT_MISCOUNT
    DT_LOSE
    DT_FORGET_TARGET
    DT_LATE_TIMER
    DT_DISOWN
    DT_EARLY


cdef struct TrackerRun:
    Pool buckets
    DelayedTracker tracker
    DelayNotes notes
    DelayClocks clocks
    int64_t start
    int64_t messages        # that single calls name
    pml_i32 cleared


cdef inline void* tracker_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef TrackerRun* run = <TrackerRun*>allocate_zeroed(1, sizeof(TrackerRun))
    if run is NULL:
        return NULL
    run.start = delay_start(settings[6], settings[3])
    if not delay_clocks_init(&run.clocks, threads, run.start):
        release(run)
        return NULL
    if bucket_pool_init(&run.buckets, 4, 1 << 16) != PML_OK:
        release(run.clocks.times)
        release(run)
        return NULL
    dirty(&run.tracker, sizeof(DelayedTracker))
    delayed_tracker_init(&run.tracker, &run.buckets, settings[0], settings[1] != 0, settings[2])
    delay_notes_init(&run.notes, settings[0], settings[1] != 0, DELAY_LEDGER_BITS, settings[5])
    run.messages = 2 << settings[4]
    return run


cdef inline void tracker_run_destroy(void* instance) noexcept nogil:
    cdef TrackerRun* run = <TrackerRun*>instance
    delayed_tracker_destroy(&run.tracker)
    pool_destroy(&run.buckets)
    release(run.clocks.times)
    release(run)


# Under the monitor: count, buckets and timer agree.
cdef inline void tracker_inspect(TrackerRun* run, PmlViolation* violation) noexcept nogil:
    cdef DelayedTracker* tracker = &run.tracker
    cdef int64_t key = 0
    cdef int64_t count = 0
    cdef int64_t bytes = 0
    cdef int64_t buckets = 0
    cdef uint32_t handle
    cdef DelayBucket* bucket
    monitor_enter(&tracker.monitor)
    while not violation.found:
        handle = index_first(&tracker.index, &key)
        if not handle:
            break
        bucket = bucket_at(&run.buckets, handle)
        buckets += 1
        delay_inspect_bucket(
            bucket, not i32_load_relaxed(&run.notes.taken), &count, &bytes, violation)
        if not bucket.count:
            violate(violation, b"I92", b"the bucket of %lld is empty", key, 0, 0)
        if bucket.owner != <void*>tracker or bucket.key != key:
            violate(violation, b"I98", b"the bucket of %lld is another one", key, 0, 0)
        if key == INT64_MAX:
            break
        key += 1
    expect_equal(violation, b"I91", b"messages", tracker.count, count)
    expect_equal(violation, b"I91", b"buckets", tracker.index.count, buckets)
    expect_equal(violation, b"ES-3", b"bytes", tracker.bytes, bytes)
    monitor_leave(&tracker.monitor)


# Under the monitor, after an operation that updates the timer when nobody else is there: what is
# due later has a timer, and a timer has a target.
cdef inline void tracker_inspect_timer(TrackerRun* run, PmlViolation* violation) noexcept nogil:
    cdef DelayedTracker* tracker = &run.tracker
    cdef int64_t latest
    monitor_enter(&tracker.monitor)
    if tracker.timer.armed != (tracker.timer.target != TIMER_OFF):
        violate(violation, b"I96", b"armed %lld, with target %lld", tracker.timer.armed,
                tracker.timer.target, 0)
    if tracker.timer.armed:
        latest = add_saturating(tracker.timer.target, tracker.rule.precision - 1)
        if tracker.timer.ran:
            latest = max(latest, add_saturating(
                tracker.timer.last_run, i64_load_relaxed(&run.notes.most_tick)))
        if tracker.timer.fire_at > latest:
            violate(violation, b"I95", b"the timer fires at %lld, not by %lld",
                    tracker.timer.fire_at, latest, 0)
    monitor_leave(&tracker.monitor)


cdef inline void tracker_run_add(
    TrackerRun* run, int64_t first, int64_t entries, int64_t stride, int64_t deliver_at, int64_t now,
    PmlResult* result
) noexcept nogil:
    cdef int64_t i, number
    for i in range(entries):
        number = first + i * stride
        delay_note_time(&run.notes, number, deliver_at)
        result.status = delayed_tracker_add(
            &run.tracker, delay_position(&run.notes, number), deliver_at, now)
        if result.status != DELAY_TRACKED:
            break
        if number < DELAY_NOTED:
            i64_fetch_add_relaxed(&run.notes.tracked[number], 1)


# add_apart(entries, step): the first so many messages, each due at a moment of its own.
cdef inline void tracker_run_add_apart(
    TrackerRun* run, int64_t entries, int64_t step, int64_t now, PmlResult* result
) noexcept nogil:
    cdef int64_t number
    for number in range(entries):
        tracker_run_add(run, number, 1, 0, delay_time_apart(number, step, now), now, result)
        if result.status != DELAY_TRACKED:
            break


cdef inline void tracker_run_scheduled(
    TrackerRun* run, int64_t most, int64_t now, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef Position[64] got
    cdef uint64_t digest = 0
    cdef int64_t room = most if most < DELAY_BATCH else DELAY_CHUNK
    cdef int64_t n
    i32_store_relaxed(&run.notes.taken, 1)
    while True:
        n = delayed_tracker_scheduled(&run.tracker, got, room, now)
        digest = delay_take(&run.notes, digest, got, n, now, violation)
        result.words[0] += n
        if most < DELAY_BATCH or n < DELAY_CHUNK:
            break
    result.words[1] = <int64_t>digest


cdef inline void tracker_mistake(TrackerRun* run, int64_t code) noexcept nogil:
    cdef DelayedTracker* tracker = &run.tracker
    cdef int64_t key = 0
    cdef uint32_t handle = index_first(&tracker.index, &key)
    if code == DT_MISCOUNT:
        tracker.count += 1
    elif code == DT_LOSE:
        i64_fetch_add_relaxed(&run.notes.tracked[0], 1)
    elif code == DT_FORGET_TARGET:
        tracker.timer.armed = not tracker.timer.armed
    elif code == DT_LATE_TIMER:
        tracker.timer.fire_at += 100
    elif code == DT_DISOWN and handle:
        bucket_at(&run.buckets, handle).owner = NULL
    elif code == DT_EARLY:
        run.notes.strict = True


cdef inline void tracker_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef TrackerRun* run = <TrackerRun*>instance
    cdef int64_t now = run.clocks.times[thread]
    cdef int64_t at = 0
    if call.code == DT_ADD:
        tracker_run_add(run, call.arguments[0] % run.messages, 1, 0, delay_time(call.arguments[1], now), now,
                        result)
    elif call.code == DT_ADD_MANY or call.code == DT_ADD_SPAN:
        tracker_run_add(run, call.arguments[0], call.arguments[1], delay_stride(call.arguments[0]),
                        delay_time(call.arguments[2], now), now, result)
    elif call.code == DT_ADD_APART:
        tracker_run_add_apart(run, call.arguments[0], call.arguments[1], now, result)
    elif call.code == DT_PASS_TIME:
        run.clocks.times[thread] = add_saturating(now, call.arguments[0])
    elif call.code == DT_SCHEDULED:
        tracker_run_scheduled(run, call.arguments[0], now, result, violation)
    elif call.code == DT_HAS_MESSAGE:
        result.words[0] = delayed_tracker_has_message(&run.tracker, now)
    elif call.code == DT_COUNT:
        result.words[0] = delayed_tracker_count(&run.tracker)
        tracker_inspect(run, violation)
    elif call.code == DT_BYTES:
        result.words[0] = delayed_tracker_bytes(&run.tracker) > 0
    elif call.code == DT_SHOULD_PAUSE:
        result.words[0] = delayed_tracker_should_pause(&run.tracker, now)
    elif call.code == DT_CLEAR:
        i32_store_relaxed(&run.cleared, 1)
        i32_store_relaxed(&run.notes.taken, 1)
        delayed_tracker_clear(&run.tracker)
    elif call.code == DT_SET_TICK:
        raise_to(&run.notes.most_tick, call.arguments[0])
        delayed_tracker_set_tick(&run.tracker, call.arguments[0])
    elif call.code == DT_FIRE:
        result.words[0] = delayed_tracker_fire(&run.tracker, now)
    elif call.code == DT_TIMER:
        result.words[0] = delayed_tracker_next_fire(&run.tracker, &at)
        if result.words[0]:
            result.words[1] = delay_since(at, run.start)
    else:
        tracker_mistake(run, call.code)
        return
    tracker_inspect_timer(run, violation)


cdef inline void tracker_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef TrackerRun* run = <TrackerRun*>instance
    cdef int64_t now = delay_latest(&run.clocks)
    cdef int64_t i, at, first
    cdef PmlResult ignored
    tracker_inspect(run, violation)
    tracker_inspect_timer(run, violation)
    expect_equal(violation, b"ES-3", b"bytes with the buckets", delayed_tracker_bytes(&run.tracker),
                 run.tracker.bytes + pool_in_use(&run.buckets) * <int64_t>sizeof(DelayBucket))
    if violation.found:
        return
    # A look that finds nothing due leaves a timer for later messages.
    if not delayed_tracker_has_message(&run.tracker, now) and delayed_tracker_count(&run.tracker):
        first = 0
        index_first(&run.tracker.index, &first)
        if not delayed_tracker_next_fire(&run.tracker, &at) or run.tracker.timer.target != first:
            violate(violation, b"I95", b"no timer for %lld at %lld", first, now, 0)
    tracker_inspect_timer(run, violation)
    memset(&ignored, 0, sizeof(ignored))
    tracker_run_scheduled(run, DELAY_BATCH, INT64_MAX, &ignored, violation)
    expect_equal(violation, b"I94", b"messages at the end of time", delayed_tracker_count(&run.tracker), 0)
    expect_equal(violation, b"I92", b"buckets at the end of time", run.tracker.index.count, 0)
    expect_equal(violation, b"OP-1", b"buckets in use", pool_in_use(&run.buckets), 0)
    expect_equal(violation, b"ES-3", b"bytes at the end", run.tracker.bytes, 0)
    for i in range(DELAY_NOTED):
        if (i64_load_relaxed(&run.notes.tracked[i]) and not i32_load_relaxed(&run.cleared)
                and not i64_load_relaxed(&run.notes.returned[i])):
            violate(violation, b"I94", b"message %lld was never returned", i, 0, 0)
        if i64_load_relaxed(&run.notes.returned[i]) > i64_load_relaxed(&run.notes.tracked[i]):
            violate(violation, b"I94", b"message %lld was returned %lld times", i,
                    i64_load_relaxed(&run.notes.returned[i]), 0)


cdef inline void delayed_tracker_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"delayed_tracker", b"Delayed messages of one subscription.", tracker_run_create,
                tracker_apply, tracker_check, tracker_run_destroy)
    table_setting(table, b"tick", 0, 20)
    table_setting(table, b"strict", 0, 1)
    table_setting(table, b"lookahead", 0, 4)
    table_setting(table, b"start", -40, 40)
    table_setting(table, b"spread", 0, 5)
    table_setting(table, b"block_end", 0, 3 * DELAY_NOTED)
    table_setting(table, b"era", 0, DELAY_ERAS - 1)
    operation = table_operation(table, DT_ADD, b"add", 20, 0)
    operation_argument(operation, b"message", 0, DELAY_NOTED - 1)
    operation_argument(operation, b"delay", -3, DELAY_NOTED + 3)
    # Delays of messages, so that clocks come to the times at which messages are due; a clock may
    # step back.
    operation = table_operation(table, DT_PASS_TIME, b"pass_time", 8, 0)
    operation_argument(operation, b"delay", -3, DELAY_NOTED + 3)
    operation = table_operation(table, DT_SCHEDULED, b"scheduled", 10, 0)
    operation_argument(operation, b"most", 0, DELAY_BATCH)
    table_operation(table, DT_HAS_MESSAGE, b"has_message", 6, 0)
    table_operation(table, DT_COUNT, b"count", 3, 0)
    table_operation(table, DT_SHOULD_PAUSE, b"should_pause", 3, 0)
    table_operation(table, DT_CLEAR, b"clear", 1, 0)
    operation = table_operation(table, DT_SET_TICK, b"set_tick", 1, 0)
    operation_argument(operation, b"milliseconds", 0, 40)
    table_operation(table, DT_FIRE, b"fire", 6, 0)
    table_operation(table, DT_TIMER, b"timer", 3, 0)
    operation = table_operation(table, DT_ADD_MANY, b"add_many", 0, 0)
    operation_argument(operation, b"first", 0, DELAY_NOTED - 1)
    operation_argument(operation, b"entries", 1, 6000)
    operation_argument(operation, b"delay", 0, DELAY_NOTED - 1)
    table_operation(table, DT_BYTES, b"bytes", 2, 0)
    operation = table_operation(table, DT_ADD_SPAN, b"add_span", 0, 0)
    operation_argument(operation, b"first", 0, DELAY_NOTED - 1)
    operation_argument(operation, b"span", 4000, 6000)
    operation_argument(operation, b"delay", 0, DELAY_NOTED - 1)
    operation = table_operation(table, DT_ADD_APART, b"add_apart", 0, 0)
    operation_argument(operation, b"apart", 1, DELAY_APART)
    operation_argument(operation, b"step", 1, DELAY_APART - 1)
    table_operation(table, DT_MISCOUNT, b"miscount", 0, 0)
    table_operation(table, DT_LOSE, b"lose", 0, 0)
    table_operation(table, DT_FORGET_TARGET, b"forget_target", 0, 0)
    table_operation(table, DT_LATE_TIMER, b"late_timer", 0, 0)
    table_operation(table, DT_DISOWN, b"disown", 0, 0)
    table_operation(table, DT_EARLY, b"early", 0, 0)
