"""The native search for registers with reads, writes and compare-and-set.

It calls no model; see search.pxd.
"""

from __future__ import annotations

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.cells.cells cimport (
    EXCHANGES, GO_ON, MOST_VALUES, PUTS, SEES, SEES_NOT, Cell, CellCall, cell_free, cell_reserve,
)
from pulsar_ml.harness.linearize.cells.lists cimport cell_start
from pulsar_ml.harness.linearize.cells.search cimport cell_run, cell_way
from pulsar_ml.harness.linearize.limits.address cimport address_of
from pulsar_ml.harness.linearize.search.depth cimport ANSWER_LEGAL, OUT_OF_MEMORY
from pulsar_ml.harness.linearize.search.pool cimport mixed
from pulsar_ml.harness.linearize.search.table cimport RETURNED

from pulsar_ml.harness.histories.history import RECORD

assert RECORD.itemsize == sizeof(Record), "history.RECORD must have the layout of Record"

cdef enum:
    READ = 0
    WRITE = 1
    CAS = 2
    MOST_OPERATIONS = 16
    WRONG = -2            # a record that the model must refuse


# A hash map from words to consecutive numbers.
cdef struct Numbers:
    int64_t* words
    int32_t* numbers      # -1: free
    uint64_t mask
    int32_t used


cdef inline int32_t number_of(Numbers* numbers, int64_t word) noexcept nogil:
    cdef uint64_t at = mixed(<uint64_t>word * 0x9E3779B97F4A7C15ULL) & numbers.mask
    while numbers.numbers[at] >= 0:
        if numbers.words[at] == word:
            return numbers.numbers[at]
        at = (at + 1) & numbers.mask
    numbers.words[at] = word
    numbers.numbers[at] = numbers.used
    numbers.used += 1
    return numbers.numbers[at]


# The meaning of the fields of records.
cdef struct Reading:
    int32_t[16] kind      # by operation: READ, WRITE or CAS
    int64_t[16] failed    # by operation: the result, as a word, of a CAS that failed
    bint[16] can_fail
    bint values           # words are indices of values
    const int64_t* classes  # by value: equal values have one class
    int64_t n_classes
    int32_t keys          # arguments before those of the cell: 1 if the first is a key


cdef inline bint word_of(const Reading* reading, int64_t word, int64_t* into) noexcept nogil:
    if not reading.values:
        into[0] = word
        return True
    if word < 0 or word >= reading.n_classes:
        return False
    into[0] = reading.classes[word]
    return True


# Converts a record into a call, which is ``open`` or not: 1, 0 if it can be left out, or WRONG.
cdef inline int call_of(const Reading* reading, Numbers* numbers, const Record* record, int32_t index,
                        bint open_, CellCall* call) noexcept nogil:
    cdef int32_t kind = reading.kind[record.operation]
    cdef int64_t word
    cdef bint failed
    call.invoked = record.invoked
    call.returned = INT64_MAX if open_ else record.returned
    call.index = index
    call.done = call.endless = False
    call.seen = call.put = -1
    if kind == READ:
        call.kind = SEES
        if record.ending != RETURNED:
            return 0
        if not word_of(reading, record.result[0], &word):
            return WRONG
        call.seen = number_of(numbers, word)
        return not open_
    if not word_of(reading, record.arguments[reading.keys], &word):
        return WRONG
    if kind == WRITE:
        call.kind = PUTS
        call.put = number_of(numbers, word)
        return 1
    call.seen = number_of(numbers, word)
    if not word_of(reading, record.arguments[reading.keys + 1], &word):
        return WRONG
    if reading.values and not reading.keys and record.arguments[2] >= 0:
        return WRONG
    call.put = number_of(numbers, word)
    failed = (record.ending == RETURNED and reading.can_fail[record.operation]
              and record.result[0] == reading.failed[record.operation])
    if failed:
        call.kind = SEES_NOT
        return not open_
    call.kind = SEES if call.put == call.seen else EXCHANGES
    return call.kind == EXCHANGES or not open_


cdef class Cells:
    """Searches for histories with certain signatures and values.

    ``kinds``: for each operation READ, WRITE or CAS. ``failed``: for each operation the result, as
    a word, of a call that changed nothing, or None. ``classes``: for each of the history's values a
    number that equal values share; None: words are the values. ``initial``: the initial value, as a
    word or class. ``keyed``: the first argument of each call is a key; the records of one search
    have equal keys.
    """

    cdef Reading reading
    cdef Cell cell
    cdef int64_t* classes
    cdef int64_t initial
    cdef readonly int32_t operations
    cdef public int64_t deadline_ns

    def __cinit__(self, kinds, failed, classes, int64_t initial, *, bint keyed=False):
        cdef int i
        memset(&self.cell, 0, sizeof(Cell))
        self.deadline_ns = INT64_MAX
        self.operations = <int32_t>len(kinds)
        if self.operations > MOST_OPERATIONS:
            raise ValueError(f"a cell has at most {MOST_OPERATIONS} operations, not {len(kinds)}")
        for i in range(self.operations):
            self.reading.kind[i] = kinds[i]
            self.reading.can_fail[i] = failed[i] is not None
            self.reading.failed[i] = failed[i] if failed[i] is not None else 0
        self.reading.values = classes is not None
        self.initial = initial
        self.reading.keys = keyed
        if classes is not None:
            self.reading.n_classes = len(classes)
            self.classes = <int64_t*>malloc((len(classes) + 1) * sizeof(int64_t))
            if self.classes is NULL:
                raise MemoryError("no memory for the values of a history")
            for i, number in enumerate(classes):
                self.classes[i] = number
            self.reading.classes = self.classes

    def __dealloc__(self):
        cell_free(&self.cell)
        free(self.classes)

    def search(self, records, *, chosen=None, unconstrained=None, int64_t most_steps=INT64_MAX,
               int64_t memory=1 << 30):
        """Searches for an order of the ``chosen`` records (indices, int32; default: all).

        Returns (answer, way, steps, configurations): the answer as an index into ANSWERS, or -1 for
        an unsuitable record; the order as indices. ``unconstrained`` calls may
        take effect at any time, any number of times, or never.
        """
        if records.dtype != RECORD or not records.flags.c_contiguous:
            raise TypeError(
                f"records should be a contiguous array of history.RECORD, not of {records.dtype}"
            )
        cdef const Record* native = <const Record*>address_of(records)
        cdef const int32_t* its_chosen = NULL
        cdef const int32_t* its_loose = NULL
        cdef int64_t n_loose = 0
        cdef int64_t n = len(records)
        cdef int64_t size
        cdef int32_t count = 0
        cdef int32_t i
        cdef int answer
        cdef Numbers numbers
        cdef int32_t* way
        if chosen is not None:
            its_chosen = <const int32_t*>address_of(chosen)
            n = len(chosen)
        if unconstrained is not None:
            its_loose = <const int32_t*>address_of(unconstrained)
            n_loose = len(unconstrained)
        size = 16
        while size < 6 * (n + n_loose) + 4:
            size *= 2
        if n >= INT64_MAX // 64 or size * 12 > memory:
            return OUT_OF_MEMORY, [], 0, 0
        numbers.words = <int64_t*>malloc(<size_t>size * sizeof(int64_t))
        numbers.numbers = <int32_t*>malloc(<size_t>size * sizeof(int32_t))
        numbers.mask = <uint64_t>size - 1
        numbers.used = 0
        way = NULL
        try:
            if numbers.words is NULL or numbers.numbers is NULL:
                raise MemoryError("no memory for the values of a history")
            with nogil:
                memset(numbers.numbers, 0xFF, <size_t>size * sizeof(int32_t))
                answer = self.read(native, its_chosen, <int32_t>n, its_loose, <int32_t>n_loose,
                                   &numbers, &count)
                if answer == GO_ON:
                    answer = OUT_OF_MEMORY
                    if numbers.used <= MOST_VALUES:
                        answer = cell_start(&self.cell, count, numbers.used, 0, most_steps, memory)
                    if answer == GO_ON:
                        self.cell.deadline.at_ns = self.deadline_ns
                        answer = cell_run(&self.cell)
            if answer == WRONG:
                return -1, [], 0, 0
            found = []
            if answer == ANSWER_LEGAL and n_loose == 0:
                way = <int32_t*>malloc(4 * (<size_t>count + 1) * sizeof(int32_t))
                if way is NULL:
                    raise MemoryError(f"no memory for an order of {n} calls")
                count = cell_way(&self.cell, way + count + 1, way)
                found = [way[i] for i in range(count)]
            return answer, found, self.cell.spent, self.cell.n_variants
        finally:
            free(numbers.words)
            free(numbers.numbers)
            free(way)

    cdef int read(self, const Record* records, const int32_t* chosen, int32_t n, const int32_t* unconstrained,
                  int32_t n_loose, Numbers* numbers, int32_t* count) noexcept nogil:
        cdef int32_t i, at
        cdef int taken
        cdef bint open_
        cdef CellCall* call
        number_of(numbers, self.initial)
        # Each call has at most three values.
        if not cell_reserve(&self.cell, n + n_loose, 3 * (n + n_loose) + 1):
            return OUT_OF_MEMORY
        for i in range(n_loose):
            call = &self.cell.sorted[count[0]]
            taken = call_of(&self.reading, numbers, &records[unconstrained[i]], unconstrained[i], True, call)
            if taken == WRONG:
                return WRONG
            call.invoked = INT64_MIN
            call.endless = True
            count[0] += taken
        for i in range(n):
            at = chosen[i] if chosen is not NULL else i
            # A call that returned at INT64_MAX may be left out, too, but it has its result.
            open_ = records[at].ending != RETURNED or records[at].returned == INT64_MAX
            if records[at].operation < 0 or records[at].operation >= self.operations:
                return WRONG
            taken = call_of(&self.reading, numbers, &records[at], at, open_, &self.cell.sorted[count[0]])
            if taken == WRONG:
                return WRONG
            count[0] += taken
        return GO_ON
