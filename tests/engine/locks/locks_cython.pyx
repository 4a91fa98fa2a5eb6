"""Locks of Cython outside the GIL: SUBJECTS[name], THREADS[name]."""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from libcpp.mutex cimport mutex

from pulsar_ml.harness.subjects.subject cimport (
    PML_SUBJECT_ABI, PmlArgument, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation, wrap_subject,
)
from pulsar_ml.sync.atomics cimport i64_fetch_add_relaxed, pml_i64


cdef struct State:
    pml_i64 inside
    int64_t x


cdef cython.pymutex py_guard
cdef mutex cpp_guard


cdef void* create(const int64_t* settings, int32_t threads) noexcept nogil:
    return calloc(1, sizeof(State))


cdef void step(State* state) noexcept nogil:
    i64_fetch_add_relaxed(&state.inside, 1)
    state.x += 1


cdef void with_pymutex(void* state, int32_t t, const PmlCall* call, PmlResult* result,
          PmlViolation* v) noexcept nogil:
    with py_guard:
        step(<State*>state)


cdef void half_pymutex(void* state, int32_t t, const PmlCall* call, PmlResult* result,
          PmlViolation* v) noexcept nogil:
    if t == 0:
        step(<State*>state)
    else:
        with py_guard:
            step(<State*>state)


cdef void both_locks(void* state, int32_t t, const PmlCall* call, PmlResult* result,
          PmlViolation* v) noexcept nogil:
    if t == 0:
        py_guard.acquire()
        cpp_guard.lock()
    else:
        cpp_guard.lock()
        py_guard.acquire()
    step(<State*>state)
    cpp_guard.unlock()
    py_guard.release()


cdef void with_cpp(void* state, int32_t t, const PmlCall* call, PmlResult* result,
          PmlViolation* v) noexcept nogil:
    cpp_guard.lock()
    step(<State*>state)
    cpp_guard.unlock()


cdef void check(void* state, PmlViolation* v) noexcept nogil:
    if (<State*>state).x != 2:
        v.found = 1


cdef void destroy(void* state) noexcept nogil:
    free(state)


cdef PmlOperation[1] operations
cdef PmlArgument[1] settings
cdef PmlSubject[4] tables
memset(operations, 0, sizeof(operations))
memset(settings, 0, sizeof(settings))
operations[0].name = "run"
operations[0].weight = 1
cdef int i
for i in range(4):
    tables[i] = PmlSubject(
        abi=PML_SUBJECT_ABI, n_operations=1, n_settings=0, max_threads=2, name="", summary="",
        operations=&operations[0], settings=&settings[0], create=create, apply=with_pymutex, check=check,
        destroy=destroy,
    )
tables[0].name = "pymutex_fixed"
tables[1].name = "pymutex_forgotten"
tables[1].apply = half_pymutex
tables[2].name = "pymutex_cpp_cycle"
tables[2].apply = both_locks
tables[3].name = "cpp_mutex_fixed"
tables[3].apply = with_cpp

SUBJECTS = {}
THREADS = {}
for i in range(4):
    subject = wrap_subject(&tables[i], "programs", None)
    SUBJECTS[subject.name] = subject
    THREADS[subject.name] = 2
