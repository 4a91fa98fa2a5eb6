"""A pair of numbers under a sequence lock, in Cython with the atomics of C++.

With and without its fences.
"""

from libc.stdint cimport int32_t, int64_t

from libc.string cimport memset, strcpy
from libcpp.atomic cimport (
    atomic, memory_order_acquire, memory_order_relaxed, memory_order_release,
)

from pulsar_ml.harness cimport (
    PML_SUBJECT_ABI, PmlArgument, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation,
    wrap_subject,
)

cdef extern from "<atomic>" namespace "std" nogil:
    void atomic_thread_fence(int order)

# The structure ------------------------------------------------------------------------------------

cdef cppclass Measurement:
    atomic[int64_t] sequence
    atomic[int64_t] low
    atomic[int64_t] high

    void write(int64_t value, bint fenced) noexcept nogil:
        cdef int64_t before = this.sequence.load(memory_order_relaxed)
        this.sequence.store(before + 1, memory_order_relaxed)
        if fenced:
            atomic_thread_fence(memory_order_release)
        this.low.store(value, memory_order_relaxed)
        this.high.store(value, memory_order_relaxed)
        this.sequence.store(before + 2, memory_order_release)

    bint read(int64_t* low, int64_t* high, bint fenced) noexcept nogil:
        cdef int64_t before = this.sequence.load(memory_order_acquire)
        low[0] = this.low.load(memory_order_relaxed)
        high[0] = this.high.load(memory_order_relaxed)
        if fenced:
            atomic_thread_fence(memory_order_acquire)
        return before % 2 == 0 and this.sequence.load(memory_order_relaxed) == before

# What the harness needs to know about it
# ------------------------------------------------------------

cdef void* create(const int64_t* settings, int32_t threads) noexcept nogil:
    return new Measurement()

cdef void apply_to(
    Measurement* pair, const PmlCall* call, PmlResult* result, PmlViolation* violation, bint fenced
) noexcept nogil:
    cdef int64_t low = 0, high = 0
    if call.code == 0:
        pair.write(call.arguments[0], fenced)
    elif pair.read(&low, &high, fenced):
        result.status = 1
        if low != high:
            violation.found = 1
            strcpy(violation.invariant, "M1")
            strcpy(violation.message, "a read that counts saw half of a write")

cdef void apply_fenced(
    void* state, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    apply_to(<Measurement*>state, call, result, violation, True)

cdef void apply_bare(
    void* state, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    apply_to(<Measurement*>state, call, result, violation, False)

cdef void check(void* state, PmlViolation* violation) noexcept nogil:
    pass

cdef void destroy(void* state) noexcept nogil:
    del_measurement(<Measurement*>state)

cdef inline void del_measurement(Measurement* pair) noexcept nogil:
    del pair

cdef PmlOperation[2] operations
cdef PmlArgument[1] settings
cdef PmlSubject fenced_table
cdef PmlSubject bare_table

memset(settings, 0, sizeof(settings))
memset(operations, 0, sizeof(operations))
operations[0].name = "write"
operations[0].weight = 1
operations[0].role = 1
operations[0].n_arguments = 1
operations[0].arguments[0] = PmlArgument(name="value", low=1, high=9)
operations[1].name = "read"
operations[1].weight = 1
fenced_table = PmlSubject(
    abi=PML_SUBJECT_ABI, n_operations=2, n_settings=0, max_threads=8, name="measurement_fenced",
    summary="a pair under a sequence lock", operations=&operations[0], settings=&settings[0],
    create=create, apply=apply_fenced, check=check, destroy=destroy,
)
bare_table = fenced_table
bare_table.name = "measurement_bare"
bare_table.apply = apply_bare

SUBJECTS = {
    "measurement_fenced": wrap_subject(&fenced_table, "stranger 1.0", None),
    "measurement_bare": wrap_subject(&bare_table, "stranger 1.0", None),
}
