# Two position maps that share their memory, as operations for the harness.
#
# Positions are few and far apart: three ledgers, three blocks, three pages, so that pages and
# branches come and go. A setting makes fewer of them, for contention. Some slots of each page are
# contended by all threads; others belong to one thread, which therefore knows what is there. A
# handle says which position and map it was made for, as a wrapper's key does, and is never put
# twice: what the map answers can be judged by it alone.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.position_map_world cimport (
    PM_OWN, PM_PLACES, MapLook, map_handle, map_handle_fits, map_judge_look, map_keep_in_mind,
    map_position_of,
)
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, operation_argument, table_operation, table_setting, table_start, violate,
)
from pulsar_ml.structures.map_directory cimport directory_destroy
from pulsar_ml.structures.map_pages cimport (
    SLOT_BITS, MapMemory, map_memory_destroy, map_memory_init,
)
from pulsar_ml.structures.object_pool cimport pool_in_use, pool_take
from pulsar_ml.structures.position cimport Position, position, position_is_stored, position_less
from pulsar_ml.structures.position_map cimport (
    MapCursor, PositionMap, map_cursor, map_destroy, map_find, map_init, map_is_empty, map_next,
    map_put_if_absent, map_remove, map_show,
)
from pulsar_ml.structures.status cimport PML_EXISTS, PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    pml_u32, u32_cas_strong_acq_rel, u32_load_acquire, u32_load_relaxed, u32_store_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    PM_MOST_THREADS = 64
    PM_MAPS = 2
    PM_SHARED = 108         # contended keys of a map: four in each page
    PM_MOST_FOUND = 100000  # an iteration that finds more does not end

cdef enum:
    PM_DONE = 0
    PM_EXISTS_ALREADY = 1
    PM_ABSENT = 2
    PM_OUT_OF_MEMORY = 3

cdef enum:
    PM_PUT
    PM_REMOVE
    PM_FIND
    PM_PUT_OWN
    PM_REMOVE_OWN
    PM_FIND_OWN
    PM_REMOVE_FOREIGN
    PM_ITERATE
    PM_ITERATE_ALL
    PM_RECALL
    PM_LOOK
    PM_PUT_ACROSS
    PM_REMOVE_ACROSS
    PM_IS_STORED
    # Wrong on purpose.
    PM_PUT_WITHOUT_WINNER
    PM_PUT_OWN_UNRECORDED
    PM_REMOVE_OWN_UNRECORDED
    PM_ITERATE_TWICE
    PM_ITERATE_BEYOND
    PM_LEAK_PAGE


cdef struct MapHolder:
    uint32_t serial
    uint32_t[54] own        # the handle of each own key, by map and place; 0: absent
    MapLook look            # of recall
    char[16] apart


cdef struct MapRun:
    MapMemory memory
    int32_t threads
    int32_t places          # in use: keys of other places stand for these
    char[56] apart
    PositionMap[2] maps
    # The handle that may be removed from each contended key, by map and key. Whoever exchanges it
    # for 0 removes it, and nobody else: that is what holding a wrapper's write section gives.
    pml_u32[216] present
    MapHolder[64] holders


# Keys and handles --------------------------------------------------------------------------------

# The contended key that an argument stands for.
cdef inline int64_t map_key(const MapRun* run, int64_t key) noexcept nogil:
    return key - key % PM_PLACES + key % PM_PLACES % run.places


cdef inline uint32_t map_fresh(MapHolder* holder, int64_t map, int64_t thread, int64_t key) noexcept nogil:
    holder.serial = holder.serial % 0x1FFFF + 1
    # A contended position belongs to no thread, but its handle says who made it.
    return map_handle(map, thread, key, holder.serial)


# Life --------------------------------------------------------------------------------------------

cdef inline void map_run_destroy(void* instance) noexcept nogil:
    cdef MapRun* run = <MapRun*>instance
    cdef int i
    map_run_empty(run, NULL)
    for i in range(PM_MAPS):
        # A map that was not emptied is broken already and must not be waited for.
        if map_is_empty(&run.maps[i]):
            map_destroy(&run.maps[i])
        else:
            directory_destroy(&run.maps[i].directory)
    map_memory_destroy(&run.memory)
    release(run)


cdef inline void* map_run_create(const int64_t* settings, int32_t threads) noexcept nogil:
    # Holders stand last: those that will not come are left out.
    cdef MapRun* run = <MapRun*>allocate_zeroed(
        1, sizeof(MapRun) - <size_t>(PM_MOST_THREADS - threads) * sizeof(MapHolder))
    cdef int i
    if run is NULL:
        return NULL
    run.threads = threads
    run.places = min(PM_PLACES, 1 << settings[2])
    if map_memory_init(&run.memory, SLOT_BITS + <uint32_t>settings[0], <uint32_t>settings[1]) == PML_OK:
        for i in range(PM_MAPS):
            if map_init(&run.maps[i], &run.memory) != PML_OK:
                break
        else:
            return run
        while i:
            i -= 1
            map_destroy(&run.maps[i])
    map_memory_destroy(&run.memory)
    release(run)
    return NULL


# Removes everything that is recorded; with a place for violations it also checks.
cdef inline void map_run_empty(MapRun* run, PmlViolation* violation) noexcept nogil:
    cdef uint32_t handle
    cdef int i, thread
    for i in range(PM_MAPS * PM_SHARED):
        handle = u32_load_relaxed(&run.present[i])
        if handle:
            u32_store_relaxed(&run.present[i], 0)
            map_remove_checked(run, handle, violation)
    for thread in range(run.threads):
        for i in range(PM_MAPS * PM_PLACES):
            handle = run.holders[thread].own[i]
            if handle:
                run.holders[thread].own[i] = 0
                map_remove_checked(run, handle, violation)


cdef inline void map_remove_checked(MapRun* run, uint32_t handle, PmlViolation* violation) noexcept nogil:
    cdef Position at = map_position_of(handle)
    if not map_remove(&run.maps[handle >> 14 & 1], at, handle) and violation is not NULL:
        violate(violation, b"I36", b"handle %lld was not found to be removed from (%lld, %lld)", handle,
                at.ledger_id, at.entry_id)


# Contended keys ----------------------------------------------------------------------------------

# put_across and remove_across name the map that they leave alone: with the arguments of put and
# remove, a position and its page pass from one map to the other.
cdef inline int64_t map_side(const PmlCall* call) noexcept nogil:
    return call.arguments[1] ^ (call.code == PM_PUT_ACROSS or call.code == PM_REMOVE_ACROSS)


cdef inline void map_put_shared(
    MapRun* run, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t key = map_key(run, call.arguments[0])
    cdef int64_t map = map_side(call)
    cdef uint32_t handle = map_fresh(&run.holders[thread], map, thread, key)
    cdef uint32_t place, seen = 0
    cdef Status status = map_put_if_absent(&run.maps[map], map_position_of(handle), handle, &place)
    # Before anybody may remove it.
    if status == PML_OK:
        map_show(&run.memory, place, handle)
    if status == PML_EXISTS and call.code != PM_PUT_WITHOUT_WINNER:
        result.status = PM_EXISTS_ALREADY
    elif status == PML_NO_MEMORY:
        result.status = PM_OUT_OF_MEMORY
    elif not u32_cas_strong_acq_rel(&run.present[map * PM_SHARED + key], &seen, handle):
        violate(violation, b"I35", b"key %lld was put by handle %lld and again by %lld", key, seen, handle)


cdef inline void map_remove_shared(
    MapRun* run, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t key = map_key(run, call.arguments[0])
    cdef pml_u32* present = &run.present[map_side(call) * PM_SHARED + key]
    cdef uint32_t handle = u32_load_acquire(present)
    if handle and u32_cas_strong_acq_rel(present, &handle, 0):
        map_remove_checked(run, handle, violation)
    else:
        result.status = PM_ABSENT


cdef inline void map_find_shared(
    MapRun* run, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t map = call.arguments[1]
    cdef uint32_t wanted = map_handle(map, thread, map_key(run, call.arguments[0]), 1)
    cdef Position at = map_position_of(wanted)
    cdef uint32_t found = map_find(&run.maps[map], at)
    cdef MapLook look
    map_keep_in_mind(&look, &run.maps[map], wanted)
    map_judge_look(&look, violation)
    if found and map_handle_fits(found, map, at):
        result.words[0] = (found >> 8 & 63) + 1
    else:
        result.status = PM_ABSENT


# recall(key, map) keeps the page of the position in mind, and look() says what it shows then: calls
# of other threads may come between.
cdef inline void map_recall_shared(MapRun* run, int32_t thread, const PmlCall* call) noexcept nogil:
    cdef int64_t map = call.arguments[1]
    map_keep_in_mind(&run.holders[thread].look, &run.maps[map],
                     map_handle(map, thread, map_key(run, call.arguments[0]), 1))


# Removing a handle that nobody put is refused, whether the position is taken or not.
cdef inline void map_remove_foreign(
    MapRun* run, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int64_t map = call.arguments[1]
    cdef uint32_t handle = map_fresh(&run.holders[thread], map, thread, map_key(run, call.arguments[0]))
    if map_remove(&run.maps[map], map_position_of(handle), handle):
        violate(violation, b"I36", b"handle %lld was removed from key %lld, where it never was", handle,
                call.arguments[0], 0)
    result.status = PM_ABSENT


# Own keys ----------------------------------------------------------------------------------------

# Compares the thread's knowledge of its own key with the map's answer.
cdef inline void map_judge_own(
    MapRun* run, uint32_t known, uint32_t found, int64_t map, Position at, PmlViolation* violation
) noexcept nogil:
    if known and found != known:
        violate(violation, b"I7", b"handle %lld is in the map all the while, but (%lld, ...) answered %lld",
                known, at.ledger_id, found)
    elif not known and found and map_handle_fits(found, map, at):
        violate(violation, b"I8", b"handle %lld was removed from (%lld, %lld) and is still found", found,
                at.ledger_id, at.entry_id)


cdef inline void map_with_own(
    MapRun* run, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef MapHolder* holder = &run.holders[thread]
    cdef int64_t place = call.arguments[0] % run.places, map = call.arguments[1]
    cdef uint32_t* known = &holder.own[map * PM_PLACES + place]
    cdef uint32_t shown, put, fresh = map_fresh(holder, map, thread, PM_OWN + place)
    cdef Position at = map_position_of(fresh)
    cdef MapLook look
    cdef Status status
    if call.code == PM_PUT_OWN or call.code == PM_PUT_OWN_UNRECORDED:
        status = map_put_if_absent(&run.maps[map], at, fresh, &put)
        if status == PML_NO_MEMORY:
            result.status = PM_OUT_OF_MEMORY
        elif (status == PML_EXISTS) != (known[0] != 0):
            violate(violation, b"I35", b"put answered %lld for an own key that held handle %lld", status,
                    known[0], 0)
        elif status == PML_EXISTS:
            result.status = PM_EXISTS_ALREADY
        else:
            map_show(&run.memory, put, fresh)
            known[0] = fresh if call.code == PM_PUT_OWN else 0
    elif known[0] == 0:
        result.status = PM_ABSENT
        map_judge_own(run, 0, map_find(&run.maps[map], at), map, at, violation)
    elif call.code == PM_FIND_OWN:
        map_keep_in_mind(&look, &run.maps[map], fresh)
        shown = map_judge_look(&look, violation)
        if shown:
            map_judge_own(run, known[0], shown, map, at, violation)
        map_judge_own(run, known[0], map_find(&run.maps[map], at), map, at, violation)
    else:
        map_remove_checked(run, known[0], violation)
        if call.code != PM_REMOVE_OWN_UNRECORDED:
            known[0] = 0
            map_judge_own(run, 0, map_find(&run.maps[map], at), map, at, violation)


# Iteration ---------------------------------------------------------------------------------------

# The keys that an iteration has seen so far.
cdef struct MapSeen:
    Position last
    int64_t fitting         # handles that were made for their position
    int64_t own             # of them the thread's
    uint64_t hash


cdef inline void map_judge_step(
    MapRun* run, int32_t thread, int64_t map, Position at, uint32_t handle, MapSeen* seen,
    PmlViolation* violation,
) noexcept nogil:
    if not position_less(seen.last, at):
        violate(violation, b"I38", b"an iteration came to entry %lld of ledger %lld after entry %lld",
                at.entry_id, at.ledger_id, seen.last.entry_id)
    seen.last = at
    if not map_handle_fits(handle, map, at):
        return
    seen.fitting += 1
    seen.hash = (seen.hash * 1000003 + <uint64_t>at.ledger_id) * 1000003 + <uint64_t>at.entry_id
    if (handle >> 8 & 63) == <uint32_t>thread and (handle & 0xFF) >= PM_OWN:
        seen.own += 1
        if run.holders[thread].own[map * PM_PLACES + (handle & 0xFF) - PM_OWN] != handle:
            violate(violation, b"I8", b"an iteration saw handle %lld at entry %lld after its removal",
                    handle, at.entry_id, 0)


# Walks with the cursor once, over [first, last]; own keys present in between must all be seen.
cdef inline void map_walk(
    MapRun* run, int32_t thread, int64_t map, MapCursor cursor, Position first, Position last,
    MapSeen* seen, PmlViolation* violation,
) noexcept nogil:
    cdef Position at
    cdef uint32_t handle
    cdef int64_t steps = 0
    cdef int64_t own = 0
    cdef int i
    handle = map_next(&run.maps[map], &cursor, &at)
    while handle and not violation.found:
        if position_less(at, first) or position_less(last, at):
            violate(violation, b"I5", b"an iteration came to entry %lld of ledger %lld, outside its bounds",
                    at.entry_id, at.ledger_id, 0)
        map_judge_step(run, thread, map, at, handle, seen, violation)
        steps += 1
        if steps > PM_MOST_FOUND:
            violate(violation, b"I38", b"an iteration found %lld handles and goes on", steps, 0, 0)
        handle = map_next(&run.maps[map], &cursor, &at)
    for i in range(PM_PLACES):
        handle = run.holders[thread].own[map * PM_PLACES + i]
        if handle:
            at = map_position_of(handle)
            if not position_less(at, first) and not position_less(last, at):
                own += 1
    expect_equal(violation, b"I7", b"own keys seen by an iteration", seen.own, own)


cdef inline void map_iterate(
    MapRun* run, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef Position first = position(INT64_MIN, INT64_MIN)
    cdef Position last = position(INT64_MAX, INT64_MAX)
    cdef int64_t map = call.arguments[0]
    cdef MapCursor cursor
    cdef MapSeen seen
    if call.code == PM_ITERATE or call.code == PM_ITERATE_BEYOND:
        map = call.arguments[2]
        first = map_position_of(map_handle(map, 0, call.arguments[0], 1))
        last = map_position_of(map_handle(map, 0, call.arguments[1], 1))
    cursor = map_cursor(first, last)
    if call.code == PM_ITERATE_BEYOND:
        cursor = map_cursor(first, position(INT64_MAX, INT64_MAX))
    seen.last = position(INT64_MIN, INT64_MIN)
    seen.fitting = 0
    seen.own = 0
    seen.hash = 0
    map_walk(run, thread, map, cursor, first, last, &seen, violation)
    if call.code == PM_ITERATE_TWICE:
        map_walk(run, thread, map, cursor, first, last, &seen, violation)
    result.words[0] = seen.fitting
    result.words[1] = <int64_t>seen.hash


cdef inline void map_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef MapRun* run = <MapRun*>instance
    if call.code == PM_PUT or call.code == PM_PUT_ACROSS or call.code == PM_PUT_WITHOUT_WINNER:
        map_put_shared(run, thread, call, result, violation)
    elif call.code == PM_REMOVE or call.code == PM_REMOVE_ACROSS:
        map_remove_shared(run, call, result, violation)
    elif call.code == PM_FIND:
        map_find_shared(run, thread, call, result, violation)
    elif call.code == PM_REMOVE_FOREIGN:
        map_remove_foreign(run, thread, call, result, violation)
    elif call.code == PM_RECALL:
        map_recall_shared(run, thread, call)
    elif call.code == PM_LOOK:
        map_judge_look(&run.holders[thread].look, violation)
    elif (call.code == PM_ITERATE or call.code == PM_ITERATE_ALL or call.code == PM_ITERATE_TWICE
            or call.code == PM_ITERATE_BEYOND):
        map_iterate(run, thread, call, result, violation)
    elif call.code == PM_IS_STORED:
        result.words[0] = position_is_stored(position(call.arguments[0], call.arguments[1]))
    elif call.code == PM_LEAK_PAGE:
        pool_take(&run.memory.pages)
    else:
        map_with_own(run, thread, call, result, violation)


# Quiescence --------------------------------------------------------------------------------------

# Nothing but what is recorded, and all of it, is in each map.
cdef inline void map_check_contents(MapRun* run, int64_t map, PmlViolation* violation) noexcept nogil:
    cdef MapCursor cursor = map_cursor(position(0, 0), position(INT64_MAX, INT64_MAX))
    cdef Position at
    cdef uint32_t handle, known
    cdef int64_t recorded = 0
    cdef int64_t found = 0
    cdef int i, thread
    for i in range(PM_SHARED):
        recorded += u32_load_relaxed(&run.present[map * PM_SHARED + i]) != 0
    for thread in range(run.threads):
        for i in range(PM_PLACES):
            recorded += run.holders[thread].own[map * PM_PLACES + i] != 0
    handle = map_next(&run.maps[map], &cursor, &at)
    while handle and found <= recorded:
        found += 1
        if (handle & 0xFF) >= PM_OWN:
            known = run.holders[handle >> 8 & 63].own[map * PM_PLACES + (handle & 0xFF) - PM_OWN]
        else:
            known = u32_load_relaxed(&run.present[map * PM_SHARED + (handle & 0xFF)])
        if known != handle or not map_handle_fits(handle, map, at):
            violate(violation, b"I8", b"handle %lld is at entry %lld, where handle %lld was put last", handle,
                    at.entry_id, known)
            return
        handle = map_next(&run.maps[map], &cursor, &at)
    expect_equal(violation, b"I7", b"positions seen at quiescence", found, recorded)


cdef inline void map_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef MapRun* run = <MapRun*>instance
    cdef int i
    for i in range(PM_MAPS):
        map_check_contents(run, i, violation)
    map_run_empty(run, violation)
    for i in range(PM_MAPS):
        if not map_is_empty(&run.maps[i]):
            violate(violation, b"I39", b"map %lld has a branch left after everything was removed", i, 0, 0)
    expect_equal(violation, b"I39", b"pages in use after everything was removed",
                 pool_in_use(&run.memory.pages), 0)
    expect_equal(violation, b"I39", b"branches in use after everything was removed",
                 pool_in_use(&run.memory.branches), 0)


# An operation on one position of one map.
cdef inline void map_operation(
    SubjectTable* table, int32_t code, const char* name, int32_t weight, const char* argument, int64_t count
) noexcept nogil:
    cdef PmlOperation* operation = table_operation(table, code, name, weight, 0)
    operation_argument(operation, argument, 0, count - 1)
    operation_argument(operation, b"map", 0, PM_MAPS - 1)


cdef inline void position_map_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"position_map", b"Ordered maps from position to handle that share their pages.",
                map_run_create, map_apply, map_check, map_run_destroy)
    table.subject.max_threads = PM_MOST_THREADS
    table_setting(table, b"chunk_bits", 0, 2)
    table_setting(table, b"limit", 2, 256)
    table_setting(table, b"spread", 0, 5)
    # More removals than puts: maps that are nearly empty make and drop pages and branches all the
    # time.
    map_operation(table, PM_PUT, b"put", 5, b"key", PM_SHARED)
    map_operation(table, PM_REMOVE, b"remove", 9, b"key", PM_SHARED)
    map_operation(table, PM_FIND, b"find", 4, b"key", PM_SHARED)
    map_operation(table, PM_PUT_OWN, b"put_own", 4, b"place", PM_PLACES)
    map_operation(table, PM_REMOVE_OWN, b"remove_own", 7, b"place", PM_PLACES)
    map_operation(table, PM_FIND_OWN, b"find_own", 8, b"place", PM_PLACES)
    map_operation(table, PM_REMOVE_FOREIGN, b"remove_foreign", 1, b"key", PM_SHARED)
    operation = table_operation(table, PM_ITERATE, b"iterate", 2, 0)
    operation_argument(operation, b"first", 0, PM_SHARED - 1)
    operation_argument(operation, b"last", 0, PM_SHARED - 1)
    operation_argument(operation, b"map", 0, PM_MAPS - 1)
    operation = table_operation(table, PM_ITERATE_ALL, b"iterate_all", 1, 0)
    operation_argument(operation, b"map", 0, PM_MAPS - 1)
    map_operation(table, PM_RECALL, b"recall", 3, b"key", PM_SHARED)
    table_operation(table, PM_LOOK, b"look", 4, 0)
    map_operation(table, PM_PUT_ACROSS, b"put_across", 1, b"key", PM_SHARED)
    map_operation(table, PM_REMOVE_ACROSS, b"remove_across", 2, b"key", PM_SHARED)
    operation = table_operation(table, PM_IS_STORED, b"is_stored", 1, 0)
    operation_argument(operation, b"ledger", -1, 1)
    operation_argument(operation, b"entry", -1, 1)
    map_operation(table, PM_PUT_WITHOUT_WINNER, b"put_without_winner", 0, b"key", PM_SHARED)
    map_operation(table, PM_PUT_OWN_UNRECORDED, b"put_own_unrecorded", 0, b"place", PM_PLACES)
    map_operation(table, PM_REMOVE_OWN_UNRECORDED, b"remove_own_unrecorded", 0, b"place", PM_PLACES)
    operation = table_operation(table, PM_ITERATE_TWICE, b"iterate_twice", 0, 0)
    operation_argument(operation, b"map", 0, PM_MAPS - 1)
    operation = table_operation(table, PM_ITERATE_BEYOND, b"iterate_beyond", 0, 0)
    operation_argument(operation, b"first", 0, PM_SHARED - 1)
    operation_argument(operation, b"last", 0, PM_SHARED - 1)
    operation_argument(operation, b"map", 0, PM_MAPS - 1)
    operation = table_operation(table, PM_LEAK_PAGE, b"leak_page", 0, 0)
