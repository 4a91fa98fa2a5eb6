"""The small programs of this folder as subjects: SUBJECTS[name], THREADS[name], outcomes(name)."""

from libc.stdint cimport int32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlSubject, wrap_subject

cdef extern from *:
    """
    #include "tests/quality/kit.h"
    #include "tests/quality/litmus.h"
    #include "tests/quality/bugs.h"
    #include "tests/quality/structures.h"
    #include "tests/quality/counts.h"
    #include "tests/quality/races.h"
    #include "tests/quality/bounds.h"
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


def outcomes(str name):
    """How many executions had which outcome, since the last call."""
    cdef int number = NUMBERS[name]
    cdef int at
    found = {at: programs[number].outcomes[at] for at in range(64) if programs[number].outcomes[at]}
    for at in range(64):
        programs[number].outcomes[at] = 0
    return found
