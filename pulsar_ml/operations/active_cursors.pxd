# The active cursors' operations for the harness: changes and queries by all threads, and an
# inspection of the whole structure at any moment, under the shared lock.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.cursor_world cimport (
    CURSOR_DONE, CURSOR_MOST_THREADS, CURSOR_NUMBERS, CURSOR_OWN, CURSOR_REFUSED, CURSOR_UNKNOWN,
    CURSOR_UNTRACKED, CURSOR_VALUES, CursorLane, CursorNote, CursorWorld, cursor_check_list,
    cursor_check_registry, cursor_check_slowest, cursor_exchange, cursor_indices, cursor_iterate,
    cursor_last_note, cursor_look, cursor_look_slowest, cursor_name, cursor_named, cursor_note,
    cursor_note_all, cursor_note_removal, cursor_noted_before, cursor_noted_slowest,
    cursor_own_before, cursor_own_value, cursor_position, cursor_see_version, cursor_settings,
    cursor_value, cursor_world_init, name_id, name_tag,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, expect_equal, operation_argument, table_operation, table_setting, table_start,
    violate,
)
from pulsar_ml.structures.active_cursors cimport (
    ACTIVE_FEWEST_REMOVALS, ActiveCursors, ActiveMemory, active_cursors_add,
    active_cursors_destroy, active_cursors_init, active_cursors_look, active_cursors_rank,
    active_cursors_rank_at, active_cursors_reads_of_added, active_cursors_remove,
    active_cursors_replace, active_cursors_should_cache, active_cursors_slowest,
    active_cursors_slowest_cursor, active_cursors_update, active_memory_destroy, active_memory_init,
)
from pulsar_ml.structures.active_groups cimport ActiveCursor, CursorGroup, cursor_group
from pulsar_ml.structures.cursor_registry cimport (
    CursorPosition, registry_has_durable, registry_size, registry_version,
)
from pulsar_ml.structures.object_pool cimport pool_in_use
from pulsar_ml.structures.position cimport position_equal, position_less
from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport i64_load_relaxed, i64_store_relaxed
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    ACTIVE_MOST_TIME = 100
    ACTIVE_LAST_TIME = 200      # when the check removes what is left
    ACTIVE_MOST_CHURN = 100
    ACTIVE_MOST_CURSORS = 1 << 11


cdef enum:
    ACTIVE_ADD
    ACTIVE_UPDATE
    ACTIVE_REMOVE
    ACTIVE_RANK
    ACTIVE_SLOWEST
    ACTIVE_SIZE
    ACTIVE_VERSION
    ACTIVE_SHOULD_CACHE
    ACTIVE_ITERATE
    ACTIVE_CHURN
    ACTIVE_UPDATE_STALE
    ACTIVE_INSPECT
    ACTIVE_RANK_AT
    ACTIVE_LOOK
    ACTIVE_SLOWEST_CURSOR
    # Wrong on purpose.
    ACTIVE_FORGET
    ACTIVE_MISCOUNT
    ACTIVE_MISPLACE
    ACTIVE_DROP_CHANGES
    ACTIVE_LINGER


cdef struct ActiveRun:
    ActiveMemory memory
    ActiveCursors container
    CursorWorld world
    CursorLane[64] lanes


cdef inline void* active_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    # Lanes stand last: those that will not come are left out.
    cdef ActiveRun* run = <ActiveRun*>allocate_zeroed(
        1, sizeof(ActiveRun) - <size_t>(CURSOR_MOST_THREADS - threads) * sizeof(CursorLane))
    if run is NULL:
        return NULL
    if active_memory_init(&run.memory, <uint32_t>settings[2], ACTIVE_MOST_CURSORS) != PML_OK:
        release(run)
        return NULL
    cursor_world_init(&run.world, settings, threads, run.lanes)
    dirty(&run.container, sizeof(ActiveCursors))
    active_cursors_init(&run.container, &run.memory, settings[3], settings[4])
    run.world.start = settings[4]
    return run


cdef inline void active_run_destroy(void* instance) noexcept nogil:
    active_cursors_destroy(&(<ActiveRun*>instance).container)
    active_memory_destroy(&(<ActiveRun*>instance).memory)
    release(instance)


# Changes -----------------------------------------------------------------------------------------

# Answers the data version and the tag, and the same of another thread's cursor that it replaced.
cdef inline int64_t active_run_add(
    ActiveRun* run, int32_t thread, int64_t cursor, int64_t value, bint durable, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef CursorPosition target = cursor_position(&run.world, value)
    cdef uint64_t name = cursor_name(&run.world, thread, cursor)
    cdef uint64_t id
    cdef int64_t version = active_cursors_replace(&run.container, name_id(name), target, durable)
    cdef bint replaced = version != 0
    if not replaced:
        version = active_cursors_add(&run.container, target, durable, &id)
        if not version:
            return CURSOR_REFUSED
        name = cursor_named(&run.world, thread, id)
    cursor_note_all(&run.world, thread, cursor, name, version, target, durable, violation)
    result.words[0] = version
    result.words[1] = name_tag(name)
    if not replaced:
        name = cursor_exchange(&run.world, thread, cursor, name)
        result.words[2] = active_run_remove(run, thread, name, 0, violation)
        result.words[3] = name_tag(name)
    return CURSOR_DONE


cdef inline int64_t active_run_update(
    ActiveRun* run, int32_t thread, int64_t cursor, int64_t value, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef CursorPosition target = cursor_position(&run.world, value)
    cdef uint64_t name = cursor_name(&run.world, thread, cursor)
    cdef int64_t version = active_cursors_update(&run.container, name_id(name), target)
    result.words[0] = version
    result.words[1] = name_tag(name)
    if version:
        cursor_note(&run.world, thread, cursor, name, version, target, violation)
        return CURSOR_DONE
    if cursor < CURSOR_OWN and name:
        violate(violation, b"I79", b"cursor %lld is registered and was not found", cursor, 0, 0)
    return CURSOR_UNKNOWN


# The data version it made, 0 when there is no such cursor.
cdef inline int64_t active_run_remove(
    ActiveRun* run, int32_t thread, uint64_t name, int64_t now, PmlViolation* violation
) noexcept nogil:
    cdef int64_t version = active_cursors_remove(&run.container, name_id(name), now)
    if version:
        cursor_note_removal(&run.world, thread, version, now, violation)
    elif name:
        violate(violation, b"I79", b"a cursor that only this thread removes was not found", 0, 0, 0)
    return version


# Cursors that come and go without a query between.
cdef inline int64_t active_run_churn(
    ActiveRun* run, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t count = call.arguments[0]
    cdef int64_t now = call.arguments[2]
    cdef CursorPosition target = cursor_position(&run.world, call.arguments[1])
    cdef uint64_t id
    cdef int64_t i, version
    for i in range(count):
        version = active_cursors_add(&run.container, target, False, &id)
        if not version:
            # Once more: a test fails one allocation.
            version = active_cursors_add(&run.container, target, False, &id)
        if not version:
            result.words[0] = i  # that came and went
            return CURSOR_REFUSED
        cursor_see_version(&run.world.lanes[thread], version, True, violation)
        # It needs no name: nobody else sees it.
        active_run_remove(run, thread, id, now, violation)
    return CURSOR_DONE


# Queries -----------------------------------------------------------------------------------------

cdef inline int64_t active_run_rank(
    ActiveRun* run, int32_t thread, int64_t cursor, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef CursorWorld* world = &run.world
    cdef uint64_t name = cursor_name(world, thread, cursor)
    cdef int64_t rank = active_cursors_rank(&run.container, name_id(name))
    cdef int64_t least = 0
    # Each thread may be about to exchange one more cursor, or to remove one.
    cdef int64_t most = cursor_indices(world) + 2 * world.threads
    cdef int64_t value
    if cursor < CURSOR_OWN:
        value = cursor_own_value(world, thread, cursor)
        if value == CURSOR_UNTRACKED:
            most = 0
        else:
            least = cursor_own_before(world, thread, value)
            most -= cursor_own_before(world, thread, CURSOR_VALUES) - least
    if not least <= rank <= most:
        violate(violation, b"I73", b"the rank is %lld, it must be from %lld to %lld", rank, least, most)
    result.words[1] = name_tag(name)
    return rank


cdef inline int64_t active_run_rank_at(
    ActiveRun* run, int32_t thread, int64_t cursor, int64_t value, PmlViolation* violation
) noexcept nogil:
    cdef CursorWorld* world = &run.world
    cdef int64_t place = value % world.values
    cdef uint64_t name = cursor_name(world, thread, cursor)
    cdef int64_t rank = active_cursors_rank_at(
        &run.container, name_id(name), cursor_position(world, place).at)
    cdef int64_t least = cursor_own_before(world, thread, place)
    # As for the rank of a cursor.
    cdef int64_t most = cursor_indices(world) + 2 * world.threads - (
        cursor_own_before(world, thread, CURSOR_VALUES) - least)
    if not least <= rank <= most:
        violate(violation, b"I73", b"%lld cursors are counted, it must be from %lld to %lld", rank, least,
                most)
    return rank


cdef inline void active_run_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef ActiveRun* run = <ActiveRun*>instance
    cdef ActiveCursors* container = &run.container
    cdef CursorWorld* world = &run.world
    cdef CursorLane* lane = &world.lanes[thread]
    cdef int64_t cursor = call.arguments[0] % world.cursors
    cdef uint64_t name
    cdef int64_t i
    if call.code == ACTIVE_ADD:
        result.status = active_run_add(run, thread, cursor, call.arguments[1], call.arguments[2] != 0,
                                       result, violation)
    elif call.code == ACTIVE_UPDATE:
        result.status = active_run_update(run, thread, cursor, call.arguments[1], result, violation)
    elif call.code == ACTIVE_REMOVE:
        name = cursor_exchange(world, thread, cursor, 0)
        result.words[0] = active_run_remove(run, thread, name, call.arguments[1], violation)
        result.words[1] = name_tag(name)
        result.status = CURSOR_DONE if result.words[0] else CURSOR_UNKNOWN
    elif call.code == ACTIVE_RANK:
        result.words[0] = active_run_rank(run, thread, cursor, result, violation)
    elif call.code == ACTIVE_RANK_AT:
        result.words[0] = active_run_rank_at(run, thread, cursor, call.arguments[1], violation)
    elif call.code == ACTIVE_SLOWEST:
        result.words[0] = cursor_value(world, active_cursors_slowest(container), violation)
        cursor_check_slowest(world, thread, result.words[0], violation)
    elif call.code == ACTIVE_SIZE:
        result.words[0] = active_cursors_reads_of_added(container)
        result.words[1] = registry_has_durable(&container.registry)
        for i in range(CURSOR_OWN):
            if lane.own[i] and (not result.words[0] or (lane.notes[i].durable and not result.words[1])):
                violate(violation, b"I79", b"size %lld, durable %lld while cursor %lld is registered",
                        result.words[0], result.words[1], i)
    elif call.code == ACTIVE_VERSION:
        result.words[0] = registry_version(&container.registry)
        cursor_see_version(lane, result.words[0], False, violation)
    elif call.code == ACTIVE_SHOULD_CACHE:
        result.words[0] = active_cursors_should_cache(container, call.arguments[0])
        for i in range(CURSOR_OWN):
            if lane.own[i] and not result.words[0]:
                violate(violation, b"AC-7", b"nothing is cached while cursor %lld is active", i, 0, 0)
    elif call.code == ACTIVE_ITERATE:
        result.words[0] = cursor_iterate(world, thread, &container.registry, violation)
    elif call.code == ACTIVE_CHURN:
        result.status = active_run_churn(run, thread, call, result, violation)
    elif call.code == ACTIVE_UPDATE_STALE:
        result.status = CURSOR_UNKNOWN
        if active_cursors_update(container, name_id(lane.stale), cursor_position(world, call.arguments[0])):
            violate(violation, b"CR-2", b"the id of a removed cursor names another one", 0, 0, 0)
    elif call.code == ACTIVE_LOOK:
        name = cursor_name(world, thread, cursor)
        result.status = cursor_look(
            world, thread, cursor, name, active_cursors_look(container, name_id(name)), result, violation)
    elif call.code == ACTIVE_SLOWEST_CURSOR:
        cursor_look_slowest(world, thread, active_cursors_slowest_cursor(container), result, violation)
    elif call.code == ACTIVE_INSPECT:
        stamped_lock_read(&container.registry.lock)
        active_inspect(container, violation)
        stamped_unlock_read(&container.registry.lock)
    else:
        active_run_mistake(run, thread, call.code, cursor)


# Nobody else inside.
cdef inline void active_run_mistake(
    ActiveRun* run, int32_t thread, int32_t code, int64_t cursor
) noexcept nogil:
    cdef ActiveCursors* container = &run.container
    if code == ACTIVE_FORGET:
        cursor_exchange(&run.world, thread, cursor, 0)
    elif code == ACTIVE_MISCOUNT:
        i64_store_relaxed(&container.groups.tail.rank, i64_load_relaxed(&container.groups.tail.rank) + 1)
    elif code == ACTIVE_MISPLACE:
        container.groups.head.at = container.groups.tail.at
    elif code == ACTIVE_DROP_CHANGES:
        container.changes = NULL
        i64_store_relaxed(&container.pending, 0)
    elif code == ACTIVE_LINGER:
        container.removed += ACTIVE_FEWEST_REMOVALS


# The whole structure, inside any section ---------------------------------------------------------

cdef inline void active_inspect(const ActiveCursors* container, PmlViolation* violation) noexcept nogil:
    cursor_check_list(&container.registry, violation)
    active_inspect_changes(container, violation)
    active_inspect_groups(container, violation)
    # Where the lists are in order it is safe to follow them.
    if not violation.found:
        active_inspect_places(container, violation)


cdef inline void active_inspect_groups(
    const ActiveCursors* container, PmlViolation* violation
) noexcept nogil:
    cdef const CursorGroup* group = container.groups.head
    cdef const CursorGroup* before = NULL
    cdef int64_t size = registry_size(&container.registry)
    cdef int64_t groups = 0, spare = 0, rank = 0
    while group is not NULL and groups <= container.groups.count:
        if group.before is not before or (before is not NULL and not position_less(before.at, group.at)):
            violate(violation, b"I72", b"the group of rank %lld at entry %lld is in the wrong place",
                    i64_load_relaxed(&group.rank), group.at.entry_id, 0)
            return
        rank += group.members
        if i64_load_relaxed(&group.rank) != rank or group.members < 1:
            violate(violation, b"I73", b"a group of %lld cursors has rank %lld, not %lld", group.members,
                    i64_load_relaxed(&group.rank), rank)
        groups += 1
        before = group
        group = group.after
    expect_equal(violation, b"I72", b"groups in the list", groups, container.groups.count)
    if container.groups.tail is not before:
        violate(violation, b"I72", b"the tail is not the end of the list", 0, 0, 0)
    group = container.groups.spare
    while group is not NULL and spare <= size + container.removed:
        spare += 1
        group = group.after
    expect_equal(violation, b"AC-6", b"groups in the list and spare ones", groups + spare,
                 size + container.removed)


cdef inline void active_inspect_changes(
    const ActiveCursors* container, PmlViolation* violation
) noexcept nogil:
    cdef const ActiveCursor* cursor = container.changes
    cdef int64_t size = registry_size(&container.registry)
    cdef int64_t pending = i64_load_relaxed(&container.pending)
    cdef int64_t seen = 0, removed = 0, saying = 0
    while cursor is not NULL and seen <= pending:
        seen += 1
        removed += cursor.removed
        if not cursor.changed:
            violate(violation, b"I75", b"a cursor in the list of changes says that it is not", 0, 0, 0)
        cursor = cursor.next_changed
    expect_equal(violation, b"I75", b"cursors in the list of changes", seen, pending)
    cursor = <ActiveCursor*>container.registry.first
    while cursor is not NULL:
        saying += cursor.changed
        cursor = <const ActiveCursor*>cursor.node.after
    expect_equal(violation, b"I75", b"registered cursors that say they are in it", saying, pending - removed)
    expect_equal(violation, b"I78", b"removed cursors in the list of changes", removed, container.removed)
    if container.removed and (not size or container.removed >= max(size, <int64_t>ACTIVE_FEWEST_REMOVALS)):
        violate(violation, b"I78", b"%lld removed cursors are kept beside %lld registered ones",
                container.removed, size, 0)


# Every group has its members, and every cursor without a change is in the group of its place.
cdef inline void active_inspect_places(
    const ActiveCursors* container, PmlViolation* violation
) noexcept nogil:
    cdef const CursorGroup* group = container.groups.head
    cdef const ActiveCursor* cursor = <ActiveCursor*>container.registry.first
    cdef int64_t members = 0, expected = 0
    while group is not NULL and not violation.found:
        expect_equal(violation, b"I74", b"cursors that share a group", active_members(container, group),
                     group.members)
        expected += group.members
        group = group.after
    while cursor is not NULL:
        group = cursor_group(cursor)
        members += group is not NULL
        if not cursor.changed and (cursor.target.tracked != (group is not NULL) or (
                group is not NULL and not position_equal(group.at, cursor.target.at))):
            violate(violation, b"I75", b"the cursor of registration %lld is not in place and not in the list "
                    b"of changes", cursor.node.number, 0, 0)
        cursor = <const ActiveCursor*>cursor.node.after
    cursor = container.changes
    while cursor is not NULL:
        members += cursor.removed and cursor_group(cursor) is not NULL
        cursor = cursor.next_changed
    expect_equal(violation, b"I74", b"cursors in groups", members, expected)


cdef inline int64_t active_members(
    const ActiveCursors* container, const CursorGroup* group
) noexcept nogil:
    cdef const ActiveCursor* cursor = <ActiveCursor*>container.registry.first
    cdef int64_t found = 0
    while cursor is not NULL:
        found += cursor_group(cursor) is group
        cursor = <const ActiveCursor*>cursor.node.after
    cursor = container.changes
    while cursor is not NULL:
        found += cursor.removed and cursor_group(cursor) is group
        cursor = cursor.next_changed
    return found


cdef inline void active_run_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef ActiveRun* run = <ActiveRun*>instance
    cdef ActiveCursors* container = &run.container
    cdef int64_t index, size
    cdef const CursorNote* note
    active_inspect(container, violation)
    cursor_check_registry(&run.world, &container.registry, violation)
    # Each answer against the notes; the first query applies what is pending.
    for index in range(cursor_indices(&run.world)):
        note = cursor_last_note(&run.world, index, False)
        if note is not NULL:
            expect_equal(violation, b"I73", b"rank of a cursor",
                         active_cursors_rank(container, name_id(note.name)),
                         0 if note.value == CURSOR_UNTRACKED
                         else cursor_noted_before(&run.world, note.value))
    index = cursor_value(&run.world, active_cursors_slowest(container), violation)
    expect_equal(violation, b"I80", b"the slowest value", index, cursor_noted_slowest(&run.world))
    active_inspect(container, violation)
    size = registry_size(&container.registry)
    expect_equal(violation, b"I76", b"changes pending after a query", i64_load_relaxed(&container.pending), 0)
    expect_equal(violation, b"I78", b"cursors in use", pool_in_use(&run.memory.cursors), size)
    expect_equal(violation, b"I78", b"groups in use", pool_in_use(&run.memory.groups), size)
    if not violation.found:
        active_run_check_end(run, violation)


# Everybody leaves: nothing is kept but the time.
cdef inline void active_run_check_end(ActiveRun* run, PmlViolation* violation) noexcept nogil:
    cdef ActiveCursors* container = &run.container
    cdef int64_t now = ACTIVE_LAST_TIME
    cdef int64_t cursor
    cdef int32_t thread
    if not registry_size(&container.registry):
        return
    for thread in range(run.world.threads):
        for cursor in range(run.world.cursors):
            active_run_remove(run, thread, cursor_exchange(&run.world, thread, cursor, 0), now, violation)
    expect_equal(violation, b"I79", b"cursors after all were removed", registry_size(&container.registry), 0)
    expect_equal(violation, b"I78", b"cursors and groups in use after all were removed",
                 pool_in_use(&run.memory.cursors) + pool_in_use(&run.memory.groups), 0)
    expect_equal(violation, b"AC-7", b"caching in the last moment of the grace period",
                 active_cursors_should_cache(container, now + container.grace - 1), container.grace > 0)
    expect_equal(violation, b"AC-7", b"caching after the grace period",
                 active_cursors_should_cache(container, now + container.grace), False)


cdef inline void active_cursors_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"active_cursors", b"Active cursors in groups sorted by position, updated lazily.",
                active_run_create, active_run_apply, active_run_check, active_run_destroy)
    table.subject.max_threads = CURSOR_MOST_THREADS
    cursor_settings(table)
    table_setting(table, b"grace", -1, 50)
    table_setting(table, b"start", 0, ACTIVE_MOST_TIME)
    operation = table_operation(table, ACTIVE_ADD, b"add", 6, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation_argument(operation, b"value", CURSOR_UNTRACKED, CURSOR_VALUES - 1)
    operation_argument(operation, b"durable", 0, 1)
    operation = table_operation(table, ACTIVE_UPDATE, b"update", 16, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation_argument(operation, b"value", CURSOR_UNTRACKED, CURSOR_VALUES - 1)
    operation = table_operation(table, ACTIVE_REMOVE, b"remove", 3, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation_argument(operation, b"now", 0, ACTIVE_MOST_TIME)
    operation = table_operation(table, ACTIVE_RANK, b"rank", 8, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation = table_operation(table, ACTIVE_SLOWEST, b"slowest", 4, 0)
    operation = table_operation(table, ACTIVE_SIZE, b"size", 1, 0)
    operation = table_operation(table, ACTIVE_VERSION, b"version", 1, 0)
    operation = table_operation(table, ACTIVE_SHOULD_CACHE, b"should_cache", 2, 0)
    operation_argument(operation, b"now", 0, ACTIVE_MOST_TIME)
    operation = table_operation(table, ACTIVE_ITERATE, b"iterate", 1, 0)
    operation = table_operation(table, ACTIVE_CHURN, b"churn", 1, 0)
    operation_argument(operation, b"count", 1, ACTIVE_MOST_CHURN)
    operation_argument(operation, b"value", CURSOR_UNTRACKED, CURSOR_VALUES - 1)
    operation_argument(operation, b"now", 0, ACTIVE_MOST_TIME)
    operation = table_operation(table, ACTIVE_UPDATE_STALE, b"update_stale", 1, 0)
    operation_argument(operation, b"value", CURSOR_UNTRACKED, CURSOR_VALUES - 1)
    operation = table_operation(table, ACTIVE_INSPECT, b"inspect", 2, 0)
    operation = table_operation(table, ACTIVE_RANK_AT, b"rank_at", 4, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation_argument(operation, b"value", 0, CURSOR_VALUES - 1)
    operation = table_operation(table, ACTIVE_LOOK, b"look", 3, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    table_operation(table, ACTIVE_SLOWEST_CURSOR, b"slowest_cursor", 3, 0)
    operation = table_operation(table, ACTIVE_FORGET, b"forget", 0, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation = table_operation(table, ACTIVE_MISCOUNT, b"miscount", 0, 0)
    operation = table_operation(table, ACTIVE_MISPLACE, b"misplace", 0, 0)
    operation = table_operation(table, ACTIVE_DROP_CHANGES, b"drop_changes", 0, 0)
    operation = table_operation(table, ACTIVE_LINGER, b"linger", 0, 0)
