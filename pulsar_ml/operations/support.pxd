# What the operation tables share: filling a table, reporting a violation, patterns, random choices.
#
# A table is filled by `<structure>_subject(SubjectTable*)`, once, when the module is imported. An
# operation's code is its index in the table: each file has an enum of its codes.

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdio cimport snprintf

from pulsar_ml.harness.subject cimport (
    PML_SUBJECT_ABI, PmlArgument, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation,
)


cdef enum:
    MOST_OPERATIONS = 24
    MOST_SETTINGS = 8


ctypedef void* (*CreateFunction)(const int64_t* settings, int32_t threads) noexcept nogil
ctypedef void (*ApplyFunction)(void* instance, int32_t thread, const PmlCall* call, PmlResult* result,
                               PmlViolation* violation) noexcept nogil
ctypedef void (*CheckFunction)(void* instance, PmlViolation* violation) noexcept nogil
ctypedef void (*DestroyFunction)(void* instance) noexcept nogil


# A subject with room for its operations and settings. It stays where it is.
cdef struct SubjectTable:
    PmlSubject subject
    PmlOperation[24] operations
    PmlArgument[8] settings


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


# The next operation of the table. Its code must be the next number; if not, or when the table is
# full, the module refuses to load (no harness speaks ABI 0).
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


# The next argument of an operation, drawn from low..high; at most three.
cdef inline void operation_argument(
    PmlOperation* operation, const char* name, int64_t low, int64_t high
) noexcept nogil:
    operation.arguments[operation.n_arguments % 3] = PmlArgument(name, low, high)
    operation.n_arguments += 1


# The next creation setting: create() finds it in its first parameter, in this order.
cdef inline void table_setting(
    SubjectTable* table, const char* name, int64_t low, int64_t high
) noexcept nogil:
    if table.subject.n_settings >= MOST_SETTINGS:
        table.subject.abi = 0
    table.settings[table.subject.n_settings % MOST_SETTINGS] = PmlArgument(name, low, high)
    table.subject.n_settings += 1


# Violations -------------------------------------------------------------------------------------

# Reports a broken invariant; the first one stays. `message` is a printf format with at most three
# %lld, filled by a, b and c in this order.
cdef inline void violate(
    PmlViolation* violation, const char* invariant, const char* message, int64_t a, int64_t b, int64_t c
) noexcept nogil:
    if violation.found:
        return
    violation.found = 1
    snprintf(violation.invariant, sizeof(violation.invariant), "%s", invariant)
    snprintf(violation.message, sizeof(violation.message), message, <long long>a, <long long>b,
             <long long>c)


# Reports `what` (for example "entries in use") when the two numbers differ.
cdef inline void expect_equal(
    PmlViolation* violation, const char* invariant, const char* what, int64_t seen, int64_t expected
) noexcept nogil:
    if violation.found or seen == expected:
        return
    violation.found = 1
    snprintf(violation.invariant, sizeof(violation.invariant), "%s", invariant)
    snprintf(violation.message, sizeof(violation.message), "%s: %lld, expected %lld", what,
             <long long>seen, <long long>expected)


# Patterns ---------------------------------------------------------------------------------------

# A well-mixed function of a number (the output function of SplitMix64).
cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    x += <uint64_t>0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)
