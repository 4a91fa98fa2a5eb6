"""The programs of owned.h as subjects: SUBJECTS[name], THREADS[name]."""

from libc.stdint cimport int32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlSubject, wrap_subject

cdef extern from *:
    """
    #include "tests/quality/kit.h"
    #include "tests/quality/owned.h"
    """
    ctypedef struct Program:
        PmlSubject subject
        int32_t threads
        uint64_t[64] outcomes
    Program[256] programs
    int n_programs

cdef int i
SUBJECTS = {}
THREADS = {}
NUMBERS = {}
for i in range(n_programs):
    subject = wrap_subject(&programs[i].subject, "quality", None)
    SUBJECTS[subject.name] = subject
    THREADS[subject.name] = programs[i].threads
    NUMBERS[subject.name] = i


