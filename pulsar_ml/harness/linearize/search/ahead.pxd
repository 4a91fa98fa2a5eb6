# Looking ahead: can the missing calls that reveal the state still get their answers?
#
# A model with leads() tells whether a state may become one in which a pure call is legal, when only
# calls follow whose effect depends on the state. A model with resets() tells which calls have an
# effect that does not. So a state that does not lead to the call needs a missing reset that was
# invoked before the call returned. Without one, the configuration is given up before its successors
# are tried. If no call can observe a state before its next reset, all such states are equal, and
# calls other than reads are always legal in them: the order of appends that a put overwrites does
# not matter.

from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memset
from pulsar_ml.harness.linearize.search.lanes cimport Lanes, Op
from pulsar_ml.harness.linearize.search.table cimport (
    ILLEGAL, LEADS, Table, UNKNOWN_ANSWER, step_of, transition,
)


cdef enum:
    READS_AHEAD = 3       # the number of reads that are checked


cdef struct Seen:
    int64_t returned
    int64_t begins        # of a read: the first invocation of it and later reads of its part
    int32_t part
    int32_t place         # the index in lanes.ops
    int32_t lane


cdef struct Ahead:
    bint on
    Seen* reads           # by part and return
    Seen* resets
    int32_t n_reads, n_resets, room
    int32_t* first_read   # by part, with one more at the end
    int32_t* first_reset
    int32_t* next_read    # by part: all reads before it are done
    int32_t parts_room
    int32_t* rank         # by op: the index of a read in reads, or -1
    int32_t rank_room
    int32_t missing_state
    int32_t missing_symbol


cdef enum Outlook:
    OPEN = 0
    CLOSED = 1
    UNCLEAR = 2           # the answer for (missing_state, missing_symbol) is missing


cdef inline void ahead_free(Ahead* a) noexcept nogil:
    free(a.reads)
    free(a.resets)
    free(a.first_read)
    free(a.first_reset)
    free(a.next_read)
    free(a.rank)
    memset(a, 0, sizeof(Ahead))


cdef inline int in_order(const void* a, const void* b) noexcept nogil:
    cdef const Seen* first = <const Seen*>a
    cdef const Seen* second = <const Seen*>b
    if first.part != second.part:
        return -1 if first.part < second.part else 1
    if first.returned != second.returned:
        return -1 if first.returned < second.returned else 1
    return -1 if first.place < second.place else 1


cdef inline bint ahead_reserve(Ahead* a, int32_t n, int32_t places, int32_t parts) noexcept nogil:
    if n > a.room:
        a.reads = <Seen*>realloc(a.reads, <size_t>n * sizeof(Seen))
        a.resets = <Seen*>realloc(a.resets, <size_t>n * sizeof(Seen))
        a.room = n
    if parts + 1 > a.parts_room:
        a.first_read = <int32_t*>realloc(a.first_read, (<size_t>parts + 1) * sizeof(int32_t))
        a.first_reset = <int32_t*>realloc(a.first_reset, (<size_t>parts + 1) * sizeof(int32_t))
        a.next_read = <int32_t*>realloc(a.next_read, (<size_t>parts + 1) * sizeof(int32_t))
        a.parts_room = parts + 1
    if places > a.rank_room:
        a.rank = <int32_t*>realloc(a.rank, <size_t>places * sizeof(int32_t))
        a.rank_room = places
    if ((n and (a.reads is NULL or a.resets is NULL)) or a.first_read is NULL or a.first_reset is NULL
            or a.next_read is NULL or (places and a.rank is NULL)):
        ahead_free(a)
        return False
    return True


cdef inline void by_part(Seen* seen, int32_t n, int32_t* first, int32_t parts) noexcept nogil:
    cdef int32_t part
    cdef int32_t at = 0
    qsort(seen, <size_t>n, sizeof(Seen), &in_order)
    for part in range(parts + 1):
        while at < n and seen[at].part < part:
            at += 1
        first[part] = at


# Prepares looking ahead for the calls in the lanes; off without memory.
cdef inline void ahead_start(Ahead* a, const Lanes* lanes, const Table* table, int32_t parts) noexcept nogil:
    cdef int32_t lane, place, i
    cdef const Op* op
    cdef Seen* seen
    a.on = table.leads and ahead_reserve(a, lanes.n_ops, lanes.n_ops + lanes.n, parts)
    if not a.on:
        return
    a.n_reads = a.n_resets = 0
    for lane in range(lanes.n):
        place = lanes.start[lane]
        while lanes.ops[place].symbol >= 0:
            op = &lanes.ops[place]
            a.rank[place] = -1
            if table.pure[op.symbol] and op.returned != INT64_MAX:
                seen = &a.reads[a.n_reads]
                a.n_reads += 1
            elif table.resets[op.symbol]:
                seen = &a.resets[a.n_resets]
                a.n_resets += 1
            else:
                place += 1
                continue
            seen.returned = op.returned
            seen.begins = op.invoked
            seen.part = table.part[op.symbol] if parts > 1 else 0
            seen.place = place
            seen.lane = lane
            place += 1
    by_part(a.reads, a.n_reads, a.first_read, parts)
    by_part(a.resets, a.n_resets, a.first_reset, parts)
    for i in range(a.n_reads - 1, -1, -1):
        a.rank[a.reads[i].place] = i
        if i + 1 < a.n_reads and a.reads[i + 1].part == a.reads[i].part:
            a.reads[i].begins = min(a.reads[i].begins, a.reads[i + 1].begins)
    for i in range(parts):
        a.next_read[i] = a.first_read[i]


# Marks the call of this op as missing again.
cdef inline void ahead_back(Ahead* a, int32_t place, int32_t part) noexcept nogil:
    if a.on and a.rank[place] >= 0 and a.rank[place] < a.next_read[part]:
        a.next_read[part] = a.rank[place]


cdef inline Outlook outlook(Ahead* a, const Table* table, int32_t state, int32_t symbol) noexcept nogil:
    cdef int32_t value = transition(table, state, symbol | LEADS)
    if value == UNKNOWN_ANSWER:
        a.missing_state = state
        a.missing_symbol = symbol | LEADS
        return UNCLEAR
    return CLOSED if value == ILLEGAL else OPEN


# Tells whether the read can still get its answer from the state.
cdef inline Outlook look_at(Ahead* a, const Lanes* lanes, const Table* table, const int32_t* at, int32_t part,
                            int32_t state, int32_t start, int32_t done, const Op* read) noexcept nogil:
    cdef int32_t i
    cdef int32_t after
    cdef const Op* reset
    cdef Outlook found = outlook(a, table, state, read.symbol)
    if found != CLOSED:
        return found
    for i in range(a.first_reset[part], a.first_reset[part + 1]):
        reset = &lanes.ops[a.resets[i].place]
        if a.resets[i].place < at[a.resets[i].lane] or a.resets[i].place == done:
            continue
        if reset.invoked > read.returned:
            continue
        after = step_of(table, start, reset.symbol)
        if after == UNKNOWN_ANSWER:
            a.missing_state = start
            a.missing_symbol = reset.symbol
            return UNCLEAR
        if after < 0:
            return OPEN
        found = outlook(a, table, after, read.symbol)
        if found != CLOSED:
            return found
    return CLOSED


# Tells whether the next reads of the part can still get their answers from the state, which the
# part has after the op ``done``. ``at``: the first missing op of each lane.
cdef inline Outlook look(Ahead* a, const Lanes* lanes, const Table* table, const int32_t* at, int32_t part,
                         int32_t state, int32_t start, int32_t done) noexcept nogil:
    cdef int32_t i
    cdef int32_t seen = 0
    cdef Outlook found
    i = a.next_read[part]
    while i < a.first_read[part + 1] and a.reads[i].place < at[a.reads[i].lane]:
        i += 1
    a.next_read[part] = i
    while i < a.first_read[part + 1] and seen < READS_AHEAD:
        if a.reads[i].place >= at[a.reads[i].lane]:
            found = look_at(a, lanes, table, at, part, state, start, done, &lanes.ops[a.reads[i].place])
            if found != OPEN:
                return found
            seen += 1
        i += 1
    return OPEN


# True when no call can observe the state: it must be reset before the next read returns, and no
# read that began by then can get its answer from it. The caller runs look() first.
cdef inline Outlook state_is_irrelevant(Ahead* a, const Lanes* lanes, const Table* table,
                                        const int32_t* at, int32_t part,
                                        int32_t state) noexcept nogil:
    cdef int32_t i
    cdef int64_t until = INT64_MAX
    cdef const Op* read
    cdef Outlook found
    for i in range(a.next_read[part], a.first_read[part + 1]):
        if a.reads[i].begins > until:
            break
        if a.reads[i].place < at[a.reads[i].lane]:
            continue
        read = &lanes.ops[a.reads[i].place]
        if read.invoked > until:
            continue
        found = outlook(a, table, state, read.symbol)
        if found != CLOSED:
            return found
        until = min(until, read.returned)
    return CLOSED
