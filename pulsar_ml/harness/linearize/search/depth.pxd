# Depth-first search through the linearizations of some lanes; no configuration is visited twice.
#
# A configuration is the progress in each lane and the state, or the states of independent parts.
# The next call may be the first call of a lane that was invoked before any missing call returned. A
# legal pure call is taken at once: moving it forward to here from any later moment affects no other
# call.
#
# Of two calls that the model cannot tell apart, the one that returns first comes first: when both
# are possible, they are interchangeable.
#
# The search stops at a transition that the table lacks, and continues when the caller has entered
# it. Up to a number of steps it may be restricted to known transitions; a legal order found that
# way is legal.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from pulsar_ml.harness.linearize.limits.arrays cimport array_free, array_grown
from pulsar_ml.harness.linearize.search.ahead cimport (
    Ahead, CLOSED, Outlook, UNCLEAR, ahead_back, ahead_free, ahead_start, look, state_is_irrelevant,
)
from pulsar_ml.harness.linearize.deadline cimport Deadline, is_over
from pulsar_ml.harness.linearize.search.lanes cimport Lanes, Op, lanes_free
from pulsar_ml.harness.linearize.search.pool cimport Pool, mixed, pool_add, pool_free, pool_shape
from pulsar_ml.harness.linearize.search.table cimport (
    FAR, ILLEGAL, Table, UNKNOWN_ANSWER, n_next, next_state, step_of, transition_soon,
)


cdef enum Answer:
    ANSWER_LEGAL = 0
    ANSWER_ILLEGAL = 1
    OUT_OF_STEPS = 2
    OUT_OF_MEMORY = 3
    OUT_OF_TIME = 4
    MISSING_ANSWER = 5    # the table lacks the transition of (missing_state, missing_symbol)


# Tells whether the missing calls can still get their answers after the last step, which led to
# ``state``; see takes.pxd.
ctypedef bint (*Hopeful)(void* context, int32_t state) noexcept nogil


cdef struct Step:
    int32_t lane
    int32_t before        # the state before the step
    int32_t choice        # the next one of several successor states
    int32_t forced


cdef struct Depth:
    Lanes lanes
    Ahead ahead
    int32_t start         # the initial state of every part
    int32_t irrelevant_state  # represents all states that no call observes; -1: they differ
    Pool seen
    int64_t* invoked      # of the next call of each lane
    int64_t* returned
    int64_t* moment
    int32_t* symbol
    int32_t* at           # the next call of each lane, as an index in lanes.ops
    uint64_t* factor      # by lane
    uint32_t* key         # the progress in each lane, then the states of the parts
    int32_t lanes_room
    int32_t n_parts
    bint real_time
    Step* steps
    int64_t depth
    int64_t steps_room
    int32_t* best         # the longest way, as indices in lanes.ops
    int64_t best_depth
    int64_t best_common   # the number of first steps that it shares with the present way
    int64_t best_returned # the first return among the calls missing in it
    int64_t best_room
    int32_t left          # the number of missing required calls
    uint64_t hash
    int32_t lane          # the lane that is being tried; -1: none yet
    int32_t choice
    bint trying
    int64_t spent
    int64_t most_steps
    Deadline deadline
    int32_t missing_state
    int32_t missing_symbol
    int64_t ask_from      # before so many steps, unknown transitions are not tried
    Hopeful hopeful       # NULL: every state is tried
    void* context         # its first argument
    int64_t unknown_at    # steps at the first transition not tried as unknown; -1: none


cdef inline void depth_free(Depth* d) noexcept nogil:
    lanes_free(&d.lanes)
    ahead_free(&d.ahead)
    pool_free(&d.seen)
    free(d.invoked)
    free(d.returned)
    free(d.moment)
    free(d.symbol)
    free(d.at)
    free(d.factor)
    free(d.key)
    array_free(d.steps, d.steps_room * <int64_t>sizeof(Step))
    array_free(d.best, d.best_room * <int64_t>sizeof(int32_t))
    memset(d, 0, sizeof(Depth))


cdef inline bint depth_reserve(Depth* d) noexcept nogil:
    cdef int32_t n = d.lanes.n + d.n_parts
    cdef int32_t i
    if n > d.lanes_room or d.key is NULL:
        n += 8
        free(d.invoked)
        free(d.returned)
        free(d.moment)
        free(d.symbol)
        free(d.at)
        free(d.factor)
        free(d.key)
        d.invoked = <int64_t*>malloc(<size_t>n * sizeof(int64_t))
        d.returned = <int64_t*>malloc(<size_t>n * sizeof(int64_t))
        d.moment = <int64_t*>malloc(<size_t>n * sizeof(int64_t))
        d.symbol = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
        d.at = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
        d.factor = <uint64_t*>malloc(<size_t>n * sizeof(uint64_t))
        d.key = <uint32_t*>malloc(<size_t>n * sizeof(uint32_t))
        d.lanes_room = n
        if (d.invoked is NULL or d.returned is NULL or d.moment is NULL or d.symbol is NULL
                or d.at is NULL or d.factor is NULL or d.key is NULL):
            d.lanes_room = 0
            return False
        for i in range(n):
            d.factor[i] = mixed(<uint64_t>(i + 1) * 0x9E3779B97F4A7C15ULL) | 1
    return True


cdef inline bint steps_reserve(Depth* d) noexcept nogil:
    cdef void* grown
    if d.depth < d.steps_room and d.depth < d.best_room:
        return True
    grown = array_grown(d.best, &d.best_room, d.depth, sizeof(int32_t))
    if grown is NULL:
        return False
    d.best = <int32_t*>grown
    grown = array_grown(d.steps, &d.steps_room, d.depth, sizeof(Step))
    if grown is NULL:
        return False
    d.steps = <Step*>grown
    return True


# Starts a search with every part in ``state``; the lanes are built. False without memory.
cdef inline bint depth_start(Depth* d, const Table* table, int32_t state, int32_t n_parts, int64_t most_steps,
                             int64_t limit, int64_t ask_from) noexcept nogil:
    cdef int32_t lane, part
    cdef const Op* op
    d.n_parts = n_parts
    d.start = state
    d.irrelevant_state = -1
    ahead_start(&d.ahead, &d.lanes, table, n_parts)
    if not depth_reserve(d):
        return False
    for lane in range(d.lanes.n):
        d.at[lane] = d.lanes.start[lane]
        op = &d.lanes.ops[d.at[lane]]
        d.invoked[lane] = op.invoked
        d.returned[lane] = op.returned
        d.moment[lane] = op.moment
        d.symbol[lane] = op.symbol
        d.key[lane] = 0
    for part in range(n_parts):
        d.key[d.lanes.n + part] = <uint32_t>state
    pool_shape(&d.seen, (<size_t>d.lanes.n + <size_t>n_parts) * sizeof(uint32_t), 8, limit)
    d.depth = d.best_depth = d.best_common = 0
    d.best_returned = INT64_MIN
    d.left = d.lanes.required
    d.hash = 0
    d.trying = False
    d.spent = 0
    d.most_steps = most_steps
    d.ask_from = ask_from
    d.unknown_at = -1
    d.hopeful = NULL
    return steps_reserve(d)


cdef inline void move(Depth* d, const Table* table, int32_t lane, int32_t by) noexcept nogil:
    cdef const Op* op
    if by < 0:
        d.at[lane] -= 1
    op = &d.lanes.ops[d.at[lane]]
    if by < 0 and d.ahead.on:
        ahead_back(&d.ahead, d.at[lane], table.part[op.symbol] if d.n_parts > 1 else 0)
    if op.returned != INT64_MAX:
        d.left -= by
    if by > 0:
        d.at[lane] += 1
        op += 1
    d.invoked[lane] = op.invoked
    d.returned[lane] = op.returned
    d.moment[lane] = op.moment
    d.symbol[lane] = op.symbol
    d.key[lane] += <uint32_t>by
    d.hash += <uint64_t>(<int64_t>by) * d.factor[lane]


# Appends a step to the way; keeps the way if it is the longest.
cdef inline void remember(Depth* d, int64_t returned) noexcept nogil:
    cdef int64_t i
    cdef int32_t lane
    if returned < d.best_returned or (returned == d.best_returned and d.depth <= d.best_depth):
        return
    # From the end, where the lanes stand now.
    for i in range(d.depth - 1, d.best_common - 1, -1):
        lane = d.steps[i].lane
        d.at[lane] -= 1
        d.best[i] = d.at[lane]
    for i in range(d.best_common, d.depth):
        d.at[d.steps[i].lane] += 1
    d.best_depth = d.best_common = d.depth
    d.best_returned = returned


cdef inline void push(Depth* d, int32_t lane, int32_t before, int32_t choice, bint forced) noexcept nogil:
    cdef Step* step = &d.steps[d.depth]
    step.lane = lane
    step.before = before
    step.choice = choice
    step.forced = forced
    d.depth += 1
    d.spent += 1
    d.trying = False


cdef inline int64_t first_return(const Depth* d) noexcept nogil:
    cdef int64_t first = INT64_MAX
    cdef int32_t lane
    for lane in range(d.lanes.n):
        if d.returned[lane] < first:
            first = d.returned[lane]
    return first


# True when the first lane is to be tried before the second one: by part, return and number.
cdef inline bint sooner(const Depth* d, const Table* table, int32_t part, int32_t a,
                        int32_t b) noexcept nogil:
    cdef bint other_a, other_b
    if part >= 0:
        other_a = table.part[d.symbol[a]] != part
        other_b = table.part[d.symbol[b]] != part
        if other_a != other_b:
            return other_b
    if d.moment[a] != d.moment[b]:
        return d.moment[a] < d.moment[b]
    return a < b


# True when another possible call is equivalent and returns sooner. Needs intervals.
cdef inline bint has_twin(const Depth* d, int32_t lane, int64_t first) noexcept nogil:
    cdef int32_t other
    for other in range(d.lanes.n):
        if (d.symbol[other] == d.symbol[lane] and d.invoked[other] <= first and other != lane
                and (d.returned[other] < d.returned[lane]
                     or (d.returned[other] == d.returned[lane] and other < lane))):
            return True
    return False


# The next lane to try, or -1. The first return comes first, but calls about the same part of the
# state as the next call to return come before it.
cdef inline int32_t next_lane(const Depth* d, const Table* table, int64_t first) noexcept nogil:
    cdef int32_t lane
    cdef int32_t found = -1
    cdef int32_t part = -1
    cdef int32_t last = d.lane
    if d.n_parts > 1:
        for lane in range(d.lanes.n):
            if d.returned[lane] == first and d.symbol[lane] >= 0:
                part = table.part[d.symbol[lane]]
                break
    while True:
        found = -1
        for lane in range(d.lanes.n):
            if d.invoked[lane] > first or d.symbol[lane] < 0 or table.pure[d.symbol[lane]]:
                continue
            if last >= 0 and not sooner(d, table, part, last, lane):
                continue
            if found < 0 or sooner(d, table, part, lane, found):
                found = lane
        if found < 0 or not (d.real_time and has_twin(d, found, first)):
            return found
        last = found


cdef inline int32_t next_lane_from_start(Depth* d, const Table* table, int64_t first) noexcept nogil:
    d.lane = -1
    return next_lane(d, table, first)


# The index in the key of the state that a symbol is about.
cdef inline uint32_t* state_of(Depth* d, const Table* table, int32_t symbol) noexcept nogil:
    return &d.key[d.lanes.n + (table.part[symbol] if d.n_parts > 1 else 0)]


cdef inline int ask(Depth* d, int32_t symbol, uint32_t state) noexcept nogil:
    d.missing_state = <int32_t>state
    d.missing_symbol = symbol
    return MISSING_ANSWER


# Replaces a state in the key and updates the hash.
cdef inline void put_state(Depth* d, uint32_t* at, uint32_t state) noexcept nogil:
    d.hash += (<uint64_t>state - <uint64_t>at[0]) * d.factor[at - d.key]
    at[0] = state


# Continues until there is an answer or a missing transition.
cdef inline int depth_run(Depth* d, const Table* table) noexcept nogil:
    cdef int64_t first
    cdef int32_t lane, value, symbol
    cdef int32_t after
    cdef Outlook view
    cdef uint32_t before
    cdef uint32_t* state
    cdef bint entered
    while True:
        if is_over(&d.deadline):
            return OUT_OF_TIME
        first = first_return(d)
        if not d.trying:
            if d.left == 0:
                return ANSWER_LEGAL
            if d.spent > d.most_steps:
                return OUT_OF_STEPS
            if not steps_reserve(d):
                return OUT_OF_MEMORY
            remember(d, first)
            if table.mask > FAR:
                for lane in range(d.lanes.n):
                    symbol = d.symbol[lane]
                    if d.invoked[lane] <= first and symbol >= 0:
                        transition_soon(table, <int32_t>state_of(d, table, symbol)[0], symbol)
            for lane in range(d.lanes.n):
                symbol = d.symbol[lane]
                if d.invoked[lane] <= first and symbol >= 0 and table.pure[symbol]:
                    state = state_of(d, table, symbol)
                    value = step_of(table, <int32_t>state[0], symbol)
                    if value == UNKNOWN_ANSWER:
                        if d.depth >= d.ask_from:
                            return ask(d, symbol, state[0])
                        d.unknown_at = max(d.unknown_at, d.depth)
                    elif value != ILLEGAL:
                        push(d, lane, <int32_t>state[0], 0, True)
                        move(d, table, lane, 1)
                        break
            else:
                d.lane = next_lane_from_start(d, table, first)
                d.choice = 0
                d.trying = True
            continue
        if d.lane >= 0:
            lane = d.lane
            symbol = d.symbol[lane]
            state = state_of(d, table, symbol)
            value = step_of(table, <int32_t>state[0], symbol)
            if value == UNKNOWN_ANSWER:
                if d.depth >= d.ask_from:
                    return ask(d, symbol, state[0])
                d.unknown_at = max(d.unknown_at, d.depth)
            if d.choice >= n_next(table, value):
                d.lane = next_lane(d, table, first)
                d.choice = 0
                continue
            before = state[0]
            after = next_state(table, value, d.choice)
            if d.ahead.on:
                view = look(&d.ahead, &d.lanes, table, d.at, table.part[symbol] if d.n_parts > 1 else 0,
                            after, d.start, d.at[lane])
                if view == UNCLEAR:
                    return ask(d, d.ahead.missing_symbol, <uint32_t>d.ahead.missing_state)
                if view == CLOSED:
                    d.choice += 1
                    d.spent += 1
                    if d.spent > d.most_steps:
                        return OUT_OF_STEPS
                    continue
                if d.irrelevant_state >= 0 and after != d.irrelevant_state:
                    view = state_is_irrelevant(&d.ahead, &d.lanes, table, d.at,
                                               table.part[symbol] if d.n_parts > 1 else 0, after)
                    if view == UNCLEAR:
                        return ask(d, d.ahead.missing_symbol, <uint32_t>d.ahead.missing_state)
                    if view == CLOSED:
                        after = d.irrelevant_state
            put_state(d, state, <uint32_t>after)
            d.choice += 1
            move(d, table, lane, 1)
            if d.hopeful is not NULL and not d.hopeful(d.context, after):
                move(d, table, lane, -1)
                put_state(d, state, before)
                d.spent += 1
                if d.spent > d.most_steps:
                    return OUT_OF_STEPS
                continue
            if pool_add(&d.seen, d.key, mixed(d.hash), &entered) < 0:
                return OUT_OF_MEMORY
            if entered:
                push(d, lane, <int32_t>before, d.choice, False)
                continue
            move(d, table, lane, -1)
            put_state(d, state, before)
            d.spent += 1
            if d.spent > d.most_steps:
                return OUT_OF_STEPS
            continue
        # No lane is left to try here.
        while True:
            if d.depth == 0:
                return ANSWER_ILLEGAL
            d.depth -= 1
            if d.depth < d.best_common:
                d.best_common = d.depth
            lane = d.steps[d.depth].lane
            move(d, table, lane, -1)
            symbol = d.symbol[lane]
            put_state(d, state_of(d, table, symbol), <uint32_t>d.steps[d.depth].before)
            if not d.steps[d.depth].forced:
                d.lane = lane
                d.choice = d.steps[d.depth].choice
                break
