# Declarations of subject.h for Cython, and of the Python object that wraps a subject.

from libc.stdint cimport int32_t, int64_t, uint32_t


cdef extern from "pulsar_ml/harness/subject.h" nogil:
    enum:
        PML_SUBJECT_ABI
        PML_MAX_ARGUMENTS
        PML_RESULT_WORDS
        PML_ANY_THREAD

    ctypedef struct PmlArgument:
        const char* name
        int64_t low
        int64_t high

    ctypedef struct PmlOperation:
        const char* name
        int32_t weight
        int32_t role
        int32_t n_arguments
        int32_t reserved
        PmlArgument[3] arguments

    ctypedef struct PmlCall:
        int32_t code
        int32_t noise
        int64_t[3] arguments

    ctypedef struct PmlResult:
        int64_t status
        int64_t[4] words

    ctypedef struct PmlViolation:
        int32_t found
        char[28] invariant
        char[224] message

    ctypedef struct PmlSubject:
        uint32_t abi
        int32_t n_operations
        int32_t n_settings
        int32_t max_threads
        const char* name
        const char* summary
        const PmlOperation* operations
        const PmlArgument* settings
        void* (*create)(const int64_t* settings, int32_t threads) noexcept nogil
        void (*apply)(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                      PmlViolation* violation) noexcept nogil
        void (*check)(void* instance, PmlViolation* violation) noexcept nogil
        void (*destroy)(void* instance) noexcept nogil


cdef class Subject:
    cdef const PmlSubject* table
    cdef readonly object build_id
    cdef readonly object owner            # keeps the module that holds the table alive
    cdef public object judge              # refuses wrong answers where no other judge is named
    cdef public object around             # () -> context of its executions, or None
    cdef readonly tuple operations
    cdef readonly tuple settings
    cdef readonly bint needs_gil          # its functions are called with the GIL


cdef class Instance:
    cdef readonly Subject subject
    cdef readonly int threads
    cdef void* native


cdef Subject wrap_subject(const PmlSubject* table, object build_id, object owner)
