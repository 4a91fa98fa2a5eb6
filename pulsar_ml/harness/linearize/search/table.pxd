# Symbols and transitions: the answers of a model in integers.
#
# A symbol stands for all calls that a model cannot tell apart. The model is called once for each
# pair of a state and a symbol, and the answer is stored here.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.limits.arrays cimport array_free, array_grown, array_resized
from pulsar_ml.harness.linearize.search.pool cimport (
    Pool, mixed, pool_add, pool_at, pool_bytes, pool_free, pool_shape,
)
from pulsar_ml.sync.memory cimport prefetch


cdef enum:
    WORDS = 10            # of the row of a symbol
    LEADS = 1 << 30       # a flag on a symbol: the key of an answer of leads()
    RETURNED = 0

cdef enum:
    ILLEGAL = -1
    UNKNOWN_ANSWER = -2
    SEVERAL = -3          # this value and lower ones: -3 - the index in several

cdef enum:
    NO_SOLE = -1


cdef enum:
    MOST_NEAR = 2048      # transitions that are near at hand for the processor
    FAR = 1 << 15         # slots that do not fit into its caches


cdef enum Role:
    ANY_CALL = 0
    AN_END = 1            # the end of a spanning call, which follows its beginning
    IDLE_END = 2          # an end that is legal in every state and changes nothing
    UNLEARNED = 3         # only the part of the symbol is known


cdef struct Transition:
    uint64_t key          # (state << 32 | symbol) + 1; 0: free
    int64_t value         # a state, ILLEGAL, or SEVERAL - index


cdef struct Table:
    Pool symbols          # rows of WORDS words
    uint8_t* pure         # by symbol: never changes a state
    uint8_t* resets       # by symbol: leads to one state from every state
    uint8_t* role         # by symbol: its Role
    int32_t* part         # by symbol: the part of the state that it is about
    int32_t* sole         # by symbol: if pure, the only state that allows it; else, the only state
                          # to which it leads; NO_SOLE: none, or not known
    bint has_soles
    int64_t marks_room    # the capacity of the five arrays above
    bint leads            # the model has leads()
    Transition* slots
    uint64_t mask
    uint64_t used
    int32_t* several      # a count, then so many states
    int64_t n_several
    int64_t several_room
    int64_t limit         # bytes


cdef inline void table_open(Table* table, int64_t limit) noexcept nogil:
    memset(table, 0, sizeof(Table))
    table.limit = limit
    pool_shape(&table.symbols, WORDS * sizeof(int64_t), 8, limit)


cdef inline void table_close(Table* table) noexcept nogil:
    pool_free(&table.symbols)
    free(table.pure)
    free(table.resets)
    free(table.role)
    free(table.part)
    free(table.sole)
    array_free(table.slots, <int64_t>((table.mask + 1) * sizeof(Transition)))
    array_free(table.several, 4 * table.several_room)
    memset(table, 0, sizeof(Table))


# Writes the words of a call. The result of a call that never returned is unknown.
cdef inline void row_of(const Record* record, bint by_thread, int64_t* row) noexcept nogil:
    row[0] = (<int64_t>record.operation << 1) | (record.ending != RETURNED)
    row[1] = record.thread if by_thread else -1
    memcpy(&row[2], record.arguments, sizeof(record.arguments))
    if record.ending == RETURNED:
        memcpy(&row[5], record.result, sizeof(record.result))
    else:
        memset(&row[5], 0, sizeof(record.result))


# The symbol of a call, or -1 without memory.
cdef inline int32_t symbol_of(Table* table, const Record* record, bint by_thread) noexcept nogil:
    cdef int64_t[WORDS] row
    cdef uint64_t hash
    cdef bint entered
    cdef int i
    row_of(record, by_thread, row)
    # Sums of products by different factors, so that the processor computes several words in
    # parallel.
    hash = 0
    for i in range(WORDS):
        hash += (<uint64_t>row[i] ^ (<uint64_t>row[i] >> 32)) * (
            0x9E3779B97F4A7C15ULL + 0x632BE59BD9B4E01AULL * <uint64_t>i
        )
    hash = mixed(hash)
    return <int32_t>pool_add(&table.symbols, row, hash, &entered)


cdef inline const int64_t* symbol_row(const Table* table, int64_t symbol) noexcept nogil:
    return <const int64_t*>pool_at(&table.symbols, symbol)


# Twice as many slots. The old ones are emptied one by one, from behind a free one on, and their
# transitions entered again: each comes into the second half, or to a slot that was emptied already,
# so nothing is there twice and no transition lies behind a slot that is emptied later.
cdef inline bint table_grow(Table* table) noexcept nogil:
    cdef uint64_t old = table.mask + 1 if table.slots is not NULL else 0
    cdef uint64_t size = 2 * old if old else 1024
    cdef uint64_t begin = 0
    cdef uint64_t i, at
    cdef Transition* slots
    cdef Transition one
    if <int64_t>(size * sizeof(Transition)) > table.limit and old:
        return False
    slots = <Transition*>array_resized(table.slots, <int64_t>(old * sizeof(Transition)),
                                       <int64_t>(size * sizeof(Transition)))
    if slots is NULL:
        return False
    memset(slots + old, 0, (size - old) * sizeof(Transition))
    while begin < old and slots[begin].key:
        begin += 1
    for i in range(old):
        at = (begin + i) & (old - 1)
        one = slots[at]
        if one.key:
            slots[at].key = 0
            at = mixed(one.key) & (size - 1)
            while slots[at].key:
                at = (at + 1) & (size - 1)
            slots[at] = one
    table.slots = slots
    table.mask = size - 1
    return True


cdef inline int32_t transition(const Table* table, int32_t state, int32_t symbol) noexcept nogil:
    cdef uint64_t key = ((<uint64_t><uint32_t>state << 32) | <uint32_t>symbol) + 1
    cdef uint64_t at
    if table.slots is NULL:
        return UNKNOWN_ANSWER
    at = mixed(key) & table.mask
    while table.slots[at].key:
        if table.slots[at].key == key:
            return <int32_t>table.slots[at].value
        at = (at + 1) & table.mask
    return UNKNOWN_ANSWER


# The state to which a call leads from a state, as transition() tells it.
cdef inline int32_t step_of(const Table* table, int32_t state, int32_t symbol) noexcept nogil:
    cdef int32_t sole
    if table.has_soles:
        sole = table.sole[symbol]
        if sole != NO_SOLE:
            return ILLEGAL if table.pure[symbol] and sole != state else sole
    return transition(table, state, symbol)


# Begin to load the answer into the processor's cache, where the table is too large for it.
cdef inline void transition_soon(const Table* table, int32_t state, int32_t symbol) noexcept nogil:
    cdef uint64_t key = ((<uint64_t><uint32_t>state << 32) | <uint32_t>symbol) + 1
    prefetch(&table.slots[mixed(key) & table.mask])


cdef inline int32_t n_next(const Table* table, int32_t value) noexcept nogil:
    if value >= 0:
        return 1
    return table.several[SEVERAL - value] if value <= SEVERAL else 0


cdef inline int32_t next_state(const Table* table, int32_t value, int32_t choice) noexcept nogil:
    return value if value >= 0 else table.several[SEVERAL - value + 1 + choice]


# Enters an answer; False without memory.
cdef inline bint table_set(Table* table, int32_t state, int32_t symbol, const int32_t* states,
                           int32_t count) noexcept nogil:
    cdef uint64_t key = ((<uint64_t><uint32_t>state << 32) | <uint32_t>symbol) + 1
    cdef uint64_t at
    cdef void* grown
    cdef int32_t value = ILLEGAL
    if table.slots is NULL or 4 * table.used >= 3 * (table.mask + 1):
        if not table_grow(table) and 8 * table.used >= 7 * table.mask:
            return False
    if count == 1:
        value = states[0]
    elif count > 1:
        if table.n_several + count + 1 > table.several_room:
            grown = array_grown(table.several, &table.several_room, table.n_several + count + 1, 4)
            if grown is NULL:
                return False
            table.several = <int32_t*>grown
        value = <int32_t>(SEVERAL - table.n_several)
        table.several[table.n_several] = count
        memcpy(table.several + table.n_several + 1, states, <size_t>count * sizeof(int32_t))
        table.n_several += count + 1
    at = mixed(key) & table.mask
    while table.slots[at].key:
        at = (at + 1) & table.mask
    table.slots[at].key = key
    table.slots[at].value = value
    table.used += 1
    return True


# Forgets the transitions, if they are many: those of another part are not needed, and a small table
# stays in the processor's cache.
cdef inline void table_forget(Table* table) noexcept nogil:
    if table.used >= MOST_NEAR:
        memset(table.slots, 0, (table.mask + 1) * sizeof(Transition))
        table.used = 0
        table.n_several = 0


cdef inline bint mark_symbol(Table* table, int64_t symbol, bint pure, int32_t part, bint resets,
                             uint8_t role) noexcept nogil:
    cdef int64_t room
    cdef uint8_t* more
    cdef int32_t* parts
    if symbol >= table.marks_room:
        room = 2 * symbol + 64
        more = <uint8_t*>realloc(table.pure, <size_t>room)
        if more is NULL:
            return False
        table.pure = more
        more = <uint8_t*>realloc(table.resets, <size_t>room)
        if more is NULL:
            return False
        table.resets = more
        more = <uint8_t*>realloc(table.role, <size_t>room)
        if more is NULL:
            return False
        table.role = more
        parts = <int32_t*>realloc(table.part, <size_t>room * sizeof(int32_t))
        if parts is NULL:
            return False
        table.part = parts
        parts = <int32_t*>realloc(table.sole, <size_t>room * sizeof(int32_t))
        if parts is NULL:
            return False
        table.sole = parts
        table.marks_room = room
    table.pure[symbol] = pure
    table.resets[symbol] = resets
    table.role[symbol] = role
    table.part[symbol] = part
    table.sole[symbol] = NO_SOLE
    return True


# Enters the only state of a symbol; see Table.sole.
cdef inline void mark_sole(Table* table, int64_t symbol, int32_t state) noexcept nogil:
    table.sole[symbol] = state
    table.has_soles = True


cdef inline int64_t table_bytes(const Table* table) noexcept nogil:
    return (pool_bytes(&table.symbols) + <int64_t>(sizeof(Transition) * (table.mask + 1))
            + 4 * table.several_room + 11 * table.marks_room)
