# Looking ahead from a state of an object; see takes.pxd.

from libc.stdint cimport int32_t, int64_t
from pulsar_ml.harness.linearize.objects.sequences cimport Sequence, Sequences
from pulsar_ml.harness.linearize.objects.takes cimport (
    AHEAD_BY_PRIORITY, MOST_AHEAD, NOTHING, Effect, Takes, can_leave, can_reach, count_back,
    count_calls, first_taking,
)
from pulsar_ml.harness.linearize.search.depth cimport Depth, first_return
from pulsar_ml.harness.linearize.search.pool cimport Pool, pool_at


cdef enum Kind:
    QUEUE, STACK, PRIORITIES, SET, MULTISET, MAP, COUNTER, LOCK, REGISTER


# The part of an Objects that the search calls without the object.
cdef struct Hints:
    Kind kind
    Takes takes
    Sequences sequences
    Pool sums             # the sums of a counter, by state
    Effect* effects       # by symbol
    Depth* depth


cdef inline bint can_go_on(Hints* hints, int32_t state) noexcept nogil:
    cdef Depth* d = hints.depth
    cdef Takes* t = &hints.takes
    cdef const Sequence* held
    cdef const int32_t* words
    cdef int64_t sum = 0
    cdef int64_t length = 0
    cdef int64_t begin, end
    cdef int32_t i, value
    cdef int32_t seen = 0
    cdef int64_t until
    cdef bint found
    if hints.kind == COUNTER:
        sum = (<const int64_t*>pool_at(&hints.sums, state))[0]
        words = NULL
    else:
        held = &hints.sequences.all[state]
        words = hints.sequences.words + held.offset
        length = held.length
    for i in range(first_taking(t, first_return(d)), t.n):
        if t.takings[i].place < d.at[t.takings[i].lane]:
            continue
        seen += 1
        if seen > (AHEAD_BY_PRIORITY if hints.kind == PRIORITIES else MOST_AHEAD):
            return True
        if hints.kind == COUNTER:
            if not can_reach(&d.lanes, hints.effects, d.at, t.takings[i].place, sum):
                return False
            continue
        value = hints.effects[d.lanes.ops[t.takings[i].place].symbol].takes
        # It can be taken, or find nothing, at once.
        if value == NOTHING and length == 0:
            continue
        if value >= 0 and length and words[length - 1 if hints.kind == STACK else 0] == value:
            continue
        until = t.takings[i].returned
        count_calls(t, &d.lanes, hints.effects, d.at, until)
        # The words from begin to end must leave.
        begin = 0
        end = length
        found = value == NOTHING
        if value != NOTHING:
            found = t.put[value] > 0
            if hints.kind == STACK:
                if found:
                    end = 0
                else:
                    begin = length
                    while begin > 0 and words[begin - 1] != value:
                        begin -= 1
                    found = begin > 0
            elif hints.kind == QUEUE:
                end = 0
                while end < length and words[end] != value:
                    end += 1
                found = found or end < length
            else:
                end = 0
                while end < length and words[end] < value:
                    end += 1
                found = found or (end < length and words[end] == value)
        if found:
            found = can_leave(t, words + begin, end - begin, t.any_value)
        if not found:
            return False
    return True


# Tells whether the missing calls can still get their results from the state.
cdef inline bint hopeful(void* context, int32_t state) noexcept nogil:
    cdef Hints* hints = <Hints*>context
    cdef bint found = can_go_on(hints, state)
    count_back(&hints.takes, &hints.depth.lanes, hints.effects, hints.depth.at)
    return found
