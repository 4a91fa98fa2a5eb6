"""Locks and threads of the C++ library, wrong and, as NAME_fixed, right: SUBJECTS[name],
THREADS[name].
"""

include "subjects_cpp.pxi"

cdef extern from "tests/quality/locks.hpp":
    pass
