"""Programs over Boost.Lockfree: SUBJECTS[name], THREADS[name]."""

include "subjects_cpp.pxi"

cdef extern from "tests/quality/strangers/boost_programs.hpp":
    const int BOOST_VERSION

VERSION = BOOST_VERSION
