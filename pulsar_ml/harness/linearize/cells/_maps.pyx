"""The native search for key-value maps of strings, whose steps need no model.

Everything else is the same as for any model: lanes, looking ahead, and one search for each key or
for all keys.
"""

from __future__ import annotations

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.search.depth cimport (
    ANSWER_ILLEGAL, ANSWER_LEGAL, MISSING_ANSWER, OUT_OF_MEMORY, OUT_OF_STEPS, OUT_OF_TIME, Depth, depth_free,
    depth_run, depth_start,
)
from pulsar_ml.harness.linearize.search.lanes cimport REAL_TIME, lanes_build
from pulsar_ml.harness.linearize.search.table cimport (
    ANY_CALL, LEADS, Table, mark_symbol, symbol_of, symbol_row, table_close, table_open, table_set,
)
from pulsar_ml.harness.linearize.search.texts cimport (
    NO_ROOM, NOTHING_HELD, Texts, text_after, text_begins, texts_free,
)

import numpy as np

from pulsar_ml.harness.histories.history import RECORD

assert RECORD.itemsize == sizeof(Record), "history.RECORD must have the layout of Record"

cdef enum:
    GET = 0
    PUT = 1
    APPEND = 2
    DELETE = 3
    MOST_OPERATIONS = 16
    WRONG = -1            # a record that the model must refuse, or values that are not strings
    PENDING_BIT = 1
    FIRST_STEPS = 32      # for each call of a part, in the first round
    IRRELEVANT = 0x7FFFFFFF  # represents any value of a key that no call observes


cdef struct Placed:
    int64_t time
    int32_t sequence
    int32_t index


cdef int in_time(const void* a, const void* b) noexcept nogil:
    cdef const Placed* one = <const Placed*>a
    cdef const Placed* other = <const Placed*>b
    if one.time != other.time:
        return -1 if one.time < other.time else 1
    return one.sequence - other.sequence


cdef class Maps:
    """Searches for histories with certain operations and values.

    ``kinds``: for each operation GET, PUT, APPEND or DELETE. ``values``: the values of the history.
    Keys may be any values; other values are strings, or None for a missing value.
    """

    cdef int32_t[16] kinds
    cdef int32_t operations
    cdef object values          # owns the strings
    cdef int64_t n_values
    cdef const char** text      # by value; NULL: not a string
    cdef int64_t* length
    cdef int32_t* number        # by value: the number of its text; 0: not yet known
    cdef int32_t* key           # by value: the first value that is equal
    cdef int32_t* part          # by such a key; -1: none
    cdef int64_t none           # the index of None; -1: none
    cdef Table table
    cdef Depth depth
    cdef Texts texts
    cdef int32_t known
    cdef readonly int32_t parts
    cdef int32_t illegal_part   # the illegal part of the last search; -1: none
    cdef int64_t limit
    cdef public int64_t deadline_ns

    def __cinit__(self, kinds, tuple values not None, *, int64_t memory=1 << 30):
        cdef int64_t i
        cdef Py_ssize_t length
        memset(&self.depth, 0, sizeof(Depth))
        memset(&self.texts, 0, sizeof(Texts))
        self.texts.limit = self.limit = memory
        self.deadline_ns = INT64_MAX
        table_open(&self.table, memory)
        self.table.leads = True
        self.operations = <int32_t>len(kinds)
        if self.operations > MOST_OPERATIONS:
            raise ValueError(f"a map has at most {MOST_OPERATIONS} operations, not {len(kinds)}")
        for i in range(self.operations):
            self.kinds[i] = kinds[i]
        self.values = values
        self.n_values = len(values)
        self.none = -1
        self.text = <const char**>malloc((<size_t>self.n_values + 1) * sizeof(char*))
        self.length = <int64_t*>malloc((<size_t>self.n_values + 1) * sizeof(int64_t))
        self.number = <int32_t*>malloc((<size_t>self.n_values + 1) * sizeof(int32_t))
        self.key = <int32_t*>malloc((<size_t>self.n_values + 1) * sizeof(int32_t))
        self.part = <int32_t*>malloc((<size_t>self.n_values + 1) * sizeof(int32_t))
        if (self.text is NULL or self.length is NULL or self.number is NULL or self.key is NULL
                or self.part is NULL):
            raise MemoryError("no memory for the values of a history")
        others = {}
        for i in range(self.n_values):
            value = values[i]
            self.number[i] = 0
            self.part[i] = -1
            self.text[i] = NULL
            self.key[i] = <int32_t>i
            if type(value) is str:
                self.text[i] = PyUnicode_AsUTF8AndSize(value, &length)
                self.length[i] = length
            else:
                # True, 1 and 1.0 are one key.
                self.key[i] = others.setdefault(value, i)
                if value is None:
                    self.none = i

    def __dealloc__(self):
        table_close(&self.table)
        depth_free(&self.depth)
        texts_free(&self.texts)
        free(self.text)
        free(self.length)
        free(self.number)
        free(self.key)
        free(self.part)

    def search(self, records, *, bint together=False, int64_t most_steps=INT64_MAX):
        """Searches for an order of the records, key by key, or for all keys ``together``.

        The keys are searched in rounds, each with four times the steps of the one before, so that
        a hard key hides no illegal one.

        Returns (answer, way, steps, configurations): the answer as an index into ANSWERS, or -1 for
        unsuitable records; the order as indices.
        """
        if records.dtype != RECORD or not records.flags.c_contiguous:
            raise TypeError(
                f"records should be a contiguous array of history.RECORD, not of {records.dtype}"
            )
        cdef const Record* native = <const Record*><size_t>records.ctypes.data
        cdef int64_t n = len(records)
        cdef int64_t steps = 0
        cdef int64_t configurations = 0
        cdef int32_t placed = 0
        cdef int32_t i
        cdef int answer
        cdef int32_t* memory
        cdef Placed* places
        if n >= 1 << 29:
            return OUT_OF_MEMORY, [], 0, 0
        memory = <int32_t*>malloc((4 * <size_t>n + 4) * sizeof(int32_t))
        places = <Placed*>malloc((<size_t>n + 1) * sizeof(Placed))
        try:
            if memory is NULL or places is NULL:
                raise MemoryError(f"no memory to check {n} calls")
            with nogil:
                answer = self.learn(native, <int32_t>n, memory)
                if answer == ANSWER_LEGAL:
                    answer = self.all_parts(native, <int32_t>n, memory, together, most_steps, places, &placed,
                                            &steps, &configurations)
            way = [places[i].index for i in range(placed)] if answer == ANSWER_LEGAL else []
            return answer, way, steps, configurations
        finally:
            free(memory)
            free(places)

    @property
    def illegal_key(self):
        """The key of the illegal part of the last search; None: none."""
        cdef int64_t i
        for i in range(self.n_values if self.illegal_part >= 0 else 0):
            if self.key[i] == i and self.part[i] == self.illegal_part:
                return self.values[i]
        return None

    def illegal_calls(self, records):
        """The indices of the records of the illegal part of the last search; None: all of them."""
        cdef const Record* native = <const Record*><size_t>records.ctypes.data
        cdef int64_t i
        if self.illegal_part < 0:
            return None
        return np.array([
            i for i in range(len(records))
            if self.table.part[symbol_of(&self.table, &native[i], False)] == self.illegal_part
        ], dtype=np.int32)

    # The number of the text of a value, or WRONG.
    cdef int32_t text_number(self, int64_t value) noexcept nogil:
        if value < 0 or value >= self.n_values or self.text[value] is NULL:
            return WRONG
        if self.number[value] == 0:
            self.number[value] = text_after(&self.texts, NOTHING_HELD, self.text[value], self.length[value])
        return self.number[value]

    # Writes the symbols of all records into ``symbols``.
    cdef int learn(self, const Record* records, int32_t n, int32_t* symbols) noexcept nogil:
        cdef int32_t i, kind, key
        cdef const int64_t* row
        for i in range(n):
            if records[i].operation < 0 or records[i].operation >= self.operations:
                return WRONG
            symbols[i] = symbol_of(&self.table, &records[i], False)
            if symbols[i] < 0:
                return OUT_OF_MEMORY
            if symbols[i] < self.known:
                continue
            row = symbol_row(&self.table, symbols[i])
            kind = self.kinds[row[0] >> 1]
            if row[2] < 0 or row[2] >= self.n_values:
                return WRONG
            if kind == PUT or kind == APPEND:
                if self.text_number(row[3]) < 0:
                    return WRONG
            elif kind == GET and not row[0] & PENDING_BIT and row[5] != self.none:
                if self.text_number(row[5]) < 0:
                    return WRONG
            key = self.key[row[2]]
            if self.part[key] < 0:
                self.part[key] = self.parts
                self.parts += 1
            if not mark_symbol(&self.table, symbols[i], kind == GET, self.part[key],
                               kind == PUT or kind == DELETE, ANY_CALL):
                return OUT_OF_MEMORY
            self.known = symbols[i] + 1
        return ANSWER_LEGAL

    # Enters the answer that the model would give.
    cdef int answer_step(self, int32_t state, int32_t symbol) noexcept nogil:
        cdef bint asks_lead = symbol & LEADS
        cdef const int64_t* row = symbol_row(&self.table, symbol & ~LEADS)
        cdef int32_t kind = self.kinds[row[0] >> 1]
        cdef int32_t count = 1
        cdef int32_t after = state
        if kind == GET:
            if row[0] & PENDING_BIT:
                count = 1
            elif state == IRRELEVANT:
                count = 0
            elif row[5] == self.none:
                count = state == NOTHING_HELD
            elif asks_lead:
                count = state == NOTHING_HELD or text_begins(&self.texts, self.number[row[5]], state)
            else:
                count = state == self.number[row[5]]
        elif kind == DELETE:
            after = NOTHING_HELD
        elif kind == PUT:
            after = self.number[row[3]]
        elif state != IRRELEVANT:
            after = text_after(&self.texts, state, self.text[row[3]], self.length[row[3]])
            if after == NO_ROOM:
                return OUT_OF_MEMORY
        return ANSWER_LEGAL if table_set(&self.table, state, symbol, &after, count) else OUT_OF_MEMORY

    cdef int one_part(self, const Record* records, const int32_t* chosen, const int32_t* symbols, int32_t n,
                      int32_t parts, int64_t most_steps) noexcept nogil:
        cdef int answer
        if not lanes_build(&self.depth.lanes, &self.table, records, chosen, symbols, n, REAL_TIME, False):
            return OUT_OF_MEMORY
        self.depth.real_time = True
        if not depth_start(&self.depth, &self.table, NOTHING_HELD, parts, most_steps, self.limit, 0):
            return OUT_OF_MEMORY
        self.depth.irrelevant_state = IRRELEVANT
        self.depth.deadline.at_ns = self.deadline_ns
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

    cdef int all_parts(self, const Record* records, int32_t n, int32_t* memory, bint together,
                       int64_t most_steps, Placed* places, int32_t* placed, int64_t* steps,
                       int64_t* configurations) noexcept nogil:
        cdef const int32_t* symbols = memory
        cdef int32_t* chosen = memory + n
        cdef int32_t* end = memory + 2 * n
        cdef int32_t* answers = memory + 3 * n + 1
        cdef int32_t i, part, begin
        cdef int64_t most
        cdef int64_t few = FIRST_STEPS
        cdef bint more = True
        cdef int answer
        cdef int found = ANSWER_LEGAL
        cdef int32_t parts = 1 if together else self.parts
        self.illegal_part = -1
        # The parts one after the other, each in its order; there are no more parts than records.
        for part in range(parts):
            end[part] = 0
            answers[part] = OUT_OF_STEPS
        for i in range(n):
            end[0 if together else self.table.part[symbols[i]]] += 1
        begin = 0
        for part in range(parts):
            begin += end[part]
            end[part] = begin - end[part]
        for i in range(n):
            part = 0 if together else self.table.part[symbols[i]]
            chosen[end[part]] = i
            end[part] += 1
        while more and steps[0] < most_steps:
            more = False
            for part in range(parts):
                if answers[part] != OUT_OF_STEPS:
                    continue
                begin = 0 if part == 0 else end[part - 1]
                most = max(0, most_steps - steps[0])
                if parts > 1:
                    most = min(most, few * (end[part] - begin))
                answer = self.one_part(records, chosen + begin, symbols, end[part] - begin,
                                       self.parts if together else 1, most)
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
            if answers[part] != ANSWER_LEGAL and found == ANSWER_LEGAL:
                found = answers[part]
        if found == ANSWER_LEGAL and parts > 1:
            qsort(places, <size_t>placed[0], sizeof(Placed), &in_time)
        return found
