# Python callbacks of native calls: collected without the GIL, and run when the native call is over.
#
# They run in a loop of the thread that made the native call. A callback may call the core again;
# what that makes due runs inside it, so that it may wait for the result, up to NESTED callbacks
# deep; deeper ones run in the loop of the deepest. So any number of callbacks can follow each
# other. What one raises goes to sys.unraisablehook, and costs the others nothing.

from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable

cdef enum:
    NESTED = 20


# An exception of a callback, which has nobody to go to: sys.unraisablehook gets it.
cdef void report_unraisable(object error, object callback) noexcept:
    PyErr_SetObject(type(error), error)
    PyErr_WriteUnraisable(callback)


cdef object check_callable(object value, str role):
    if not callable(value):
        raise TypeError(f"{role}={value!r} must be callable")
    return value


# The native side of a callback. Written without the GIL by the native call that makes it due.
cdef struct DueCallback:
    DueCallback* following
    PyObject* owner         # its Callback, with a reference from its start until it has run
    int64_t amount          # permits granted, or entries delivered
    int status              # granted or not, or a PendingStatus
    uint64_t failed         # the token of the read that failed
    uint32_t* entries       # room for the entries of a pending read
    void* starts            # storage reads that a pending read has to start


# A callback that is due once, after :meth:`start`.
@cython.internal
cdef class Callback:
    cdef DueCallback due

    cdef DueCallback* start(self) noexcept:
        self.due.owner = <PyObject*>self
        Py_INCREF(self)
        return &self.due

    # It will not be due: the native call refused it.
    cdef void cancel(self) noexcept:
        Py_DECREF(self)

    # Completes what the callback needs, before other callbacks run.
    cdef void prepare(self) noexcept:
        pass

    cdef void run(self) noexcept:
        pass


cdef void callback_link(DueCallback* due, void** first, void** last) noexcept nogil:
    due.following = NULL
    if first[0] is NULL:
        first[0] = due
    else:
        (<DueCallback*>last[0]).following = due
    last[0] = due


cdef Callback callback_take(void** first):
    cdef DueCallback* due = <DueCallback*>first[0]
    first[0] = due.following
    return <Callback>due.owner


# Without the GIL: the callback is due when the native call is over.
cdef void callback_due(DueCallback* due) noexcept nogil:
    callback_link(due, &pml_calls.fresh_first, &pml_calls.fresh_last)


# Runs the callbacks that native calls of this thread made due. Called after each such call, outside
# the gate.
cdef void run_callbacks() noexcept:
    cdef Callback callback
    # Objects that go while this thread forks: their callbacks run when the fork is over.
    if pml_calls.forking:
        return
    drop_released_objects()
    while pml_calls.fresh_first is not NULL:
        callback = callback_take(&pml_calls.fresh_first)
        callback.prepare()
        callback_link(&callback.due, &pml_calls.ready_first, &pml_calls.ready_last)
    if pml_calls.nested >= NESTED or pml_calls.ready_first is NULL:
        return
    pml_calls.nested += 1
    while pml_calls.ready_first is not NULL:
        callback = callback_take(&pml_calls.ready_first)
        callback.run()
        Py_DECREF(callback)
    pml_calls.nested -= 1


# Parsed values -----------------------------------------------------------------------------------

# Parsed values of entries as Python objects.
#
# An entry's memory may go in a thread without the GIL, such as that of the eviction, and inside a
# write section. So a value that no entry has any more is put on a stack, and the next call that
# holds the GIL gives its reference back.

cdef struct ParsedObject:
    ParsedObject* following
    PyObject* value


cdef pml_ptr released_objects


cdef void object_released(void* context, int64_t value) noexcept nogil:
    cdef ParsedObject* parsed = <ParsedObject*>value
    cdef void* first = ptr_load_relaxed(&released_objects)
    parsed.following = <ParsedObject*>first
    while not ptr_cas_strong_release(&released_objects, &first, parsed):
        parsed.following = <ParsedObject*>first


# Outside the gate: what an object does when it goes may call the core.
cdef void drop_released_objects() noexcept:
    cdef void* first = ptr_load_relaxed(&released_objects)
    cdef ParsedObject* parsed
    if first is NULL:
        return
    # The whole stack at once. Fails when another thread pushed.
    while not ptr_cas_strong_acq_rel(&released_objects, &first, NULL):
        pass
    while first is not NULL:
        parsed = <ParsedObject*>first
        first = parsed.following
        Py_DECREF(<object>parsed.value)
        release(parsed)


cdef object parsed_value(int64_t value):
    return <object>(<ParsedObject*>value).value


# Attaches a value to an entry unless it has one. False without memory.
cdef bint attach_object(EntryPool* pool, uint32_t handle, object value) noexcept:
    cdef ParsedObject* parsed = <ParsedObject*>allocate(sizeof(ParsedObject))
    cdef Status status
    if parsed is NULL:
        return False
    parsed.value = <PyObject*>value
    Py_INCREF(value)
    status = entry_attach_metadata(pool, handle, object_released, NULL, <int64_t>parsed)
    if status != PML_OK:
        Py_DECREF(value)
        release(parsed)
    return status != Status.PML_NO_MEMORY
