"""Programs over Boost.Lockfree: SUBJECTS[name], THREADS[name]."""

include "../programs/subjects_cpp.pxi"

cdef extern from "tests/engine/strangers/boost_programs.hpp":
    const int BOOST_VERSION

VERSION = BOOST_VERSION
