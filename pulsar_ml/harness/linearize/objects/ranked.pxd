# Search for priority queues: puts as late as possible.
#
# In each legal order a put can change places with the call behind it, unless that call was invoked
# after the put returned, or takes its value, and there is no other such value. So a put is placed
# only when it is the first to return, or together with the call that takes its value at once. Puts
# without a take come last.
#
# A configuration is the progress in the lanes, and the values that open calls took: the values in
# the queue follow from both.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.cells._parts cimport Placed
from pulsar_ml.harness.linearize.deadline cimport Deadline, is_over
from pulsar_ml.harness.linearize.limits.arrays cimport array_free, array_grown
from pulsar_ml.harness.linearize.objects.pairs cimport by_moment
from pulsar_ml.harness.linearize.objects.lane_progress cimport (
    NO_LANE, LaneProgress, first_return_of, has_sooner, op_of, progress_free, progress_start, put_with,
    set_word, step_lane,
)
from pulsar_ml.harness.linearize.objects.takes cimport ANYTHING, NOTHING, Effect
from pulsar_ml.harness.linearize.search.depth cimport (
    ANSWER_ILLEGAL, ANSWER_LEGAL, OUT_OF_MEMORY, OUT_OF_STEPS, OUT_OF_TIME,
)
from pulsar_ml.harness.linearize.search.lanes cimport Lanes, Op
from pulsar_ml.harness.linearize.search.pool cimport Pool, mixed, pool_add, pool_shape


cdef enum:
    AT_ONCE = -1          # a choice without another one


cdef struct Move:
    int32_t put           # lanes, or NO_LANE
    int32_t take
    int32_t value         # that it takes or puts; -1: none
    int32_t choice
    int64_t returned      # of the take


cdef struct Ranked:
    Lanes* lanes
    const Effect* effects
    LaneProgress way      # its further words: the values that open calls took, plus 1
    Move* choices         # of the present configuration
    int32_t choices_room
    int32_t n_choices
    int32_t opens         # the number of open calls that may take a value
    int32_t* count        # by value: how often it is there
    uint64_t* there       # by value a bit: it is there
    int32_t n_values
    int32_t values_room
    Move* moves
    int64_t depth, room
    int32_t left          # the number of missing takes that returned
    int64_t spent
    Deadline deadline


cdef inline void ranked_free(Ranked* r) noexcept nogil:
    progress_free(&r.way)
    free(r.choices)
    free(r.count)
    free(r.there)
    array_free(r.moves, r.room * <int64_t>sizeof(Move))
    memset(r, 0, sizeof(Ranked))


cdef inline bint ranked_reserve(Ranked* r) noexcept nogil:
    cdef int32_t n = r.lanes.n + r.opens
    if not progress_start(&r.way, n):
        return False
    if n > r.choices_room or r.choices is NULL:
        free(r.choices)
        r.choices = <Move*>malloc(2 * (<size_t>n + 8) * sizeof(Move))
        r.choices_room = n + 8 if r.choices is not NULL else 0
        if r.choices is NULL:
            return False
    if r.n_values + 64 > r.values_room:
        free(r.count)
        free(r.there)
        r.values_room = r.n_values + 64
        r.count = <int32_t*>malloc(<size_t>r.values_room * sizeof(int32_t))
        r.there = <uint64_t*>malloc((<size_t>r.values_room // 64 + 1) * sizeof(uint64_t))
        if r.count is NULL or r.there is NULL:
            r.values_room = 0
            return False
    return True


# Prepares a search for an order of the calls in the lanes; False without memory.
cdef inline bint ranked_start(Ranked* r, Lanes* lanes, Pool* seen, const Effect* effects, int32_t n_values,
                              int64_t limit) noexcept nogil:
    cdef int32_t lane, place
    cdef const Op* op
    r.lanes = lanes
    r.effects = effects
    r.n_values = n_values
    r.opens = r.left = 0
    for lane in range(lanes.n):
        place = lanes.start[lane]
        while lanes.ops[place].symbol >= 0:
            op = &lanes.ops[place]
            r.opens += effects[op.symbol].takes == ANYTHING
            r.left += effects[op.symbol].puts < 0 and op.returned != INT64_MAX
            place += 1
    if not ranked_reserve(r):
        return False
    for lane in range(lanes.n):
        r.way.at[lane] = lanes.start[lane]
    memset(r.count, 0, <size_t>n_values * sizeof(int32_t))
    memset(r.there, 0, (<size_t>n_values // 64 + 1) * sizeof(uint64_t))
    pool_shape(seen, (<size_t>lanes.n + <size_t>r.opens) * sizeof(uint32_t), 8, limit)
    r.depth = r.spent = 0
    return True


cdef inline const Op* next_of(const Ranked* r, int32_t lane) noexcept nogil:
    return op_of(r.lanes, r.way.at, lane)


cdef inline void add_value(Ranked* r, int32_t value, int32_t by) noexcept nogil:
    r.count[value] += by
    if r.count[value]:
        r.there[value >> 6] |= <uint64_t>1 << (value & 63)
    else:
        r.there[value >> 6] &= ~(<uint64_t>1 << (value & 63))


# Keeps a value that an open call took, in ascending order, or forgets it.
cdef inline void keep_taken(Ranked* r, int32_t value, bint forget) noexcept nogil:
    cdef int32_t end = r.lanes.n + r.opens
    cdef int32_t at = end - 1
    cdef uint32_t word = <uint32_t>value + 1
    if forget:
        while r.way.key[at] != word:
            at -= 1
        while at > r.lanes.n:
            set_word(&r.way, at, r.way.key[at - 1])
            at -= 1
        set_word(&r.way, at, 0)
        return
    at = r.lanes.n
    while at + 1 < end and r.way.key[at + 1] < word:
        set_word(&r.way, at, r.way.key[at + 1])
        at += 1
    set_word(&r.way, at, word)


# The least value that is there; n_values: none.
cdef inline int32_t least(const Ranked* r) noexcept nogil:
    cdef int32_t word, bit
    for word in range(r.n_values // 64 + 1):
        if r.there[word]:
            bit = 0
            while not (r.there[word] >> bit) & 1:
                bit += 1
            return 64 * word + bit
    return r.n_values


# Adds a choice in the order of the returns of the takes.
cdef inline void add_move(Ranked* r, int32_t put, int32_t take, int32_t value,
                          int64_t returned) noexcept nogil:
    cdef int32_t i = r.n_choices
    r.n_choices += 1
    while i > 0 and r.choices[i - 1].returned > returned:
        r.choices[i] = r.choices[i - 1]
        i -= 1
    r.choices[i].put = put
    r.choices[i].take = take
    r.choices[i].value = value
    r.choices[i].returned = returned


# Finds what may come next. Returns the lane of a take that finds nothing, which is taken at once,
# or NO_LANE.
cdef inline int32_t find_moves(Ranked* r) noexcept nogil:
    cdef int64_t first = first_return_of(r.lanes, r.way.at)
    cdef int32_t front = least(r)
    cdef int32_t lane, other, put, value
    cdef int32_t due = NO_LANE
    cdef const Op* op
    cdef const Effect* effect
    r.n_choices = 0
    for lane in range(r.lanes.n):
        op = next_of(r, lane)
        if op.invoked > first or op.symbol < 0:
            continue
        effect = &r.effects[op.symbol]
        if effect.puts >= 0:
            if op.returned == first and first != INT64_MAX and due == NO_LANE:
                due = lane
            continue
        if effect.takes == NOTHING:
            if front == r.n_values:
                return lane
            continue
        if has_sooner(r.lanes, r.way.at, lane, first):
            continue
        if effect.takes == ANYTHING:
            if front < r.n_values:
                add_move(r, NO_LANE, lane, front, op.returned)
            for other in range(r.lanes.n):
                if next_of(r, other).symbol < 0:
                    continue
                value = r.effects[next_of(r, other).symbol].puts
                # A put that need not be there is not put to be taken.
                if (0 <= value < front and put_with(r.lanes, r.way.at, r.effects, value, first) == other
                        and next_of(r, other).returned != INT64_MAX):
                    add_move(r, other, lane, value, op.returned)
        elif effect.takes == front:
            add_move(r, NO_LANE, lane, front, op.returned)
        elif effect.takes < front:
            put = put_with(r.lanes, r.way.at, r.effects, effect.takes, first)
            if put != NO_LANE:
                add_move(r, put, lane, effect.takes, op.returned)
    if due != NO_LANE:
        add_move(r, due, NO_LANE, r.effects[next_of(r, due).symbol].puts, INT64_MAX)
    return NO_LANE


# Makes a move, or takes it back.
cdef inline void make(Ranked* r, const Move* move, int32_t choice) noexcept nogil:
    cdef Move* entry = &r.moves[r.depth]
    entry[0] = move[0]
    entry.choice = choice
    r.depth += 1
    if move.put != NO_LANE:
        step_lane(&r.way, move.put, 1)
        add_value(r, move.value, 1)
    if move.take != NO_LANE:
        r.left -= next_of(r, move.take).returned != INT64_MAX
        if move.value >= 0:
            add_value(r, move.value, -1)
            if r.effects[next_of(r, move.take).symbol].takes == ANYTHING:
                keep_taken(r, move.value, False)
        step_lane(&r.way, move.take, 1)


cdef inline void unmake(Ranked* r) noexcept nogil:
    cdef const Move* move
    r.depth -= 1
    move = &r.moves[r.depth]
    if move.take != NO_LANE:
        step_lane(&r.way, move.take, -1)
        r.left += next_of(r, move.take).returned != INT64_MAX
        if move.value >= 0:
            add_value(r, move.value, 1)
            if r.effects[next_of(r, move.take).symbol].takes == ANYTHING:
                keep_taken(r, move.value, True)
    if move.put != NO_LANE:
        step_lane(&r.way, move.put, -1)
        add_value(r, move.value, -1)


cdef inline bint moves_room(Ranked* r) noexcept nogil:
    cdef void* grown
    if r.depth < r.room:
        return True
    grown = array_grown(r.moves, &r.room, r.depth, sizeof(Move))
    if grown is NULL:
        return False
    r.moves = <Move*>grown
    return True


cdef inline int ranked_run(Ranked* r, Pool* seen, int64_t most_steps) noexcept nogil:
    cdef int32_t lane
    cdef int32_t choice = 0
    cdef Move nothing
    cdef bint entered
    while True:
        if is_over(&r.deadline):
            return OUT_OF_TIME
        if r.left == 0:
            return ANSWER_LEGAL
        if r.spent > most_steps:
            return OUT_OF_STEPS
        if not moves_room(r):
            return OUT_OF_MEMORY
        r.spent += 1
        lane = find_moves(r)
        if lane != NO_LANE:
            nothing.put = NO_LANE
            nothing.take = lane
            nothing.value = -1
            nothing.returned = 0
            make(r, &nothing, AT_ONCE)
            choice = 0
            continue
        while choice < r.n_choices:
            make(r, &r.choices[choice], choice)
            if pool_add(seen, r.way.key, mixed(r.way.hash), &entered) < 0:
                return OUT_OF_MEMORY
            if entered:
                break
            unmake(r)
            choice += 1
        if choice < r.n_choices:
            choice = 0
            continue
        while True:
            if r.depth == 0:
                return ANSWER_ILLEGAL
            unmake(r)
            if r.moves[r.depth].choice != AT_ONCE:
                choice = r.moves[r.depth].choice + 1
                break


# Places the calls of the order that was found behind those that were placed before, and then the
# puts that are left, by their invocations. Returns the number of placed calls.
cdef inline int32_t ranked_place(Ranked* r, const Record* records, Placed* places,
                                 int32_t placed) noexcept nogil:
    cdef int32_t end = placed
    cdef int64_t depth = r.depth
    cdef int64_t now
    cdef int32_t lane, at, i, rest
    cdef Move move
    while r.depth:
        unmake(r)
    while r.depth < depth:
        move = r.moves[r.depth]
        if move.put != NO_LANE:
            places[end].index = next_of(r, move.put).index
            end += 1
        if move.take != NO_LANE:
            places[end].index = next_of(r, move.take).index
            end += 1
        make(r, &move, move.choice)
    rest = end
    for lane in range(r.lanes.n):
        at = r.way.at[lane]
        while r.lanes.ops[at].symbol >= 0:
            if r.lanes.ops[at].returned != INT64_MAX:
                places[end].index = r.lanes.ops[at].index
                end += 1
            at += 1
    now = records[places[placed].index].invoked if end > placed else 0
    for i in range(placed, rest):
        now = max(now, records[places[i].index].invoked)
        places[i].time = now
        places[i].sequence = i
    for i in range(rest, end):
        places[i].time = max(now, records[places[i].index].invoked) if rest > placed else (
            records[places[i].index].invoked
        )
        places[i].sequence = i
    qsort(places + rest, <size_t>(end - rest), sizeof(Placed), &by_moment)
    for i in range(rest, end):
        places[i].sequence = i
    return end
