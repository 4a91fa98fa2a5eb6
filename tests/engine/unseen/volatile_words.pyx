"""The programs of volatile_words.h as subjects: SUBJECTS[name], THREADS[name], outcomes(name)."""

include "../programs/subjects.pxi"

cdef extern from "tests/engine/unseen/volatile_words.h":
    pass
