# Looking ahead in queues, stacks, priority queues and counters: can the next calls to return still
# get their results?
#
# A call that takes a value, or that finds nothing, returns by a deadline. Before it takes effect,
# other values may have to leave: those in front of its value in a queue, above it on a stack, and
# less than it in a priority queue. Each of them needs a missing call that takes it and that was
# invoked by the deadline. A missing call without a result may take any value. A value that is not
# there needs a missing call that puts it.
#
# A call that reads a counter needs a sum that the missing calls invoked by its deadline can reach.

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memcpy, memset
from pulsar_ml.harness.linearize.search.lanes cimport Lanes, Op


cdef enum:
    MOST_AHEAD = 4        # calls with a result that are looked at
    AHEAD_BY_PRIORITY = 1 # of a priority queue: more cost more time than their steps
    NOTHING = -1          # the result of a call that found the object empty
    ANYTHING = -2         # the result of a call that did not return
    NO_VALUE = -3


cdef struct Effect:       # of a symbol
    int32_t puts          # the value that it puts; NO_VALUE: none
    int32_t takes         # the value that it takes, NOTHING or ANYTHING; NO_VALUE: none
    bint reads            # of a counter: it needs the sum ``sum``
    int64_t sum
    int64_t adds


cdef struct Taking:
    int64_t returned
    int32_t place         # in lanes.ops
    int32_t lane


cdef struct Takes:
    Taking* takings       # by return
    int32_t n, room
    int32_t* taken        # by value: missing calls that take it
    int32_t* put          # by value: missing calls that put it
    int32_t* demand       # by value: values that must leave
    int32_t n_values
    int32_t values_room
    int32_t* counted      # by lane: the first call that is not counted
    int32_t lanes_room
    bint counting
    int32_t any_value     # counted calls that may take any value


cdef inline void takes_free(Takes* t) noexcept nogil:
    free(t.takings)
    free(t.taken)
    free(t.put)
    free(t.demand)
    free(t.counted)
    memset(t, 0, sizeof(Takes))


cdef inline int by_return(const void* a, const void* b) noexcept nogil:
    cdef const Taking* one = <const Taking*>a
    cdef const Taking* other = <const Taking*>b
    if one.returned != other.returned:
        return -1 if one.returned < other.returned else 1
    return -1 if one.place < other.place else 1


# Prepares looking ahead for the calls in the lanes; False without memory.
cdef inline bint takes_start(Takes* t, const Lanes* lanes, const Effect* effects,
                             int32_t n_values) noexcept nogil:
    cdef int32_t lane, place
    cdef const Op* op
    cdef Taking* more
    if lanes.n_ops > t.room:
        more = <Taking*>realloc(t.takings, <size_t>lanes.n_ops * sizeof(Taking))
        if more is NULL:
            return False
        t.takings = more
        t.room = lanes.n_ops
    if n_values > t.values_room:
        free(t.taken)
        free(t.put)
        free(t.demand)
        t.taken = <int32_t*>realloc(NULL, <size_t>n_values * sizeof(int32_t))
        t.put = <int32_t*>realloc(NULL, <size_t>n_values * sizeof(int32_t))
        t.demand = <int32_t*>realloc(NULL, <size_t>n_values * sizeof(int32_t))
        t.values_room = n_values
        if t.taken is NULL or t.put is NULL or t.demand is NULL:
            t.values_room = 0
            return False
    if lanes.n > t.lanes_room:
        free(t.counted)
        t.counted = <int32_t*>malloc((<size_t>lanes.n + 8) * sizeof(int32_t))
        t.lanes_room = lanes.n + 8 if t.counted is not NULL else 0
        if t.counted is NULL:
            return False
    t.counting = False
    t.any_value = 0
    t.n_values = n_values
    if n_values:
        memset(t.taken, 0, <size_t>n_values * sizeof(int32_t))
        memset(t.put, 0, <size_t>n_values * sizeof(int32_t))
        memset(t.demand, 0, <size_t>n_values * sizeof(int32_t))
    t.n = 0
    for lane in range(lanes.n):
        place = lanes.start[lane]
        while lanes.ops[place].symbol >= 0:
            op = &lanes.ops[place]
            if op.returned != INT64_MAX and (effects[op.symbol].takes >= NOTHING or effects[op.symbol].reads):
                t.takings[t.n].returned = op.returned
                t.takings[t.n].place = place
                t.takings[t.n].lane = lane
                t.n += 1
            place += 1
    qsort(t.takings, <size_t>t.n, sizeof(Taking), &by_return)
    return True


# The index of the first taking that returned at ``first`` or later.
cdef inline int32_t first_taking(const Takes* t, int64_t first) noexcept nogil:
    cdef int32_t low = 0
    cdef int32_t high = t.n
    cdef int32_t middle
    while low < high:
        middle = (low + high) // 2
        if t.takings[middle].returned < first:
            low = middle + 1
        else:
            high = middle
    return low


# Adds a call to the counts by value, or takes it back.
cdef inline void count_call(Takes* t, const Effect* effect, int32_t by) noexcept nogil:
    if effect.takes >= 0:
        t.taken[effect.takes] += by
    elif effect.takes == ANYTHING:
        t.any_value += by
    if effect.puts >= 0:
        t.put[effect.puts] += by


# Counts the missing calls that were invoked by ``until``, which never is less than before.
cdef inline void count_calls(Takes* t, const Lanes* lanes, const Effect* effects, const int32_t* at,
                             int64_t until) noexcept nogil:
    cdef int32_t lane
    if not t.counting:
        t.counting = True
        memcpy(t.counted, at, <size_t>lanes.n * sizeof(int32_t))
    for lane in range(lanes.n):
        while lanes.ops[t.counted[lane]].symbol >= 0 and lanes.ops[t.counted[lane]].invoked <= until:
            count_call(t, &effects[lanes.ops[t.counted[lane]].symbol], 1)
            t.counted[lane] += 1


# Takes all counts back.
cdef inline void count_back(Takes* t, const Lanes* lanes, const Effect* effects,
                            const int32_t* at) noexcept nogil:
    cdef int32_t lane
    if not t.counting:
        return
    t.counting = False
    for lane in range(lanes.n):
        while t.counted[lane] > at[lane]:
            t.counted[lane] -= 1
            count_call(t, &effects[lanes.ops[t.counted[lane]].symbol], -1)


# True when these words of a state can leave, as far as the counts tell.
cdef inline bint can_leave(Takes* t, const int32_t* words, int64_t count, int32_t any_value) noexcept nogil:
    cdef int64_t i = 0
    cdef int64_t short_of = 0
    for i in range(count):
        t.demand[words[i]] += 1
        if t.demand[words[i]] > t.taken[words[i]]:
            short_of += 1
            if short_of > any_value:
                break
    count = min(count, i + 1)
    for i in range(count):
        t.demand[words[i]] = 0
    return short_of <= any_value


# True when the counter can have the sum that the call at ``place`` needs.
cdef inline bint can_reach(const Lanes* lanes, const Effect* effects, const int32_t* at, int32_t place,
                           int64_t sum) noexcept nogil:
    cdef const Op* read = &lanes.ops[place]
    cdef int64_t low = sum
    cdef int64_t high = sum
    cdef int64_t adds
    cdef int32_t lane, other
    for lane in range(lanes.n):
        other = at[lane]
        while lanes.ops[other].symbol >= 0 and lanes.ops[other].invoked <= read.returned:
            adds = effects[lanes.ops[other].symbol].adds
            if other != place:
                if lanes.ops[other].returned < read.invoked:
                    low += adds
                    high += adds
                elif adds < 0:
                    low += adds
                else:
                    high += adds
            other += 1
    sum = effects[read.symbol].sum
    return low <= sum <= high
