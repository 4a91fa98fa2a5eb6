# The moves of a search for one cell, and the configurations that it visited.
#
# Configurations that differ only in the used open calls, and in the time of the last write, are
# kept together: one is no better than another that used no more and was written no earlier.

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint16_t, uint64_t, uint8_t
from libc.string cimport memcpy
from pulsar_ml.harness.linearize.cells.cells cimport (
    AGAIN, AWAY, BEFORE, EXCHANGES, LOOK, PUT, PUTS, SWAP, USE, Cell, CellCall, Listed, Node, Variant,
    value_put, value_seen,
)
from pulsar_ml.harness.linearize.cells.lists cimport can_come_back, enough_open
from pulsar_ml.harness.linearize.limits.arrays cimport array_grown
from pulsar_ml.harness.linearize.search.pool cimport mixed, pool_add, pool_at


cdef extern from *:
    """
    #define pml_lowest(word) __builtin_ctzll(word)
    """
    int32_t lowest "pml_lowest" (uint64_t word) noexcept nogil


cdef inline size_t variant_size(const Cell* c) noexcept nogil:
    return sizeof(Variant) + <size_t>c.words * sizeof(uint64_t)


cdef inline Variant* variant_at(const Cell* c, int64_t index) noexcept nogil:
    return <Variant*>(c.variants + <size_t>index * variant_size(c))


# True when ``some`` is a subset of ``more``.
cdef inline bint within(const uint64_t* some, const uint64_t* more, int32_t words) noexcept nogil:
    cdef int32_t i
    for i in range(words):
        if some[i] & ~more[i]:
            return False
    return True


# True when the present configuration is no better than the other one: it used all that the other
# one used, or instead of an exchange a write with the same effect everywhere.
cdef inline bint no_better(const Cell* c, const uint64_t* used) noexcept nogil:
    cdef uint64_t[16] taken
    cdef uint64_t rest
    cdef bint more = False
    cdef int32_t i, place, other
    cdef const CellCall* call
    if within(used, c.used_bits, c.words):
        return True
    if c.words > 16:
        return False
    for i in range(c.words):
        taken[i] = c.used_bits[i] & ~used[i]
        if taken[i]:
            more = True
    if not more:
        return False
    for i in range(c.words):
        rest = used[i] & ~c.used_bits[i]
        while rest:
            place = 64 * i + lowest(rest)
            rest &= rest - 1
            call = &c.calls[c.n_calls + place]
            if call.kind != EXCHANGES:
                return False
            for other in range(call.writes, call.writes_end):
                if (taken[other >> 6] >> (other & 63)) & 1:
                    taken[other >> 6] &= ~(<uint64_t>1 << (other & 63))
                    break
            else:
                return False
    return True


# ``since`` rounded up to the latest invocation of a write that can still be placed before the last
# write.
cdef inline int64_t since_that_matters(const Cell* c) noexcept nogil:
    cdef int32_t lane
    cdef const CellCall* call
    cdef int64_t found = INT64_MIN
    if c.state == c.n_values:
        return found
    for lane in range(c.n_lanes):
        call = &c.calls[c.at[lane]]
        if call.kind == PUTS and call.invoked <= c.since and call.invoked > found:
            found = call.invoked
    return found


# 1: the configuration is new; 0: one that is at least as good was visited; -1: no memory.
cdef inline int is_new(Cell* c) noexcept nogil:
    cdef void* grown
    cdef bint entered
    cdef int64_t index = pool_add(&c.seen, c.key, mixed(c.hash), &entered)
    cdef int64_t* head
    cdef int64_t* link
    cdef Variant* variant
    cdef uint64_t* used
    cdef int64_t least
    cdef int64_t since = since_that_matters(c)
    if index < 0:
        return -1
    head = <int64_t*>(pool_at(&c.seen, index) + c.seen.stride - 16)
    if entered:
        head[0] = -1
    link = head
    while link[0] >= 0:
        variant = variant_at(c, link[0])
        used = <uint64_t*>(variant + 1)
        if variant.since >= since and no_better(c, used):
            return 0
        if variant.since <= since and within(c.used_bits, used, c.words):
            link[0] = variant.following
        else:
            link = &variant.following
    if <size_t>(c.n_variants + 1) * variant_size(c) > <size_t>c.variants_room:
        least = c.variants_room + <int64_t>variant_size(c)
        if least > c.limit // 2 and least > 4096:
            return -1
        grown = array_grown(c.variants, &c.variants_room, least, 1)
        if grown is NULL:
            return -1
        c.variants = <uint8_t*>grown
    variant = variant_at(c, c.n_variants)
    variant.since = since
    variant.following = head[0]
    memcpy(variant + 1, c.used_bits, <size_t>c.words * sizeof(uint64_t))
    head[0] = c.n_variants
    c.n_variants += 1
    return 1


cdef inline void set_state(Cell* c, int32_t state, bint owing) noexcept nogil:
    cdef uint16_t now = <uint16_t>(2 * state + owing)
    c.hash += (<uint64_t>now - <uint64_t>c.key[c.n_lanes]) * c.factor[c.n_lanes]
    c.key[c.n_lanes] = now
    c.state = state
    c.owing = owing


cdef inline void do_lane(Cell* c, int32_t lane) noexcept nogil:
    cdef CellCall* call = &c.calls[c.at[lane]]
    call.done = True
    c.seeing -= call.kind < PUTS
    c.at[lane] += 1
    c.key[lane] += 1
    c.hash += c.factor[lane]


cdef inline void relist(Listed* listed, int32_t value, int32_t place) noexcept nogil:
    if place < listed.next[value]:
        listed.next[value] = place


cdef inline void undone(Cell* c, CellCall* call) noexcept nogil:
    cdef int32_t value
    call.done = False
    value = value_seen(c, call)
    if value >= 0:
        relist(&c.soonest, value, call.soonest)
        relist(&c.earliest, value, call.earliest)
    value = value_put(call)
    if value >= 0:
        relist(&c.supply, value, call.supply)


cdef inline void undo(Cell* c, const Node* node) noexcept nogil:
    cdef int32_t which = node.which
    cdef int32_t place
    cdef CellCall* call
    if node.move == USE:
        if not c.calls[c.group[which]].endless:
            c.used[which] -= 1
            place = c.group[which] + c.used[which]
            undone(c, &c.calls[place])
            place -= c.n_calls
            c.used_bits[place >> 6] &= ~(<uint64_t>1 << (place & 63))
    else:
        c.at[which] -= 1
        c.key[which] -= 1
        c.hash -= c.factor[which]
        call = &c.calls[c.at[which]]
        c.seeing += call.kind < PUTS
        undone(c, call)
    set_state(c, node.state, node.owing)
    c.since = node.since


# Makes the chosen move; False when a call can no longer see its value.
cdef inline bint do_move(Cell* c, int32_t move, int32_t which) noexcept nogil:
    cdef int32_t before = c.state
    cdef int32_t place
    cdef CellCall* call
    if move == USE:
        place = c.group[which] + c.used[which]
        call = &c.calls[place]
        if not call.endless:
            call.done = True
            c.used[which] += 1
            place -= c.n_calls
            c.used_bits[place >> 6] |= <uint64_t>1 << (place & 63)
        if call.kind == PUTS:
            c.since = c.first
        set_state(c, call.put, True)
        if not enough_open(c, call.put, True):
            return False
    else:
        call = &c.calls[c.at[which]]
        do_lane(c, which)
        if move == LOOK:
            set_state(c, c.state, False)
        elif move == SWAP:
            set_state(c, call.put, False)
        elif move == PUT:
            c.since = c.first
            set_state(c, call.put, True)
        elif move == AGAIN:
            c.since = c.first
        elif move == AWAY:
            set_state(c, c.n_values, False)
    if before != c.state and before != c.n_values and not (
            can_come_back(c, before) and enough_open(c, before, False)):
        return False
    return not (move == BEFORE or move == AWAY) or can_come_back(c, call.put)
