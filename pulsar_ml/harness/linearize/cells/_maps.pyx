"""The native search for key-value maps of strings, whose steps need no model.

Everything else is the same as for any model: lanes, looking ahead, and one search for each key or
for all keys.
"""

from __future__ import annotations

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.cells._parts cimport Parts
from pulsar_ml.harness.linearize.search.depth cimport ANSWER_LEGAL, OUT_OF_MEMORY
from pulsar_ml.harness.linearize.search.table cimport (
    ANY_CALL, LEADS, RETURNED, mark_sole, mark_symbol, symbol_row, table_set,
)
from pulsar_ml.harness.linearize.search.texts cimport (
    NO_ROOM, NOTHING_HELD, Texts, text_after, text_begins, texts_free,
)

cdef enum:
    GET = 0
    PUT = 1
    APPEND = 2
    DELETE = 3
    MOST_OPERATIONS = 16
    WRONG = -1            # a record that the model must refuse, or values that are not strings
    PENDING_BIT = 1
    MOST_GUESSED = 4_096  # records; in more, the look takes longer than it saves
    MOST_LOOKS = 16       # at values that may end a text that was read, for each call
    IRRELEVANT = 0x7FFFFFFF  # represents any value of a key that no call observes


# True when a read has the text of an earlier one, and a read between them has another text.
cdef bint is_older(const Record* records, int32_t read, const int32_t* before) noexcept nogil:
    cdef int64_t between = INT64_MIN  # the last invocation of one that returned before this read
    cdef int32_t other = before[read]
    cdef int looks = MOST_LOOKS
    while other >= 0 and looks:
        if records[other].result[0] != records[read].result[0]:
            if records[other].returned < records[read].invoked:
                between = max(between, records[other].invoked)
        elif records[other].returned < between:
            return True
        looks -= 1
        other = before[other]
    return False


cdef class Maps(Parts):
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
    cdef Texts texts

    def __cinit__(self, kinds, tuple values not None, *, int64_t memory=1 << 30):
        cdef int64_t i
        cdef Py_ssize_t length
        memset(&self.texts, 0, sizeof(Texts))
        self.texts.limit = memory
        self.first_state = NOTHING_HELD
        self.has_leads = True
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
        texts_free(&self.texts)
        free(self.text)
        free(self.length)
        free(self.number)
        free(self.key)
        free(self.part)

    @property
    def illegal_key(self):
        """The key of the illegal part of the last search; None: none."""
        cdef int64_t i
        for i in range(self.n_values if self.illegal_part >= 0 else 0):
            if self.key[i] == i and self.part[i] == self.illegal_part:
                return self.values[i]
        return None

    cdef bint is_text(self, int64_t value) noexcept nogil:
        return 0 <= value < self.n_values and self.text[value] is not NULL

    # The number of the text of a value, which gets one when it is first needed; NO_ROOM without
    # memory.
    cdef int32_t text_number(self, int64_t value) noexcept nogil:
        if self.number[value] == 0:
            self.number[value] = text_after(&self.texts, NOTHING_HELD, self.text[value], self.length[value])
        return self.number[value]

    cdef int learn(self, int32_t symbol, const int64_t* row) noexcept nogil:
        cdef int32_t key
        cdef int32_t kind
        if (row[0] >> 1) < 0 or (row[0] >> 1) >= self.operations or row[2] < 0 or row[2] >= self.n_values:
            return WRONG
        kind = self.kinds[row[0] >> 1]
        if kind == PUT or kind == APPEND:
            if not self.is_text(row[3]):
                return WRONG
        elif kind == GET and not row[0] & PENDING_BIT and row[5] != self.none:
            if not self.is_text(row[5]):
                return WRONG
        key = self.key[row[2]]
        if self.part[key] < 0:
            self.part[key] = self.parts
            self.parts += 1
        if not mark_symbol(&self.table, symbol, kind == GET, self.part[key],
                           kind == PUT or kind == DELETE, ANY_CALL):
            return OUT_OF_MEMORY
        return ANSWER_LEGAL

    # Reads are looked at in the order of the records. One is wrong if it has an older text than a
    # read before it, or if its text does not end with a value that was put or appended by then. As
    # texts may come again, and few other reads and values are compared, this is a guess.
    cdef int32_t likely_part(
        self, const Record* records, int32_t n, const int32_t* symbols,
    ) noexcept nogil:
        cdef int32_t* added  # by part: the last put
        cdef int32_t* read   # by part: the last read
        cdef int32_t* before  # by record: the one of its kind before it
        cdef int32_t* open_  # reads whose end was not found among the puts before them
        cdef int32_t n_open = 0
        cdef int32_t likely = -1
        cdef int32_t i, part, kind
        cdef int64_t looks
        cdef int64_t first = INT64_MAX
        if n > MOST_GUESSED:
            return -1
        added = <int32_t*>malloc(2 * (<size_t>self.parts + <size_t>n) * sizeof(int32_t))
        if added is NULL:
            return -1
        read = added + self.parts
        before = read + self.parts
        open_ = before + n
        memset(added, 255, 2 * <size_t>self.parts * sizeof(int32_t))
        for i in range(n):
            if records[i].invoked > first:
                break
            part = self.table.part[symbols[i]]
            kind = self.kinds[records[i].operation]
            if kind == PUT or kind == APPEND:
                before[i] = added[part]
                added[part] = i
            elif kind == GET and records[i].ending == RETURNED:
                before[i] = read[part]
                read[part] = i
                looks = MOST_LOOKS
                if records[i].returned < first and is_older(records, i, before):
                    first = records[i].returned
                    likely = part
                elif records[i].result[0] != self.none and not self.is_end(records, i, added[part], before,
                                                                           &looks):
                    open_[n_open] = i
                    n_open += 1
        looks = MOST_LOOKS * <int64_t>n
        for i in range(n_open):
            part = self.table.part[symbols[open_[i]]]
            if (records[open_[i]].returned < first
                    and not self.is_end(records, open_[i], added[part], before, &looks) and looks > 0):
                first = records[open_[i]].returned
                likely = part
        free(added)
        return likely

    # True when a read has a text that ends with the value of the record ``other``, or of one before
    # it, that was invoked before the read returned. ``looks`` bounds how many are compared.
    cdef bint is_end(self, const Record* records, int32_t read, int32_t other, const int32_t* before,
                     int64_t* looks) noexcept nogil:
        cdef int64_t text = records[read].result[0]
        cdef const char* end = self.text[text] + self.length[text]
        cdef int64_t length, value
        while other >= 0 and looks[0] > 0:
            value = records[other].arguments[1]
            length = self.length[value]
            if (records[other].invoked <= records[read].returned and length <= self.length[text]
                    and memcmp(end - length, self.text[value], <size_t>length) == 0):
                return True
            looks[0] -= 1
            other = before[other]
        return False

    cdef void begin(self, const Record* records) noexcept nogil:
        self.depth.irrelevant_state = IRRELEVANT if self.ahead else -1

    # Enters the answer that the model would give.
    cdef int answer_step(self, int32_t state, int32_t symbol) noexcept nogil:
        cdef bint asks_lead = symbol & LEADS
        cdef const int64_t* row = symbol_row(&self.table, symbol & ~LEADS)
        cdef int32_t kind = self.kinds[row[0] >> 1]
        cdef int32_t count = 1
        cdef int32_t after = state
        cdef int32_t seen
        if kind == GET:
            if row[0] & PENDING_BIT:
                count = 1
            elif asks_lead and state == IRRELEVANT:
                count = 0
            else:
                seen = NOTHING_HELD if row[5] == self.none else self.text_number(row[5])
                if seen == NO_ROOM:
                    return OUT_OF_MEMORY
                if not asks_lead:
                    mark_sole(&self.table, symbol, seen)
                    return ANSWER_LEGAL
                if seen == NOTHING_HELD:
                    count = state == NOTHING_HELD
                else:
                    count = state == NOTHING_HELD or text_begins(&self.texts, seen, state)
        elif kind != APPEND:
            after = NOTHING_HELD if kind == DELETE else self.text_number(row[3])
            if after == NO_ROOM:
                return OUT_OF_MEMORY
            mark_sole(&self.table, symbol, after)
            return ANSWER_LEGAL
        elif state != IRRELEVANT:
            after = text_after(&self.texts, state, self.text[row[3]], self.length[row[3]])
            if after == NO_ROOM:
                return OUT_OF_MEMORY
        return ANSWER_LEGAL if table_set(&self.table, state, symbol, &after, count) else OUT_OF_MEMORY
