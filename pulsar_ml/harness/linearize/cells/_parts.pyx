"""Native searches whose steps need no model, part by part or for all parts together.

:class:`Parts` has what maps and other objects share: lanes, rounds, and orders.
"""

from __future__ import annotations

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.limits.address cimport address_of
from pulsar_ml.harness.linearize.search.depth cimport (
    ANSWER_ILLEGAL, ANSWER_LEGAL, MISSING_ANSWER, OUT_OF_MEMORY, OUT_OF_STEPS, OUT_OF_TIME, Depth, depth_free,
    depth_run, depth_start,
)
from pulsar_ml.harness.linearize.search.lanes cimport REAL_TIME, lanes_build
from pulsar_ml.harness.linearize.search.pool cimport pool_expect
from pulsar_ml.harness.linearize.search.table cimport (
    symbol_of, symbol_row, table_close, table_forget, table_open,
)

import numpy as np

from pulsar_ml.harness.histories.history import RECORD

assert RECORD.itemsize == sizeof(Record), "history.RECORD must have the layout of Record"

cdef enum:
    FIRST_STEPS = 32      # for each call of a part, in the first round


# The place behind a run: calls from ``begin`` on whose times do not decrease.
cdef int32_t end_of_run(const Placed* places, int32_t begin, int32_t n) noexcept nogil:
    cdef int32_t i = begin + 1
    while i < n and places[i - 1].time <= places[i].time:
        i += 1
    return min(i, n)


# Sorts calls by their times; those of equal times keep their order. ``room`` is for n calls, too.
# The orders of the parts are runs, which are merged in pairs until there is one.
cdef void merge_runs(Placed* places, Placed* room, int32_t n) noexcept nogil:
    cdef Placed* source = places
    cdef Placed* into = room
    cdef int32_t i, j, begin, middle, end, out
    while end_of_run(source, 0, n) < n:
        begin = out = 0
        while begin < n:
            middle = end_of_run(source, begin, n)
            end = end_of_run(source, middle, n) if middle < n else n
            i, j = begin, middle
            while i < middle and j < end:
                if source[j].time < source[i].time:
                    into[out] = source[j]
                    j += 1
                else:
                    into[out] = source[i]
                    i += 1
                out += 1
            memcpy(into + out, source + i, <size_t>(middle - i) * sizeof(Placed))
            out += middle - i
            memcpy(into + out, source + j, <size_t>(end - j) * sizeof(Placed))
            out += end - j
            begin = end
        source, into = into, source
    if source != places:
        memcpy(places, source, <size_t>n * sizeof(Placed))


cdef class Parts:
    """Searches for histories with certain operations and values."""

    def __cinit__(self, *args, int64_t memory=1 << 30, **kwargs):
        memset(&self.depth, 0, sizeof(Depth))
        self.limit = memory
        self.deadline_ns = INT64_MAX
        self.illegal_part = self.open_part = self.likely = -1
        table_open(&self.table, memory)

    def __dealloc__(self):
        table_close(&self.table)
        depth_free(&self.depth)
        free(self.known_symbols)

    # Learns a symbol: ANSWER_LEGAL, OUT_OF_MEMORY, or -1 for a record that the model must refuse.
    cdef int learn(self, int32_t symbol, const int64_t* row) noexcept nogil:
        return -1

    # Enters the answer that the model would give.
    cdef int answer_step(self, int32_t state, int32_t symbol) noexcept nogil:
        return OUT_OF_MEMORY

    # Prepares a search whose lanes are built.
    cdef void begin(self, const Record* records) noexcept nogil:
        pass

    def search(self, records, *, bint together=False, int criterion=REAL_TIME, bint ahead=True,
               int64_t most_steps=INT64_MAX):
        """Searches for an order of the records, part by part, or for all parts ``together``.

        The parts are searched in rounds, each with four times the steps of the one before, so that
        a hard part hides no illegal one. ``criterion``: 0 linearizable, 1 sequentially consistent,
        2 quiescently consistent.

        Returns (answer, way, steps, configurations): the answer as an index into ANSWERS, or -1 for
        unsuitable records; the order as indices.
        """
        if records.dtype != RECORD or not records.flags.c_contiguous:
            raise TypeError(
                f"records should be a contiguous array of history.RECORD, not of {records.dtype}"
            )
        cdef const Record* native = <const Record*>address_of(records)
        cdef int64_t n = len(records)
        cdef int64_t steps = 0
        cdef int64_t configurations = 0
        cdef int32_t placed = 0
        cdef int32_t i
        cdef int answer
        cdef int32_t* memory
        cdef Placed* places
        cdef bint known
        if n >= 1 << 29:
            return OUT_OF_MEMORY, [], 0, 0
        self.ahead = ahead and criterion == REAL_TIME
        # There are at most n new parts.
        memory = <int32_t*>malloc(
            (2 * <size_t>n + 2 * (<size_t>self.parts + <size_t>n + 1)) * sizeof(int32_t)
        )
        places = <Placed*>malloc((2 * <size_t>n + 1) * sizeof(Placed))
        try:
            if memory is NULL or places is NULL:
                raise MemoryError(f"no memory to check {n} calls")
            known = self.known_records is records
            with nogil:
                answer = ANSWER_LEGAL
                if known:
                    memcpy(memory, self.known_symbols, <size_t>n * sizeof(int32_t))
                else:
                    answer = self.intern(native, <int32_t>n, memory)
                if answer == ANSWER_LEGAL:
                    answer = self.all_parts(native, <int32_t>n, memory, together, criterion, most_steps,
                                            places, &placed, &steps, &configurations)
            way = [places[i].index for i in range(placed)] if answer == ANSWER_LEGAL else []
            return answer, way, steps, configurations
        finally:
            free(memory)
            free(places)

    def search_part(self, records, chosen, *, bint ahead=True, int64_t most_steps=INT64_MAX):
        """Searches for an order of the ``chosen`` records, an array of int32: those of one part.

        Arguments and result are those of search().
        """
        cdef const Record* native = <const Record*>address_of(records)
        cdef const int32_t* indices = <const int32_t*>address_of(chosen)
        cdef int32_t n = <int32_t>len(chosen)
        cdef int32_t i
        cdef int32_t placed = 0
        cdef int answer = OUT_OF_MEMORY
        cdef Placed* places
        if chosen.dtype != np.int32 or not chosen.flags.c_contiguous:
            raise TypeError("the chosen records should be a contiguous array of int32")
        for i in range(n):
            if not 0 <= indices[i] < len(records):
                raise ValueError("a chosen record is none of the records")
        if not self.takes(records):
            return self.refused or OUT_OF_MEMORY, [], 0, 0
        self.ahead = ahead
        self.illegal_part = self.open_part = -1
        places = <Placed*>malloc((<size_t>n + 1) * sizeof(Placed))
        if places is NULL:
            raise MemoryError(f"no memory to check {n} calls")
        try:
            with nogil:
                table_forget(&self.table)
                answer = self.one_part(native, indices, self.known_symbols, n, 1, REAL_TIME, most_steps)
                if answer == ANSWER_LEGAL:
                    placed = self.place(native, places, 0)
            return answer, [places[i].index for i in range(placed)], self.depth.spent, self.depth.seen.used
        finally:
            free(places)

    @property
    def blocked_at(self) -> int:
        """The first return among the calls that the longest order of the last search lacks."""
        return self.depth.best_returned

    @property
    def spent(self) -> int:
        """The steps of the last search of one part."""
        return self.depth.spent

    def takes(self, records) -> bool:
        """True when all records are suitable. The symbols of unchanging ones are kept."""
        cdef const Record* native = <const Record*>address_of(records)
        cdef int64_t n = len(records)
        if self.known_records is records:
            return True
        self.known_records = None
        self.known_symbols = <int32_t*>realloc(self.known_symbols, (<size_t>n + 1) * sizeof(int32_t))
        if self.known_symbols is NULL or n >= 1 << 29:
            return False
        if self.intern(native, <int32_t>n, self.known_symbols) != ANSWER_LEGAL:
            return False
        if not records.flags.writeable:
            self.known_records = records
        return True

    def symbols(self, records):
        """The number of each record among the distinct ones, as an array of int32.

        None: unsuitable records.
        """
        cdef int64_t n = len(records)
        if not self.takes(records):
            return None
        found = np.empty(n, np.int32)
        memcpy(<void*>address_of(found), self.known_symbols, <size_t>n * sizeof(int32_t))
        return found

    def pieces(self, records):
        """The indices of the records of each part, as arrays of int32, for suitable records."""
        cdef int32_t n = <int32_t>len(records)
        cdef int32_t i, part
        cdef int32_t begin = 0
        if not self.takes(records):
            return []
        order, ends = np.empty(n, np.int32), np.zeros(self.parts + 1, np.int32)
        cdef int32_t* calls = <int32_t*>address_of(order)
        cdef int32_t* end = <int32_t*>address_of(ends) + 1  # behind each part; at first its size
        for i in range(n):
            end[self.table.part[self.known_symbols[i]]] += 1
        for part in range(self.parts):
            begin += end[part]
            end[part] = begin - end[part]
        for i in range(n):
            part = self.table.part[self.known_symbols[i]]
            calls[end[part]] = i
            end[part] += 1
        return [order[end[part - 1]:end[part]] for part in range(self.parts) if end[part - 1] < end[part]]

    def calls_of_part(self, records):
        """The indices of the records of the illegal part of the last search; None: all of them.

        Of a search without an answer, those of the first part without an answer.
        """
        cdef int32_t part = max(self.illegal_part, self.open_part)
        cdef int32_t n = <int32_t>len(records)
        cdef int32_t count = 0
        cdef int32_t i
        if part < 0 or not self.takes(records):
            return None
        found = np.empty(n, np.int32)
        cdef int32_t* calls = <int32_t*>address_of(found)
        for i in range(n):
            if self.table.part[self.known_symbols[i]] == part:
                calls[count] = i
                count += 1
        return found[:count]

    # The part with the earliest return of a call that no state allows, as far as the calls alone
    # can tell; -1: none.
    cdef int32_t likely_part(
        self, const Record* records, int32_t n, const int32_t* symbols,
    ) noexcept nogil:
        return -1

    # Writes the symbols of all records into ``symbols``.
    cdef int intern(self, const Record* records, int32_t n, int32_t* symbols) noexcept nogil:
        cdef int32_t i
        pool_expect(&self.table.symbols, n)
        for i in range(n):
            if self.refused:
                return self.refused
            symbols[i] = symbol_of(&self.table, &records[i], self.by_thread)
            if symbols[i] < 0:
                return OUT_OF_MEMORY
            if symbols[i] < self.known:
                continue
            self.refused = self.learn(symbols[i], symbol_row(&self.table, symbols[i]))
            self.known = symbols[i] + 1
        return self.refused

    cdef int one_part(self, const Record* records, const int32_t* chosen, const int32_t* symbols, int32_t n,
                      int32_t parts, int criterion, int64_t most_steps) noexcept nogil:
        cdef int answer
        if not lanes_build(&self.depth.lanes, &self.table, records, chosen, symbols, n, criterion, False):
            return OUT_OF_MEMORY
        self.depth.real_time = criterion == REAL_TIME
        self.table.leads = self.ahead and self.has_leads
        if not depth_start(&self.depth, &self.table, self.first_state, parts, most_steps, self.limit, 0):
            return OUT_OF_MEMORY
        self.depth.deadline.at_ns = self.deadline_ns
        self.begin(records)
        while True:
            answer = depth_run(&self.depth, &self.table)
            if answer != MISSING_ANSWER:
                return answer
            answer = self.answer_step(self.depth.missing_state, self.depth.missing_symbol)
            if answer != ANSWER_LEGAL:
                return answer

    # Places each call of the order at a moment of its interval.
    cdef int32_t place(self, const Record* records, Placed* places, int32_t placed) noexcept nogil:
        cdef int32_t i, lane
        cdef int64_t now = INT64_MIN
        cdef int32_t n = <int32_t>self.depth.depth
        for i in range(n - 1, -1, -1):
            lane = self.depth.steps[i].lane
            self.depth.at[lane] -= 1
            places[placed + i].index = self.depth.lanes.ops[self.depth.at[lane]].index
        for i in range(placed, placed + n):
            now = max(now, records[places[i].index].invoked)
            places[i].time = now
            places[i].sequence = i
        return placed + n

    # Searches the parts and places the calls of a legal history; ``places`` is for 2n calls.
    cdef int all_parts(self, const Record* records, int32_t n, int32_t* memory, bint together, int criterion,
                       int64_t most_steps, Placed* places, int32_t* placed, int64_t* steps,
                       int64_t* configurations) noexcept nogil:
        cdef const int32_t* symbols = memory
        cdef int32_t* chosen = memory + n
        cdef int32_t* end = memory + 2 * n
        cdef int32_t* answers = end + self.parts + 1
        cdef int32_t i, turn, part, begin
        cdef int64_t most
        cdef int64_t few = FIRST_STEPS
        cdef bint more = True
        cdef int answer
        cdef int found = ANSWER_LEGAL
        cdef int32_t parts = 1 if together else self.parts
        self.illegal_part = self.open_part = self.likely = -1
        self.unanswered = 0
        if parts > 1:
            self.likely = self.likely_part(records, n, symbols)
        # The parts one after the other, each in its order; a part without calls is legal.
        for part in range(parts):
            end[part] = 0
            answers[part] = OUT_OF_STEPS
        for i in range(n):
            end[0 if together else self.table.part[symbols[i]]] += 1
        begin = 0
        for part in range(parts):
            if end[part] == 0:
                answers[part] = ANSWER_LEGAL
            begin += end[part]
            end[part] = begin - end[part]
        for i in range(n):
            part = 0 if together else self.table.part[symbols[i]]
            chosen[end[part]] = i
            end[part] += 1
        while more and steps[0] < most_steps:
            more = False
            for turn in range(parts):
                part = turn
                if turn <= self.likely:  # the likely part is the first one
                    part = turn - 1 if turn else self.likely
                if answers[part] != OUT_OF_STEPS:
                    continue
                begin = 0 if part == 0 else end[part - 1]
                most = max(0, most_steps - steps[0])
                if parts > 1:
                    table_forget(&self.table)
                    most = min(most, few * (end[part] - begin))
                answer = self.one_part(records, chosen + begin, symbols, end[part] - begin,
                                       max(1, self.parts) if together else 1, criterion, most)
                answers[part] = answer
                steps[0] += self.depth.spent
                configurations[0] = max(configurations[0], self.depth.seen.used)
                more = more or answer == OUT_OF_STEPS
                if answer == ANSWER_LEGAL:
                    placed[0] = self.place(records, places, placed[0])
                elif answer == ANSWER_ILLEGAL:
                    self.illegal_part = -1 if together else part
                    return answer
                elif answer == OUT_OF_TIME:
                    return answer
            few = min(4 * few, <int64_t>1 << 32)
        for part in range(parts):
            if answers[part] != ANSWER_LEGAL:
                self.unanswered += 1
                if found == ANSWER_LEGAL:
                    found = answers[part]
                    self.open_part = -1 if together else part
        if found == ANSWER_LEGAL and parts > 1:
            merge_runs(places, places + n, placed[0])
        return found
