# The progress of an order in some lanes: the next call of each, and what can be asked of them.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from pulsar_ml.harness.linearize.objects.takes cimport Effect
from pulsar_ml.harness.linearize.search.lanes cimport Lanes, Op
from pulsar_ml.harness.linearize.search.pool cimport mixed


cdef enum:
    NO_LANE = -1


cdef struct LaneProgress:
    int32_t* at           # the next call of each lane, as an index in lanes.ops
    uint32_t* key         # the progress in each lane, and other words of a configuration
    uint64_t* factor      # by word
    uint64_t hash         # the sum of the words times their factors
    int32_t room


cdef inline void progress_free(LaneProgress* p) noexcept nogil:
    free(p.at)
    free(p.key)
    free(p.factor)
    memset(p, 0, sizeof(LaneProgress))


# Makes room for so many words, which are zero then; False without memory.
cdef inline bint progress_start(LaneProgress* p, int32_t words) noexcept nogil:
    cdef size_t n = <size_t>words + 8
    cdef size_t i
    if words > p.room or p.at is NULL:
        progress_free(p)
        p.at = <int32_t*>malloc(n * sizeof(int32_t))
        p.key = <uint32_t*>malloc(n * sizeof(uint32_t))
        p.factor = <uint64_t*>malloc(n * sizeof(uint64_t))
        if p.at is NULL or p.key is NULL or p.factor is NULL:
            progress_free(p)
            return False
        p.room = <int32_t>n
        for i in range(n):
            p.factor[i] = mixed(<uint64_t>(i + 1) * 0x9E3779B97F4A7C15ULL) | 1
    memset(p.key, 0, <size_t>words * sizeof(uint32_t))
    p.hash = 0
    return True


# Moves a lane on, or back.
cdef inline void step_lane(LaneProgress* p, int32_t lane, int32_t by) noexcept nogil:
    p.at[lane] += by
    p.key[lane] += <uint32_t>by
    p.hash += <uint64_t>(<int64_t>by) * p.factor[lane]


cdef inline void set_word(LaneProgress* p, int32_t place, uint32_t word) noexcept nogil:
    p.hash += (<uint64_t>word - <uint64_t>p.key[place]) * p.factor[place]
    p.key[place] = word


# The functions below take ``at``, the next call of each lane of ``lanes``.
cdef inline const Op* op_of(const Lanes* lanes, const int32_t* at, int32_t lane) noexcept nogil:
    return &lanes.ops[at[lane]]


cdef inline int64_t first_return_of(const Lanes* lanes, const int32_t* at) noexcept nogil:
    cdef int64_t first = INT64_MAX
    cdef int32_t lane
    for lane in range(lanes.n):
        first = min(first, op_of(lanes, at, lane).returned)
    return first


# True when an equivalent call of another lane was invoked by ``until``, too, and returns sooner.
cdef inline bint has_sooner(const Lanes* lanes, const int32_t* at, int32_t lane,
                            int64_t until) noexcept nogil:
    cdef const Op* op = op_of(lanes, at, lane)
    cdef const Op* twin
    cdef int32_t other
    for other in range(lanes.n):
        twin = op_of(lanes, at, other)
        if (twin.symbol == op.symbol and other != lane and twin.invoked <= until
                and (twin.returned < op.returned or (twin.returned == op.returned and other < lane))):
            return True
    return False


# The lane of the put of a value that was invoked by ``until`` and returns first, or NO_LANE.
cdef inline int32_t put_with(const Lanes* lanes, const int32_t* at, const Effect* effects, int32_t value,
                             int64_t until) noexcept nogil:
    cdef int32_t found = NO_LANE
    cdef int32_t lane
    cdef const Op* op
    for lane in range(lanes.n):
        op = op_of(lanes, at, lane)
        if op.invoked <= until and op.symbol >= 0 and effects[op.symbol].puts == value:
            if found == NO_LANE or op.returned < op_of(lanes, at, found).returned:
                found = lane
    return found
