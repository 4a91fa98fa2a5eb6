"""A counter of permits with a mistake, as a subject of the harness."""

from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf
from libc.string cimport memset

from pulsar_ml.harness.subject cimport (
    PML_SUBJECT_ABI, PmlArgument, PmlCall, PmlOperation, PmlResult, PmlSubject, PmlViolation, wrap_subject,
)
from pulsar_ml.sync.atomics cimport (
    i64_cas_weak_acquire, i64_fetch_add_relaxed, i64_fetch_sub_release, i64_load_relaxed,
    i64_store_relaxed, pml_i64,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


# The structure ------------------------------------------------------------------------------------

cdef struct Permits:
    pml_i64 taken
    int64_t limit


cdef inline bint permits_take(Permits* permits) noexcept nogil:
    cdef int64_t seen = i64_load_relaxed(&permits.taken)
    if seen >= permits.limit:
        return False
    i64_store_relaxed(&permits.taken, seen + 1)
    return True


cdef inline void permits_give(Permits* permits) noexcept nogil:
    i64_fetch_sub_release(&permits.taken, 1)


# What the harness needs to know about it ------------------------------------------------------------

cdef struct Instance:
    Permits permits
    int32_t threads
    pml_i64 holders          # the oracle's own count; relaxed, so that it orders nothing
    int64_t[64 * 16] held    # of each thread, on lines of their own


cdef void* create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef Instance* instance = <Instance*>allocate_zeroed(1, sizeof(Instance))
    if instance is not NULL:
        instance.permits.limit = settings[0]
        instance.threads = threads
    return instance


cdef void apply(
    void* state, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef Instance* instance = <Instance*>state
    cdef int64_t holders
    if call.code == 0 and permits_take(&instance.permits):
        result.status = 1
        instance.held[thread * 16] += 1
        holders = i64_fetch_add_relaxed(&instance.holders, 1) + 1
        if holders > instance.permits.limit:
            violation.found = 1
            snprintf(violation.invariant, sizeof(violation.invariant), "P1")
            snprintf(violation.message, sizeof(violation.message), "%lld permits are held, the limit is %lld",
                     <long long>holders, <long long>instance.permits.limit)
    elif call.code == 1 and instance.held[thread * 16]:
        result.status = 1
        instance.held[thread * 16] -= 1
        i64_fetch_add_relaxed(&instance.holders, -1)
        permits_give(&instance.permits)


cdef void check(void* state, PmlViolation* violation) noexcept nogil:
    cdef Instance* instance = <Instance*>state
    if i64_load_relaxed(&instance.permits.taken) != i64_load_relaxed(&instance.holders):
        violation.found = 1
        snprintf(violation.invariant, sizeof(violation.invariant), "P2")
        snprintf(violation.message, sizeof(violation.message), "%lld permits are taken, %lld are held",
                 <long long>i64_load_relaxed(&instance.permits.taken),
                 <long long>i64_load_relaxed(&instance.holders))


cdef void destroy(void* state) noexcept nogil:
    release(state)


cdef PmlSubject table
cdef PmlOperation[2] operations
cdef PmlArgument[1] settings

settings[0] = PmlArgument(name="limit", low=1, high=3)
memset(operations, 0, sizeof(operations))
operations[0].name = "take"
operations[0].weight = 1
operations[1].name = "give"
operations[1].weight = 1
table = PmlSubject(
    abi=PML_SUBJECT_ABI, n_operations=2, n_settings=1, max_threads=64, name="permits",
    summary="a counter of permits", operations=&operations[0], settings=&settings[0],
    create=create, apply=apply, check=check, destroy=destroy,
)

SUBJECTS = {"permits": wrap_subject(&table, "tutorial", None)}
