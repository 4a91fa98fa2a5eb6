# The search for one cell: a register with reads, writes and compare-and-set.
#
# A value in a cell was put by one call, so a linearization is a chain of calls that put a value,
# each with the calls that see it. From that follow five rules, which a search over a general model
# cannot know:
#
#   * A write that no call sees may be placed directly before any other write that its interval
#     allows. So it is placed only when it must return: before the last write if it had begun by
#     then, else before the next write, and until then the value of the cell is unknown. A write of
#     the present value may wait as long, but not beyond a call that exchanges the value.
#   * An open call, which never returned, need not happen. It is used only where a call sees the
#     value that it put, and only where no required call can serve. A configuration is no better
#     than another one that made the same progress with fewer open calls, so it is not searched.
#   * A value that a call must still see may be replaced only if another call can put it again in
#     time.
#   * When a call that needs another value lies entirely between the viewers of a value and every
#     returned call that could have put it for them, an open call must put it. Enough open calls
#     must remain, each begun in time, whenever one is used or a value is replaced.
#   * With reads and writes only, a write is over when a call that does not read its value lies
#     entirely behind it. If all possible viewers of a write before that moment may see it now, and
#     no call can see the present value any more, then the write comes now with its viewers, and
#     nothing else is tried: moving them here from any later place affects no other call. If no
#     call can see it, it is placed before the last write, if it had begun by then.
#
# A configuration is the progress in each lane, the state, whether the call that put it must still
# be seen (``owing``), the used open calls, and the time of the last write (``since``): the latest
# moment by which a write must have begun to be placed before it. Fewer used calls and a later
# ``since`` are never worse.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t
from libc.stdlib cimport qsort
from pulsar_ml.harness.linearize.cells.cells cimport (
    AGAIN, AWAY, BEFORE, EXCHANGES, LOOK, NOTHING, NO_MOVE, PUT, PUTS, SEES, SEES_NOT, SWAP, USE, Cell,
    CellCall, Choice, Node, by_rank, same_group,
)
from pulsar_ml.harness.linearize.cells.lists cimport missing, over_by
from pulsar_ml.harness.linearize.cells.moves cimport do_move, is_new, undo
from pulsar_ml.harness.linearize.deadline cimport is_over
from pulsar_ml.harness.linearize.limits.arrays cimport array_grown
from pulsar_ml.harness.linearize.search.depth cimport (
    ANSWER_ILLEGAL, ANSWER_LEGAL, OUT_OF_MEMORY, OUT_OF_STEPS, OUT_OF_TIME,
)


cdef inline bint sees_now(const Cell* c, const CellCall* call) noexcept nogil:
    if c.state == c.n_values:
        return False
    return call.seen == c.state if call.kind == SEES else call.kind == SEES_NOT and call.seen != c.state


# True when a call may see the value if it is put now.
cdef inline bint will_be_seen(Cell* c, int32_t value) noexcept nogil:
    cdef int32_t i
    cdef const CellCall* call = missing(c, &c.earliest, value)
    if call is not NULL and call.invoked <= c.beyond:
        return True
    missing(c, &c.earliest, c.n_values)
    for i in range(c.earliest.next[c.n_values], c.earliest.first[c.n_values + 1]):
        call = &c.calls[c.earliest.calls[i]]
        if call.invoked > c.beyond:
            break
        if not call.done and call.seen != value:
            return True
    return exchange_open(c, value)


# The first return of the calls that must see the value.
cdef inline int64_t seen_by(Cell* c, int32_t value) noexcept nogil:
    cdef const CellCall* call = missing(c, &c.soonest, value)
    return INT64_MAX if call is NULL else call.returned


# True when an open call may exchange the value.
cdef inline bint exchange_open(const Cell* c, int32_t value) noexcept nogil:
    cdef int32_t group, place
    for group in range(c.n_groups):
        place = c.group[group] + c.used[group]
        if (c.calls[place].kind == EXCHANGES and c.calls[c.group[group]].seen == value
                and place < c.group[group + 1] and c.calls[place].invoked <= c.beyond):
            return True
    return False


cdef inline bint choose(Cell* c, int32_t move, int32_t which, int64_t rank) noexcept nogil:
    cdef void* grown
    if c.n_choices == c.choices_room:
        grown = array_grown(c.choices, &c.choices_room, c.n_choices, sizeof(Choice))
        if grown is NULL:
            return False
        c.choices = <Choice*>grown
    c.choices[c.n_choices].move = move
    c.choices[c.n_choices].which = which
    c.choices[c.n_choices].rank = rank
    c.n_choices += 1
    return True


# True when the next call of another lane has the same effect, is possible now, and returns sooner.
cdef inline bint twin_before(const Cell* c, int32_t lane) noexcept nogil:
    cdef const CellCall* call = &c.calls[c.at[lane]]
    cdef const CellCall* other
    cdef int32_t i
    for i in range(c.n_lanes):
        other = &c.calls[c.at[i]]
        if (i != lane and other.invoked <= c.first and same_group(call, other)
                and (other.returned < call.returned or (other.returned == call.returned and i < lane))):
            return True
    return False


cdef inline bint lane_does(const Cell* c, const CellCall* open) noexcept nogil:
    cdef int32_t lane
    for lane in range(c.n_lanes):
        if c.calls[c.at[lane]].invoked <= c.first and same_group(&c.calls[c.at[lane]], open):
            return True
    return False


# True when one of the choices from that one on exchanges the present value.
cdef inline bint leaves_by_exchange(const Cell* c, int64_t from_choice) noexcept nogil:
    cdef int64_t i
    cdef const Choice* choice
    for i in range(from_choice, c.n_choices):
        choice = &c.choices[i]
        if choice.move == SWAP:
            return True
        if choice.move == USE and c.calls[c.group[choice.which]].kind == EXCHANGES:
            return True
    return False


# True when a call could see the value now; ``later``: the first beginning of a call that could not.
cdef inline bint wanted_now(Cell* c, int32_t value, int64_t* later) noexcept nogil:
    cdef int32_t i
    cdef bint now = False
    cdef const CellCall* call
    missing(c, &c.earliest, value)
    later[0] = INT64_MAX
    for i in range(c.earliest.next[value], c.earliest.first[value + 1]):
        call = &c.calls[c.earliest.calls[i]]
        if call.done:
            continue
        if call.invoked > c.first:
            later[0] = call.invoked
            break
        now = True
    return now


# True when all possible viewers of the present value have seen it. A write of the same value that
# must come next puts it again if it is replaced.
cdef inline bint must_leave(Cell* c, const CellCall* first) noexcept nogil:
    cdef int64_t later
    if c.state == c.n_values or first.kind != PUTS:
        return True
    if first.invoked > c.since:
        return True
    wanted_now(c, c.state, &later)
    return later == INT64_MAX or later > over_by(c, c.since, c.state)


# A write that no call which begins later can see, although a call could see it now: it may as well
# come now. -1: none.
cdef inline int32_t harmless_put(Cell* c) noexcept nogil:
    cdef int32_t lane
    cdef int64_t later
    cdef const CellCall* call
    for lane in range(c.n_lanes):
        call = &c.calls[c.at[lane]]
        if (call.kind == PUTS and call.invoked <= c.first and call.put != c.state
                and wanted_now(c, call.put, &later)
                and (later == INT64_MAX or later > over_by(c, call.returned, call.put))):
            return lane
    return -1


# Lists the possible next moves; False without memory.
cdef inline bint expand(Cell* c) noexcept nogil:
    cdef int32_t lane, group, place
    cdef int64_t from_choice = c.n_choices
    cdef int64_t late
    cdef bint entered = True
    cdef bint known = c.state != c.n_values
    cdef int32_t wanted = -1
    cdef const CellCall* call
    c.first = c.beyond = INT64_MAX
    c.first_lane = -1
    for lane in range(c.n_lanes):
        call = &c.calls[c.at[lane]]
        if call.returned < c.first:
            c.first = call.returned
            c.first_lane = lane
    for lane in range(c.n_lanes):
        call = &c.calls[c.at[lane]]
        if call.invoked <= c.first and sees_now(c, call):
            return choose(c, LOOK, lane, 0)
        if call.returned < c.beyond and not (call.kind == PUTS and call.invoked <= c.first):
            c.beyond = call.returned
    call = &c.calls[c.at[c.first_lane]]
    if c.plain:
        if (call.kind == PUTS and known and call.put != c.state and call.invoked <= c.since
                and not wanted_now(c, call.put, &late)
                and (late == INT64_MAX or late > over_by(c, call.returned, call.put))):
            return choose(c, BEFORE, c.first_lane, 0)
        if not c.owing and must_leave(c, call):
            lane = harmless_put(c)
            if lane >= 0:
                return choose(c, PUT, lane, 0)
    if call.kind == PUTS:
        if known and call.put == c.state:
            entered = choose(c, AGAIN, c.first_lane, INT64_MIN)
        elif known and call.invoked <= c.since:
            entered = choose(c, BEFORE, c.first_lane, INT64_MIN)
        elif not c.owing:
            entered = choose(c, AWAY, c.first_lane, INT64_MAX - 5)
    elif call.kind != SEES_NOT:
        wanted = call.seen
    for lane in range(c.n_lanes):
        call = &c.calls[c.at[lane]]
        if call.invoked > c.first or call.kind < EXCHANGES:
            continue
        # Calls that the first return needs come first, then those whose value must be put or seen
        # soonest.
        late = 0 if call.put == wanted else min(call.returned, seen_by(c, call.put))
        if call.kind == EXCHANGES:
            if known and call.seen == c.state and not twin_before(c, lane):
                entered = entered and choose(c, SWAP, lane, late)
        elif (not c.owing and call.put != c.state and not twin_before(c, lane)
                and will_be_seen(c, call.put)):
            entered = entered and choose(c, PUT, lane, late)
    for group in range(c.n_groups):
        place = c.group[group] + c.used[group]
        if place == c.group[group + 1]:
            continue
        call = &c.calls[place]
        if call.invoked > c.first or call.put == c.state:
            continue
        if call.kind == PUTS:
            if c.owing:
                continue
        elif not known or call.seen != c.state:
            continue
        if will_be_seen(c, call.put) and not lane_does(c, call):
            # An exchange comes before a write: fewer configurations can use it.
            late = INT64_MAX - 2 * (call.put == wanted) - (call.kind == EXCHANGES)
            entered = entered and choose(c, USE, group, late)
    if known and leaves_by_exchange(c, from_choice):
        # A write of the present value could not be placed here any more afterwards.
        for lane in range(c.n_lanes):
            call = &c.calls[c.at[lane]]
            if (lane != c.first_lane and call.kind == PUTS and call.put == c.state
                    and call.invoked <= c.first and not twin_before(c, lane)):
                entered = entered and choose(c, AGAIN, lane, INT64_MAX - 4)
    if c.n_choices - from_choice > 1:
        qsort(&c.choices[from_choice], <size_t>(c.n_choices - from_choice), sizeof(Choice), &by_rank)
    return entered


cdef inline bint enter_node(Cell* c, int32_t move, int32_t which) noexcept nogil:
    cdef void* grown
    cdef Node* node
    if c.depth == c.nodes_room:
        grown = array_grown(c.nodes, &c.nodes_room, c.depth, sizeof(Node))
        if grown is NULL:
            return False
        c.nodes = <Node*>grown
    node = &c.nodes[c.depth]
    node.move = move
    node.which = which
    node.state = c.state
    node.owing = c.owing
    node.since = c.since
    c.depth += 1
    return True


cdef inline void open_node(Cell* c) noexcept nogil:
    cdef Node* node = &c.nodes[c.depth - 1]
    node.choices = node.next = c.n_choices


# Restores the first returns of the node to which the search came back.
cdef inline void look_again(Cell* c) noexcept nogil:
    cdef int32_t lane
    c.first = INT64_MAX
    for lane in range(c.n_lanes):
        c.first = min(c.first, c.calls[c.at[lane]].returned)


# Continues until there is an answer. The way to it is in the nodes.
cdef inline int cell_run(Cell* c) noexcept nogil:
    cdef Node* node
    cdef Choice choice
    cdef bint fits
    cdef int fresh
    # The root has no move.
    if not enter_node(c, NO_MOVE, -1):
        return OUT_OF_MEMORY
    open_node(c)
    if c.seeing == 0:
        return ANSWER_LEGAL
    if not expand(c):
        return OUT_OF_MEMORY
    while True:
        node = &c.nodes[c.depth - 1]
        if node.next == c.n_choices:
            c.n_choices = node.choices
            c.depth -= 1
            if c.depth == 0:
                return ANSWER_ILLEGAL
            undo(c, node)
            continue
        choice = c.choices[node.next]
        node.next += 1
        c.spent += 1
        if c.spent > c.most_steps:
            return OUT_OF_STEPS
        if is_over(&c.deadline):
            return OUT_OF_TIME
        look_again(c)
        if not enter_node(c, choice.move, choice.which):
            return OUT_OF_MEMORY
        fits = do_move(c, choice.move, choice.which)
        if fits and c.seeing == 0:
            return ANSWER_LEGAL
        if fits and choice.move != LOOK:
            fresh = is_new(c)
            if fresh < 0:
                return OUT_OF_MEMORY
            fits = fresh == 1
        if not fits:
            c.depth -= 1
            undo(c, &c.nodes[c.depth])
            continue
        open_node(c)
        if not expand(c):
            return OUT_OF_MEMORY


# Places calls behind the call that they follow; -1: at the beginning.
cdef inline void link_in(int32_t* following, int32_t* first, int32_t behind, int32_t which) noexcept nogil:
    if behind < 0:
        following[which] = first[0]
        first[0] = which
    else:
        following[which] = following[behind]
        following[behind] = which


# Writes the order that was found, as indices of records, and returns its length. The cell cannot be
# used for anything else afterwards.
cdef inline int32_t cell_way(Cell* c, int32_t* following, int32_t* into) noexcept nogil:
    cdef int32_t lane, group, place, end
    cdef int32_t first = -1
    cdef int32_t last = -1
    cdef int32_t before_write = -1    # the call before the last write
    cdef int32_t n = 0
    cdef int64_t i
    cdef const Node* node
    for lane in range(c.n_lanes):
        c.at[lane] = c.start[lane]
    for group in range(c.n_groups):
        c.used[group] = 0
    for i in range(1, c.depth):
        node = &c.nodes[i]
        if node.move == USE:
            place = c.group[node.which] + c.used[node.which]
            c.used[node.which] += 1
        else:
            place = c.at[node.which]
            c.at[node.which] += 1
        if node.move == BEFORE:
            link_in(following, &first, before_write, place)
            before_write = place
            continue
        if node.move == PUT or node.move == AGAIN or (node.move == USE and c.calls[place].kind == PUTS):
            before_write = last
        link_in(following, &first, last, place)
        last = place
    while first >= 0:
        into[n] = c.calls[first].index
        n += 1
        first = following[first]
    # No call must see a value any more: the remaining writes come in the order of their returns.
    while True:
        end = -1
        for lane in range(c.n_lanes):
            if c.calls[c.at[lane]].kind != NOTHING and (
                    end < 0 or c.calls[c.at[lane]].returned < c.calls[c.at[end]].returned):
                end = lane
        if end < 0:
            return n
        into[n] = c.calls[c.at[end]].index
        n += 1
        c.at[end] += 1
