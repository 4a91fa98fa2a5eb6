"""The programs of locks.h as subjects: SUBJECTS[name], THREADS[name], outcomes(name)."""

include "subjects.pxi"

cdef extern from "tests/quality/locks.h":
    pass
