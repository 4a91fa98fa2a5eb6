"""The programs of strangers/programs.h as subjects: SUBJECTS[name], THREADS[name]."""

include "subjects.pxi"

cdef extern from "tests/quality/strangers/programs.h":
    pass
