"""The programs of owned.h as subjects: SUBJECTS[name], THREADS[name]."""

include "../programs/subjects.pxi"

cdef extern from "tests/engine/locks/owned.h":
    pass
