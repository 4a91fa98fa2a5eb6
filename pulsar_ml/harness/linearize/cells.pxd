# The calls of one cell, a register with reads, writes and compare-and-set, made ready for its search: in
# lanes as in lanes.pxd, those that are open by what they do, and lists by value of who must see it and who
# can put it. What the search does with them is in cells_search.pxd.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint16_t, uint64_t, uint8_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memset
from pulsar_ml.harness.linearize.depth cimport ANSWER_ILLEGAL, OUT_OF_MEMORY
from pulsar_ml.harness.linearize.pool cimport Pool, mixed, pool_free, pool_shape


cdef enum Kind:
    SEES = 0              # one value: a read
    SEES_NOT = 1          # any but one value: a compare-and-set that failed
    EXCHANGES = 2         # sees a value and puts another
    PUTS = 3              # a write
    NOTHING = 4           # the end of a lane

cdef enum Move:
    LOOK = 0              # a call that sees what is there
    SWAP = 1              # a call that exchanges what is there
    PUT = 2               # a write that will be seen
    BEFORE = 3            # an unseen write, before the last one
    AGAIN = 4             # a write of what is there
    AWAY = 5              # an unseen write, before the next one
    USE = 6               # an open call
    NO_MOVE = 7

cdef enum:
    GO_ON = -1            # from cell_start: there is no answer yet
    MOST_IN_LANE = 0xFFFF
    MOST_VALUES = 0x7FF0


cdef struct CellCall:
    int64_t invoked
    int64_t returned      # INT64_MAX: it is open
    int32_t kind
    int32_t seen
    int32_t made
    int32_t index         # in the records
    int32_t soonest       # its places in the lists
    int32_t earliest
    int32_t supply
    int32_t writes        # of an open exchange: the open writes of what it makes, among the open ones
    int32_t writes_end
    bint done
    bint endless          # open, and as often as one likes


# Calls by a value and a time, with the first that is missing.
cdef struct Listed:
    int32_t* calls
    int32_t* first        # by value; one more at the end
    int32_t* next


cdef struct Choice:
    int32_t move
    int32_t which         # a lane; of USE a group
    int64_t rank


cdef struct Node:
    int32_t move          # that led here
    int32_t which
    int32_t state         # before it
    bint owing
    int64_t since
    int64_t choices       # the first of its own
    int64_t next


# Configurations alike but for what was used and since, in a chain.
cdef struct Variant:
    int64_t following     # -1: none
    int64_t since
    # then the words of what was used


cdef struct Cell:
    CellCall* calls       # lane after lane, each with its end, then the open ones by what they do
    CellCall* sorted
    int32_t* start        # by lane
    int32_t* at
    int64_t* last         # by lane: scratch
    int32_t* lane_of      # scratch
    int32_t* length       # scratch
    int32_t n_lanes, n_calls, n_open, n_groups, words
    int32_t* group        # the first open call of each
    int32_t* used         # of each
    uint64_t* used_bits
    int32_t n_values      # also a state: nothing can be told; and the list of who sees any value but one
    Listed soonest        # by value: who must see it, by return
    Listed earliest       # the same by invocation, and at the end who must see another value
    Listed supply         # who can put it, by invocation
    int32_t* listed       # their memory
    int32_t room, listed_room
    int32_t state
    bint owing
    int64_t since
    int32_t seeing        # calls that must still see something
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
    int64_t first, beyond # of the current node: the first return; the same but for writes that may come
    int32_t first_lane


cdef inline void cell_free(Cell* c) noexcept nogil:
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
    free(c.listed)
    free(c.key)
    free(c.factor)
    free(c.variants)
    free(c.nodes)
    free(c.choices)
    pool_free(&c.seen)
    memset(c, 0, sizeof(Cell))


cdef inline bint cell_reserve(Cell* c, int32_t n, int32_t n_values) noexcept nogil:
    cdef int32_t i
    cdef int32_t lists = 3 * n + 6 * (n_values + 3)
    if n > c.room or c.calls is NULL:
        n += n // 2 + 16
        lists += 3 * n
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
        free(c.key)
        free(c.factor)
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
        c.key = <uint16_t*>malloc((<size_t>n + 2) * sizeof(uint16_t))
        c.factor = <uint64_t*>malloc((<size_t>n + 2) * sizeof(uint64_t))
        c.room = n
        if (c.calls is NULL or c.sorted is NULL or c.start is NULL or c.at is NULL or c.last is NULL
                or c.lane_of is NULL or c.length is NULL or c.group is NULL or c.used is NULL
                or c.used_bits is NULL or c.key is NULL or c.factor is NULL):
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


# What is listed under which value, or -1.
cdef inline int32_t value_seen(const Cell* c, const CellCall* call) noexcept nogil:
    if call.returned == INT64_MAX or call.kind == PUTS:
        return -1
    return c.n_values if call.kind == SEES_NOT else call.seen


cdef inline int32_t value_made(const CellCall* call) noexcept nogil:
    return call.made if call.kind == PUTS or call.kind == EXCHANGES else -1


# Lists the calls at ``places``, which are in the order of a time, by value.
cdef inline void list_by_value(Cell* c, Listed* into, const int32_t* places, int32_t n,
                               int which) noexcept nogil:
    cdef int32_t i, value, at
    cdef CellCall* call
    memset(into.first, 0, (<size_t>c.n_values + 2) * sizeof(int32_t))
    for i in range(n):
        call = &c.calls[places[i]]
        value = value_made(call) if which == 2 else value_seen(c, call)
        if value >= 0:
            into.first[value + 1] += 1
    for value in range(c.n_values + 1):
        into.first[value + 1] += into.first[value]
        into.next[value] = into.first[value]
    for i in range(n):
        call = &c.calls[places[i]]
        value = value_made(call) if which == 2 else value_seen(c, call)
        if value < 0:
            continue
        at = into.next[value]
        into.next[value] += 1
        into.calls[at] = places[i]
        if which == 0:
            call.soonest = at
        elif which == 1:
            call.earliest = at
        else:
            call.supply = at
    for value in range(c.n_values + 1):
        into.next[value] = into.first[value]


# The first call of a list that is missing, or NULL.
cdef inline const CellCall* missing(Cell* c, Listed* listed, int32_t value) noexcept nogil:
    cdef int32_t i = listed.next[value]
    cdef int32_t end = listed.first[value + 1]
    while i < end and c.calls[listed.calls[i]].done:
        i += 1
    listed.next[value] = i
    return &c.calls[listed.calls[i]] if i < end else NULL


# Whether all who must see the value may still do so when it is not there.
cdef inline bint can_come_back(Cell* c, int32_t value) noexcept nogil:
    cdef const CellCall* sees = missing(c, &c.soonest, value)
    cdef const CellCall* puts
    if sees is NULL:
        return True
    puts = missing(c, &c.supply, value)
    return puts is not NULL and puts.invoked <= sees.returned


cdef inline bint same_group(const CellCall* one, const CellCall* other) noexcept nogil:
    return one.kind == other.kind and one.made == other.made and (one.kind == PUTS or one.seen == other.seen)


cdef inline int by_group(const void* a, const void* b) noexcept nogil:
    cdef const CellCall* one = <const CellCall*>a
    cdef const CellCall* other = <const CellCall*>b
    if one.kind != other.kind:
        return -1 if one.kind < other.kind else 1
    if one.made != other.made:
        return -1 if one.made < other.made else 1
    if one.kind == EXCHANGES and one.seen != other.seen:
        return -1 if one.seen < other.seen else 1
    return by_invoked(a, b)


# Calls into lanes; those that are open behind them. False: a lane is too long for its number.
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


# The open writes of what the open exchanges of a group make; groups of writes come last.
cdef inline void find_writes(Cell* c, int32_t group) noexcept nogil:
    cdef int32_t other, i
    cdef int32_t begin = 0
    cdef int32_t end = 0
    if c.calls[c.group[group]].kind != EXCHANGES:
        return
    for other in range(c.n_groups - 1, group, -1):
        if c.calls[c.group[other]].kind != PUTS:
            break
        if c.calls[c.group[other]].made == c.calls[c.group[group]].made:
            begin = c.group[other] - c.n_calls
            end = c.group[other + 1] - c.n_calls
            break
    for i in range(c.group[group], c.group[group + 1]):
        c.calls[i].writes = begin
        c.calls[i].writes_end = end


# The lists. ``places`` has room for n of each.
cdef inline void cell_lists(Cell* c, int32_t n) noexcept nogil:
    cdef int32_t values = c.n_values + 2
    cdef int32_t i, j, place
    cdef int32_t n_required = 0
    cdef int32_t* memory = c.listed
    cdef int32_t* order = c.length
    c.soonest.calls = memory
    c.earliest.calls = memory + n
    c.supply.calls = memory + 2 * n
    memory += 3 * n
    c.soonest.first = memory
    c.soonest.next = memory + values
    c.earliest.first = memory + 2 * values
    c.earliest.next = memory + 3 * values
    c.supply.first = memory + 4 * values
    c.supply.next = memory + 5 * values
    # By invocation: the required calls in the order in which they were sorted.
    for i in range(n):
        if c.lane_of[i] >= 0:
            order[n_required] = c.lane_of[i]
            n_required += 1
    list_by_value(c, &c.earliest, order, n_required, 1)
    # With the open ones put in where they belong, from behind.
    place = n_required
    for i in range(c.n_calls, c.n_calls + c.n_open):
        order[place] = i
        place += 1
    sort_places(c, order, place, False)
    list_by_value(c, &c.supply, order, place, 2)
    j = 0
    for i in range(n):
        if c.lane_of[i] >= 0:
            order[j] = c.lane_of[i]
            j += 1
    sort_places(c, order, j, True)
    list_by_value(c, &c.soonest, order, j, 0)


# Nearly sorted as they come: by insertion, and from a distance on by heap.
cdef inline void sort_places(Cell* c, int32_t* places, int32_t n, bint by_return) noexcept nogil:
    cdef int32_t i, j, place, end
    cdef int64_t time
    cdef int64_t moves = 0
    for i in range(1, n):
        place = places[i]
        time = place_time(c, place, by_return)
        j = i - 1
        while j >= 0 and place_time(c, places[j], by_return) > time:
            places[j + 1] = places[j]
            j -= 1
        places[j + 1] = place
        moves += i - 1 - j
        if moves > 64 * <int64_t>n:
            break
    else:
        return
    # Heap.
    for i in range(n // 2 - 1, -1, -1):
        sift(c, places, i, n, by_return)
    for end in range(n - 1, 0, -1):
        place = places[0]
        places[0] = places[end]
        places[end] = place
        sift(c, places, 0, end, by_return)


cdef inline int64_t place_time(const Cell* c, int32_t place, bint by_return) noexcept nogil:
    return c.calls[place].returned if by_return else c.calls[place].invoked


cdef inline void sift(Cell* c, int32_t* places, int32_t root, int32_t n, bint by_return) noexcept nogil:
    cdef int32_t child
    cdef int32_t place = places[root]
    cdef int64_t time = place_time(c, place, by_return)
    while True:
        child = 2 * root + 1
        if child >= n:
            break
        if (child + 1 < n and place_time(c, places[child], by_return)
                < place_time(c, places[child + 1], by_return)):
            child += 1
        if place_time(c, places[child], by_return) <= time:
            break
        places[root] = places[child]
        root = child
    places[root] = place


# Begins with n calls in c.sorted: GO_ON, or the answer, if it is known at once.
cdef inline int cell_start(Cell* c, int32_t n, int32_t n_values, int32_t initial, int64_t most_steps,
                           int64_t limit) noexcept nogil:
    cdef int32_t i, lane, value
    for i in range(1, n):
        if c.sorted[i - 1].invoked > c.sorted[i].invoked:
            qsort(c.sorted, <size_t>n, sizeof(CellCall), &by_invoked)
            break
    c.n_values = n_values
    if not cell_lanes(c, n):
        return OUT_OF_MEMORY
    cell_lists(c, n)
    c.words = (c.n_open + 63) // 64
    memset(c.used_bits, 0, <size_t>c.words * sizeof(uint64_t))
    c.seeing = 0
    for i in range(c.n_calls):
        c.seeing += c.calls[i].kind < PUTS
    for lane in range(c.n_lanes):
        c.key[lane] = 0
    c.key[c.n_lanes] = <uint16_t>(2 * initial)
    c.hash = <uint64_t>(2 * initial) * c.factor[c.n_lanes]
    c.state = initial
    c.owing = False
    c.since = INT64_MIN
    pool_shape(&c.seen, (<size_t>c.n_lanes + 1) * sizeof(uint16_t), 16, limit // 2)
    c.n_variants = 0
    c.depth = 0
    c.n_choices = 0
    c.spent = 0
    c.most_steps = most_steps
    c.limit = limit
    for value in range(n_values):
        if value != initial and not can_come_back(c, value):
            return ANSWER_ILLEGAL
    return GO_ON
