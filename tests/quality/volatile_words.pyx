"""The programs of volatile_words.h as subjects: SUBJECTS[name], THREADS[name], outcomes(name)."""

from libc.stdint cimport int32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlSubject, wrap_subject

cdef extern from *:
    """
    #include "tests/quality/kit.h"
    #include "tests/quality/volatile_words.h"
    """
    ctypedef struct Program:
        PmlSubject subject
        int32_t threads
        uint64_t[64] outcomes
    Program[256] programs
    int n_programs

cdef int i
SUBJECTS = {}
NUMBERS = {}
for i in range(n_programs):
    subject = wrap_subject(&programs[i].subject, "quality", None)
    SUBJECTS[subject.name] = subject
    NUMBERS[subject.name] = i


def outcomes(str name):
    """The outcomes since the last call, each with the number of its executions."""
    cdef int number = NUMBERS[name]
    cdef int at
    found = {at: programs[number].outcomes[at] for at in range(64) if programs[number].outcomes[at]}
    for at in range(64):
        programs[number].outcomes[at] = 0
    return found
