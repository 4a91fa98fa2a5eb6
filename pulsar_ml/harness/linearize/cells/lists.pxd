# The calls of a cell by value (those that must see it, those that can put it) and by time; and the
# start of a search.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint16_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memset
from pulsar_ml.harness.linearize.cells.cells cimport (
    EXCHANGES, GO_ON, PUTS, SEES, SEES_NOT, Cell, CellCall, Listed, Over, by_invoked, cell_lanes, value_put,
    value_seen,
)
from pulsar_ml.harness.linearize.search.depth cimport ANSWER_ILLEGAL, OUT_OF_MEMORY
from pulsar_ml.harness.linearize.search.pool cimport pool_shape


# Lists the calls at ``places``, which are sorted by a time, by value.
cdef inline void list_by_value(Cell* c, Listed* into, const int32_t* places, int32_t n,
                               int which) noexcept nogil:
    cdef int32_t i, value, at
    cdef CellCall* call
    memset(into.first, 0, (<size_t>c.n_values + 2) * sizeof(int32_t))
    for i in range(n):
        call = &c.calls[places[i]]
        value = value_put(call) if which == 2 else value_seen(c, call)
        if value >= 0:
            into.first[value + 1] += 1
    for value in range(c.n_values + 1):
        into.first[value + 1] += into.first[value]
        into.next[value] = into.first[value]
    for i in range(n):
        call = &c.calls[places[i]]
        value = value_put(call) if which == 2 else value_seen(c, call)
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


# The first missing call of a list, or NULL.
cdef inline const CellCall* missing(Cell* c, Listed* listed, int32_t value) noexcept nogil:
    cdef int32_t i = listed.next[value]
    cdef int32_t end = listed.first[value + 1]
    while i < end and c.calls[listed.calls[i]].done:
        i += 1
    listed.next[value] = i
    return &c.calls[listed.calls[i]] if i < end else NULL


# True when all calls that must see the value can still do so after it is replaced now.
cdef inline bint can_come_back(Cell* c, int32_t value) noexcept nogil:
    cdef const CellCall* sees = missing(c, &c.soonest, value)
    cdef const CellCall* puts
    if sees is NULL:
        return True
    puts = missing(c, &c.supply, value)
    return puts is not NULL and puts.invoked <= sees.returned


# The calls that begin after a moment, for ``places`` by invocation. A failed compare-and-set does
# not count: it determines no value.
cdef inline void list_over(Cell* c, const int32_t* places, int32_t n) noexcept nogil:
    cdef int32_t i, value
    cdef int64_t returned
    cdef Over* at
    cdef const CellCall* call
    c.n_over = n
    for i in range(n - 1, -1, -1):
        call = &c.calls[places[i]]
        value = call.seen if call.kind == SEES else -1
        returned = call.returned if call.kind != SEES_NOT else INT64_MAX
        at = &c.over[i]
        at.begins = call.invoked
        at.soonest = at.other = INT64_MAX
        at.value = -1
        if i + 1 < n:
            at.soonest = c.over[i + 1].soonest
            at.other = c.over[i + 1].other
            at.value = c.over[i + 1].value
        if returned < at.soonest:
            if value != at.value or value < 0:
                at.other = at.soonest
            at.soonest = returned
            at.value = value
        elif returned < at.other and (value != at.value or value < 0):
            at.other = returned


# The latest time at which a value that is put by ``time`` is replaced, unless it is put again.
cdef inline int64_t over_by(const Cell* c, int64_t time, int32_t value) noexcept nogil:
    cdef int32_t low = 0
    cdef int32_t high = c.n_over
    cdef int32_t middle
    while low < high:
        middle = (low + high) // 2
        if c.over[middle].begins > time:
            high = middle
        else:
            low = middle + 1
    if low == c.n_over:
        return INT64_MAX
    return c.over[low].other if c.over[low].value == value else c.over[low].soonest


# Builds the lists. ``places`` has room for n of each.
cdef inline void cell_lists(Cell* c, int32_t n) noexcept nogil:
    cdef int32_t values = c.n_values + 2
    cdef int32_t i, j, place
    cdef int32_t n_required = 0
    cdef int32_t* memory = c.listed
    cdef int32_t* order = c.length
    c.soonest.calls = memory
    c.earliest.calls = memory + n
    c.supply.calls = memory + 2 * n
    c.times.calls = memory + 3 * n
    c.opens.calls = memory + 4 * n
    memory += 5 * n
    c.soonest.first = memory
    c.soonest.next = memory + values
    c.earliest.first = memory + 2 * values
    c.earliest.next = memory + 3 * values
    c.supply.first = memory + 4 * values
    c.supply.next = memory + 5 * values
    c.times.first = memory + 6 * values
    c.opens.first = memory + 7 * values
    # By invocation: the required calls in their sorted order.
    for i in range(n):
        if c.lane_of[i] >= 0:
            order[n_required] = c.lane_of[i]
            n_required += 1
    list_by_value(c, &c.earliest, order, n_required, 1)
    list_over(c, order, n_required)
    # With the open calls merged in from behind.
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


# The input is nearly sorted: insertion sort, and heap sort when an element moves too far.
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
    # Heap sort.
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


# Lists the occurrences of a value that no call which returned can put: a call that needs another
# value, or puts one, lies entirely between the calls that put the value and its viewers. Each
# occurrence needs another open call.
cdef inline void list_times(Cell* c, int32_t value, bint initial) noexcept nogil:
    cdef int32_t i
    cdef int32_t at = c.supply.first[value]
    cdef int32_t n_times = c.times.first[value]
    cdef int32_t n_opens = c.opens.first[value]
    cdef bint put = initial
    cdef int64_t since = INT64_MIN    # when the last of the puts that can be seen has happened
    cdef const CellCall* sees
    cdef const CellCall* puts
    for i in range(at, c.supply.first[value + 1]):
        if c.calls[c.supply.calls[i]].returned == INT64_MAX:
            c.opens.calls[n_opens] = c.supply.calls[i]
            n_opens += 1
    for i in range(c.soonest.first[value], c.soonest.first[value + 1]):
        sees = &c.calls[c.soonest.calls[i]]
        while at < c.supply.first[value + 1] and c.calls[c.supply.calls[at]].invoked <= sees.returned:
            puts = &c.calls[c.supply.calls[at]]
            at += 1
            if puts.returned != INT64_MAX:
                put = True
                since = max(since, puts.returned)
        if put and over_by(c, since, value) >= sees.invoked:
            continue
        c.times.calls[n_times] = c.soonest.calls[i]
        n_times += 1
        put = True
        since = max(since, sees.returned)
    c.times.first[value + 1] = n_times
    c.opens.first[value + 1] = n_opens


# True when the remaining occurrences have enough open calls, each of which began in time. The first
# occurrence needs none if the value is ``there``.
cdef inline bint enough_open(const Cell* c, int32_t value, bint there) noexcept nogil:
    cdef int32_t i
    cdef int32_t at = c.opens.first[value]
    cdef int32_t left = there
    cdef const CellCall* sees
    cdef const CellCall* puts
    for i in range(c.times.first[value], c.times.first[value + 1]):
        sees = &c.calls[c.times.calls[i]]
        if sees.done:
            continue
        while at < c.opens.first[value + 1] and c.calls[c.opens.calls[at]].invoked <= sees.returned:
            puts = &c.calls[c.opens.calls[at]]
            at += 1
            if puts.endless:
                return True
            left += not puts.done
        if left == 0:
            return False
        left -= 1
    return True


# Starts a search with n calls in c.sorted: GO_ON, or the answer when it is known at once.
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
    c.plain = True
    for i in range(c.n_calls + c.n_open):
        if c.calls[i].kind == SEES_NOT or c.calls[i].kind == EXCHANGES:
            c.plain = False
            break
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
    c.times.first[0] = c.opens.first[0] = 0
    for value in range(n_values):
        list_times(c, value, value == initial)
        if not enough_open(c, value, False):
            return ANSWER_ILLEGAL
    return GO_ON
