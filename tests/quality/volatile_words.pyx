"""The programs of volatile_words.h as subjects: SUBJECTS[name], THREADS[name], outcomes(name)."""

include "subjects.pxi"

cdef extern from "tests/quality/volatile_words.h":
    pass
