"""Locks and threads of the C++ library, wrong and, as NAME_fixed, right: SUBJECTS[name],
THREADS[name].
"""

include "../programs/subjects_cpp.pxi"

cdef extern from "tests/engine/locks/locks.hpp":
    pass
