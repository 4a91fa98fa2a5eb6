# The question to a checker outside the engine about each new history, before a run stops at it.

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.subjects.subject cimport PmlResult

cdef extern from "pulsar_ml/harness/engine/engine.h" nogil:
    ctypedef struct EngineCall:
        uint32_t invoked, returned, exchanged, exchanged_last
        PmlResult result

    const EngineCall* engine_calls(int thread) noexcept


ctypedef int (*Legal)(void* checker, const Record* records, int32_t n) noexcept nogil


# Which call of the execution a record is about.
cdef struct JudgedCall:
    int32_t thread
    int32_t call
    bint ends
    bint blank            # without what it will answer


cdef struct Question:
    Legal legal
    void* checker
    Record* records
    const JudgedCall* places
    int32_t n
    int64_t* counts


cdef inline int known(void* oracle) noexcept nogil:
    cdef Question* question = <Question*>oracle
    cdef const EngineCall* call
    cdef Record* record
    cdef int32_t i
    if question.n == 0:
        return 0
    for i in range(question.n):
        call = engine_calls(question.places[i].thread) + question.places[i].call
        record = &question.records[i]
        record.invoked = call.invoked
        record.returned = call.returned
        if question.places[i].ends:
            record.moment = <int32_t>call.exchanged_last
        else:
            record.moment = <int32_t>call.exchanged
        if not question.places[i].blank:
            record.result[0] = call.result.status
            memcpy(&record.result[1], call.result.words, sizeof(call.result.words))
    i = question.legal(question.checker, question.records, question.n)
    if i == 0:
        return 0
    question.counts[i - 1] += 1
    return 1
