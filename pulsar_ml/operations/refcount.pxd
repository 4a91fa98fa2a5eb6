# Reference counts of a few objects that die and are published anew, as operations for the harness.
#
# A thread knows how many references it holds and gives back no others. Beside each count stand
# fields that only holders may read: they carry the pattern of the incarnation while the object
# lives and are wiped by the thread that releases last.

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlOperation, PmlResult, PmlViolation
from pulsar_ml.operations.support cimport (
    SubjectTable, expect_equal, mix, operation_argument, table_operation, table_setting, table_start,
    violate,
)
from pulsar_ml.structures.refcount cimport (
    REFERENCES, RELEASED, RELEASED_LAST, RELEASED_TOO_OFTEN, ReleaseResult, refcount_publish,
    refcount_release, refcount_retain, refcount_retain_marked, refcount_value, refcount_was_marked,
)
from pulsar_ml.sync.atomics cimport (
    i32_cas_strong_acq_rel, i32_fetch_add_relaxed, i32_load_acquire, i32_load_relaxed,
    i32_store_release, i32_store_relaxed, pml_i32,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    RC_OBJECTS = 4
    RC_MOST_THREADS = 64
    RC_WORDS = 4


# Statuses of the operations.
cdef enum:
    RC_DONE = 0
    RC_REFUSED = 1          # the structure refused: the count is zero, or the object is in use
    RC_NOT_HELD = 2         # the thread holds no reference, nothing was called
    RC_LAST = 3             # released, and it was the last reference


cdef enum:
    RC_PUBLISH
    RC_RETAIN
    RC_RELEASE
    RC_READ
    RC_RELEASE_TOO_OFTEN
    RC_RETAIN_FULL
    # Wrong on purpose.
    RC_RETAIN_FETCH_ADD
    RC_RELEASE_FORGOTTEN
    RC_RELEASE_AND_KEEP
    RC_RELEASE_LAST_TWICE


# The owner of an object's fields while nobody holds a reference.
cdef enum:
    RC_FREE = 0             # the thread that exchanges it for RC_TAKEN
    RC_TAKEN = 1


cdef struct CountedObject:
    pml_i32 count
    pml_i32 alive           # 1 from publication to teardown
    pml_i32 taken
    int64_t incarnation     # plain, like an entry's fields
    uint64_t[4] words       # the pattern of the incarnation


cdef struct CountHolder:
    int32_t[4] held
    int64_t[4] incarnation  # of the object when the first of these references was taken
    char[80] apart


cdef struct RefcountRun:
    CountedObject[4] objects
    CountHolder[64] holders
    int32_t threads
    int64_t objects_used


cdef inline void* refcount_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef RefcountRun* run = <RefcountRun*>allocate_zeroed(1, sizeof(RefcountRun))
    if run is not NULL:
        run.threads = threads
        run.objects_used = settings[0]
    return run


cdef inline void refcount_destroy(void* instance) noexcept nogil:
    release(instance)


# A holder looks at the fields; they must be those of the incarnation that it retained.
cdef inline void refcount_look(
    CountedObject* subject, int64_t incarnation, PmlViolation* violation
) noexcept nogil:
    cdef int i
    if subject.incarnation != incarnation:
        violate(violation, b"I12", b"a held object turned from incarnation %lld to %lld",
                incarnation, subject.incarnation, 0)
    for i in range(RC_WORDS):
        if subject.words[i] != mix(<uint64_t>incarnation + i):
            violate(violation, b"I12", b"word %lld of a held object of incarnation %lld is wiped or torn",
                    i, incarnation, 0)


cdef inline void refcount_start(
    CountedObject* subject, CountHolder* holder, int64_t which, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef int i
    cdef int32_t seen = RC_FREE
    if not i32_cas_strong_acq_rel(&subject.taken, &seen, RC_TAKEN):
        result.status = RC_REFUSED
        return
    subject.incarnation += 1
    for i in range(RC_WORDS):
        subject.words[i] = mix(<uint64_t>subject.incarnation + i)
    if i32_fetch_add_relaxed(&subject.alive, 1) != 0:
        violate(violation, b"I14", b"incarnation %lld starts before the last one was torn down",
                subject.incarnation, 0, 0)
    holder.held[which] = 1
    holder.incarnation[which] = subject.incarnation
    result.words[0] = subject.incarnation
    result.words[1] = 1
    refcount_publish(&subject.count)


cdef inline void refcount_teardown(CountedObject* subject, PmlViolation* violation) noexcept nogil:
    cdef int i
    if i32_fetch_add_relaxed(&subject.alive, -1) != 1:
        violate(violation, b"I14", b"incarnation %lld was torn down once more", subject.incarnation, 0, 0)
    for i in range(RC_WORDS):
        subject.words[i] = 0
    if refcount_value(&subject.count) != 0:
        violate(violation, b"I12", b"the count is %lld after the last release and before publication",
                refcount_value(&subject.count), 0, 0)
    i32_store_release(&subject.taken, RC_FREE)


cdef inline void refcount_taken(
    CountedObject* subject, CountHolder* holder, int64_t which, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    if holder.held[which] == 0:
        holder.incarnation[which] = subject.incarnation
    holder.held[which] += 1
    refcount_look(subject, holder.incarnation[which], violation)
    result.words[0] = holder.incarnation[which]
    result.words[1] = holder.held[which]


cdef inline void refcount_given(
    CountedObject* subject, CountHolder* holder, int64_t which, ReleaseResult released,
    PmlResult* result, PmlViolation* violation
) noexcept nogil:
    if released == RELEASED_TOO_OFTEN:
        violate(violation, b"I13", b"a held reference could not be released; the count is %lld, the "
                b"incarnation %lld", refcount_value(&subject.count), holder.incarnation[which], 0)
    elif released == RELEASED_LAST:
        refcount_teardown(subject, violation)
        result.status = RC_LAST
    result.words[1] = holder.held[which]


cdef inline void refcount_apply(
    void* instance, int32_t thread, const PmlCall* call, PmlResult* result, PmlViolation* violation
) noexcept nogil:
    cdef RefcountRun* run = <RefcountRun*>instance
    cdef int64_t which = call.arguments[0] % run.objects_used
    cdef CountedObject* subject = &run.objects[which]
    cdef CountHolder* holder = &run.holders[thread]
    cdef int32_t references
    cdef pml_i32 full
    if call.code == RC_PUBLISH:
        refcount_start(subject, holder, which, result, violation)
    elif call.code == RC_RETAIN:
        if refcount_retain(&subject.count):
            refcount_taken(subject, holder, which, result, violation)
        else:
            result.status = RC_REFUSED
            if holder.held[which]:
                violate(violation, b"I12", b"retain was refused to a holder of %lld references; the count "
                        b"is %lld", holder.held[which], refcount_value(&subject.count), 0)
    elif call.code == RC_RETAIN_FULL:
        # A count of this call's own, at the limit.
        i32_store_relaxed(&full, REFERENCES)
        if (refcount_retain(&full) or refcount_retain_marked(&full) or refcount_was_marked(&full)
                or refcount_value(&full) != REFERENCES):
            violate(violation, b"I12", b"a full count was retained; it is %lld now",
                    refcount_value(&full), 0, 0)
        result.status = RC_REFUSED
    elif call.code == RC_RELEASE_TOO_OFTEN:
        # More than all threads together can hold.
        if refcount_release(&subject.count, INT32_MAX) != RELEASED_TOO_OFTEN:
            violate(violation, b"I13", b"a release of more references than there are succeeded; the "
                    b"count is %lld", refcount_value(&subject.count), 0, 0)
        result.status = RC_REFUSED
    elif call.code == RC_RETAIN_FETCH_ADD:
        i32_fetch_add_relaxed(&subject.count, 1)
        refcount_taken(subject, holder, which, result, violation)
    elif holder.held[which] == 0:
        result.status = RC_NOT_HELD
    elif call.code == RC_READ:
        refcount_look(subject, holder.incarnation[which], violation)
        result.words[0] = holder.incarnation[which]
        result.words[1] = holder.held[which]
        if refcount_value(&subject.count) < holder.held[which]:
            violate(violation, b"I13", b"the count is %lld below the %lld references of one thread",
                    refcount_value(&subject.count), holder.held[which], 0)
    elif call.code == RC_RELEASE:
        references = <int32_t>call.arguments[1]
        if references > holder.held[which]:
            references = holder.held[which]
        refcount_look(subject, holder.incarnation[which], violation)
        holder.held[which] -= references
        refcount_given(subject, holder, which, refcount_release(&subject.count, references), result,
                       violation)
    elif call.code == RC_RELEASE_FORGOTTEN:
        holder.held[which] -= 1
    elif call.code == RC_RELEASE_AND_KEEP:
        refcount_release(&subject.count, 1)
    elif call.code == RC_RELEASE_LAST_TWICE:
        holder.held[which] -= 1
        refcount_release(&subject.count, 1)
        refcount_given(subject, holder, which, RELEASED_LAST, result, violation)
        refcount_given(subject, holder, which, RELEASED_LAST, result, violation)


cdef inline void refcount_check(void* instance, PmlViolation* violation) noexcept nogil:
    cdef RefcountRun* run = <RefcountRun*>instance
    cdef CountedObject* subject
    cdef PmlResult result
    cdef int32_t held
    cdef int i, thread
    for i in range(run.objects_used):
        subject = &run.objects[i]
        held = 0
        for thread in range(run.threads):
            held += run.holders[thread].held[i]
        expect_equal(violation, b"I17", b"references of all threads", refcount_value(&subject.count), held)
        expect_equal(violation, b"I14", b"incarnations alive", i32_load_relaxed(&subject.alive), held > 0)
        for thread in range(run.threads):
            while run.holders[thread].held[i] and not violation.found:
                held -= 1
                run.holders[thread].held[i] -= 1
                result.status = RC_DONE
                refcount_given(subject, &run.holders[thread], i, refcount_release(&subject.count, 1),
                               &result, violation)
                expect_equal(violation, b"I14", b"releases that were the last", result.status == RC_LAST,
                             held == 0)
        if not violation.found and refcount_retain(&subject.count):
            violate(violation, b"I12", b"object %lld was retained after its last release", i, 0, 0)


cdef inline void refcount_subject(SubjectTable* table) noexcept nogil:
    cdef PmlOperation* operation
    table_start(table, b"refcount", b"Counts of objects that die and are published anew.",
                refcount_create, refcount_apply, refcount_check, refcount_destroy)
    table.subject.max_threads = RC_MOST_THREADS
    table_setting(table, b"objects", 1, RC_OBJECTS)
    operation = table_operation(table, RC_PUBLISH, b"publish", 4, 0)
    operation_argument(operation, b"object", 0, RC_OBJECTS - 1)
    operation = table_operation(table, RC_RETAIN, b"retain", 6, 0)
    operation_argument(operation, b"object", 0, RC_OBJECTS - 1)
    operation = table_operation(table, RC_RELEASE, b"release", 8, 0)
    operation_argument(operation, b"object", 0, RC_OBJECTS - 1)
    operation_argument(operation, b"references", 1, 3)
    operation = table_operation(table, RC_READ, b"read", 3, 0)
    operation_argument(operation, b"object", 0, RC_OBJECTS - 1)
    operation = table_operation(table, RC_RELEASE_TOO_OFTEN, b"release_too_often", 1, 0)
    operation_argument(operation, b"object", 0, RC_OBJECTS - 1)
    operation = table_operation(table, RC_RETAIN_FULL, b"retain_full", 1, 0)
    operation = table_operation(table, RC_RETAIN_FETCH_ADD, b"retain_fetch_add", 0, 0)
    operation_argument(operation, b"object", 0, RC_OBJECTS - 1)
    operation = table_operation(table, RC_RELEASE_FORGOTTEN, b"release_forgotten", 0, 0)
    operation_argument(operation, b"object", 0, RC_OBJECTS - 1)
    operation = table_operation(table, RC_RELEASE_AND_KEEP, b"release_and_keep", 0, 0)
    operation_argument(operation, b"object", 0, RC_OBJECTS - 1)
    operation = table_operation(table, RC_RELEASE_LAST_TWICE, b"release_last_twice", 0, 0)
    operation_argument(operation, b"object", 0, RC_OBJECTS - 1)
