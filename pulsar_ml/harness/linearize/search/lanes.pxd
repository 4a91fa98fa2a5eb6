# The calls of a history in lanes. The calls of a lane are sequential, so that one number for each
# lane describes the progress of a linearization.
#
# The criteria differ only in their lanes:
#
#   linearizable             few lanes, as the overlaps allow, with the intervals of the calls
#   sequentially consistent  a lane for each thread, without intervals
#   quiescently consistent   a lane for each symbol, with the period of activity as interval
#
# The end of a spanning call, where it is a call of its own, is in the lane of its beginning. Calls
# that never returned may or may not have taken effect. Those of one symbol share a lane: if one of
# them took effect, it may as well be the first. A call that returned at NEVER may be left out, too,
# but it has its result.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.search.table cimport AN_END, IDLE_END, RETURNED, Table


cdef enum:
    REAL_TIME = 0
    PROGRAM_ORDER = 1
    QUIESCENCE = 2


cdef struct Op:
    int64_t invoked
    int64_t returned      # INT64_MAX: the call may be left out
    int64_t moment        # an estimate of the moment of effect, within the interval
    int32_t symbol
    int32_t index         # the index of the record


cdef struct Lanes:
    Op* ops               # lane after lane, each with an end mark
    int32_t* start        # of each lane in ops
    int32_t n             # the number of lanes
    int32_t n_ops
    int32_t required      # the number of calls that returned
    Op* sorted            # scratch: the calls by invocation
    int32_t* lane_of      # scratch: the lane of each sorted call
    int32_t* length       # scratch: the length of each lane
    int64_t* last         # scratch: the end of the last call of each lane
    int32_t* own          # scratch: the thread or symbol of each lane
    int32_t* tail         # scratch: the index in sorted of the last call of each lane
    int32_t room


cdef inline void lanes_free(Lanes* lanes) noexcept nogil:
    free(lanes.ops)
    free(lanes.start)
    free(lanes.sorted)
    free(lanes.lane_of)
    free(lanes.length)
    free(lanes.last)
    free(lanes.own)
    free(lanes.tail)
    memset(lanes, 0, sizeof(Lanes))


cdef inline bint lanes_reserve(Lanes* lanes, int32_t n) noexcept nogil:
    if n <= lanes.room:
        return True
    n += n // 2 + 16
    lanes_free(lanes)
    lanes.ops = <Op*>malloc(2 * <size_t>n * sizeof(Op))
    lanes.start = <int32_t*>malloc((<size_t>n + 1) * sizeof(int32_t))
    lanes.sorted = <Op*>malloc(<size_t>n * sizeof(Op))
    lanes.lane_of = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
    lanes.length = <int32_t*>malloc((<size_t>n + 1) * sizeof(int32_t))
    lanes.last = <int64_t*>malloc((<size_t>n + 1) * sizeof(int64_t))
    lanes.own = <int32_t*>malloc((<size_t>n + 1) * sizeof(int32_t))
    lanes.tail = <int32_t*>malloc((<size_t>n + 1) * sizeof(int32_t))
    lanes.room = n
    if (lanes.ops is NULL or lanes.start is NULL or lanes.sorted is NULL or lanes.lane_of is NULL
            or lanes.length is NULL or lanes.last is NULL or lanes.own is NULL or lanes.tail is NULL):
        lanes_free(lanes)
        return False
    return True


cdef inline int by_invocation(const void* a, const void* b) noexcept nogil:
    cdef const Op* first = <const Op*>a
    cdef const Op* second = <const Op*>b
    if first.invoked != second.invoked:
        return -1 if first.invoked < second.invoked else 1
    return -1 if first.index < second.index else 1


cdef inline void sort_ops(Op* ops, int32_t n) noexcept nogil:
    cdef int32_t i, j
    cdef Op op
    if n > 32:
        for i in range(1, n):
            if ops[i - 1].invoked > ops[i].invoked:
                qsort(ops, <size_t>n, sizeof(Op), &by_invocation)
                return
        return
    for i in range(1, n):
        op = ops[i]
        j = i - 1
        while j >= 0 and ops[j].invoked > op.invoked:
            ops[j + 1] = ops[j]
            j -= 1
        ops[j + 1] = op


# The lane for the sorted call ``at``; lanes.n: a new lane.
cdef inline int32_t lane_in_real_time(Lanes* lanes, const Op* op) noexcept nogil:
    cdef int32_t lane
    if op.returned == INT64_MAX:
        for lane in range(lanes.n):
            if lanes.own[lane] == op.symbol:
                return lane
        return lanes.n
    for lane in range(lanes.n):
        if lanes.own[lane] < 0 and lanes.last[lane] < op.invoked:
            return lane
    return lanes.n


# The lane whose last call is the beginning of this end; lanes.n: not among these calls.
cdef inline int32_t lane_of_beginning(Lanes* lanes, const Record* records, const Op* end) noexcept nogil:
    cdef int32_t lane
    cdef const Op* begun
    for lane in range(lanes.n):
        begun = &lanes.sorted[lanes.tail[lane]]
        if (begun.invoked == end.invoked and begun.returned == end.returned
                and records[begun.index].thread == records[end.index].thread):
            return lane
    return lanes.n


# The lane of the calls of a thread; lanes.n: a new lane.
cdef inline int32_t lane_owned(Lanes* lanes, int32_t own) noexcept nogil:
    cdef int32_t lane
    for lane in range(lanes.n):
        if lanes.own[lane] == own:
            return lane
    return lanes.n


# Scratch for the lane of each symbol, which the caller frees: -1 for the symbols of the sorted
# calls, and unset for others; NULL without memory.
cdef inline int32_t* no_lanes(const Lanes* lanes) noexcept nogil:
    cdef int32_t most = 0
    cdef int32_t i
    cdef int32_t* lane_of_symbol
    for i in range(lanes.n_ops):
        most = max(most, lanes.sorted[i].symbol)
    lane_of_symbol = <int32_t*>malloc((<size_t>most + 1) * sizeof(int32_t))
    if lane_of_symbol is not NULL:
        for i in range(lanes.n_ops):
            lane_of_symbol[lanes.sorted[i].symbol] = -1
    return lane_of_symbol


# Replaces intervals by periods of activity; between two periods no call was under way.
cdef inline void to_periods(Lanes* lanes) noexcept nogil:
    cdef int64_t period = 0
    cdef int64_t until = INT64_MIN
    cdef int32_t i
    cdef Op* op
    for i in range(lanes.n_ops):
        op = &lanes.sorted[i]
        if op.invoked > until:
            period += 1
        if op.returned > until:
            until = op.returned
        op.invoked = period
        if op.returned != INT64_MAX:
            op.returned = period


# The spanning call that this end belongs to took effect at its beginning, which is its last event.
cdef inline void over_at_once(Lanes* lanes, const Record* records, const Record* end) noexcept nogil:
    cdef int32_t i
    cdef Op* op
    for i in range(lanes.n_ops):
        op = &lanes.sorted[i]
        if (end.moment and op.invoked == end.invoked and op.returned == end.returned
                and records[op.index].thread == end.thread):
            op.moment = end.moment


# Fills the lanes from ``chosen`` records; False without memory. Pure calls that never returned are
# left out, except under quiescent consistency, where they end quiescence for ever. With ``sparing``
# ends of calls that were over when they began are left out, too.
cdef inline bint lanes_build(Lanes* lanes, const Table* table, const Record* records, const int32_t* chosen,
                             const int32_t* symbols, int32_t count, int criterion,
                             bint sparing) noexcept nogil:
    cdef int32_t i, lane, at
    cdef uint8_t role
    cdef const Record* record
    cdef Op* op
    cdef Op* end
    cdef int32_t* lane_of_symbol = NULL
    if not lanes_reserve(lanes, count + 1):
        return False
    lanes.n = 0
    lanes.n_ops = 0
    lanes.required = 0
    for i in range(count):
        record = &records[chosen[i]]
        if record.ending != RETURNED and table.pure[symbols[chosen[i]]] and criterion != QUIESCENCE:
            continue
        if sparing and record.ending == RETURNED and table.role[symbols[chosen[i]]] == IDLE_END:
            over_at_once(lanes, records, record)
            continue
        op = &lanes.sorted[lanes.n_ops]
        op.invoked = record.invoked
        op.returned = record.returned if record.ending == RETURNED else INT64_MAX
        op.moment = record.moment if record.moment else record.returned
        op.symbol = symbols[chosen[i]]
        op.index = chosen[i]
        lanes.required += op.returned != INT64_MAX
        lanes.n_ops += 1
    sort_ops(lanes.sorted, lanes.n_ops)
    if criterion == QUIESCENCE:
        to_periods(lanes)
        lane_of_symbol = no_lanes(lanes)
        if lane_of_symbol is NULL:
            return False
    for i in range(lanes.n_ops):
        op = &lanes.sorted[i]
        if criterion == REAL_TIME:
            role = table.role[op.symbol]
            lane = lanes.n
            if (role == AN_END or role == IDLE_END) and op.returned != INT64_MAX:
                lane = lane_of_beginning(lanes, records, op)
            if lane == lanes.n:
                lane = lane_in_real_time(lanes, op)
        elif criterion == PROGRAM_ORDER:
            # A call that never returned is the last one of its thread, or has a lane to itself.
            lane = lane_owned(lanes, records[op.index].thread)
        else:
            lane = lane_of_symbol[op.symbol]
            if lane < 0:
                lane = lane_of_symbol[op.symbol] = lanes.n
        if lane == lanes.n:
            lanes.n += 1
            lanes.length[lane] = 0
            lanes.own[lane] = -1
            if criterion == PROGRAM_ORDER:
                lanes.own[lane] = records[op.index].thread
            elif criterion == QUIESCENCE or op.returned == INT64_MAX:
                lanes.own[lane] = op.symbol
        lanes.length[lane] += 1
        lanes.last[lane] = op.returned
        lanes.tail[lane] = i
        lanes.lane_of[i] = lane
        if criterion == PROGRAM_ORDER:
            if op.returned == INT64_MAX:
                lanes.own[lane] = -2 - i      # the next call of its thread gets another lane
            else:
                op.returned = INT64_MAX - 1
            op.invoked = INT64_MIN
    free(lane_of_symbol)
    at = 0
    for lane in range(lanes.n):
        lanes.start[lane] = at
        at += lanes.length[lane] + 1
        lanes.length[lane] = 0
        end = &lanes.ops[at - 1]
        end.invoked = INT64_MAX
        end.returned = INT64_MAX
        end.symbol = -1
        end.index = -1
    for i in range(lanes.n_ops):
        lane = lanes.lane_of[i]
        lanes.ops[lanes.start[lane] + lanes.length[lane]] = lanes.sorted[i]
        lanes.length[lane] += 1
    return True
