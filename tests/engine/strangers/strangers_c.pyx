"""The programs of strangers/programs.h as subjects: SUBJECTS[name], THREADS[name]."""

include "../programs/subjects.pxi"

cdef extern from "tests/engine/strangers/programs.h":
    pass
