"""Cython without the GIL and without ``threading``, over C++ objects with static initialisers:
SUBJECTS[name], THREADS[name].
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from pulsar_ml.harness.subjects.subject cimport (
    PML_SUBJECT_ABI, PmlArgument, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation, wrap_subject,
)
from pulsar_ml.sync.atomics cimport i64_fetch_add_relaxed, pml_i64

cdef extern from "tests/engine/strangers/statics.hpp" namespace "statics" nogil:
    cdef cppclass Table:
        long at(long i)
    long look_up(long i)
    Table& table()
    Table& table_by_hand()
    void drop_table()
    long add_in_thread(long n)


cdef struct State:
    pml_i64 touched


# Initialised when the module is loaded, by Cython's own code.
cdef long[4] WEIGHTS = [1, 10, 100, 1000]


cdef void* create(const int64_t* settings, int32_t threads) noexcept nogil:
    return calloc(1, sizeof(State))


cdef void wrong(PmlViolation* v) noexcept nogil:
    v.found = 1


cdef void looks_up(void* state, int32_t t, const PmlCall* call, PmlResult* result,
                   PmlViolation* v) noexcept nogil:
    i64_fetch_add_relaxed(&(<State*>state).touched, WEIGHTS[t])
    if look_up(3) != 10 or look_up(4) != 18:
        wrong(v)


cdef void uses_table(void* state, int32_t t, const PmlCall* call, PmlResult* result,
                     PmlViolation* v) noexcept nogil:
    i64_fetch_add_relaxed(&(<State*>state).touched, WEIGHTS[t])
    if table().at(t) != 3:
        wrong(v)
    add_in_thread(t)
    i64_fetch_add_relaxed(&(<State*>state).touched, WEIGHTS[t])
    if add_in_thread(0) != 5 + t:
        wrong(v)


cdef void uses_table_by_hand(void* state, int32_t t, const PmlCall* call, PmlResult* result,
                             PmlViolation* v) noexcept nogil:
    if table_by_hand().at(t) != 3:
        wrong(v)


cdef void check(void* state, PmlViolation* v) noexcept nogil:
    pass


cdef void destroy(void* state) noexcept nogil:
    drop_table()
    free(state)


cdef PmlOperation[1] operations
cdef PmlArgument[1] settings
cdef PmlSubject[3] tables
memset(operations, 0, sizeof(operations))
memset(settings, 0, sizeof(settings))
operations[0].name = "run"
operations[0].weight = 1
cdef int i
for i in range(3):
    tables[i] = PmlSubject(
        abi=PML_SUBJECT_ABI, n_operations=1, n_settings=0, max_threads=3, name="", summary="",
        operations=&operations[0], settings=&settings[0], create=create, apply=looks_up, check=check,
        destroy=destroy,
    )
tables[0].name = "loaded_fixed"
tables[1].name = "first_use_fixed"
tables[1].apply = uses_table
tables[2].name = "first_use_by_hand"
tables[2].apply = uses_table_by_hand

SUBJECTS = {}
THREADS = {}
for i in range(3):
    subject = wrap_subject(&tables[i], "programs", None)
    SUBJECTS[subject.name] = subject
    THREADS[subject.name] = 3
