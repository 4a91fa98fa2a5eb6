"""The face of the models: outcomes and execution graphs of a litmus program, from machine.hpp."""

from libc.stdint cimport uint8_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.set cimport set as cset
from cython.operator cimport dereference, preincrement

cdef extern from "machine.hpp" namespace "model" nogil:
    cdef struct Call:
        uint8_t kind, cell, order, value, expected
    cdef cppclass Outcome:
        uint64_t[4] results
        uint64_t finals
    cdef cppclass Program:
        int threads, roots
        void add(int thread, Call call)
        unsigned faults, defects
        cbool buffered, strengthened

cdef extern from "machine.hpp" namespace "model" nogil:
    cdef cppclass Exploration[Memory]:
        cset[Outcome] outcomes
        size_t states, complete
        Exploration(const Program& program, size_t most) except +
        void run() except +

cdef extern from "buffers.hpp" namespace "model" nogil:
    cdef cppclass Buffers:
        pass

cdef extern from "graphs.hpp" namespace "model" nogil:
    cdef cppclass Graph:
        pass


cdef extern from "arm.hpp" namespace "model" nogil:
    cdef cppclass Assembly:
        void add(int thread, unsigned properties)
        unsigned omitted
    cdef cppclass Verdicts:
        cset[Outcome] arm, buffering, c11, engine
        size_t allowed, buffered, graphs, forbidden
    Verdicts judge(const Program& program, const Assembly& assembly) except +


cdef found(const cset[Outcome]& outcomes):
    rows = set()
    cdef cset[Outcome].const_iterator at = outcomes.const_begin()
    while at != outcomes.const_end():
        rows.add((
            dereference(at).results[0], dereference(at).results[1], dereference(at).results[2],
            dereference(at).results[3], dereference(at).finals,
        ))
        preincrement(at)
    return rows


cdef Program program_of(threads, int roots):
    cdef Program program
    cdef Call call
    cdef int t
    program.threads = len(threads)
    program.roots = roots
    for t in range(program.threads):
        for call.kind, call.cell, call.order, call.value, call.expected in threads[t]:
            program.add(t, call)
    return program


def explore(threads, int roots, *, str mode, bint strengthened=True, unsigned faults=0,
            unsigned defects=0, size_t most_states=4_000_000):
    """Return the outcomes of a program, each a tuple of five words, and its number of graphs.

    ``threads`` are sequences of calls (kind, cell, order, value, expected), of which the first
    ``roots`` run from the beginning. The number of graphs is 0 in the modes "sc" and "tso".
    """
    cdef Program program = program_of(threads, roots)
    cdef Exploration[Graph]* graphs
    cdef Exploration[Buffers]* buffers
    program.faults = faults
    program.defects = defects
    program.buffered = mode == "tso"
    program.strengthened = strengthened
    if mode == "c11":
        graphs = new Exploration[Graph](program, most_states)
        try:
            with nogil:
                graphs.run()
            return found(graphs.outcomes), graphs.complete
        finally:
            del graphs
    buffers = new Exploration[Buffers](program, most_states)
    try:
        with nogil:
            buffers.run()
        return found(buffers.outcomes), 0
    finally:
        del buffers


def judge_arm(threads, assembly, unsigned omitted=0):
    """Return the outcomes that AArch64 allows a program without load buffering, those by load
    buffering, those of RC11, and of RC11 strengthened as the engine is; and the numbers of
    executions: that Arm allows, of those with load buffering, that RC11 allows, and that RC11
    forbids though Arm allows them and they have no load buffering.

    ``threads`` are as in ``explore``, and ``assembly`` has the properties of each call's
    instructions, bits of arm.hpp. A call is an access or a fence. ``omitted`` are rules of Arm's
    model that are left out.
    """
    cdef Program program = program_of(threads, len(threads))
    cdef Assembly properties
    cdef Verdicts verdicts
    cdef int t
    cdef unsigned each
    program.strengthened = False
    properties.omitted = omitted
    for t in range(program.threads):
        for each in assembly[t]:
            properties.add(t, each)
    with nogil:
        verdicts = judge(program, properties)
    return (
        found(verdicts.arm), found(verdicts.buffering), found(verdicts.c11), found(verdicts.engine),
        (verdicts.allowed, verdicts.buffered, verdicts.graphs, verdicts.forbidden),
    )
