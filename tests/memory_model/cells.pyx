"""The cells of cells.h as a subject: SUBJECTS["cells"], and the outcomes of its executions."""

from libc.stdint cimport uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlSubject, wrap_subject

cdef extern from "tests/memory_model/cells.h":
    ctypedef struct Outcome:
        uint64_t[4] results
        uint64_t finals
    Outcome[1 << 14] outcomes_seen "outcomes"
    int n_outcomes
    PmlCall[4][16] child_calls
    int[4] n_child_calls
    void note_deadlock()
    PmlSubject cells_subject
    int faulty

SUBJECTS = {"cells": wrap_subject(&cells_subject, "memory_model", None)}


def set_child(int thread, calls):
    """Set the calls of a thread that another thread starts: tuples (code, noise, arguments)."""
    cdef int i, j
    n_child_calls[thread] = len(calls)
    for i in range(len(calls)):
        child_calls[thread][i].code = calls[i][0]
        child_calls[thread][i].noise = 0
        for j in range(3):
            child_calls[thread][i].arguments[j] = calls[i][2][j]


def set_faulty(bint on):
    """Let exchanges be weak, and fences be allocations of memory, from now on or no longer."""
    global faulty
    faulty = on


def add_deadlock():
    """Keep the results of the last execution, which ended as a deadlock, as an outcome."""
    note_deadlock()


def outcomes():
    """Return the distinct outcomes since the last call: four words of results, and the finals."""
    global n_outcomes
    cdef int i
    found = {
        (outcomes_seen[i].results[0], outcomes_seen[i].results[1], outcomes_seen[i].results[2],
         outcomes_seen[i].results[3], outcomes_seen[i].finals)
        for i in range(n_outcomes)
    }
    n_outcomes = 0
    return found
