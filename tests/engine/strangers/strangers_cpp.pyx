"""Programs over C++ structures of strangers: SUBJECTS[name], THREADS[name]."""

include "../programs/subjects_cpp.pxi"

cdef extern from "tests/engine/strangers/programs.hpp":
    pass
