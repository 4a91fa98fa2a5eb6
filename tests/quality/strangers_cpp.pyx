"""Programs over C++ structures of strangers: SUBJECTS[name], THREADS[name]."""

include "subjects_cpp.pxi"

cdef extern from "tests/quality/strangers/programs.hpp":
    pass
