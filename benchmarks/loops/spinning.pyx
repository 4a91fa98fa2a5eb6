"""A subject that uses a processor for a time that a setting gives, without the GIL."""

from __future__ import annotations

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from posix.time cimport CLOCK_THREAD_CPUTIME_ID, clock_gettime, timespec

from pulsar_ml.harness.subjects.subject cimport (
    PML_SUBJECT_ABI, PmlArgument, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation, wrap_subject,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release

cdef struct Spinning:
    int64_t nanoseconds


# What this thread had of a processor: how busy others keep it makes no difference.
cdef inline int64_t processor_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec


cdef void* create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef Spinning* spinning = <Spinning*>allocate_zeroed(1, sizeof(Spinning))
    if spinning is not NULL:
        spinning.nanoseconds = settings[0]
    return spinning


cdef void apply(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                PmlViolation* violation) noexcept nogil:
    cdef int64_t end = processor_ns() + (<Spinning*>instance).nanoseconds
    while processor_ns() < end:
        pass


cdef void check(void* instance, PmlViolation* violation) noexcept nogil:
    pass


cdef void destroy(void* instance) noexcept nogil:
    release(instance)


cdef PmlArgument NONE = PmlArgument(NULL, 0, 0)
cdef PmlArgument[1] SETTINGS = [PmlArgument(b"nanoseconds", 0, 2000000000)]
cdef PmlOperation[1] OPERATIONS = [PmlOperation(b"spin", 1, 0, 0, 0, [NONE, NONE, NONE])]
cdef PmlSubject TABLE
memset(&TABLE, 0, sizeof(PmlSubject))
TABLE.abi = PML_SUBJECT_ABI
TABLE.name = b"spinning"
TABLE.summary = b"Uses a processor for a given time."
TABLE.n_operations = 1
TABLE.operations = &OPERATIONS[0]
TABLE.n_settings = 1
TABLE.settings = &SETTINGS[0]
TABLE.create = create
TABLE.apply = apply
TABLE.check = check
TABLE.destroy = destroy

BUILD_ID = "spinning"
SUBJECTS = {"spinning": wrap_subject(&TABLE, BUILD_ID, None)}
