# The programs of a module as subjects: SUBJECTS[name], THREADS[name], outcomes(name). The module
# includes this file and names the headers of its programs.

from libc.stdint cimport int32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlSubject, wrap_subject

cdef extern from "tests/engine/programs/kit.h":
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
    subject = wrap_subject(&programs[i].subject, "programs", None)
    SUBJECTS[subject.name] = subject
    THREADS[subject.name] = programs[i].threads
    NUMBERS[subject.name] = i


def outcome_count(str name, int outcome):
    """The number of executions that had this outcome so far."""
    return programs[<int>NUMBERS[name]].outcomes[outcome]


def outcomes(str name):
    """The outcomes since the last call, each with the number of its executions."""
    cdef int number = NUMBERS[name]
    cdef int at
    found = {at: programs[number].outcomes[at] for at in range(64) if programs[number].outcomes[at]}
    for at in range(64):
        programs[number].outcomes[at] = 0
    return found
