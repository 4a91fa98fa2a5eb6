# Search for queues: the order of the puts and the order of the takes, a pair at a time.
#
# The k-th value to leave a queue is the k-th to be put. So a legal order of a queue is a sequence
# of pairs, a put and the take of its value, in which
#
#   1. no put stands behind one that was invoked after it returned, and no take likewise;
#   2. no take returned before a put was invoked that stands before it, or in its own pair;
#   3. a take that found nothing stands between two pairs, at a moment at which all calls before it
#      had been invoked, and none of those behind it had returned.
#
# Then each call has a moment: the earliest after the calls that must precede it (see
# pairs_place). A configuration is the progress in the lanes of the puts and in those of the takes;
# the values in the queue are no part of it, so that there are at most as many configurations as
# ways to overlap, whatever was put. Puts without a take come last.
#
# Of two puts of one value that are possible, the one that returns first comes first, as in each
# legal order they can change places; takes of one value likewise. So a choice is a choice of a
# value.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.cells._parts cimport Placed
from pulsar_ml.harness.linearize.deadline cimport Deadline, is_over
from pulsar_ml.harness.linearize.limits.arrays cimport array_free, array_grown
from pulsar_ml.harness.linearize.objects.lane_progress cimport (
    NO_LANE, LaneProgress, first_return_of, has_sooner, op_of, progress_free, progress_start, put_with,
    step_lane,
)
from pulsar_ml.harness.linearize.objects.takes cimport ANYTHING, NOTHING, Effect
from pulsar_ml.harness.linearize.search.depth cimport (
    ANSWER_ILLEGAL, ANSWER_LEGAL, OUT_OF_MEMORY, OUT_OF_STEPS, OUT_OF_TIME,
)
from pulsar_ml.harness.linearize.search.lanes cimport REAL_TIME, Lanes, Op, lanes_build, lanes_free
from pulsar_ml.harness.linearize.search.pool cimport Pool, mixed, pool_add, pool_shape
from pulsar_ml.harness.linearize.search.table cimport Table


cdef struct Pair:
    int64_t last_put      # the latest invocation of the puts before it, and of the takes
    int64_t last_take
    int32_t put           # a lane, or NO_LANE for a take that found nothing
    int32_t take          # a lane
    int32_t choice


cdef struct Choice:
    int64_t returned      # the sum of the returns of both calls
    int32_t put
    int32_t take
    int32_t value


cdef struct Pairs:
    Lanes puts
    Lanes takes
    int32_t* chosen       # scratch: the calls of the puts, then those of the takes
    int32_t chosen_room
    LaneProgress way      # in the lanes of the puts, then in those of the takes
    Choice* choices       # of the present configuration
    int32_t choices_room
    int32_t n_choices
    Pair* pairs
    int64_t depth, room
    int64_t last_put, last_take
    int32_t left          # the number of missing takes that returned
    int64_t spent
    Deadline deadline


cdef inline void pairs_free(Pairs* p) noexcept nogil:
    lanes_free(&p.puts)
    lanes_free(&p.takes)
    free(p.chosen)
    progress_free(&p.way)
    free(p.choices)
    array_free(p.pairs, p.room * <int64_t>sizeof(Pair))
    memset(p, 0, sizeof(Pairs))


cdef inline bint pairs_reserve(Pairs* p) noexcept nogil:
    cdef int32_t n = p.puts.n + p.takes.n
    if not progress_start(&p.way, n):
        return False
    if n > p.choices_room or p.choices is NULL:
        free(p.choices)
        p.choices = <Choice*>malloc((<size_t>n + 8) * sizeof(Choice))
        p.choices_room = n + 8 if p.choices is not NULL else 0
    return p.choices is not NULL


# Prepares a search for an order of these calls; False without memory.
cdef inline bint pairs_start(Pairs* p, Pool* seen, const Table* table, const Effect* effects,
                             const Record* records, const int32_t* chosen, const int32_t* symbols,
                             int32_t n, int64_t limit) noexcept nogil:
    cdef int32_t* more
    cdef const Effect* effect
    cdef int32_t puts = 0
    cdef int32_t takes = 0
    cdef int32_t i, lane
    if n > p.chosen_room or p.chosen is NULL:
        more = <int32_t*>realloc(p.chosen, 2 * (<size_t>n + 8) * sizeof(int32_t))
        if more is NULL:
            return False
        p.chosen = more
        p.chosen_room = n + 8
    for i in range(n):
        effect = &effects[symbols[chosen[i]]]
        if effect.puts >= 0:
            p.chosen[puts] = chosen[i]
            puts += 1
        # A call that found nothing, but may be left out, has no effect.
        elif effect.takes != NOTHING or records[chosen[i]].returned != INT64_MAX:
            p.chosen[n + takes] = chosen[i]
            takes += 1
    if not lanes_build(&p.puts, table, records, p.chosen, symbols, puts, REAL_TIME, False):
        return False
    if not lanes_build(&p.takes, table, records, p.chosen + n, symbols, takes, REAL_TIME, False):
        return False
    if not pairs_reserve(p):
        return False
    for lane in range(p.puts.n):
        p.way.at[lane] = p.puts.start[lane]
    for lane in range(p.takes.n):
        p.way.at[p.puts.n + lane] = p.takes.start[lane]
    pool_shape(seen, (<size_t>p.puts.n + <size_t>p.takes.n) * sizeof(uint32_t), 8, limit)
    p.depth = p.spent = 0
    p.last_put = p.last_take = INT64_MIN
    p.left = p.takes.required
    return True


# The next call of each lane of the takes.
cdef inline const int32_t* takes_at(const Pairs* p) noexcept nogil:
    return p.way.at + p.puts.n


cdef inline const Op* put_of(const Pairs* p, int32_t lane) noexcept nogil:
    return op_of(&p.puts, p.way.at, lane)


cdef inline const Op* take_of(const Pairs* p, int32_t lane) noexcept nogil:
    return op_of(&p.takes, takes_at(p), lane)


# The lane of a take that found nothing and may do so now, or NO_LANE. It is taken at once: behind
# it stand the calls that would stand behind it later.
cdef inline int32_t empty_now(const Pairs* p, const Effect* effects, int64_t first) noexcept nogil:
    cdef int64_t last = max(p.last_put, p.last_take)
    cdef int32_t lane
    cdef const Op* op
    if last > first:
        return NO_LANE
    for lane in range(p.takes.n):
        op = take_of(p, lane)
        if op.invoked <= first and op.symbol >= 0 and effects[op.symbol].takes == NOTHING:
            return lane
    return NO_LANE


cdef inline bint is_chosen(const Pairs* p, int32_t value) noexcept nogil:
    cdef int32_t i
    for i in range(p.n_choices):
        if p.choices[i].value == value:
            return True
    return False


# Adds a choice in the order of the returns.
cdef inline void add_choice(Pairs* p, int32_t put, int32_t take, int32_t value) noexcept nogil:
    cdef int64_t most = INT64_MAX // 2
    cdef int64_t returned = (min(put_of(p, put).returned, most)
                             + min(take_of(p, take).returned, most))
    cdef int32_t i = p.n_choices
    p.n_choices += 1
    while i > 0 and p.choices[i - 1].returned > returned:
        p.choices[i] = p.choices[i - 1]
        i -= 1
    p.choices[i].returned = returned
    p.choices[i].put = put
    p.choices[i].take = take
    p.choices[i].value = value


# Finds the pairs that may be next: one for each value.
cdef inline void find_choices(Pairs* p, const Effect* effects, int64_t first_put,
                              int64_t first_take) noexcept nogil:
    cdef int64_t until = min(first_put, first_take)
    cdef int32_t lane, put, value
    cdef int32_t open_ = NO_LANE
    cdef const Op* op
    p.n_choices = 0
    for lane in range(p.takes.n):
        op = take_of(p, lane)
        if op.invoked > first_take or op.symbol < 0:
            continue
        value = effects[op.symbol].takes
        if value == ANYTHING:
            open_ = lane
            continue
        if value < 0:
            continue
        if has_sooner(&p.takes, takes_at(p), lane, first_take):
            continue
        put = put_with(&p.puts, p.way.at, effects, value, until)
        if put != NO_LANE and not is_chosen(p, value):
            add_choice(p, put, lane, value)
    if open_ == NO_LANE:
        return
    # An open call takes what no other call can take now.
    for lane in range(p.puts.n):
        op = put_of(p, lane)
        if op.invoked <= until and op.symbol >= 0 and not is_chosen(p, effects[op.symbol].puts):
            value = effects[op.symbol].puts
            add_choice(p, put_with(&p.puts, p.way.at, effects, value, until), open_, value)


cdef inline bint pairs_room(Pairs* p) noexcept nogil:
    cdef void* grown
    if p.depth < p.room:
        return True
    grown = array_grown(p.pairs, &p.room, p.depth, sizeof(Pair))
    if grown is NULL:
        return False
    p.pairs = <Pair*>grown
    return True


# Appends a pair, or a take that found nothing, and moves its lanes on.
cdef inline void append(Pairs* p, int32_t put, int32_t take, int32_t choice) noexcept nogil:
    cdef Pair* pair = &p.pairs[p.depth]
    pair.last_put = p.last_put
    pair.last_take = p.last_take
    pair.put = put
    pair.take = take
    pair.choice = choice
    if put != NO_LANE:
        p.last_put = max(p.last_put, put_of(p, put).invoked)
        step_lane(&p.way, put, 1)
    p.last_take = max(p.last_take, take_of(p, take).invoked)
    p.left -= take_of(p, take).returned != INT64_MAX
    step_lane(&p.way, p.puts.n + take, 1)
    p.depth += 1


cdef inline void take_back(Pairs* p) noexcept nogil:
    cdef const Pair* pair
    p.depth -= 1
    pair = &p.pairs[p.depth]
    if pair.put != NO_LANE:
        step_lane(&p.way, pair.put, -1)
    step_lane(&p.way, p.puts.n + pair.take, -1)
    p.left += take_of(p, pair.take).returned != INT64_MAX
    p.last_put = pair.last_put
    p.last_take = pair.last_take


cdef inline int pairs_run(Pairs* p, Pool* seen, const Effect* effects, int64_t most_steps) noexcept nogil:
    cdef int64_t first_put, first_take
    cdef int32_t lane
    cdef int32_t choice = 0
    cdef bint entered
    while True:
        if is_over(&p.deadline):
            return OUT_OF_TIME
        if p.left == 0:
            return ANSWER_LEGAL
        if p.spent > most_steps:
            return OUT_OF_STEPS
        if not pairs_room(p):
            return OUT_OF_MEMORY
        p.spent += 1
        first_put = first_return_of(&p.puts, p.way.at)
        first_take = first_return_of(&p.takes, takes_at(p))
        if choice == 0:
            lane = empty_now(p, effects, min(first_put, first_take))
            if lane != NO_LANE:
                append(p, NO_LANE, lane, 0)
                continue
        find_choices(p, effects, first_put, first_take)
        while choice < p.n_choices:
            append(p, p.choices[choice].put, p.choices[choice].take, choice)
            if pool_add(seen, p.way.key, mixed(p.way.hash), &entered) < 0:
                return OUT_OF_MEMORY
            if entered:
                break
            take_back(p)
            choice += 1
        if choice < p.n_choices:
            choice = 0
            continue
        # The last pair with another choice.
        while True:
            if p.depth == 0:
                return ANSWER_ILLEGAL
            take_back(p)
            if p.pairs[p.depth].put != NO_LANE:
                choice = p.pairs[p.depth].choice + 1
                break


cdef inline int by_moment(const void* a, const void* b) noexcept nogil:
    cdef const Placed* one = <const Placed*>a
    cdef const Placed* other = <const Placed*>b
    if one.time != other.time:
        return -1 if one.time < other.time else 1
    return -1 if one.sequence < other.sequence else 1


# Adds a call behind those that were placed before.
cdef inline void place_call(Placed* places, int32_t* end, int64_t time, int32_t index) noexcept nogil:
    places[end[0]].time = time
    places[end[0]].sequence = end[0]
    places[end[0]].index = index
    end[0] += 1


# Places the calls of the order that was found behind those that were placed before, each at its
# earliest moment. Returns the number of placed calls.
cdef inline int32_t pairs_place(Pairs* p, Placed* places, int32_t placed) noexcept nogil:
    cdef int64_t put_time = INT64_MIN
    cdef int64_t take_time = INT64_MIN
    cdef int64_t depth = p.depth
    cdef int32_t end = placed
    cdef int32_t lane, at
    cdef Pair pair
    cdef const Op* op
    while p.depth:
        take_back(p)
    while p.depth < depth:
        pair = p.pairs[p.depth]
        if pair.put != NO_LANE:
            op = put_of(p, pair.put)
            put_time = max(put_time, op.invoked)
            place_call(places, &end, put_time, op.index)
        op = take_of(p, pair.take)
        take_time = max(max(take_time, put_time), op.invoked)
        if pair.put == NO_LANE:
            put_time = take_time
        place_call(places, &end, take_time, op.index)
        append(p, pair.put, pair.take, pair.choice)
    # The puts without a take, by their invocations.
    for lane in range(p.puts.n):
        at = p.way.at[lane]
        while p.puts.ops[at].symbol >= 0:
            op = &p.puts.ops[at]
            if op.returned != INT64_MAX:
                place_call(places, &end, max(put_time, op.invoked), op.index)
            at += 1
    qsort(places + placed, <size_t>(end - placed), sizeof(Placed), &by_moment)
    for at in range(placed, end):
        places[at].sequence = at
    return end
