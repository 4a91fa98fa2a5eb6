# The calls of one cell (a register with reads, writes and compare-and-set), prepared for its
# search.
#
# Calls that returned are in lanes, as in lanes.pxd; open calls are in groups by their effect. Lists
# by value are in lists.pxd, and the search in search.pxd.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint16_t, uint64_t, uint8_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memset
from pulsar_ml.harness.linearize.deadline cimport Deadline
from pulsar_ml.harness.linearize.limits.arrays cimport array_free
from pulsar_ml.harness.linearize.search.pool cimport Pool, mixed, pool_free


cdef enum Kind:
    SEES = 0              # sees one value: a read
    SEES_NOT = 1          # sees any value but one: a compare-and-set that failed
    EXCHANGES = 2         # sees a value and puts another one
    PUTS = 3              # puts a value: a write
    NOTHING = 4           # the end of a lane

cdef enum Move:
    LOOK = 0              # a call that sees the present value
    SWAP = 1              # a call that exchanges the present value
    PUT = 2               # a write whose value will be seen
    BEFORE = 3            # an unseen write, placed before the last write
    AGAIN = 4             # a write of the present value
    AWAY = 5              # an unseen write, placed before the next write
    USE = 6               # an open call
    NO_MOVE = 7

cdef enum:
    GO_ON = -1            # from cell_start: no answer yet
    MOST_IN_LANE = 0xFFFF
    MOST_VALUES = 0x7FF0


cdef struct CellCall:
    int64_t invoked
    int64_t returned      # INT64_MAX: the call is open
    int32_t kind
    int32_t seen
    int32_t put
    int32_t index         # the index of the record
    int32_t soonest       # its indices in the lists
    int32_t earliest
    int32_t supply
    int32_t writes        # of an open exchange: the group of open writes of the value that it puts
    int32_t writes_end
    bint done
    bint endless          # open, and may happen any number of times


# Calls by value and time, with the first missing call of each value.
cdef struct Listed:
    int32_t* calls
    int32_t* first        # by value, with one more at the end
    int32_t* next


# A moment at which a call begins, with two first returns among the calls that begin then or later:
# of all of them, and of those that do not read the same value as the first one.
cdef struct Over:
    int64_t begins
    int64_t soonest
    int64_t other
    int32_t value         # the value that is read; -1: none


cdef struct Choice:
    int32_t move
    int32_t which         # a lane; for USE a group
    int64_t rank


cdef struct Node:
    int32_t move          # the move that led here
    int32_t which
    int32_t state         # the state before the move
    bint owing
    int64_t since
    int64_t choices       # the index of its first choice
    int64_t next


# Configurations that differ only in the used open calls and in ``since``, in a chain.
cdef struct Variant:
    int64_t following     # the next one; -1: none
    int64_t since
    # The words of the used open calls follow.


cdef struct Cell:
    CellCall* calls       # lane after lane, each with its end, then the groups of open calls
    CellCall* sorted
    int32_t* start        # by lane
    int32_t* at
    int64_t* last         # scratch, by lane
    int32_t* lane_of      # scratch
    int32_t* length       # scratch
    int32_t n_lanes, n_calls, n_open, n_groups, words
    int32_t* group        # by group: its first open call
    int32_t* used         # by group: the number of used calls
    uint64_t* used_bits
    # n_values is also the state of an unknown value, and the list of calls that see any value but
    # one.
    int32_t n_values
    Listed soonest        # by value: the calls that must see it, by return
    Listed earliest       # likewise by invocation; at the end calls that must see another value
    Listed supply         # the calls that can put the value, by invocation
    Listed times          # by value: the first viewer of each occurrence that needs an open call
    Listed opens          # by value: the open calls that put it, by invocation
    int32_t* listed       # the memory of all lists
    Over* over            # of the calls that returned, by invocation
    int32_t n_over
    bint plain            # there are reads and writes only
    int32_t room, listed_room
    int32_t state
    bint owing
    int64_t since
    int32_t seeing        # the number of missing calls that must see a value
    uint16_t* key
    uint64_t* factor
    uint64_t hash
    Pool seen
    uint8_t* variants
    int64_t n_variants, variants_room
    Node* nodes
    int64_t depth, nodes_room
    Choice* choices
    int64_t n_choices, choices_room
    int64_t spent, most_steps, limit
    Deadline deadline
    # The first return of the present node, with and without writes that may be placed there.
    int64_t first, beyond
    int32_t first_lane


# Scratch arrays with an element for each call.
cdef inline void cell_free_calls(Cell* c) noexcept nogil:
    free(c.calls)
    free(c.sorted)
    free(c.start)
    free(c.at)
    free(c.last)
    free(c.lane_of)
    free(c.length)
    free(c.group)
    free(c.used)
    free(c.used_bits)
    free(c.over)
    free(c.key)
    free(c.factor)


cdef inline void cell_free(Cell* c) noexcept nogil:
    cell_free_calls(c)
    free(c.listed)
    array_free(c.variants, c.variants_room)
    array_free(c.nodes, c.nodes_room * <int64_t>sizeof(Node))
    array_free(c.choices, c.choices_room * <int64_t>sizeof(Choice))
    pool_free(&c.seen)
    memset(c, 0, sizeof(Cell))


cdef inline bint cell_reserve(Cell* c, int32_t n, int32_t n_values) noexcept nogil:
    cdef int32_t i
    cdef int32_t lists = 5 * n + 8 * (n_values + 3)
    if n > c.room or c.calls is NULL:
        n += n // 2 + 16
        lists += 5 * n
        cell_free_calls(c)
        c.calls = <CellCall*>malloc(2 * <size_t>n * sizeof(CellCall))
        c.sorted = <CellCall*>malloc(<size_t>n * sizeof(CellCall))
        c.start = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
        c.at = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
        c.last = <int64_t*>malloc(<size_t>n * sizeof(int64_t))
        c.lane_of = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
        c.length = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
        c.group = <int32_t*>malloc((<size_t>n + 1) * sizeof(int32_t))
        c.used = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
        c.used_bits = <uint64_t*>malloc((<size_t>n // 64 + 1) * sizeof(uint64_t))
        c.over = <Over*>malloc(<size_t>n * sizeof(Over))
        c.key = <uint16_t*>malloc((<size_t>n + 2) * sizeof(uint16_t))
        c.factor = <uint64_t*>malloc((<size_t>n + 2) * sizeof(uint64_t))
        c.room = n
        if (c.calls is NULL or c.sorted is NULL or c.start is NULL or c.at is NULL or c.last is NULL
                or c.lane_of is NULL or c.length is NULL or c.group is NULL or c.used is NULL
                or c.used_bits is NULL or c.over is NULL or c.key is NULL or c.factor is NULL):
            cell_free(c)
            return False
        for i in range(n + 2):
            c.factor[i] = mixed(<uint64_t>(i + 1) * 0x9E3779B97F4A7C15ULL) | 1
    if lists > c.listed_room:
        free(c.listed)
        c.listed = <int32_t*>malloc(<size_t>lists * sizeof(int32_t))
        c.listed_room = lists
        if c.listed is NULL:
            cell_free(c)
            return False
    return True


cdef inline int by_invoked(const void* a, const void* b) noexcept nogil:
    cdef const CellCall* one = <const CellCall*>a
    cdef const CellCall* other = <const CellCall*>b
    if one.invoked != other.invoked:
        return -1 if one.invoked < other.invoked else 1
    return -1 if one.index < other.index else 1


cdef inline int by_rank(const void* a, const void* b) noexcept nogil:
    cdef const Choice* one = <const Choice*>a
    cdef const Choice* other = <const Choice*>b
    if one.rank != other.rank:
        return -1 if one.rank < other.rank else 1
    return -1 if one.which < other.which else 1


# The value under which a call is listed; -1: none.
cdef inline int32_t value_seen(const Cell* c, const CellCall* call) noexcept nogil:
    if call.returned == INT64_MAX or call.kind == PUTS:
        return -1
    return c.n_values if call.kind == SEES_NOT else call.seen


cdef inline int32_t value_put(const CellCall* call) noexcept nogil:
    return call.put if call.kind == PUTS or call.kind == EXCHANGES else -1


cdef inline bint same_group(const CellCall* one, const CellCall* other) noexcept nogil:
    return one.kind == other.kind and one.put == other.put and (one.kind == PUTS or one.seen == other.seen)


cdef inline int by_group(const void* a, const void* b) noexcept nogil:
    cdef const CellCall* one = <const CellCall*>a
    cdef const CellCall* other = <const CellCall*>b
    if one.kind != other.kind:
        return -1 if one.kind < other.kind else 1
    if one.put != other.put:
        return -1 if one.put < other.put else 1
    if one.kind == EXCHANGES and one.seen != other.seen:
        return -1 if one.seen < other.seen else 1
    return by_invoked(a, b)


# Puts calls into lanes, and the open calls behind them. False when a lane is too long.
cdef inline bint cell_lanes(Cell* c, int32_t n) noexcept nogil:
    cdef int32_t i, lane, at
    cdef CellCall* call
    c.n_lanes = 0
    c.n_open = 0
    for i in range(n):
        call = &c.sorted[i]
        if call.returned == INT64_MAX:
            c.lane_of[i] = -1
            c.n_open += 1
            continue
        lane = 0
        while lane < c.n_lanes and c.last[lane] >= call.invoked:
            lane += 1
        if lane == c.n_lanes:
            c.n_lanes += 1
            c.length[lane] = 0
        c.length[lane] += 1
        c.last[lane] = call.returned
        c.lane_of[i] = lane
    at = 0
    for lane in range(c.n_lanes):
        if c.length[lane] >= MOST_IN_LANE:
            return False
        c.start[lane] = c.at[lane] = at
        at += c.length[lane]
        call = &c.calls[at]
        memset(call, 0, sizeof(CellCall))
        call.kind = NOTHING
        call.invoked = call.returned = INT64_MAX
        at += 1
        c.length[lane] = c.start[lane]
    c.n_calls = at
    for i in range(n):
        lane = c.lane_of[i]
        if lane >= 0:
            c.calls[c.length[lane]] = c.sorted[i]
            c.lane_of[i] = c.length[lane]
            c.length[lane] += 1
        else:
            c.calls[at] = c.sorted[i]
            at += 1
    qsort(&c.calls[c.n_calls], <size_t>c.n_open, sizeof(CellCall), &by_group)
    c.n_groups = 0
    for i in range(c.n_calls, c.n_calls + c.n_open):
        if i == c.n_calls or not same_group(&c.calls[i - 1], &c.calls[i]):
            c.group[c.n_groups] = i
            c.used[c.n_groups] = 0
            c.n_groups += 1
    c.group[c.n_groups] = c.n_calls + c.n_open
    for i in range(c.n_groups):
        find_writes(c, i)
    return True


# Finds for each group of open exchanges the open writes of the same value; groups of writes come
# last.
cdef inline void find_writes(Cell* c, int32_t group) noexcept nogil:
    cdef int32_t other, i
    cdef int32_t begin = 0
    cdef int32_t end = 0
    if c.calls[c.group[group]].kind != EXCHANGES:
        return
    for other in range(c.n_groups - 1, group, -1):
        if c.calls[c.group[other]].kind != PUTS:
            break
        if c.calls[c.group[other]].put == c.calls[c.group[group]].put:
            begin = c.group[other] - c.n_calls
            end = c.group[other + 1] - c.n_calls
            break
    for i in range(c.group[group], c.group[group + 1]):
        c.calls[i].writes = begin
        c.calls[i].writes_end = end
