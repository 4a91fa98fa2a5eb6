# Helpers for the module of a subject: a table that is filled line by line, and reports of broken
# invariants. Users cimport them from pulsar_ml.harness.
#
#     cdef SubjectTable table
#     table_start(&table, b"lock", b"what it is", create, apply, check, destroy)
#     table_operation(&table, 0, b"lock", 1, PML_ANY_THREAD)
#     SUBJECTS = {"lock": subject_of(&table)}
#
# An operation's code is its index in the table; `apply` finds it in `call.code`.

from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf

from pulsar_ml.harness.subjects.subject cimport (
    PML_SUBJECT_ABI, PmlArgument, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation, Subject,
    wrap_subject,
)


cdef enum:
    MOST_OPERATIONS = 48
    MOST_SETTINGS = 12


ctypedef void* (*CreateFunction)(const int64_t* settings, int32_t threads) noexcept nogil
ctypedef void (*ApplyFunction)(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                               PmlViolation* violation) noexcept nogil
ctypedef void (*CheckFunction)(void* instance, PmlViolation* violation) noexcept nogil
ctypedef void (*DestroyFunction)(void* instance) noexcept nogil


# A subject with room for its operations and settings. It must not move: a global of its module.
cdef struct SubjectTable:
    PmlSubject subject
    PmlOperation[48] operations
    PmlArgument[12] settings


# Filling a table --------------------------------------------------------------------------------

cdef inline void table_start(
    SubjectTable* table, const char* name, const char* summary, CreateFunction create,
    ApplyFunction apply, CheckFunction check, DestroyFunction destroy,
) noexcept nogil:
    table.subject.abi = PML_SUBJECT_ABI
    table.subject.name = name
    table.subject.summary = summary
    table.subject.operations = table.operations
    table.subject.settings = table.settings
    table.subject.create = create
    table.subject.apply = apply
    table.subject.check = check
    table.subject.destroy = destroy


# Adds an operation. Its code must be the next number. Otherwise, and when the table is full, the
# table gets ABI 0, with which subject_of() refuses to load the module.
cdef inline PmlOperation* table_operation(
    SubjectTable* table, int32_t code, const char* name, int32_t weight, int32_t role,
) noexcept nogil:
    cdef PmlOperation* operation = &table.operations[table.subject.n_operations % MOST_OPERATIONS]
    if code != table.subject.n_operations or code >= MOST_OPERATIONS:
        table.subject.abi = 0
    operation.name = name
    operation.weight = weight
    operation.role = role
    table.subject.n_operations += 1
    return operation


# Adds an argument to an operation, drawn from low..high, both inclusive; at most three. apply()
# finds its value in call.arguments, in this order.
cdef inline void operation_argument(
    PmlOperation* operation, const char* name, int64_t low, int64_t high
) noexcept nogil:
    operation.arguments[operation.n_arguments % 3] = PmlArgument(name, low, high)
    operation.n_arguments += 1


# Adds a creation setting, drawn from low..high; create() finds it in its first parameter, in this
# order. At most twelve.
cdef inline void table_setting(
    SubjectTable* table, const char* name, int64_t low, int64_t high
) noexcept nogil:
    if table.subject.n_settings >= MOST_SETTINGS:
        table.subject.abi = 0
    table.settings[table.subject.n_settings % MOST_SETTINGS] = PmlArgument(name, low, high)
    table.subject.n_settings += 1


# Violations -------------------------------------------------------------------------------------

# Reports a broken invariant; only the first one is kept. `message` is a printf format with at most
# three %lld, for a, b and c in this order.
cdef inline void violate(
    PmlViolation* violation, const char* invariant, const char* message, int64_t a, int64_t b, int64_t c
) noexcept nogil:
    if violation.found:
        return
    violation.found = 1
    snprintf(violation.invariant, sizeof(violation.invariant), "%s", invariant)
    snprintf(violation.message, sizeof(violation.message), message, <long long>a, <long long>b,
             <long long>c)


# Reports a violation when the two numbers differ; `what` names them ("entries in use").
cdef inline void expect_equal(
    PmlViolation* violation, const char* invariant, const char* what, int64_t seen, int64_t expected
) noexcept nogil:
    if violation.found or seen == expected:
        return
    violation.found = 1
    snprintf(violation.invariant, sizeof(violation.invariant), "%s", invariant)
    snprintf(violation.message, sizeof(violation.message), "%s: %lld, expected %lld", what,
             <long long>seen, <long long>expected)


# For Python ---------------------------------------------------------------------------------------

cdef extern from *:
    """
    #ifndef PML_BUILD_ID
    #define PML_BUILD_ID "unknown"
    #endif
    """
    const char* PML_BUILD_ID


# Returns the subject of a table that lives as long as the process. Records name the build by the
# macro PML_BUILD_ID, which build_extension() derives from the sources.
cdef inline Subject subject_of(SubjectTable* table):
    return wrap_subject(&table.subject, PML_BUILD_ID.decode(), None)
