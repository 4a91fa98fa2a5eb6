/* Locks and queues of the interpreter's own modules as the code under test calls them. Their
 * functions are replaced in the tables that hold their addresses, so every reference that a program
 * took before is replaced, too, and nothing is left behind afterwards.
 *
 * A lock stays the interpreter's object. A thread that does not get it waits in the engine. */

typedef PyObject *(*WithKeywords)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*Fast)(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *(*FastWithKeywords)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
typedef PyObject *(*OfClass)(PyObject *, PyTypeObject *, PyObject *const *, Py_ssize_t, PyObject *);

static struct {
    WithKeywords lock_acquire;
    PyCFunction lock_release;
    destructor lock_free, rlock_free;
    WithKeywords rlock_acquire;
    PyCFunction rlock_release, rlock_locked, rlock_is_owned, rlock_acquire_restore, rlock_release_save;
    FastWithKeywords queue_put;
    OfClass queue_get, queue_get_nowait;
    PyCFunction get_ident, sleep, urandom, random_random, random_getrandbits, start_new_thread;
    Fast random_seed;
    PyCFunction time, time_ns, monotonic, monotonic_ns, perf_counter, perf_counter_ns;
} original;

static PyObject *no_arguments, *not_blocking;   /* () and (False,) */
static PyTypeObject *lock_type, *rlock_type;

/* Where a thread stands, for a wait or a recorded step. */
static inline uint64_t place_if_recorded(void)
{
    if (likely(!pml_python_recording()))
        return 0;
    note_stack();
    return my_place();
}

/* -1 with an exception for a time that is none. `span` is negative for ever. */
static int span_of(double timeout, int blocking, int64_t *span)
{
    if (!blocking && timeout != -1) {
        PyErr_SetString(PyExc_ValueError, "can't specify a timeout for a non-blocking call");
        return -1;
    }
    if (timeout < 0 && timeout != -1) {
        PyErr_SetString(PyExc_ValueError, "timeout value must be a non-negative number");
        return -1;
    }
    *span = timeout < 0 ? -1 : timeout > 9e9 ? INT64_MAX : (int64_t)(timeout * 1e9);
    return 0;
}

static int acquire_arguments(PyObject *arguments, PyObject *keywords, int *blocking, int64_t *span)
{
    static char *names[] = {"blocking", "timeout", NULL};
    double timeout = -1;
    *blocking = 1;
    *span = -1;
    if (keywords == NULL && PyTuple_GET_SIZE(arguments) == 0)
        return 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|pd:acquire", names, blocking, &timeout))
        return -1;
    return span_of(timeout, *blocking, span);
}

/* Waits until another thread releases at the address. 1: it did; 0: the time was over; -1. */
static int wait_at(PyFiber *f, uintptr_t address, int64_t span, int64_t *deadline)
{
    volatile int in_time = 1;
    if (unlikely(f->unwinding)) {
        PyErr_SetNone(Abandoned);
        return -1;
    }
    note_waiting_stack();
    if (IN_ENGINE(f, in_time = pml_python_wait(address, span, deadline, my_place())) < 0)
        return -1;
    return in_time;
}

static int point_at(PyFiber *f, uintptr_t address)
{
    if (unlikely(f->unwinding))
        return 0;
    return IN_ENGINE(f, pml_python_point(address, 1));
}

static int acquired_at(PyFiber *f, uintptr_t address, int owned)
{
    uint64_t place;
    if (unlikely(f->unwinding))
        return 0;
    place = place_if_recorded();
    return IN_ENGINE(f, pml_python_acquired(address, owned, place));
}

static int released_at(PyFiber *f, uintptr_t address)
{
    uint64_t place;
    if (unlikely(f->unwinding))
        return 0;
    place = place_if_recorded();
    return IN_ENGINE(f, pml_python_released(address, place));
}

/* Lock ---------------------------------------------------------------------------------------- */

static int try_lock(PyObject *lock)
{
    PyObject *got = original.lock_acquire(lock, not_blocking, NULL);
    if (got == NULL)
        return -1;
    Py_DECREF(got);
    return got == Py_True;
}

/* Releases a lock with an exception set, which stays. */
static void give_back(PyObject *lock)
{
    PyObject *type, *value, *traceback, *result;
    PyErr_Fetch(&type, &value, &traceback);
    forget_held(lock, 1);
    result = original.lock_release(lock, NULL);
    Py_XDECREF(result);
    PyErr_Restore(type, value, traceback);
}

/* Waits for a release of a lock that another thread has. 1 to try again; 0 when the caller does not
 * wait, or its time is over; -1 with an exception. */
static int wait_for(PyFiber *f, PyObject *lock, int blocking, int64_t span, int64_t *deadline)
{
    return blocking && span ? wait_at(f, lock_key(lock), span, deadline) : 0;
}

static PyObject *take_lock(PyObject *lock, int blocking, int64_t span)
{
    PyFiber *f = me;
    int64_t deadline = 0;
    int got, again;
    if (point_at(f, lock_key(lock)) < 0)
        return NULL;
    while ((got = try_lock(lock)) == 0) {
        if ((again = wait_for(f, lock, blocking, span, &deadline)) <= 0)
            return again < 0 ? NULL : Py_NewRef(Py_False);
    }
    if (got < 0)
        return NULL;
    if (!f->unwinding)
        note_held(lock, direct_place());
    if (acquired_at(f, lock_key(lock), 1) < 0) {
        give_back(lock);          /* the caller does not know that it has the lock */
        return NULL;
    }
    Py_RETURN_TRUE;
}

/* A finalizer that runs behind an execution takes a lock. It cannot wait: nobody would release the
 * lock, for the threads are gone. */
static PyObject *acquire_behind(PyObject *lock, PyObject *arguments, PyObject *keywords)
{
    int blocking, got;
    int64_t span;
    if (acquire_arguments(arguments, keywords, &blocking, &span) < 0)
        return NULL;
    got = try_lock(lock);
    if (got == 0 && blocking)
        PyErr_SetNone(Abandoned);
    return got < 0 || PyErr_Occurred() ? NULL : PyBool_FromLong(got);
}

static PyObject *lock_acquire(PyObject *lock, PyObject *arguments, PyObject *keywords)
{
    int blocking;
    int64_t span;
    if (running() == NULL)
        return behind_execution() ? acquire_behind(lock, arguments, keywords)
                                  : original.lock_acquire(lock, arguments, keywords);
    if (acquire_arguments(arguments, keywords, &blocking, &span) < 0)
        return NULL;
    return take_lock(lock, blocking, span);
}

static PyObject *lock_release(PyObject *lock, PyObject *unused)
{
    PyFiber *f = running();
    PyObject *result;
    if (f == NULL)
        return original.lock_release(lock, unused);
    if (point_at(f, lock_key(lock)) < 0) {
        give_back(lock);          /* `with` does not try again */
        return NULL;
    }
    if (!f->unwinding)
        note_release(lock);
    result = original.lock_release(lock, unused);
    if (result && released_at(f, lock_key(lock)) < 0)
        Py_CLEAR(result);
    return result;
}

static PyObject *lock_exit(PyObject *lock, PyObject *unused) { return lock_release(lock, NULL); }

static void lock_free(PyObject *lock)
{
    if (running()) {
        forget_lock(lock);
        forget_held(lock, 0);
    }
    original.lock_free(lock);
}

/* RLock --------------------------------------------------------------------------------------- *
 * The interpreter's compares threads of the system, which all are one here: its owner is kept
 * aside. */

enum { RLOCKS = 1 << 12 };
typedef struct { PyObject *lock; uint32_t generation; int32_t owner; int64_t count; } Owned;
static Owned rlocks[RLOCKS];

static Owned *owned(PyObject *lock)
{
    uint32_t at = (uint32_t)(((uintptr_t)lock >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 40) & (RLOCKS - 1);
    for (int i = 0; i < RLOCKS; i++, at = (at + 1) & (RLOCKS - 1)) {
        if (rlocks[at].generation != generation)
            rlocks[at] = (Owned){lock, generation, -1, 0};
        if (rlocks[at].lock == lock)
            return &rlocks[at];
    }
    pml_python_fail(PYTHON_UNCONTROLLED, "", "the execution uses more reentrant locks than can be followed");
}

static PyObject *take_rlock(PyObject *lock, int blocking, int64_t span, int64_t count)
{
    PyFiber *f = me;
    Owned *o;
    int64_t deadline = 0;
    int again;
    if (point_at(f, lock_key(lock)) < 0)
        return NULL;
    o = owned(lock);
    if (o->owner == f->number && o->count) {
        o->count += count;
        Py_RETURN_TRUE;
    }
    while (o->count) {
        if ((again = wait_for(f, lock, blocking, span, &deadline)) <= 0)
            return again < 0 ? NULL : Py_NewRef(Py_False);
    }
    o->owner = f->number;
    o->count = count;
    if (!f->unwinding)
        note_held(lock, my_place());
    if (acquired_at(f, lock_key(lock), 1) < 0)
        return NULL;
    Py_RETURN_TRUE;
}

static PyObject *rlock_acquire(PyObject *lock, PyObject *arguments, PyObject *keywords)
{
    int blocking;
    int64_t span;
    if (running() == NULL)
        return original.rlock_acquire(lock, arguments, keywords);
    if (acquire_arguments(arguments, keywords, &blocking, &span) < 0)
        return NULL;
    return take_rlock(lock, blocking, span, 1);
}

static int leave_rlock(PyObject *lock, int64_t count)
{
    PyFiber *f = me;
    Owned *o = owned(lock);
    if (o->count == 0 || o->owner != f->number) {
        PyErr_SetString(PyExc_RuntimeError, "cannot release un-acquired lock");
        return -1;
    }
    if (o->count > count) {
        o->count -= count;
        return 0;
    }
    if (point_at(f, lock_key(lock)) < 0)
        return -1;
    o->count = 0;
    o->owner = -1;
    forget_held(lock, 1);
    return released_at(f, lock_key(lock));
}

static PyObject *rlock_release(PyObject *lock, PyObject *unused)
{
    if (running() == NULL)
        return original.rlock_release(lock, unused);
    if (leave_rlock(lock, 1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *rlock_exit(PyObject *lock, PyObject *unused) { return rlock_release(lock, NULL); }

static PyObject *rlock_is_owned(PyObject *lock, PyObject *unused)
{
    if (running() == NULL)
        return original.rlock_is_owned(lock, unused);
    return PyBool_FromLong(owned(lock)->count && owned(lock)->owner == me->number);
}

static inline PyObject *rlock_locked(PyObject *lock, PyObject *unused)
{
    if (running() == NULL)
        return original.rlock_locked(lock, unused);
    return PyBool_FromLong(owned(lock)->count != 0);
}

static PyObject *rlock_release_save(PyObject *lock, PyObject *unused)
{
    int64_t count;
    if (running() == NULL)
        return original.rlock_release_save(lock, unused);
    count = owned(lock)->count;
    if (leave_rlock(lock, count ? count : 1) < 0)
        return NULL;
    return Py_BuildValue("Li", (long long)count, me->number);
}

static PyObject *rlock_acquire_restore(PyObject *lock, PyObject *arguments)
{
    long long count;
    int number;
    PyObject *got;
    if (running() == NULL)
        return original.rlock_acquire_restore(lock, arguments);
    if (!PyArg_ParseTuple(arguments, "(Li):_acquire_restore", &count, &number))
        return NULL;
    got = take_rlock(lock, 1, -1, count);
    if (got == NULL)
        return NULL;
    Py_DECREF(got);
    Py_RETURN_NONE;
}

static void rlock_free(PyObject *lock)
{
    if (running()) {
        owned(lock)->count = 0;
        forget_lock(lock);
        forget_held(lock, 0);
    }
    original.rlock_free(lock);
}

/* queue.SimpleQueue ---------------------------------------------------------------------------- */

static PyObject *queue_put(PyObject *queue, PyObject *const *arguments, Py_ssize_t n, PyObject *names)
{
    PyFiber *f = running();
    PyObject *result;
    if (f == NULL)
        return original.queue_put(queue, arguments, n, names);
    if (point_at(f, location(queue, NULL, 0)) < 0)
        return NULL;
    result = original.queue_put(queue, arguments, n, names);
    if (result && released_at(f, location(queue, NULL, 0)) < 0)
        Py_CLEAR(result);
    return result;
}

static PyObject *queue_take(PyObject *queue, PyTypeObject *type, int blocking, int64_t span)
{
    PyFiber *f = me;
    int64_t deadline = 0;
    PyObject *item;
    int in_time = 1;
    if (point_at(f, location(queue, NULL, 0)) < 0)
        return NULL;
    for (;;) {
        item = original.queue_get_nowait(queue, type, NULL, 0, NULL);
        if (item) {
            if (acquired_at(f, location(queue, NULL, 0), 0) < 0)
                Py_CLEAR(item);
            return item;
        }
        if (!blocking || span == 0 || in_time == 0)
            return NULL;          /* with the exception Empty */
        PyErr_Clear();
        in_time = wait_at(f, location(queue, NULL, 0), span, &deadline);
        if (in_time < 0)
            return NULL;
    }
}

static PyObject *queue_get(PyObject *queue, PyTypeObject *type, PyObject *const *arguments, Py_ssize_t n,
                           PyObject *names)
{
    PyObject *values[2] = {Py_True, Py_None};
    int64_t span = -1;
    int blocking;
    if (running() == NULL)
        return behind_execution() ? original.queue_get_nowait(queue, type, NULL, 0, NULL)
                                  : original.queue_get(queue, type, arguments, n, names);
    for (Py_ssize_t i = 0; i < n && i < 2; i++)
        values[i] = arguments[i];
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
        values[PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "timeout") == 0] = arguments[n + i];
    if ((blocking = PyObject_IsTrue(values[0])) < 0)
        return NULL;
    if (blocking && values[1] != Py_None) {
        double timeout = PyFloat_AsDouble(values[1]);
        if (PyErr_Occurred())
            return NULL;
        if (timeout < 0) {
            PyErr_SetString(PyExc_ValueError, "'timeout' must be a non-negative number");
            return NULL;
        }
        if (span_of(timeout, 1, &span) < 0)
            return NULL;
    }
    return queue_take(queue, type, blocking, span);
}

static PyObject *queue_get_nowait(PyObject *queue, PyTypeObject *type, PyObject *const *arguments, Py_ssize_t n,
                                  PyObject *names)
{
    return running() ? queue_take(queue, type, 0, 0) : original.queue_get_nowait(queue, type, arguments, n, names);
}
