# Just-in-time linearization: a call is placed at its return at the latest, so that only
# configurations of the calls under way are kept. Time and memory grow with the overlap, not with
# the number of calls.
#
# A configuration is a state and the set of calls under way that have taken effect. When a call
# returns, configurations without it are extended in every possible way until they have it, or are
# dropped.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.search.deadline cimport Deadline, is_over
from pulsar_ml.harness.linearize.search.depth cimport (
    ANSWER_ILLEGAL, ANSWER_LEGAL, MISSING_ANSWER, OUT_OF_MEMORY, OUT_OF_STEPS, OUT_OF_TIME,
)
from pulsar_ml.harness.linearize.search.pool cimport (
    Pool, mixed, pool_add, pool_at, pool_clear, pool_free, pool_shape,
)
from pulsar_ml.harness.linearize.search.table cimport (
    ILLEGAL, RETURNED, Table, UNKNOWN_ANSWER, n_next, next_state, transition,
)


cdef enum:
    OPEN_WORDS = 4
    MOST_OPEN = 256       # calls under way, including those that never return
    CONFIGURATION = 5     # words: the set of open calls that took effect, then the state


cdef struct Stream:
    Pool now
    Pool after
    Pool work
    int64_t done          # work items that are finished
    bint leading          # true in the middle of a return
    int32_t returning     # the slot of the returning call
    int32_t[256] symbol   # by slot; -1: free
    int32_t[256] twin     # an earlier open call of the same symbol; -1: none
    int64_t[256] returned
    int64_t[256] index
    int32_t n             # an upper bound of the used slots
    int64_t spent
    int64_t most_steps
    Deadline deadline
    int32_t missing_state
    int32_t missing_symbol


cdef inline uint64_t configuration_hash(const uint64_t* key) noexcept nogil:
    cdef uint64_t hash = 0
    cdef int i
    for i in range(CONFIGURATION):
        hash = mixed(hash ^ (key[i] + <uint64_t>(i + 1) * 0x9E3779B97F4A7C15ULL))
    return hash


cdef inline bint enter(Pool* pool, const uint64_t* key) noexcept nogil:
    cdef bint entered
    return pool_add(pool, key, configuration_hash(key), &entered) >= 0


cdef inline bint stream_open(Stream* s, int32_t state, int64_t most_steps, int64_t deadline_ns,
                             int64_t limit) noexcept nogil:
    cdef uint64_t[5] key
    cdef int i
    memset(s, 0, sizeof(Stream))
    pool_shape(&s.now, sizeof(key), 8, limit // 3)
    pool_shape(&s.after, sizeof(key), 8, limit // 3)
    pool_shape(&s.work, sizeof(key), 8, limit // 3)
    for i in range(MOST_OPEN):
        s.symbol[i] = -1
    s.most_steps = most_steps
    s.deadline.at_ns = deadline_ns
    memset(key, 0, sizeof(key))
    key[OPEN_WORDS] = <uint64_t>state
    return enter(&s.now, key)


cdef inline void stream_free(Stream* s) noexcept nogil:
    pool_free(&s.now)
    pool_free(&s.after)
    pool_free(&s.work)


cdef inline bint has(const uint64_t* key, int32_t slot) noexcept nogil:
    return (key[slot >> 6] >> (slot & 63)) & 1


# Begins a call. False when too many calls are under way.
cdef inline bint stream_invoke(Stream* s, const Record* record, int64_t index, int32_t symbol,
                               const Table* table) noexcept nogil:
    cdef int32_t slot, other
    if record.ending != RETURNED and table.pure[symbol]:
        return True
    for slot in range(MOST_OPEN):
        if s.symbol[slot] < 0:
            break
    else:
        return False
    s.twin[slot] = -1
    if record.ending != RETURNED:
        for other in range(s.n):
            if s.symbol[other] == symbol and s.returned[other] == INT64_MAX and s.twin[slot] < other:
                s.twin[slot] = other
    s.symbol[slot] = symbol
    s.returned[slot] = record.returned if record.ending == RETURNED else INT64_MAX
    s.index[slot] = index
    if slot >= s.n:
        s.n = slot + 1
    return True


# The call under way with the first return before ``time``; -1: none.
cdef inline int32_t first_to_return(const Stream* s, int64_t time) noexcept nogil:
    cdef int32_t slot
    cdef int32_t first = -1
    for slot in range(s.n):
        if s.symbol[slot] >= 0 and s.returned[slot] < time:
            if first < 0 or s.returned[slot] < s.returned[first]:
                first = slot
    return first


cdef inline int take(Stream* s, const Table* table, const uint64_t* key, int32_t slot) noexcept nogil:
    cdef uint64_t[5] led
    cdef int32_t choice
    cdef int32_t state = <int32_t>key[OPEN_WORDS]
    cdef int32_t value = transition(table, state, s.symbol[slot])
    if value == UNKNOWN_ANSWER:
        s.missing_state = state
        s.missing_symbol = s.symbol[slot]
        return MISSING_ANSWER
    for choice in range(n_next(table, value)):
        memcpy(led, key, sizeof(led))
        led[slot >> 6] |= <uint64_t>1 << (slot & 63)
        led[OPEN_WORDS] = <uint64_t>next_state(table, value, choice)
        s.spent += 1
        if not enter(&s.work, led):
            return OUT_OF_MEMORY
    return ANSWER_LEGAL if value != ILLEGAL else ANSWER_ILLEGAL


# Extends a configuration by one call in every possible way.
cdef inline int lead(Stream* s, const Table* table, const uint64_t* key) noexcept nogil:
    cdef int32_t slot
    cdef int answer
    for slot in range(s.n):
        if s.symbol[slot] >= 0 and not has(key, slot) and table.pure[s.symbol[slot]]:
            answer = take(s, table, key, slot)
            if answer != ANSWER_ILLEGAL:
                return answer
    for slot in range(s.n):
        if s.symbol[slot] < 0 or has(key, slot) or table.pure[s.symbol[slot]]:
            continue
        if s.twin[slot] >= 0 and not has(key, s.twin[slot]):
            continue
        answer = take(s, table, key, slot)
        if answer != ANSWER_LEGAL and answer != ANSWER_ILLEGAL:
            return answer
    return ANSWER_LEGAL


# Ends the call in ``slot``; called again after a MISSING_ANSWER, it continues.
cdef inline int stream_return(Stream* s, const Table* table, int32_t slot) noexcept nogil:
    cdef uint64_t[5] key
    cdef int64_t i
    cdef int answer
    cdef Pool spare
    if not s.leading:
        s.leading = True
        s.returning = slot
        s.done = 0
        pool_clear(&s.work)
        pool_clear(&s.after)
        for i in range(s.now.used):
            if not enter(&s.work, <uint64_t*>pool_at(&s.now, i)):
                return OUT_OF_MEMORY
    while s.done < s.work.used:
        if s.spent > s.most_steps:
            return OUT_OF_STEPS
        if is_over(&s.deadline):
            return OUT_OF_TIME
        memcpy(key, pool_at(&s.work, s.done), sizeof(key))
        if has(key, s.returning):
            key[s.returning >> 6] &= ~(<uint64_t>1 << (s.returning & 63))
            if not enter(&s.after, key):
                return OUT_OF_MEMORY
        else:
            answer = lead(s, table, key)
            if answer != ANSWER_LEGAL:
                return answer
        s.done += 1
    s.leading = False
    s.symbol[s.returning] = -1
    spare = s.now
    s.now = s.after
    s.after = spare
    return ANSWER_LEGAL if s.now.used else ANSWER_ILLEGAL
