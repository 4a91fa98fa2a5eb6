"""C++ programs about what belongs to a thread: SUBJECTS[name], THREADS[name]."""

include "subjects_cpp.pxi"

cdef extern from "tests/quality/owned.hpp":
    pass
