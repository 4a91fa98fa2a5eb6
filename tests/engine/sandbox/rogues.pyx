"""The programs of rogues.h as subjects: SUBJECTS[name]."""

include "../programs/subjects.pxi"

cdef extern from "tests/engine/sandbox/rogues.h":
    pass
