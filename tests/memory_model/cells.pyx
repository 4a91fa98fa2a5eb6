"""The cells of cells.h as a subject: SUBJECTS["cells"].

Outcomes() of the executions since the last call.
"""

from libc.stdint cimport uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlSubject, wrap_subject

cdef extern from "tests/memory_model/cells.h":
    ctypedef struct Outcome:
        uint64_t[4] results
        uint64_t finals
    Outcome[1 << 14] outcomes_seen "outcomes"
    int n_outcomes
    PmlSubject cells_subject

SUBJECTS = {"cells": wrap_subject(&cells_subject, "memory_model", None)}


def outcomes():
    """Return the distinct outcomes, each a tuple of four words of results and the final values."""
    global n_outcomes
    cdef int i
    found = {
        (outcomes_seen[i].results[0], outcomes_seen[i].results[1], outcomes_seen[i].results[2],
         outcomes_seen[i].results[3], outcomes_seen[i].finals)
        for i in range(n_outcomes)
    }
    n_outcomes = 0
    return found
