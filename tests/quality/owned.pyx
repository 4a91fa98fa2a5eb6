"""The programs of owned.h as subjects: SUBJECTS[name], THREADS[name]."""

include "subjects.pxi"

cdef extern from "tests/quality/owned.h":
    pass
