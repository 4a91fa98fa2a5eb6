# The common part of both cursor containers' operations: the cursors, and each thread's last change.
#
# A program names cursors by small numbers. The first few are a thread's own: nobody else touches
# them, so its thread can say at any moment what must hold for them. The others are everybody's.
#
# Every change answers the data version it made. Each thread notes its last change of each cursor
# with that version, in memory of its own: at quiescence the note with the highest version of a
# cursor says where it is, and no step of the notes could put an order between threads that the
# container lacks.
#
# Answers say which registration of a number they are about and which data version they made:
# everybody's numbers change hands meanwhile, and the model judges cursors, not who
# came first to a number. What stands for a registered cursor is a name: the cursor's id and, in
# bits that the small worlds here leave free in it, a tag that no other registration of the program
# has.

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from pulsar_ml.harness.subjects.subject cimport PmlResult, PmlViolation
from pulsar_ml.operations.support cimport SubjectTable, expect_equal, table_setting, violate
from pulsar_ml.structures.cursor_registry cimport (
    CursorNode, CursorPosition, CursorRegistry, CursorState, CursorWalk, cursor_walk,
    registry_has_durable, registry_next, registry_size, tracked_at, untracked,
)
from pulsar_ml.structures.position cimport position
from pulsar_ml.sync.atomics cimport (
    i64_load_relaxed, pml_u64, ptr_load_relaxed, u64_cas_weak_acq_rel, u64_load_acquire, u64_load_relaxed,
)


cdef enum:
    CURSOR_MOST_THREADS = 64
    CURSOR_NUMBERS = 40     # cursors that a program can name
    CURSOR_OWN = 3          # the first of them are the thread's own
    CURSOR_LEAST = 4
    CURSOR_VALUES = 64      # positions that a program can name
    CURSOR_UNTRACKED = -1   # the value of no position
    CURSOR_HANDLE_BITS = 12 # of an id: an instance has fewer cursors
    CURSOR_TAG_BITS = 20
    CURSOR_TAGS = (1 << 14) - 1     # of one thread, until they are used again


cdef enum:
    CURSOR_DONE = 0
    CURSOR_UNKNOWN = 1      # not registered (in the heap also: not tracked)
    CURSOR_REFUSED = 3      # no memory


# A change of one cursor.
cdef struct CursorNote:
    uint64_t name
    int64_t version
    int64_t value
    bint durable
    int64_t durable_version     # of the change that set it; 0: it was not this thread


cdef struct CursorLane:
    uint64_t[3] own         # names of the thread's own cursors
    uint64_t stale          # that of one it removed
    int64_t registered      # cursors that it added
    int64_t version         # the highest that the thread saw
    int64_t left_version    # of its last removal, and when that was
    int64_t left_at
    CursorNote[40] notes
    char[64] apart


cdef struct CursorWorld:
    int32_t threads
    int64_t cursors         # cursors that the program names: the first so many
    int64_t values
    int64_t start           # when the container began
    pml_u64[40] names       # of the cursors that are everybody's
    CursorLane* lanes


# Cursors and values ------------------------------------------------------------------------------

cdef inline void cursor_settings(SubjectTable* table) noexcept nogil:
    table_setting(table, b"cursors", CURSOR_LEAST, CURSOR_NUMBERS)
    table_setting(table, b"values", 2, CURSOR_VALUES)
    table_setting(table, b"chunk_bits", 0, 4)


cdef inline void cursor_world_init(
    CursorWorld* world, const int64_t* settings, int32_t threads, CursorLane* lanes
) noexcept nogil:
    memset(world, 0, sizeof(CursorWorld))
    world.threads = threads
    world.cursors = settings[0]
    world.values = settings[1]
    world.lanes = lanes


# The values ascend with their positions; the ledger follows from the entry, so that halves of two
# positions show.
cdef inline CursorPosition cursor_position(const CursorWorld* world, int64_t value) noexcept nogil:
    if value == CURSOR_UNTRACKED:
        return untracked()
    value %= world.values
    return tracked_at(position(value >> 2, value))


cdef inline int64_t cursor_value(
    const CursorWorld* world, CursorPosition seen, PmlViolation* violation
) noexcept nogil:
    if not seen.tracked:
        return CURSOR_UNTRACKED
    if seen.at.ledger_id != seen.at.entry_id >> 2 or not 0 <= seen.at.entry_id < world.values:
        violate(violation, b"I80", b"the slowest position %lld:%lld is nobody's", seen.at.ledger_id,
                seen.at.entry_id, 0)
    return seen.at.entry_id


# The name of a cursor that the thread has just added.
cdef inline uint64_t cursor_named(CursorWorld* world, int32_t thread, uint64_t id) noexcept nogil:
    cdef CursorLane* lane = &world.lanes[thread]
    cdef uint64_t tag = <uint64_t>thread << 14 | <uint64_t>(lane.registered % CURSOR_TAGS + 1)
    lane.registered += 1
    return id | tag << CURSOR_HANDLE_BITS


cdef inline uint64_t name_id(uint64_t name) noexcept nogil:
    return name & ~(<uint64_t>((1 << CURSOR_TAG_BITS) - 1) << CURSOR_HANDLE_BITS)


cdef inline int64_t name_tag(uint64_t name) noexcept nogil:
    return <int64_t>(name >> CURSOR_HANDLE_BITS & ((1 << CURSOR_TAG_BITS) - 1))


cdef inline uint64_t cursor_name(
    const CursorWorld* world, int32_t thread, int64_t cursor
) noexcept nogil:
    if cursor < CURSOR_OWN:
        return world.lanes[thread].own[cursor]
    # Pairs with the exchange in cursor_exchange: a cursor's memory was made before its name is
    # read.
    return u64_load_acquire(&world.names[cursor])


# Gives the number another name and answers the one it had.
cdef inline uint64_t cursor_exchange(
    CursorWorld* world, int32_t thread, int64_t cursor, uint64_t name
) noexcept nogil:
    cdef uint64_t seen
    if cursor < CURSOR_OWN:
        seen = world.lanes[thread].own[cursor]
        world.lanes[thread].own[cursor] = name
        if seen:
            world.lanes[thread].stale = seen
        return seen
    seen = u64_load_relaxed(&world.names[cursor])
    # The exchange fails when another thread gave it one.
    while not u64_cas_weak_acq_rel(&world.names[cursor], &seen, name):
        pass
    return seen


# Notes -------------------------------------------------------------------------------------------

cdef inline void cursor_see_version(
    CursorLane* lane, int64_t version, bint changes, PmlViolation* violation
) noexcept nogil:
    if version < lane.version + changes:
        violate(violation, b"CR-3", b"the data version is %lld after %lld", version, lane.version, 0)
    lane.version = version


cdef inline void cursor_note(
    CursorWorld* world, int32_t thread, int64_t cursor, uint64_t name, int64_t version, CursorPosition target,
    PmlViolation* violation
) noexcept nogil:
    cdef CursorNote* note = &world.lanes[thread].notes[cursor]
    cursor_see_version(&world.lanes[thread], version, True, violation)
    if note.name != name:
        note.durable_version = 0
    note.name = name
    note.version = version
    note.value = target.at.entry_id if target.tracked else CURSOR_UNTRACKED


# Notes a change that also sets whether the cursor is durable.
cdef inline void cursor_note_all(
    CursorWorld* world, int32_t thread, int64_t cursor, uint64_t name, int64_t version, CursorPosition target,
    bint durable, PmlViolation* violation
) noexcept nogil:
    cursor_note(world, thread, cursor, name, version, target, violation)
    world.lanes[thread].notes[cursor].durable = durable
    world.lanes[thread].notes[cursor].durable_version = version


cdef inline void cursor_note_removal(
    CursorWorld* world, int32_t thread, int64_t version, int64_t now, PmlViolation* violation
) noexcept nogil:
    cdef CursorLane* lane = &world.lanes[thread]
    cursor_see_version(lane, version, True, violation)
    lane.left_version = version
    lane.left_at = now


# Where the thread's own cursor is.
cdef inline int64_t cursor_own_value(const CursorWorld* world, int32_t thread, int64_t cursor) noexcept nogil:
    cdef const CursorLane* lane = &world.lanes[thread]
    return lane.notes[cursor].value if lane.own[cursor] else CURSOR_UNTRACKED


# Tracked ones of the thread's own cursors at or before a value.
cdef inline int64_t cursor_own_before(const CursorWorld* world, int32_t thread, int64_t value) noexcept nogil:
    cdef int64_t found = 0
    cdef int64_t cursor, other
    for cursor in range(CURSOR_OWN):
        other = cursor_own_value(world, thread, cursor)
        found += other != CURSOR_UNTRACKED and other <= value
    return found


cdef inline void cursor_check_slowest(
    const CursorWorld* world, int32_t thread, int64_t slowest, PmlViolation* violation
) noexcept nogil:
    cdef int64_t cursor, own
    for cursor in range(CURSOR_OWN):
        own = cursor_own_value(world, thread, cursor)
        if own != CURSOR_UNTRACKED and (slowest == CURSOR_UNTRACKED or slowest > own):
            violate(violation, b"I80", b"the slowest is at %lld while cursor %lld stays at %lld", slowest,
                    cursor, own)


# The answer about one cursor: its value, whether it is durable, and its tag.
cdef inline int64_t cursor_look(
    const CursorWorld* world, int32_t thread, int64_t cursor, uint64_t name, CursorState state,
    PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef const CursorNote* note
    result.words[2] = name_tag(name)
    if cursor < CURSOR_OWN and name:
        note = &world.lanes[thread].notes[cursor]
        if state.id != name_id(name) or state.durable != note.durable:
            violate(violation, b"CR-4", b"cursor %lld is registered, durable %lld, and the look says %lld",
                    cursor, note.durable, state.durable)
        expect_equal(violation, b"CR-4", b"the place of a cursor that stays",
                     cursor_value(world, state.place, violation), note.value)
    if not state.id:
        return CURSOR_UNKNOWN
    result.words[0] = cursor_value(world, state.place, violation)
    result.words[1] = state.durable
    return CURSOR_DONE


# The same about a cursor at the slowest position; the tag is 0 where no name that the thread can
# read belongs to it.
cdef inline void cursor_look_slowest(
    const CursorWorld* world, int32_t thread, CursorState state, PmlResult* result,
    PmlViolation* violation
) noexcept nogil:
    cdef int64_t cursor
    cdef uint64_t name
    result.words[0] = cursor_value(world, state.place, violation)
    result.words[1] = state.durable
    cursor_check_slowest(world, thread, result.words[0], violation)
    if (state.id != 0) != (result.words[0] != CURSOR_UNTRACKED):
        violate(violation, b"CR-4", b"the slowest is at %lld, a cursor stands there: %lld",
                result.words[0], state.id != 0, 0)
    for cursor in range(world.cursors):
        name = cursor_name(world, thread, cursor)
        if state.id and name_id(name) == state.id:
            result.words[2] = name_tag(name)


# A walk over all cursors: how many; the thread's own must be among them, once each.
cdef inline int64_t cursor_iterate(
    const CursorWorld* world, int32_t thread, CursorRegistry* registry, PmlViolation* violation
) noexcept nogil:
    cdef CursorWalk walk = cursor_walk()
    cdef int64_t[3] met
    cdef int64_t seen = 0
    cdef int64_t last = 0
    cdef int64_t cursor
    cdef uint64_t id
    memset(met, 0, sizeof(met))
    while True:
        id = registry_next(registry, &walk)
        if not id:
            break
        if walk.number <= last:
            violate(violation, b"CR-1", b"a walk comes to registration %lld after %lld", walk.number, last, 0)
            break
        last = walk.number
        seen += 1
        for cursor in range(CURSOR_OWN):
            met[cursor] += id == name_id(world.lanes[thread].own[cursor])
    for cursor in range(CURSOR_OWN):
        expect_equal(violation, b"CR-1", b"times that a walk met a cursor that stays", met[cursor],
                     world.lanes[thread].own[cursor] != 0)
    return seen


# Checks ------------------------------------------------------------------------------------------

# The registered cursor number `index` of all numbers and threads: the last change of its place or,
# if requested, of its durability; NULL when there is no such cursor.
cdef inline const CursorNote* cursor_last_note(
    const CursorWorld* world, int64_t index, bint of_durability
) noexcept nogil:
    cdef const CursorNote* found = NULL
    cdef const CursorNote* note
    cdef int64_t cursor
    cdef int32_t thread
    cdef uint64_t name
    if index < world.threads * CURSOR_OWN:
        thread = <int32_t>(index // CURSOR_OWN)
        cursor = index % CURSOR_OWN
        return &world.lanes[thread].notes[cursor] if world.lanes[thread].own[cursor] else NULL
    cursor = index - world.threads * CURSOR_OWN + CURSOR_OWN
    name = u64_load_acquire(&world.names[cursor])
    if not name:
        return NULL
    for thread in range(world.threads):
        note = &world.lanes[thread].notes[cursor]
        if note.name == name and (found is NULL or (
                note.durable_version > found.durable_version if of_durability
                else note.version > found.version)):
            found = note
    return found


cdef inline int64_t cursor_indices(const CursorWorld* world) noexcept nogil:
    return world.threads * CURSOR_OWN + world.cursors - CURSOR_OWN


# Tracked cursors at or before a value, by the notes.
cdef inline int64_t cursor_noted_before(const CursorWorld* world, int64_t value) noexcept nogil:
    cdef int64_t found = 0
    cdef int64_t index
    cdef const CursorNote* note
    for index in range(cursor_indices(world)):
        note = cursor_last_note(world, index, False)
        found += note is not NULL and note.value != CURSOR_UNTRACKED and note.value <= value
    return found


cdef inline int64_t cursor_noted_slowest(const CursorWorld* world) noexcept nogil:
    cdef int64_t value
    for value in range(world.values):
        if cursor_noted_before(world, value):
            return value
    return CURSOR_UNTRACKED


# The registry against the notes, when nobody is inside.
cdef inline void cursor_check_registry(
    const CursorWorld* world, const CursorRegistry* registry, PmlViolation* violation
) noexcept nogil:
    cdef int64_t size = 0, durable = 0, left_version = 0, left_at = world.start
    cdef int64_t index
    cdef const CursorNote* note
    cdef const CursorLane* lane
    for index in range(cursor_indices(world)):
        note = cursor_last_note(world, index, True)
        if note is not NULL:
            size += 1
            durable += note.durable
    for index in range(world.threads):
        lane = &world.lanes[index]
        if lane.left_version > left_version:
            left_version = lane.left_version
            left_at = lane.left_at
    expect_equal(violation, b"I79", b"registered cursors", registry_size(registry), size)
    expect_equal(violation, b"I79", b"a durable cursor is registered", registry_has_durable(registry),
                 durable > 0)
    if size == 0:
        expect_equal(violation, b"I79", b"the last cursor left at", i64_load_relaxed(&registry.left_at),
                     left_at)


# The list of registered cursors, inside any section.
cdef inline void cursor_check_list(const CursorRegistry* registry, PmlViolation* violation) noexcept nogil:
    cdef const CursorNode* node = registry.first
    cdef const CursorNode* before = NULL
    cdef int64_t size = registry_size(registry)
    cdef int64_t seen = 0, durable = 0
    while node is not NULL and seen <= size:
        if (node.before is not before or (before is not NULL and before.number >= node.number)
                or not u64_load_relaxed(&node.id) or ptr_load_relaxed(&node.registry) != <void*>registry):
            violate(violation, b"CR-1", b"registration %lld is linked wrongly", node.number, 0, 0)
            return
        seen += 1
        durable += node.durable
        before = node
        node = node.after
    expect_equal(violation, b"I79", b"cursors in the list", seen, size)
    expect_equal(violation, b"I79", b"durable cursors in the list", durable,
                 i64_load_relaxed(&registry.durable))
    if registry.last is not before:
        violate(violation, b"CR-1", b"the last registration is not the end of the list", 0, 0, 0)
