# Search for stacks: what happens above a value does not depend on the values below it.
#
# A frame is what happens above a push: it begins with the configuration just after the push, and
# knows the pushes that led there, whatever their values. The bottom is a frame without a push. A
# node is a frame and a configuration in which the stack is as high as at its beginning. A push
# leads from a node to the first node of another frame. A pop leads out of its frame, for each push
# of its value that led into it: into the frame of the node where that push was. So what can follow
# a configuration is searched once, whatever lies below, and there are at most as many nodes as
# pairs of configurations.
#
# A push that never returned changes places with whatever comes and goes above it, so it is placed
# directly before the pop of its value, or has no effect.
#
# A node keeps one way to it from the first node of its frame: the node before it, and either a pop
# that found nothing, or a push, the last node of the frame above, and the pop of its value.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.cells._parts cimport Placed
from pulsar_ml.harness.linearize.deadline cimport Deadline, is_over
from pulsar_ml.harness.linearize.limits.arrays cimport array_free, array_grown
from pulsar_ml.harness.linearize.objects.lane_progress cimport (
    LaneProgress, has_sooner, progress_free, progress_start,
)
from pulsar_ml.harness.linearize.objects.takes cimport ANYTHING, NOTHING, Effect
from pulsar_ml.harness.linearize.search.depth cimport (
    ANSWER_ILLEGAL, ANSWER_LEGAL, OUT_OF_MEMORY, OUT_OF_STEPS, OUT_OF_TIME,
)
from pulsar_ml.harness.linearize.search.lanes cimport Lanes, Op
from pulsar_ml.harness.linearize.search.pool cimport Pool, mixed, pool_add, pool_at, pool_free, pool_shape


cdef enum:
    BOTTOM = 0            # the frame without a value
    NONE = -1             # no node, no call, no member of a list


# The first two fields of a node and of a caller are its key, that of a frame, and three of an exit.
cdef struct Node:
    int32_t frame
    int32_t config
    int32_t before        # a node of the same frame
    int32_t pushed        # calls are indices in lanes.ops
    int32_t inner         # the last node of the frame above, from which its value left
    int32_t taken


cdef struct Frame:
    int32_t config
    int32_t caller        # the first node that led here, with its push
    int32_t pushed
    int32_t callers       # lists, the oldest first
    int32_t last_caller
    int32_t exits
    int32_t last_exit


cdef struct Caller:
    int32_t frame
    int32_t node
    int32_t pushed
    int32_t following


cdef struct Exit:
    int32_t frame
    int32_t config        # after the pop
    int32_t value         # that left, or ANYTHING
    int32_t node          # before the pop
    int32_t taken
    int32_t following


cdef struct Nested:
    Lanes* lanes
    Pool* configs
    const Effect* effects
    Pool nodes
    Pool frames
    Pool callers
    Pool exits
    int32_t* waiting      # nodes to be searched, the last one first
    int64_t n_waiting, waiting_room
    LaneProgress way      # of the present configuration
    int32_t* order        # the lanes that are possible
    int32_t lanes_room
    int32_t found         # the node at which all calls have their places
    int64_t spent
    Deadline deadline


cdef inline void nested_free(Nested* s) noexcept nogil:
    pool_free(&s.nodes)
    pool_free(&s.frames)
    pool_free(&s.callers)
    pool_free(&s.exits)
    array_free(s.waiting, s.waiting_room * <int64_t>sizeof(int32_t))
    progress_free(&s.way)
    free(s.order)
    memset(s, 0, sizeof(Nested))


cdef inline bint nested_reserve(Nested* s) noexcept nogil:
    if not progress_start(&s.way, s.lanes.n):
        return False
    if s.lanes.n > s.lanes_room or s.order is NULL:
        free(s.order)
        s.lanes_room = s.lanes.n + 8
        s.order = <int32_t*>malloc(<size_t>s.lanes_room * sizeof(int32_t))
    return s.order is not NULL


cdef inline Node* node_at(const Nested* s, int32_t node) noexcept nogil:
    return <Node*>pool_at(&s.nodes, node)


cdef inline Frame* frame_at(const Nested* s, int32_t frame) noexcept nogil:
    return <Frame*>pool_at(&s.frames, frame)


# The number of the member with this key, or -1 without memory.
cdef inline int32_t pair_add(Pool* pool, int32_t one, int32_t other, bint* entered) noexcept nogil:
    cdef int32_t[2] key
    key[0] = one
    key[1] = other
    return <int32_t>pool_add(
        pool, key,
        mixed((<uint64_t><uint32_t>one << 32 | <uint64_t><uint32_t>other) * 0x9E3779B97F4A7C15ULL), entered
    )


# Enters a node, which then waits; False without memory.
cdef inline bint node_add(Nested* s, int32_t frame, int32_t config, int32_t before, int32_t pushed,
                          int32_t inner, int32_t taken) noexcept nogil:
    cdef void* grown
    cdef bint entered
    cdef Node* node
    cdef int32_t number = pair_add(&s.nodes, frame, config, &entered)
    s.spent += 1
    if number < 0:
        return False
    if not entered:
        return True
    node = node_at(s, number)
    node.before = before
    node.pushed = pushed
    node.inner = inner
    node.taken = taken
    if s.n_waiting == s.waiting_room:
        grown = array_grown(s.waiting, &s.waiting_room, s.n_waiting, sizeof(int32_t))
        if grown is NULL:
            return False
        s.waiting = <int32_t*>grown
    s.waiting[s.n_waiting] = number
    s.n_waiting += 1
    return True


# Enters a frame; -1 without memory.
cdef inline int32_t frame_add(Nested* s, int32_t config, int32_t caller, int32_t pushed,
                              bint* entered) noexcept nogil:
    cdef Frame* frame
    cdef int32_t number = <int32_t>pool_add(
        &s.frames, &config, mixed(<uint64_t>config * 0x9E3779B97F4A7C15ULL), entered
    )
    if number >= 0 and entered[0]:
        frame = frame_at(s, number)
        frame.caller = caller
        frame.pushed = pushed
        frame.callers = frame.last_caller = frame.exits = frame.last_exit = NONE
    return number


# Enters an exit; -1 without memory.
cdef inline int32_t exit_add(Nested* s, int32_t frame, int32_t config, int32_t value,
                             bint* entered) noexcept nogil:
    cdef int32_t[3] key
    cdef uint64_t hash = mixed(<uint64_t><uint32_t>frame << 32 | <uint64_t><uint32_t>config)
    key[0] = frame
    key[1] = config
    key[2] = value
    return <int32_t>pool_add(
        &s.exits, key, mixed((hash + <uint64_t><uint32_t>value) * 0x9E3779B97F4A7C15ULL), entered
    )


# True when a pop of a value, or of any value, can take what the call at ``pushed`` put.
cdef inline bint is_its_value(const Nested* s, int32_t pushed, int32_t value) noexcept nogil:
    return value == ANYTHING or s.effects[s.lanes.ops[pushed].symbol].puts == value


# The configuration after the next call of a lane; -1 without memory.
cdef inline int32_t config_after(Nested* s, uint64_t hash, int32_t lane) noexcept nogil:
    cdef bint entered
    cdef int32_t config
    s.way.key[lane] += 1
    config = <int32_t>pool_add(s.configs, s.way.key, mixed(hash + s.way.factor[lane]), &entered)
    s.way.key[lane] -= 1
    return config


# Prepares a search for an order of the calls in the lanes; False without memory.
cdef inline bint nested_start(Nested* s, Lanes* lanes, Pool* configs, const Effect* effects,
                              int64_t limit) noexcept nogil:
    cdef bint entered
    s.lanes = lanes
    s.configs = configs
    s.effects = effects
    s.n_waiting = s.spent = 0
    s.found = NONE
    if not nested_reserve(s):
        return False
    pool_shape(configs, <size_t>lanes.n * sizeof(uint32_t), 8, limit)
    pool_shape(&s.nodes, 2 * sizeof(int32_t), sizeof(Node), limit)
    pool_shape(&s.frames, sizeof(int32_t), sizeof(Frame) + 4, limit)
    pool_shape(&s.callers, 2 * sizeof(int32_t), sizeof(Caller), limit)
    pool_shape(&s.exits, 3 * sizeof(int32_t), sizeof(Exit), limit)
    if pool_add(configs, s.way.key, mixed(0), &entered) < 0:
        return False
    if frame_add(s, 0, NONE, NONE, &entered) != BOTTOM:
        return False
    return node_add(s, BOTTOM, 0, NONE, NONE, NONE, NONE)


# A push from a node, which leads to ``config``; False without memory.
cdef inline bint go_in(Nested* s, int32_t node, int32_t config, int32_t pushed) noexcept nogil:
    cdef bint entered, is_new
    cdef int32_t caller, at
    cdef int32_t below = node_at(s, node).frame
    cdef int32_t number = frame_add(s, config, node, pushed, &is_new)
    cdef Frame* frame
    cdef Caller* member
    cdef Exit* out
    if number < 0:
        return False
    caller = pair_add(&s.callers, number, node, &entered)
    if caller < 0:
        return False
    member = <Caller*>pool_at(&s.callers, caller)
    member.pushed = pushed
    member.following = NONE
    frame = frame_at(s, number)
    if frame.last_caller == NONE:
        frame.callers = caller
    else:
        (<Caller*>pool_at(&s.callers, frame.last_caller)).following = caller
    frame.last_caller = caller
    if is_new:
        return node_add(s, number, config, NONE, NONE, NONE, NONE)
    at = frame.exits
    while at != NONE:
        out = <Exit*>pool_at(&s.exits, at)
        if is_its_value(s, pushed, out.value):
            if not node_add(s, below, out.config, node, pushed, out.node, out.taken):
                return False
        at = out.following
    return True


# A pop of a value below a node, which leads to ``config``; False without memory.
cdef inline bint go_out(Nested* s, int32_t node, int32_t config, int32_t value,
                        int32_t taken) noexcept nogil:
    cdef bint entered
    cdef int32_t number = node_at(s, node).frame
    cdef int32_t below
    cdef Frame* frame = frame_at(s, number)
    cdef int32_t at = exit_add(s, number, config, value, &entered)
    cdef Exit* out
    cdef Caller* member
    if at < 0:
        return False
    if not entered:
        return True
    out = <Exit*>pool_at(&s.exits, at)
    out.node = node
    out.taken = taken
    out.following = NONE
    if frame.last_exit == NONE:
        frame.exits = at
    else:
        (<Exit*>pool_at(&s.exits, frame.last_exit)).following = at
    frame.last_exit = at
    at = frame.callers
    while at != NONE:
        member = <Caller*>pool_at(&s.callers, at)
        if is_its_value(s, member.pushed, value):
            below = node_at(s, member.node).frame
            if not node_add(s, below, config, member.node, member.pushed, node, taken):
                return False
        at = member.following
    return True


# A push that need not be there, and directly behind it the pop in ``lane``, which takes its value.
# False without memory.
cdef inline bint pass_by(Nested* s, int32_t node, uint64_t hash, int32_t lane, int64_t first) noexcept nogil:
    cdef int32_t value = s.effects[s.lanes.ops[s.way.at[lane]].symbol].takes
    cdef int32_t other, config
    cdef const Op* op
    for other in range(s.lanes.n):
        op = &s.lanes.ops[s.way.at[other]]
        if (op.returned == INT64_MAX and op.invoked <= first and op.symbol >= 0
                and s.effects[op.symbol].puts == value):
            s.way.key[lane] += 1
            config = config_after(s, hash + s.way.factor[lane], other)
            s.way.key[lane] -= 1
            return config >= 0 and node_add(
                s, node_at(s, node).frame, config, node, s.way.at[other], NONE, s.way.at[lane]
            )
    return True


# Leads on from a node: ANSWER_LEGAL if all calls have their places, ANSWER_ILLEGAL if not yet.
cdef inline int lead_on(Nested* s, int32_t node) noexcept nogil:
    cdef const Lanes* lanes = s.lanes
    cdef int32_t frame = node_at(s, node).frame
    cdef int64_t first = INT64_MAX
    cdef uint64_t hash = 0
    cdef int32_t n = 0
    cdef int32_t lane, config, i
    cdef const Op* op
    cdef const Effect* effect
    memcpy(s.way.key, pool_at(s.configs, node_at(s, node).config), <size_t>lanes.n * sizeof(uint32_t))
    for lane in range(lanes.n):
        s.way.at[lane] = lanes.start[lane] + <int32_t>s.way.key[lane]
        hash += s.way.key[lane] * s.way.factor[lane]
        first = min(first, lanes.ops[s.way.at[lane]].returned)
    if first == INT64_MAX:
        s.found = node
        return ANSWER_LEGAL
    for lane in range(lanes.n):
        op = &lanes.ops[s.way.at[lane]]
        if op.invoked > first or op.symbol < 0:
            continue
        effect = &s.effects[op.symbol]
        if effect.takes == NOTHING and frame == BOTTOM:
            # It changes nothing, so it is taken at once.
            config = config_after(s, hash, lane)
            if config < 0 or not node_add(s, BOTTOM, config, node, NONE, NONE, s.way.at[lane]):
                return OUT_OF_MEMORY
            return ANSWER_ILLEGAL
        if effect.takes == NOTHING or (effect.takes == ANYTHING and frame == BOTTOM):
            continue
        if effect.puts >= 0 and op.returned == INT64_MAX:
            continue  # it is placed directly before the pop of its value
        if has_sooner(lanes, s.way.at, lane, first):
            continue
        i = n
        n += 1
        while i > 0 and lanes.ops[s.way.at[s.order[i - 1]]].moment > op.moment:
            s.order[i] = s.order[i - 1]
            i -= 1
        s.order[i] = lane
    # The call that returns first waits last, so that it is searched first.
    for i in range(n - 1, -1, -1):
        lane = s.order[i]
        effect = &s.effects[lanes.ops[s.way.at[lane]].symbol]
        if effect.takes >= 0 and lanes.ops[s.way.at[lane]].returned != INT64_MAX:
            if not pass_by(s, node, hash, lane, first):
                return OUT_OF_MEMORY
        if effect.puts < 0 and frame == BOTTOM:
            continue
        config = config_after(s, hash, lane)
        if config < 0:
            return OUT_OF_MEMORY
        if effect.puts >= 0:
            if not go_in(s, node, config, s.way.at[lane]):
                return OUT_OF_MEMORY
        elif not go_out(s, node, config, effect.takes, s.way.at[lane]):
            return OUT_OF_MEMORY
    return ANSWER_ILLEGAL


# Makes room for the list with which nested_place() works: a call and the nodes beside it are in it
# at most once.
cdef inline bint room_to_place(Nested* s) noexcept nogil:
    cdef int64_t least = 4 * <int64_t>s.lanes.n_ops + 8
    cdef void* grown
    if s.waiting_room >= least:
        return True
    grown = array_grown(s.waiting, &s.waiting_room, least, sizeof(int32_t))
    if grown is NULL:
        return False
    s.waiting = <int32_t*>grown
    return True


cdef inline int nested_run(Nested* s, int64_t most_steps) noexcept nogil:
    cdef int answer
    while s.n_waiting:
        if is_over(&s.deadline):
            return OUT_OF_TIME
        if s.spent > most_steps:
            return OUT_OF_STEPS
        s.n_waiting -= 1
        answer = lead_on(s, s.waiting[s.n_waiting])
        if answer == ANSWER_LEGAL and not room_to_place(s):
            return OUT_OF_MEMORY
        if answer != ANSWER_ILLEGAL:
            return answer
    return ANSWER_ILLEGAL


# Adds an item to the list of those that are still to be placed: a node, or a call as -1 - call.
cdef inline void later(Nested* s, int32_t item) noexcept nogil:
    s.waiting[s.n_waiting] = item
    s.n_waiting += 1


# Places the calls of the order that was found behind those that were placed before. Returns the
# number of placed calls.
cdef inline int32_t nested_place(Nested* s, const Record* records, Placed* places,
                                 int32_t placed) noexcept nogil:
    cdef int32_t end = placed
    cdef int32_t node = s.found
    cdef int32_t item, i, low, high
    cdef int64_t now = INT64_MIN
    cdef const Node* one
    # From the end to the beginning.
    while node != NONE:
        s.n_waiting = 0
        later(s, node)
        while s.n_waiting:
            s.n_waiting -= 1
            item = s.waiting[s.n_waiting]
            if item < 0:
                places[end].index = s.lanes.ops[-1 - item].index
                end += 1
                continue
            one = node_at(s, item)
            if one.before == NONE:
                continue
            later(s, one.before)
            if one.pushed != NONE:
                later(s, -1 - one.pushed)
            if one.inner != NONE:
                later(s, one.inner)
            later(s, -1 - one.taken)
        item = node_at(s, node).frame
        node = frame_at(s, item).caller
        if node != NONE:
            places[end].index = s.lanes.ops[frame_at(s, item).pushed].index
            end += 1
    low = placed
    high = end - 1
    while low < high:
        i = places[low].index
        places[low].index = places[high].index
        places[high].index = i
        low += 1
        high -= 1
    for i in range(placed, end):
        now = max(now, records[places[i].index].invoked)
        places[i].time = now
        places[i].sequence = i
    return end
