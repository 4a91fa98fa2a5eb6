"""A subject whose threads write one plain word without order, which is a data race."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from pulsar_ml.harness.subjects.subject cimport (
    PML_SUBJECT_ABI, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation, wrap_subject,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef void* create(const int64_t* settings, int32_t threads) noexcept nogil:
    return allocate_zeroed(2, sizeof(int64_t))


cdef void apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    (<int64_t*>instance)[0] += 1


cdef void check(void* instance, PmlViolation* violation) noexcept nogil:
    pass


cdef void destroy(void* instance) noexcept nogil:
    release(instance)


cdef PmlSubject table
cdef PmlOperation[1] operations

memset(operations, 0, sizeof(operations))
operations[0].name = "add"
operations[0].weight = 1
table = PmlSubject(
    abi=PML_SUBJECT_ABI, n_operations=1, n_settings=0, max_threads=64, name="plain_race",
    summary="a plain race", operations=&operations[0], settings=NULL,
    create=create, apply=apply, check=check, destroy=destroy,
)

SUBJECTS = {"plain_race": wrap_subject(&table, "race", None)}
