# The cursor heap's operations for the harness: changes and queries by all threads, and an
# inspection of the whole heap at any moment, under the shared lock.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.cursor_world cimport (
    CURSOR_DONE, CURSOR_MOST_THREADS, CURSOR_NUMBERS, CURSOR_OWN, CURSOR_REFUSED, CURSOR_UNKNOWN,
    CURSOR_UNTRACKED, CURSOR_VALUES, CursorLane, CursorNote, CursorWorld, cursor_check_list,
    cursor_check_registry, cursor_check_slowest, cursor_exchange, cursor_indices, cursor_iterate,
    cursor_last_note, cursor_look, cursor_look_slowest, cursor_name, cursor_named, cursor_note,
    cursor_note_all, cursor_note_removal, cursor_noted_slowest, cursor_own_value, cursor_position,
    cursor_see_version, cursor_settings, cursor_value, cursor_world_init, name_id, name_tag,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, dirty, expect_equal, operation_argument, table_operation, table_start, violate,
)
from pulsar_ml.structures.cursor_heap cimport (
    HEAP_ARITY, HEAP_NOWHERE, CursorHeap, HeapCursor, HeapPlace, SlowestChange, cursor_heap_add,
    cursor_heap_destroy, cursor_heap_init, cursor_heap_look, cursor_heap_remove, cursor_heap_replace,
    cursor_heap_slowest, cursor_heap_slowest_cursor, cursor_heap_update, heap_pool_init,
)
from pulsar_ml.structures.cursor_registry cimport (
    CursorPosition, registry_find, registry_has_durable, registry_publish_slowest, registry_size,
    registry_slowest, registry_version, untracked,
)
from pulsar_ml.structures.object_pool cimport Pool, pool_destroy, pool_in_use
from pulsar_ml.structures.position cimport position_equal, position_less
from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    HEAP_MOST_CURSORS = 1 << 11


cdef enum:
    HEAP_ADD
    HEAP_UPDATE
    HEAP_REMOVE
    HEAP_SLOWEST
    HEAP_SIZE
    HEAP_VERSION
    HEAP_ITERATE
    HEAP_UPDATE_STALE
    HEAP_INSPECT
    HEAP_LOOK
    HEAP_SLOWEST_CURSOR
    # Wrong on purpose.
    HEAP_FORGET
    HEAP_SWAP
    HEAP_MISINDEX
    HEAP_UNPUBLISH


cdef struct HeapRun:
    Pool cursors
    CursorHeap heap
    CursorWorld world
    CursorLane[64] lanes


cdef inline void* heap_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    # Lanes stand last: those that will not come are left out.
    cdef HeapRun* run = <HeapRun*>allocate_zeroed(
        1, sizeof(HeapRun) - <size_t>(CURSOR_MOST_THREADS - threads) * sizeof(CursorLane))
    if run is NULL:
        return NULL
    if heap_pool_init(&run.cursors, <uint32_t>settings[2], HEAP_MOST_CURSORS) != PML_OK:
        release(run)
        return NULL
    cursor_world_init(&run.world, settings, threads, run.lanes)
    dirty(&run.heap, sizeof(CursorHeap))
    cursor_heap_init(&run.heap, &run.cursors)
    return run


cdef inline void heap_run_destroy(void* instance) noexcept nogil:
    cursor_heap_destroy(&(<HeapRun*>instance).heap)
    pool_destroy(&(<HeapRun*>instance).cursors)
    release(instance)


# Answers the data version and the tag, and the same of another thread's cursor that it replaced.
cdef inline int64_t heap_run_add(
    HeapRun* run, int32_t thread, int64_t cursor, int64_t value, bint durable, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef CursorPosition target = cursor_position(&run.world, value)
    cdef uint64_t name = cursor_name(&run.world, thread, cursor)
    cdef uint64_t id
    cdef int64_t version = cursor_heap_replace(&run.heap, name_id(name), target, durable)
    cdef bint replaced = version != 0
    if not replaced:
        version = cursor_heap_add(&run.heap, target, durable, &id)
        if not version:
            return CURSOR_REFUSED
        name = cursor_named(&run.world, thread, id)
    cursor_note_all(&run.world, thread, cursor, name, version, target, durable, violation)
    result.words[0] = version
    result.words[1] = name_tag(name)
    if not replaced:
        name = cursor_exchange(&run.world, thread, cursor, name)
        result.words[2] = heap_run_remove(run, thread, name, violation)
        result.words[3] = name_tag(name)
    return CURSOR_DONE


cdef inline int64_t heap_run_update(
    HeapRun* run, int32_t thread, int64_t cursor, int64_t value, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef CursorPosition target = cursor_position(&run.world, value)
    cdef uint64_t name = cursor_name(&run.world, thread, cursor)
    cdef int64_t own = CURSOR_UNTRACKED
    cdef SlowestChange change
    cdef int64_t version = cursor_heap_update(&run.heap, name_id(name), target, &change)
    result.words[2] = version
    result.words[3] = name_tag(name)
    if not version:
        if cursor < CURSOR_OWN:
            own = cursor_own_value(&run.world, thread, cursor)
        if own != CURSOR_UNTRACKED:
            violate(violation, b"I79", b"cursor %lld is tracked and was not found", cursor, 0, 0)
        return CURSOR_UNKNOWN
    result.words[0] = cursor_value(&run.world, change.previous, violation)
    # Before the note: the thread's own cursors are still where they were.
    cursor_check_slowest(&run.world, thread, result.words[0], violation)
    cursor_note(&run.world, thread, cursor, name, version, target, violation)
    result.words[1] = cursor_value(&run.world, change.slowest, violation)
    cursor_check_slowest(&run.world, thread, result.words[1], violation)
    return CURSOR_DONE


# The data version it made, 0 when there is no such cursor.
cdef inline int64_t heap_run_remove(
    HeapRun* run, int32_t thread, uint64_t name, PmlViolation* violation
) noexcept nogil:
    cdef int64_t version = cursor_heap_remove(&run.heap, name_id(name))
    if version:
        cursor_note_removal(&run.world, thread, version, 0, violation)
    elif name:
        violate(violation, b"I79", b"a cursor that only this thread removes was not found", 0, 0, 0)
    return version


cdef inline void heap_run_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef HeapRun* run = <HeapRun*>instance
    cdef CursorHeap* heap = &run.heap
    cdef CursorWorld* world = &run.world
    cdef CursorLane* lane = &world.lanes[thread]
    cdef int64_t cursor = call.arguments[0] % world.cursors
    cdef SlowestChange change
    cdef uint64_t name
    cdef int64_t i
    if call.code == HEAP_ADD:
        result.status = heap_run_add(run, thread, cursor, call.arguments[1], call.arguments[2] != 0,
                                     result, violation)
    elif call.code == HEAP_UPDATE:
        result.status = heap_run_update(run, thread, cursor, call.arguments[1], result, violation)
    elif call.code == HEAP_REMOVE:
        name = cursor_exchange(world, thread, cursor, 0)
        result.words[0] = heap_run_remove(run, thread, name, violation)
        result.words[1] = name_tag(name)
        result.status = CURSOR_DONE if result.words[0] else CURSOR_UNKNOWN
    elif call.code == HEAP_SLOWEST:
        result.words[0] = cursor_value(world, cursor_heap_slowest(heap), violation)
        cursor_check_slowest(world, thread, result.words[0], violation)
    elif call.code == HEAP_SIZE:
        result.words[0] = registry_size(&heap.registry)
        result.words[1] = registry_has_durable(&heap.registry)
        for i in range(CURSOR_OWN):
            if lane.own[i] and (not result.words[0] or (lane.notes[i].durable and not result.words[1])):
                violate(violation, b"I79", b"size %lld, durable %lld while cursor %lld is registered",
                        result.words[0], result.words[1], i)
    elif call.code == HEAP_VERSION:
        result.words[0] = registry_version(&heap.registry)
        cursor_see_version(lane, result.words[0], False, violation)
    elif call.code == HEAP_ITERATE:
        result.words[0] = cursor_iterate(world, thread, &heap.registry, violation)
    elif call.code == HEAP_UPDATE_STALE:
        result.status = CURSOR_UNKNOWN
        if cursor_heap_update(heap, name_id(lane.stale), cursor_position(world, call.arguments[0]), &change):
            violate(violation, b"CR-2", b"the id of a removed cursor names another one", 0, 0, 0)
    elif call.code == HEAP_LOOK:
        name = cursor_name(world, thread, cursor)
        result.status = cursor_look(
            world, thread, cursor, name, cursor_heap_look(heap, name_id(name)), result, violation)
    elif call.code == HEAP_SLOWEST_CURSOR:
        cursor_look_slowest(world, thread, cursor_heap_slowest_cursor(heap), result, violation)
    elif call.code == HEAP_INSPECT:
        stamped_lock_read(&heap.registry.lock)
        heap_inspect(heap, violation)
        stamped_unlock_read(&heap.registry.lock)
    else:
        heap_run_mistake(run, thread, call.code, cursor)


# Nobody else inside; two cursors or more are tracked.
cdef inline void heap_run_mistake(HeapRun* run, int32_t thread, int32_t code, int64_t cursor) noexcept nogil:
    cdef CursorHeap* heap = &run.heap
    cdef HeapPlace first = heap.places[0]
    if code == HEAP_FORGET:
        cursor_exchange(&run.world, thread, cursor, 0)
    elif code == HEAP_SWAP:
        heap.places[0] = heap.places[1]
        heap.places[1] = first
        heap.places[0].cursor.index = 0
        heap.places[1].cursor.index = 1
    elif code == HEAP_MISINDEX:
        first.cursor.index = 1
    elif code == HEAP_UNPUBLISH:
        registry_publish_slowest(&heap.registry, untracked())


# The whole heap, inside any section.
cdef inline void heap_inspect(const CursorHeap* heap, PmlViolation* violation) noexcept nogil:
    cdef const HeapCursor* cursor = <HeapCursor*>heap.registry.first
    cdef CursorPosition slowest = registry_slowest(&heap.registry)
    cdef int64_t tracked = 0
    cdef int64_t i
    cursor_check_list(&heap.registry, violation)
    for i in range(heap.tracked):
        if heap.places[i].cursor.index != i:
            violate(violation, b"I81", b"the cursor in place %lld says that it is in place %lld", i,
                    heap.places[i].cursor.index, 0)
        if i and position_less(heap.places[i].at, heap.places[(i - 1) // HEAP_ARITY].at):
            violate(violation, b"I81", b"entry %lld in place %lld is below entry %lld",
                    heap.places[i].at.entry_id, i, heap.places[(i - 1) // HEAP_ARITY].at.entry_id)
    while cursor is not NULL:
        tracked += cursor.index != HEAP_NOWHERE
        cursor = <const HeapCursor*>cursor.node.after
    expect_equal(violation, b"I81", b"tracked cursors", tracked, heap.tracked)
    if slowest.tracked != (heap.tracked > 0) or (
            slowest.tracked and not position_equal(slowest.at, heap.places[0].at)):
        violate(violation, b"I80", b"the published slowest entry is %lld, tracked: %lld",
                slowest.at.entry_id, slowest.tracked, 0)


cdef inline void heap_run_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef HeapRun* run = <HeapRun*>instance
    cdef CursorHeap* heap = &run.heap
    cdef const CursorNote* note
    cdef const HeapCursor* cursor
    cdef int64_t index
    heap_inspect(heap, violation)
    cursor_check_registry(&run.world, &heap.registry, violation)
    for index in range(cursor_indices(&run.world)):
        note = cursor_last_note(&run.world, index, False)
        if note is not NULL and not violation.found:
            cursor = <HeapCursor*>registry_find(&heap.registry, name_id(note.name))
            if cursor is NULL:
                violate(violation, b"I79", b"a registered cursor is not found", 0, 0, 0)
            else:
                expect_equal(violation, b"I81", b"the entry where a cursor is",
                             CURSOR_UNTRACKED if cursor.index == HEAP_NOWHERE
                             else heap.places[cursor.index].at.entry_id, note.value)
    index = cursor_value(&run.world, cursor_heap_slowest(heap), violation)
    expect_equal(violation, b"I80", b"the slowest value", index, cursor_noted_slowest(&run.world))
    expect_equal(violation, b"I78", b"cursors in use", pool_in_use(&run.cursors),
                 registry_size(&heap.registry))


cdef inline void cursor_heap_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"cursor_heap", b"Cursors in a heap by position: which is the slowest.",
                heap_run_create, heap_run_apply, heap_run_check, heap_run_destroy)
    table.subject.max_threads = CURSOR_MOST_THREADS
    cursor_settings(table)
    operation = table_operation(table, HEAP_ADD, b"add", 6, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation_argument(operation, b"value", CURSOR_UNTRACKED, CURSOR_VALUES - 1)
    operation_argument(operation, b"durable", 0, 1)
    operation = table_operation(table, HEAP_UPDATE, b"update", 12, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation_argument(operation, b"value", CURSOR_UNTRACKED, CURSOR_VALUES - 1)
    operation = table_operation(table, HEAP_REMOVE, b"remove", 4, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation = table_operation(table, HEAP_SLOWEST, b"slowest", 8, 0)
    operation = table_operation(table, HEAP_SIZE, b"size", 1, 0)
    operation = table_operation(table, HEAP_VERSION, b"version", 1, 0)
    operation = table_operation(table, HEAP_ITERATE, b"iterate", 1, 0)
    operation = table_operation(table, HEAP_UPDATE_STALE, b"update_stale", 1, 0)
    operation_argument(operation, b"value", CURSOR_UNTRACKED, CURSOR_VALUES - 1)
    operation = table_operation(table, HEAP_INSPECT, b"inspect", 2, 0)
    operation = table_operation(table, HEAP_LOOK, b"look", 3, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    table_operation(table, HEAP_SLOWEST_CURSOR, b"slowest_cursor", 3, 0)
    operation = table_operation(table, HEAP_FORGET, b"forget", 0, 0)
    operation_argument(operation, b"cursor", 0, CURSOR_NUMBERS - 1)
    operation = table_operation(table, HEAP_SWAP, b"swap", 0, 0)
    operation = table_operation(table, HEAP_MISINDEX, b"misindex", 0, 0)
    operation = table_operation(table, HEAP_UNPUBLISH, b"unpublish", 0, 0)
