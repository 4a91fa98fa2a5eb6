# The delayed manager's operations for the harness: views of two topics that open and close,
# messages that they add, take and mark deleted, clocks that go on, and a timer. Each answer is that
# of one call.
#
# What a view added and what was returned to it is noted, so the check can say which messages must
# still be there and which must have come. In the end only the timer's triggers make views read.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.delay_world cimport (
    DELAY_APART, DELAY_BATCH, DELAY_CHUNK, DELAY_ERAS, DELAY_LEDGER_BITS, DELAY_NOTED, DelayClocks,
    DelayNotes, delay_clocks_init, delay_inspect_table, delay_latest, delay_note_time, delay_notes_init,
    delay_number, delay_position, delay_since, delay_start, delay_take, delay_time, delay_time_apart,
    raise_to,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, expect_equal, operation_argument, table_operation, table_setting, table_start,
    violate,
)
from pulsar_ml.structures.delay_bucket cimport DelayBucket, add_saturating, bucket_at
from pulsar_ml.structures.delayed_manager cimport (
    delayed_manager_buckets, delayed_manager_bytes, delayed_manager_count, delayed_manager_fire,
    delayed_manager_next_fire, delayed_manager_set_tick, delayed_view_add, delayed_view_clear,
    delayed_view_count, delayed_view_has_message, delayed_view_mark_delete, delayed_view_scheduled,
    delayed_view_should_pause,
)
from pulsar_ml.structures.delayed_table cimport table_next
from pulsar_ml.structures.delayed_tracker cimport DELAY_CLOSED, DELAY_NO_MEMORY, DELAY_TRACKED, TIMER_OFF
from pulsar_ml.structures.delayed_views cimport (
    DelayedFactory, DelayedManager, DelayedSettings, DelayedView, delayed_factory_destroy,
    delayed_factory_init, delayed_view_close, delayed_view_free, delayed_view_open,
)
from pulsar_ml.structures.entry_set cimport SetBlock
from pulsar_ml.structures.monitor cimport monitor_enter, monitor_leave
from pulsar_ml.structures.object_pool cimport pool_in_use
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i32_cas_weak_acquire, i32_exchange_release, i32_load_relaxed, i32_store_relaxed, i64_fetch_add_relaxed,
    i64_load_relaxed, i64_store_relaxed, pml_i32, pml_i64, pml_u32, pml_u8, u8_load_relaxed,
    u8_store_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    DV_TOPICS = 2
    DV_SLOTS = 3            # views that operations name; of topics 0, 1 and 0
    DV_VIEWS = 32           # that a run opens at most
    DV_FULL = 4


cdef enum:
    DV_OPEN
    DV_CLOSE
    DV_ADD
    DV_PASS_TIME
    DV_SCHEDULED
    DV_HAS_MESSAGE
    DV_COUNT
    DV_SHOULD_PAUSE
    DV_CLEAR
    DV_MARK_DELETE
    DV_SET_TICK
    DV_FIRE
    DV_TIMER
    DV_TOPIC
    DV_ADD_MANY             # many calls
    DV_ADD_APART            # likewise
    # Mistakes.
    DV_MISCOUNT
    DV_DISARM
    DV_PRUNE
    DV_HIDE
    DV_TRIGGER_CLOSED
    DV_EARLY
    DV_TWIN
    DV_LOOSE


# The notes about a view, kept beside it.
cdef struct ViewNote:
    DelayedView* view
    int64_t topic
    pml_i32 closed
    pml_i32 due             # it should read
    pml_i32 prunes          # it gave its topic a chance to prune
    pml_i64 most_marked     # the highest number it marked, -1: none
    pml_u8[64] added
    pml_u8[64] returned


cdef struct ManagerRun:
    DelayedFactory factory
    DelayNotes[2] notes     # by topic
    DelayClocks clocks
    int64_t start           # of the last thread's clock; each is ahead of the next one's
    int64_t messages        # that single calls name
    pml_i32 wrong           # a view was triggered after its close
    pml_u32 monitor         # of what follows
    int64_t opened
    pml_i32[3] slots        # the view of each slot, by its place in the list
    ViewNote[32] views


cdef inline void manager_triggered(void* context, int64_t argument) noexcept nogil:
    cdef ManagerRun* run = <ManagerRun*>context
    if i32_load_relaxed(&run.views[argument].closed):
        i32_store_relaxed(&run.wrong, 1)
    i32_store_relaxed(&run.views[argument].due, 1)


cdef inline void* manager_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef ManagerRun* run = <ManagerRun*>allocate_zeroed(1, sizeof(ManagerRun))
    cdef int64_t i, opened
    if run is NULL:
        return NULL
    run.start = delay_start(settings[9], settings[3])
    if not delay_clocks_init(&run.clocks, threads, run.start):
        release(run)
        return NULL
    for i in range(threads):
        run.clocks.times[i] += (threads - 1 - i) * settings[7]
    dirty(&run.factory, sizeof(DelayedFactory))
    if delayed_factory_init(
            &run.factory, DelayedSettings(settings[0], settings[1] != 0, settings[2], settings[4], 1.0),
            manager_triggered, run, 3, 1 << 16) != PML_OK:
        release(run.clocks.times)
        release(run)
        return NULL
    run.messages = 2 << settings[5]
    for i in range(DV_TOPICS):
        delay_notes_init(&run.notes[i], settings[0], settings[1] != 0, settings[6], settings[8])
    for i in range(DV_SLOTS):
        if manager_run_open(run, i, &opened) != DELAY_TRACKED:
            manager_run_destroy(run)
            return NULL
    return run


cdef inline void manager_run_destroy(void* instance) noexcept nogil:
    cdef ManagerRun* run = <ManagerRun*>instance
    cdef int64_t i
    for i in range(run.opened):
        delayed_view_close(run.views[i].view)
        delayed_view_free(run.views[i].view)
    delayed_factory_destroy(&run.factory)
    release(run.clocks.times)
    release(run)


# The view of a slot, not an old one: a slot is its model's, and orders only whom the opener has to.
cdef inline ViewNote* manager_note(ManagerRun* run, int64_t slot) noexcept nogil:
    cdef int32_t place = i32_load_relaxed(&run.slots[slot])
    # Comes round when another view was opened. Pairs with the release below.
    while not i32_cas_weak_acquire(&run.slots[slot], &place, place):
        pass
    return &run.views[place]


cdef inline bint manager_is_closed(DelayedView* view) noexcept nogil:
    cdef bint closed
    stamped_lock_read(&view.lock)
    closed = view.closed
    stamped_unlock_read(&view.lock)
    return closed


# Opens the view of a slot, which is its subscription: `fresh` says whether it is a new view.
cdef inline int64_t manager_run_open(ManagerRun* run, int64_t slot, int64_t* fresh) noexcept nogil:
    cdef int64_t status = DELAY_TRACKED
    cdef ViewNote* note = NULL
    cdef DelayedView* view
    monitor_enter(&run.monitor)
    fresh[0] = run.opened < DV_SLOTS
    note = &run.views[run.opened]
    if run.opened == DV_VIEWS:
        fresh[0] = manager_is_closed(manager_note(run, slot).view)
        status = DV_FULL if fresh[0] else DELAY_TRACKED
    else:
        note.topic = slot % DV_TOPICS
        i64_store_relaxed(&note.most_marked, -1)
        # It reads when it begins.
        i32_store_relaxed(&note.due, 1)
        view = delayed_view_open(&run.factory, note.topic, slot, run.opened)
        if view is NULL:
            status = DELAY_NO_MEMORY
            # An open view needs no memory.
            fresh[0] = 1
        elif run.opened >= DV_SLOTS and view is manager_note(run, slot).view:
            # The slot still holds it.
            delayed_view_free(view)
        else:
            fresh[0] = 1
            note.view = view
            # An exchange: all changes of a slot in one order with the looks at it.
            i32_exchange_release(&run.slots[slot], <int32_t>run.opened)
            run.opened += 1
    monitor_leave(&run.monitor)
    return status


# With a step each message is due at a moment of its own.
cdef inline void manager_run_add(
    ManagerRun* run, ViewNote* note, int64_t first, int64_t entries, int64_t delay, int64_t step, int64_t now,
    PmlResult* result
) noexcept nogil:
    cdef DelayNotes* notes = &run.notes[note.topic]
    cdef int64_t deliver_at, number
    for number in range(first, first + entries):
        deliver_at = delay_time_apart(number, step, now) if step else delay_time(delay, now)
        delay_note_time(notes, number, deliver_at)
        result.status = delayed_view_add(note.view, delay_position(notes, number), deliver_at, now)
        if result.status != DELAY_TRACKED:
            break
        if number < DELAY_NOTED:
            u8_store_relaxed(&note.added[number], 1)


cdef inline void manager_run_scheduled(
    ManagerRun* run, ViewNote* note, int64_t most, int64_t now, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef Position[64] got
    cdef uint64_t digest = 0
    cdef int64_t room = most if most < DELAY_BATCH else DELAY_CHUNK
    cdef int64_t n, i, number
    while True:
        i32_store_relaxed(&note.due, 0)
        n = delayed_view_scheduled(note.view, got, room, now)
        if n < 0:
            result.status = DELAY_CLOSED
            return
        i32_store_relaxed(&note.prunes, 1)
        if n == room:
            i32_store_relaxed(&note.due, 1)
        digest = delay_take(&run.notes[note.topic], digest, got, n, now, violation)
        for i in range(n):
            number = delay_number(&run.notes[note.topic], got[i])
            if number < DELAY_NOTED:
                u8_store_relaxed(&note.returned[number], 1)
        result.words[0] += n
        if most < DELAY_BATCH or n < DELAY_CHUNK:
            break
    result.words[1] = <int64_t>digest


cdef inline void manager_mistake(ManagerRun* run, int64_t code) noexcept nogil:
    cdef ViewNote* note = manager_note(run, 0)
    cdef DelayedManager* manager = note.view.manager
    cdef SetBlock* block
    cdef int64_t key = 0
    if code == DV_MISCOUNT:
        i64_fetch_add_relaxed(&manager.table.count, 1)
    elif code == DV_DISARM:
        i64_store_relaxed(&manager.table.target, TIMER_OFF)
    elif code == DV_PRUNE:
        u8_store_relaxed(&note.added[63], 1)
    elif code == DV_HIDE:
        note.view.cursor.key = INT64_MAX
    elif code == DV_TRIGGER_CLOSED:
        i32_store_relaxed(&note.closed, 1)
        manager_triggered(run, 0)
        i32_store_relaxed(&note.closed, 0)
    elif code == DV_EARLY:
        run.notes[0].strict = True
    elif code == DV_TWIN:
        note.view.subscription = DV_SLOTS - 1
    elif code == DV_LOOSE:
        block = bucket_at(
            manager.table.buckets, table_next(&manager.table, &key, INT64_MAX, False)).ledgers.entries.blocks
        block.room = 2 * block.used


cdef inline void manager_of_view(
    ManagerRun* run, ViewNote* note, const PmlCall* call, int64_t now, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef DelayedView* view = note.view
    cdef int64_t at = 0
    if call.code == DV_ADD:
        manager_run_add(run, note, call.arguments[1] % run.messages, 1, call.arguments[2], 0, now, result)
    elif call.code == DV_ADD_MANY:
        manager_run_add(run, note, 0, call.arguments[1], call.arguments[2], 0, now, result)
    elif call.code == DV_ADD_APART:
        manager_run_add(run, note, 0, call.arguments[1], 0, call.arguments[2], now, result)
    elif call.code == DV_CLOSE:
        i32_store_relaxed(&run.notes[note.topic].taken, 1)
        if delayed_view_close(view):
            i32_store_relaxed(&note.closed, 1)
        else:
            result.status = DELAY_CLOSED
    elif call.code == DV_SCHEDULED:
        manager_run_scheduled(run, note, call.arguments[1], now, result, violation)
    elif call.code == DV_HAS_MESSAGE:
        result.words[0] = delayed_view_has_message(view, now)
    elif call.code == DV_COUNT:
        result.words[0] = delayed_view_count(view, call.arguments[1])
    elif call.code == DV_SHOULD_PAUSE:
        result.words[0] = delayed_view_should_pause(view, now)
    elif call.code == DV_CLEAR:
        i32_store_relaxed(&note.due, 1)
        result.words[0] = delayed_view_clear(view)
        i32_store_relaxed(&note.due, 1)
    elif call.code == DV_MARK_DELETE:
        i32_store_relaxed(&run.notes[note.topic].taken, 1)
        raise_to(&note.most_marked, call.arguments[1] % run.messages)
        result.words[0] = delayed_view_mark_delete(
            view, delay_position(&run.notes[note.topic], call.arguments[1] % run.messages), now)
        i32_store_relaxed(&note.due, 1)
    elif call.code == DV_SET_TICK:
        raise_to(&run.notes[note.topic].most_tick, call.arguments[1])
        delayed_manager_set_tick(view.manager, call.arguments[1])
    elif call.code == DV_FIRE:
        result.words[0] = delayed_manager_fire(view.manager, now)
    elif call.code == DV_TIMER:
        result.words[0] = delayed_manager_next_fire(view.manager, &at)
        if result.words[0]:
            result.words[1] = delay_since(at, run.start)
    elif call.code == DV_TOPIC:
        result.words[0] = delayed_manager_count(view.manager)
        result.words[1] = delayed_manager_buckets(view.manager)
        delay_inspect_table(&view.manager.table, &run.notes[note.topic], NULL, &at, violation)


cdef inline void manager_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef ManagerRun* run = <ManagerRun*>instance
    if call.code == DV_OPEN:
        result.status = manager_run_open(run, call.arguments[0], &result.words[0])
    elif call.code == DV_PASS_TIME:
        run.clocks.times[thread] = add_saturating(run.clocks.times[thread], call.arguments[0])
    elif call.code >= DV_MISCOUNT:
        manager_mistake(run, call.code)
    else:
        manager_of_view(run, manager_note(run, call.arguments[0]), call, run.clocks.times[thread], result,
                        violation)
    if i32_load_relaxed(&run.wrong):
        violate(violation, b"I100", b"a view was triggered after its close", 0, 0, 0)


# Only views that were triggered read.
cdef inline void manager_read_due(ManagerRun* run, int64_t now, PmlViolation* violation) noexcept nogil:
    cdef PmlResult ignored
    cdef int64_t i
    memset(&ignored, 0, sizeof(ignored))
    for i in range(run.opened):
        if i32_load_relaxed(&run.views[i].due) and not i32_load_relaxed(&run.views[i].closed):
            manager_run_scheduled(run, &run.views[i], DELAY_BATCH, now, &ignored, violation)


# Checks that the messages that a view added and never marked are there, and came to it in the end.
cdef inline void manager_check_view(ManagerRun* run, ViewNote* note, PmlViolation* violation) noexcept nogil:
    cdef bint[64] there
    cdef int64_t bytes, i, at, turn
    for i in range(DELAY_NOTED):
        there[i] = False
    expect_equal(violation, b"I91", b"messages of a topic", delayed_manager_count(note.view.manager),
                 delay_inspect_table(
                     &note.view.manager.table, &run.notes[note.topic], there, &bytes, violation))
    expect_equal(violation, b"ES-3", b"bytes of a topic",
                 i64_load_relaxed(&note.view.manager.table.bytes), bytes)
    expect_equal(violation, b"ES-3", b"bytes of a topic with its buckets",
                 delayed_manager_bytes(note.view.manager),
                 bytes + delayed_manager_buckets(note.view.manager) * <int64_t>sizeof(DelayBucket))
    for i in range(DELAY_NOTED):
        if (u8_load_relaxed(&note.added[i]) and not there[i]
                and i > i64_load_relaxed(&note.most_marked)):
            violate(violation, b"I97", b"message %lld is gone, and the view marked only %lld", i,
                    i64_load_relaxed(&note.most_marked), 0)
    if violation.found:
        return
    manager_read_due(run, delay_latest(&run.clocks), violation)
    # No more fires than buckets and a tick for each.
    for turn in range(2000):
        if not delayed_manager_next_fire(note.view.manager, &at):
            break
        delayed_manager_fire(note.view.manager, at)
        manager_read_due(run, at, violation)
    else:
        violate(violation, b"I95", b"the timer does not come to an end", 0, 0, 0)
    if delayed_view_has_message(note.view, INT64_MAX) != 0:
        violate(violation, b"I95", b"the timer left messages for which no view was triggered", 0, 0, 0)
    expect_equal(violation, b"I94", b"messages left", delayed_view_count(note.view, INT64_MAX), 0)
    for i in range(DELAY_NOTED):
        if there[i] and i > i64_load_relaxed(&note.most_marked) and not u8_load_relaxed(&note.returned[i]):
            violate(violation, b"I94", b"message %lld never came to a view", i, 0, 0)


# At quiescence: each subscription has one view in its topic.
cdef inline void manager_check_identity(ManagerRun* run, PmlViolation* violation) noexcept nogil:
    cdef DelayedManager* manager = run.factory.managers
    cdef DelayedView* view
    cdef DelayedView* other
    while manager is not NULL:
        view = manager.views
        while view is not NULL:
            other = view.next
            while other is not NULL:
                if other.subscription == view.subscription:
                    violate(violation, b"DM-10", b"subscription %lld has two open views",
                            view.subscription, 0, 0)
                other = other.next
            view = view.next
        manager = manager.next


cdef inline void manager_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef ManagerRun* run = <ManagerRun*>instance
    cdef ViewNote* note
    cdef PmlResult ignored
    cdef int64_t i
    memset(&ignored, 0, sizeof(ignored))
    manager_check_identity(run, violation)
    # Before the check itself makes views read.
    for i in range(run.opened):
        if i32_load_relaxed(&run.views[i].prunes) and not run.views[i].view.manager.table.pruned:
            violate(violation, b"DM-9", b"nothing was pruned, from time %lld on", run.start, 0, 0)
    for i in range(run.opened):
        note = &run.views[i]
        if not i32_load_relaxed(&note.closed):
            manager_check_view(run, note, violation)
    for i in range(run.opened):
        note = &run.views[i]
        delayed_view_close(note.view)
        i32_store_relaxed(&note.closed, 1)
        if delayed_view_add(
                note.view, delay_position(&run.notes[note.topic], 1), INT64_MAX, 0) != DELAY_CLOSED:
            violate(violation, b"I100", b"a closed view takes messages", 0, 0, 0)
        manager_run_scheduled(run, note, 1, INT64_MAX, &ignored, violation)
        expect_equal(violation, b"I100", b"the answer of a closed view", ignored.status, DELAY_CLOSED)
    for i in range(run.opened):
        expect_equal(violation, b"I91", b"messages of a closed topic",
                     delayed_manager_count(run.views[i].view.manager), 0)
    if run.factory.managers is not NULL:
        violate(violation, b"DM-8", b"a topic without views is in the factory", 0, 0, 0)
    expect_equal(violation, b"OP-1", b"buckets in use", pool_in_use(&run.factory.buckets), 0)


# An operation of a view.
cdef inline PmlOperation* view_operation(
    SubjectTable* table, int32_t code, const char* name, int32_t weight
) noexcept nogil:
    cdef PmlOperation* operation = table_operation(table, code, name, weight, 0)
    operation_argument(operation, b"view", 0, DV_SLOTS - 1)
    return operation


cdef inline void delayed_manager_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"delayed_manager", b"Delayed messages of topics, once for all their subscriptions.",
                manager_run_create, manager_apply, manager_check, manager_run_destroy)
    table_setting(table, b"tick", 0, 20)
    table_setting(table, b"strict", 0, 1)
    table_setting(table, b"lookahead", 0, 4)
    table_setting(table, b"start", -40, 40)
    table_setting(table, b"prune_interval", 0, 20)
    table_setting(table, b"spread", 0, 5)
    table_setting(table, b"ledger_bits", 1, DELAY_LEDGER_BITS)
    table_setting(table, b"clocks_apart", 0, 40)
    table_setting(table, b"block_end", 0, 3 * DELAY_NOTED)
    table_setting(table, b"era", 0, DELAY_ERAS - 1)
    view_operation(table, DV_OPEN, b"open", 3)
    view_operation(table, DV_CLOSE, b"close", 1)
    operation = view_operation(table, DV_ADD, b"add", 20)
    operation_argument(operation, b"message", 0, DELAY_NOTED - 1)
    operation_argument(operation, b"delay", -3, DELAY_NOTED + 3)
    operation = table_operation(table, DV_PASS_TIME, b"pass_time", 8, 0)
    operation_argument(operation, b"milliseconds", 0, 40)
    operation = view_operation(table, DV_SCHEDULED, b"scheduled", 10)
    operation_argument(operation, b"most", 0, DELAY_BATCH)
    view_operation(table, DV_HAS_MESSAGE, b"has_message", 5)
    operation = view_operation(table, DV_COUNT, b"count", 3)
    operation_argument(operation, b"enough", 1, 40)
    view_operation(table, DV_SHOULD_PAUSE, b"should_pause", 2)
    view_operation(table, DV_CLEAR, b"clear", 1)
    operation = view_operation(table, DV_MARK_DELETE, b"mark_delete", 8)
    operation_argument(operation, b"message", 0, DELAY_NOTED - 1)
    operation = view_operation(table, DV_SET_TICK, b"set_tick", 1)
    operation_argument(operation, b"tick", 0, 40)
    view_operation(table, DV_FIRE, b"fire", 6)
    view_operation(table, DV_TIMER, b"timer", 2)
    view_operation(table, DV_TOPIC, b"topic", 3)
    operation = view_operation(table, DV_ADD_MANY, b"add_many", 0)
    operation_argument(operation, b"entries", 1, 300)
    operation_argument(operation, b"delay", 0, DELAY_NOTED - 1)
    operation = view_operation(table, DV_ADD_APART, b"add_apart", 0)
    operation_argument(operation, b"apart", 1, DELAY_APART)
    operation_argument(operation, b"step", 1, DELAY_APART - 1)
    table_operation(table, DV_MISCOUNT, b"miscount", 0, 0)
    table_operation(table, DV_DISARM, b"disarm", 0, 0)
    table_operation(table, DV_PRUNE, b"prune", 0, 0)
    table_operation(table, DV_HIDE, b"hide", 0, 0)
    table_operation(table, DV_TRIGGER_CLOSED, b"trigger_closed", 0, 0)
    table_operation(table, DV_EARLY, b"early", 0, 0)
    table_operation(table, DV_TWIN, b"twin", 0, 0)
    table_operation(table, DV_LOOSE, b"loose", 0, 0)
