"""The programs of rogues.h as subjects: SUBJECTS[name]."""

include "subjects.pxi"

cdef extern from "tests/quality/rogues.h":
    pass
