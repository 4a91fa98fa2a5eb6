"""The programs of locks.h as subjects: SUBJECTS[name], THREADS[name], outcomes(name)."""

include "../programs/subjects.pxi"

cdef extern from "tests/engine/locks/locks.h":
    pass
