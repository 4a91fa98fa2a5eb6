"""Operations of JSON Lines as records, for files whose lines have the plain shape.

A line is an object with the keys of an operation and no others, in any order; threads are numbers
and stamps are whole. What a text means is asked of the JSON library once for each different text;
the rest is numbers and commas. A file of any other shape, damaged ones among them, is read by
another reader, which has the sentences about them.
"""

from __future__ import annotations

import json

cimport cython
import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.string cimport memchr, memcmp, memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.limits.arrays cimport array_free, array_grown
from pulsar_ml.harness.linearize.search.texts cimport (
    NO_ROOM, NOTHING_HELD, Texts, text_after, texts_free,
)

from pulsar_ml.harness.histories import history

cdef enum:
    ENDED = 0             # endings of a record
    OPEN = 1
    CRASHED = 2
    MOST_DIGITS = 18      # of a number that is read here
    ARGUMENTS = 3
    UNREAD = -1

cdef enum Key:
    THREAD = 1
    OPERATION = 2
    WORDS = 4
    RESULT = 8
    INVOKED = 16
    RETURNED = 32
    FATE = 64
    NEEDED = 63           # every key but the last

cdef struct Line:
    int64_t thread, invoked, returned, fate
    int32_t operation, result, n_words
    int32_t[3] words


cdef inline bint is_key(const char* text, Py_ssize_t length, const char* key, Py_ssize_t most) noexcept:
    return length == most and memcmp(text, key, <size_t>most) == 0


@cython.internal
cdef class Reader:
    """One reading of a text; ``found`` has the JSON value of each text in it, by number."""

    cdef const char* at
    cdef const char* end
    cdef Texts texts
    cdef int32_t* number      # by text: of the value; UNREAD
    cdef int64_t room
    cdef list found
    cdef object values        # Values
    cdef dict names

    def __cinit__(self):
        memset(&self.texts, 0, sizeof(Texts))
        self.texts.limit = INT64_MAX
        self.number = NULL
        self.room = 0
        self.found = [None]
        self.values = history.Values()
        self.names = {}

    def __dealloc__(self):
        texts_free(&self.texts)
        array_free(self.number, self.room * <int64_t>sizeof(int32_t))

    cdef void blank(self) noexcept:
        while self.at < self.end and (self.at[0] == c' ' or self.at[0] == c'\t'):
            self.at += 1

    # Goes behind one character, and blanks before and behind it; False where it is another one.
    cdef bint sign(self, char wanted) noexcept:
        self.blank()
        if self.at == self.end or self.at[0] != wanted:
            return False
        self.at += 1
        self.blank()
        return True

    # Goes behind a whole number.
    cdef bint whole(self, int64_t* number) noexcept:
        cdef bint minus = self.at < self.end and self.at[0] == c'-'
        cdef const char* first
        number[0] = 0
        self.at += minus
        first = self.at
        while self.at < self.end and c'0' <= self.at[0] <= c'9':
            if self.at - first == MOST_DIGITS:
                return False
            number[0] = 10 * number[0] + (self.at[0] - c'0')
            self.at += 1
        if self.at == first or (first[0] == c'0' and self.at - first > 1):
            return False
        if minus:
            number[0] = -number[0]
        return True

    cdef bint word(self, const char* text, Py_ssize_t length) noexcept:
        if self.end - self.at < length or memcmp(self.at, text, <size_t>length) != 0:
            return False
        self.at += length
        return True

    # Goes behind the string that begins here; control characters are not allowed in one.
    cdef bint string(self, bint* plain) noexcept:
        self.at += 1
        while self.at < self.end and self.at[0] != c'"':
            if <unsigned char>self.at[0] < 32:
                return False
            if self.at[0] == c'\\':
                plain[0] = False
                self.at += 1
            self.at += 1
        self.at += 1
        return self.at <= self.end

    # Goes behind a value; False where it surely has none. ``plain``: a string without escapes.
    cdef bint value(self, bint* plain) noexcept:
        cdef int64_t depth = 0
        cdef bint inner = False
        cdef char sign
        plain[0] = self.at < self.end and self.at[0] == c'"'
        if plain[0]:
            return self.string(plain)
        while self.at < self.end:
            sign = self.at[0]
            if sign == c'"':
                if not depth or not self.string(&inner):
                    return False
                continue
            # An object is no value of a history, and NaN differs from itself.
            if sign == c'{' or sign == c'N' or sign == c'I' or sign == c'\n' or sign == c'\r':
                return False
            if sign == c'[':
                depth += 1
            elif depth == 0 and (sign == c',' or sign == c'}' or sign == c']' or sign == c' '):
                return True
            elif sign == c']':
                depth -= 1
            self.at += 1
        return False

    # The number of the text of a value, which is behind then; UNREAD where it is none.
    cdef int32_t text(self) except -2:
        cdef const char* first = self.at
        cdef bint plain = False
        cdef int32_t number
        cdef void* grown
        if not self.value(&plain):
            return UNREAD
        number = text_after(&self.texts, NOTHING_HELD, first, self.at - first)
        if number == NO_ROOM:
            return UNREAD
        if number < len(self.found):
            return number
        if number >= self.room:
            grown = array_grown(self.number, &self.room, number + 1, sizeof(int32_t))
            if grown is NULL:
                return UNREAD
            self.number = <int32_t*>grown
        try:
            if plain:
                self.found.append(first[1:self.at - first - 1].decode())
            else:
                self.found.append(json.loads(PyBytes_FromStringAndSize(first, self.at - first)))
        except (ValueError, RecursionError):
            return UNREAD
        self.number[number] = UNREAD
        return number

    cdef int32_t key(self) noexcept:
        cdef const char* first
        cdef const char* last
        cdef Py_ssize_t length
        if self.at == self.end or self.at[0] != c'"':
            return 0
        first = self.at + 1
        last = <const char*>memchr(first, c'"', self.end - first)
        if last is NULL:
            return 0
        length = last - first
        self.at = last + 1
        if not self.sign(c':'):
            return 0
        if is_key(first, length, b"thread", 6):
            return THREAD
        if is_key(first, length, b"operation", 9):
            return OPERATION
        if is_key(first, length, b"arguments", 9):
            return WORDS
        if is_key(first, length, b"result", 6):
            return RESULT
        if is_key(first, length, b"invoked", 7):
            return INVOKED
        if is_key(first, length, b"returned", 8):
            return RETURNED
        return FATE if is_key(first, length, b"crashed", 7) else 0

    cdef bint words(self, Line* line) except -1:
        line.n_words = 0
        if not self.sign(c'['):
            return False
        while self.at < self.end and self.at[0] != c']':
            if line.n_words == ARGUMENTS or (line.n_words and not self.sign(c',')):
                return False
            line.words[line.n_words] = self.text()
            if line.words[line.n_words] == UNREAD:
                return False
            line.n_words += 1
            self.blank()
        return self.sign(c']')

    # Reads the value of a key.
    cdef bint part(self, int32_t key, Line* line) except -1:
        if key == WORDS:
            return self.words(line)
        if key == OPERATION:
            if self.at == self.end or self.at[0] != c'"':
                return False
            line.operation = self.text()
            return line.operation != UNREAD
        if key == RESULT:
            line.result = self.text()
            return line.result != UNREAD
        if key == THREAD:
            return self.whole(&line.thread) and 0 <= line.thread <= 0x7FFFFFFF
        if key == INVOKED:
            return self.whole(&line.invoked)
        if key == RETURNED:
            if self.word(b"null", 4):
                line.returned = INT64_MAX
                return True
            return self.whole(&line.returned)
        line.fate = self.word(b"true", 4)
        return line.fate or self.word(b"false", 5)

    cdef bint line(self, Line* line) except -1:
        cdef int32_t seen = 0
        cdef int32_t key
        line.fate = False
        if not self.sign(c'{'):
            return False
        while True:
            key = self.key()
            if not key or seen & key or not self.part(key, line):
                return False
            seen |= key
            if self.sign(c'}'):
                break
            if not self.sign(c','):
                return False
        return seen & NEEDED == NEEDED and line.invoked <= line.returned

    # Goes to the next line that is not blank; returns the number of lines, -1 behind other signs.
    cdef int64_t next_line(self) noexcept:
        cdef int64_t passed = 0
        while True:
            self.blank()
            if self.at < self.end and self.at[0] == c'\r':
                self.at += 1
                if self.at < self.end and self.at[0] != c'\n':
                    return -1
            if self.at == self.end:
                return passed
            if self.at[0] != c'\n':
                return passed
            self.at += 1
            passed += 1

    cdef int64_t value_of(self, int32_t text) except -1:
        if self.number[text] == UNREAD:
            self.number[text] = self.values.number(self.found[text])
        return self.number[text]

    cdef int32_t name_of(self, int32_t text) except -1:
        return self.names.setdefault(self.found[text], len(self.names))


def operations(str text not None, int64_t first, int64_t number):
    """Returns the records, values, names of operations and numbers of lines, or None.

    ``first`` is the byte in UTF-8 with which the lines begin, ``number`` the number of the line.
    """
    cdef Py_ssize_t length
    cdef const char* begin = PyUnicode_AsUTF8AndSize(text, &length)
    cdef Reader reader = Reader()
    cdef Line line
    cdef int64_t n = 0
    cdef int64_t passed, i
    cdef Record[::1] rows
    cdef int64_t[::1] numbers
    cdef Record* row
    reader.at = begin + min(first, length)
    reader.end = begin + length
    records = np.zeros(text.count("\n") + 1, history.RECORD)
    places = np.empty(len(records), np.int64)
    if not records.dtype.itemsize == sizeof(Record):
        raise TypeError("the records have another layout")
    rows, numbers = records, places
    while True:
        passed = reader.next_line()
        if passed < 0 or (n and not passed and reader.at < reader.end):
            return None
        number += passed
        if reader.at == reader.end:
            break
        if not reader.line(&line):
            return None
        row = &rows[n]
        numbers[n] = number
        row.thread = <int32_t>line.thread
        row.operation = reader.name_of(line.operation)
        for i in range(ARGUMENTS):
            row.arguments[i] = reader.value_of(line.words[i]) if i < line.n_words else UNREAD
        row.invoked = line.invoked
        row.returned = line.returned
        if line.returned != INT64_MAX:
            row.result[0] = reader.value_of(line.result)
            row.ending = ENDED
        else:
            row.result[0] = UNREAD
            row.ending = CRASHED if line.fate else OPEN
        n += 1
    if overlapping(rows[:n], records[:n]):
        return None
    return records[:n].copy(), reader.values.values, list(reader.names), places[:n].tolist()


# True when an operation begins inside another one of its thread that returned.
cdef bint overlapping(Record[::1] rows, records) except -1:
    cdef int64_t[::1] order
    cdef int64_t i
    cdef int64_t until = 0
    cdef int32_t thread = -1
    if not len(records):
        return False
    order = np.lexsort((records["invoked"], records["thread"])).astype(np.int64)
    for i in range(order.shape[0]):
        row = rows[order[i]]
        if row.thread != thread:
            thread = row.thread
        elif until > row.invoked:
            return True
        elif row.ending != ENDED:
            continue
        until = row.returned if row.ending == ENDED else -INT64_MAX
    return False
