"""Locks and threads of the C++ library, wrong and, as NAME_fixed, right: SUBJECTS[name],
THREADS[name].
"""

from libc.stdint cimport int32_t

from pulsar_ml.harness.subjects.subject cimport PmlSubject, wrap_subject

cdef extern from *:
    """
    #include "tests/quality/locks.hpp"
    """
    ctypedef struct CppProgram:
        PmlSubject subject
        int32_t threads
    CppProgram[128] cpp_programs
    int n_cpp_programs

cdef int i
SUBJECTS = {}
THREADS = {}
for i in range(n_cpp_programs):
    subject = wrap_subject(&cpp_programs[i].subject, "quality", None)
    SUBJECTS[subject.name] = subject
    THREADS[subject.name] = cpp_programs[i].threads
