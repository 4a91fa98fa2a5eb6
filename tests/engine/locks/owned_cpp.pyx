"""C++ programs about what belongs to a thread: SUBJECTS[name], THREADS[name]."""

include "../programs/subjects_cpp.pxi"

cdef extern from "tests/engine/locks/owned.hpp":
    pass
