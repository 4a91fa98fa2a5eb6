# Python callbacks of native calls: collected without the GIL, and run when the native call is over.
#
# They run in a loop of the thread that made the native call. A callback may call the core again;
# what that makes due runs inside it, so that it may wait for the result, up to NESTED callbacks
# deep; deeper ones run in the loop of the deepest. So any number of callbacks can follow each
# other. What one raises goes to sys.unraisablehook, and costs the others nothing.

from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject

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
