/* The functions of the interpreter's modules that are replaced while executions run, and the
 * beginning and end of a session. */

typedef struct {
    const char *module, *type, *name;
    int flags;
    PyCFunction replacement;
    PyCFunction *original;        /* where the original goes; NULL: it is there already */
    PyMethodDef *definition;
    PyCFunction before;
} Replaced;

enum { WITH_KEYWORDS = METH_VARARGS | METH_KEYWORDS, FAST_KEYWORDS = METH_FASTCALL | METH_KEYWORDS,
       OF_CLASS = METH_METHOD | METH_FASTCALL | METH_KEYWORDS };
#define AS(function) (PyCFunction)(void *)(function)
#define TO(field) (PyCFunction *)(void *)&original.field

static Replaced replaced[] = {
    {"_thread", "LockType", "acquire", WITH_KEYWORDS, AS(lock_acquire), TO(lock_acquire), NULL, NULL},
    {"_thread", "LockType", "acquire_lock", WITH_KEYWORDS, AS(lock_acquire), NULL, NULL, NULL},
    {"_thread", "LockType", "__enter__", WITH_KEYWORDS, AS(lock_acquire), NULL, NULL, NULL},
    {"_thread", "LockType", "release", METH_NOARGS, lock_release, TO(lock_release), NULL, NULL},
    {"_thread", "LockType", "release_lock", METH_NOARGS, lock_release, NULL, NULL, NULL},
    {"_thread", "LockType", "__exit__", METH_VARARGS, lock_exit, NULL, NULL, NULL},
    {"_thread", "RLock", "acquire", WITH_KEYWORDS, AS(rlock_acquire), TO(rlock_acquire), NULL, NULL},
    {"_thread", "RLock", "__enter__", WITH_KEYWORDS, AS(rlock_acquire), NULL, NULL, NULL},
    {"_thread", "RLock", "release", METH_NOARGS, rlock_release, TO(rlock_release), NULL, NULL},
    {"_thread", "RLock", "__exit__", METH_VARARGS, rlock_exit, NULL, NULL, NULL},
#if PY_VERSION_HEX >= 0x030E0000
    {"_thread", "RLock", "locked", METH_NOARGS, rlock_locked, TO(rlock_locked), NULL, NULL},
#endif
    {"_thread", "RLock", "_is_owned", METH_NOARGS, rlock_is_owned, TO(rlock_is_owned), NULL, NULL},
    {"_thread", "RLock", "_acquire_restore", METH_VARARGS, rlock_acquire_restore, TO(rlock_acquire_restore), NULL,
     NULL},
    {"_thread", "RLock", "_release_save", METH_NOARGS, rlock_release_save, TO(rlock_release_save), NULL, NULL},
    {"_thread", NULL, "get_ident", METH_NOARGS, virtual_get_ident, TO(get_ident), NULL, NULL},
    {"_thread", NULL, "start_new_thread", METH_VARARGS, start_new_thread, TO(start_new_thread), NULL, NULL},
    {"_thread", NULL, "start_new", METH_VARARGS, start_new_thread, NULL, NULL, NULL},
    {"_queue", "SimpleQueue", "put", FAST_KEYWORDS, AS(queue_put), TO(queue_put), NULL, NULL},
    {"_queue", "SimpleQueue", "put_nowait", FAST_KEYWORDS, AS(queue_put), NULL, NULL, NULL},
    {"_queue", "SimpleQueue", "get", OF_CLASS, AS(queue_get), TO(queue_get), NULL, NULL},
    {"_queue", "SimpleQueue", "get_nowait", OF_CLASS, AS(queue_get_nowait), TO(queue_get_nowait), NULL, NULL},
    {"time", NULL, "sleep", METH_O, virtual_sleep, TO(sleep), NULL, NULL},
    {"time", NULL, "time", METH_NOARGS, virtual_time, TO(time), NULL, NULL},
    {"time", NULL, "time_ns", METH_NOARGS, virtual_time_ns, TO(time_ns), NULL, NULL},
    {"time", NULL, "monotonic", METH_NOARGS, virtual_monotonic, TO(monotonic), NULL, NULL},
    {"time", NULL, "monotonic_ns", METH_NOARGS, virtual_monotonic_ns, TO(monotonic_ns), NULL, NULL},
    {"time", NULL, "perf_counter", METH_NOARGS, virtual_perf_counter, TO(perf_counter), NULL, NULL},
    {"time", NULL, "perf_counter_ns", METH_NOARGS, virtual_perf_counter_ns, TO(perf_counter_ns), NULL, NULL},
    {"_random", "Random", "random", METH_NOARGS, virtual_random, TO(random_random), NULL, NULL},
    {"_random", "Random", "getrandbits", METH_O, virtual_getrandbits, TO(random_getrandbits), NULL, NULL},
    {"_random", "Random", "seed", METH_FASTCALL, AS(virtual_seed), TO(random_seed), NULL, NULL},
    {"posix", NULL, "urandom", METH_O, virtual_urandom, TO(urandom), NULL, NULL},
};
enum { N_REPLACED = sizeof replaced / sizeof *replaced };

/* The row of a function or method in its module's table; NULL with an exception. */
static PyMethodDef *table_entry(const char *module_name, const char *type, const char *name, PyTypeObject **found)
{
    PyObject *module = PyImport_ImportModule(module_name), *holder = NULL, *function = NULL;
    PyMethodDef *definition = NULL;
    if (module)
        holder = type ? PyObject_GetAttrString(module, type) : Py_NewRef(module);
    if (holder)
        function = PyObject_GetAttrString(holder, name);
    if (function && PyCFunction_Check(function))
        definition = ((PyCFunctionObject *)function)->m_ml;
    else if (function && Py_IS_TYPE(function, &PyMethodDescr_Type))
        definition = ((PyMethodDescrObject *)function)->d_method;
    else if (function)
        PyErr_Format(PyExc_RuntimeError, "%s.%s of this interpreter is no native function", module_name, name);
    *found = type ? (PyTypeObject *)holder : NULL;
    Py_XDECREF(function);
    Py_XDECREF(holder);           /* the module keeps its types */
    Py_XDECREF(module);
    return definition;
}

static PyMethodDef *definition_of(const Replaced *r)
{
    PyTypeObject *type;
    PyMethodDef *definition = table_entry(r->module, r->type, r->name, &type);
    if (definition && (definition->ml_flags & ~METH_COEXIST) != r->flags) {
        PyErr_Format(PyExc_RuntimeError, "%s.%s of this interpreter is not called as it was when its replacement "
                     "was written", r->module, r->name);
        return NULL;
    }
    if (r->type && strcmp(r->type, "LockType") == 0)
        lock_type = type;
    if (r->type && strcmp(r->type, "RLock") == 0)
        rlock_type = type;
    return definition;
}

static int replace_all(void)
{
    for (int i = 0; i < N_REPLACED; i++)
        if (replaced[i].definition == NULL && (replaced[i].definition = definition_of(&replaced[i])) == NULL)
            return -1;
    for (int i = 0; i < N_REPLACED; i++) {
        Replaced *r = &replaced[i];
        r->before = r->definition->ml_meth;
        if (r->original)
            *r->original = r->before;
        r->definition->ml_meth = r->replacement;
    }
    original.lock_free = lock_type->tp_dealloc;
    original.rlock_free = rlock_type->tp_dealloc;
    lock_type->tp_dealloc = lock_free;
    rlock_type->tp_dealloc = rlock_free;
    return replace_unmodelled();
}

static void put_back_all(void)
{
    for (int i = 0; i < N_REPLACED; i++)
        replaced[i].definition->ml_meth = replaced[i].before;
    lock_type->tp_dealloc = original.lock_free;
    rlock_type->tp_dealloc = original.rlock_free;
    put_back_unmodelled();
}

/* Begins a session: executions of Python functions can be made. Returns the methods that
 * threading.Thread should have meanwhile. */
static PyObject *attach(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"describe_code", "on_exception", "before", "finish", "after", "thread_class",
                            "active_threads", "started_event", "new_event", "abandoned", "deque", "run_method",
                            "random", "local", "quiet", "watch", "on_native", "on_lock",
                            "selection", "checked", "native", "strict", "contexts", NULL};
    PyObject *describe, *on_exception, *before, *finish, *after, *thread_class, *threads, *started, *new,
        *abandoned, *deque, *run, *random, *local, *quiet, *watch, *on_native, *on_lock;
    unsigned int selection;
    int checked, native, strict, contexts;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOOOOOOOOOOOOOOOOIpppp", names, &describe, &on_exception,
                                     &before, &finish, &after, &thread_class, &threads, &started, &new,
                                     &abandoned, &deque, &run, &random, &local, &quiet, &watch,
                                     &on_native, &on_lock, &selection, &checked, &native,
                                     &strict, &contexts))
        return NULL;
    if (session.attached) {
        PyErr_SetString(PyExc_RuntimeError, "executions of Python threads are under way already");
        return NULL;
    }
    host = active = PyThreadState_Get();
    if (extra_index < 0 && (extra_index = _PyEval_RequestCodeExtraIndex(NULL)) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "the interpreter has no room for data of code objects");
        return NULL;
    }
    if (no_arguments == NULL && ((no_arguments = PyTuple_New(0)) == NULL ||
                                 (not_blocking = PyTuple_Pack(1, Py_False)) == NULL))
        return NULL;
    if (!locations_open() || !intern_names() || !events_open() || !use_selection(selection))
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    session.describe_code = Py_NewRef(describe);
    session.on_exception = Py_NewRef(on_exception);
    session.before = Py_NewRef(before);
    session.finish = Py_NewRef(finish);
    session.after = Py_NewRef(after);
    session.random = Py_NewRef(random);
    session.quiet = Py_NewRef(quiet);
    session.watch = Py_NewRef(watch);
    session.on_native = Py_NewRef(on_native);
    session.on_lock = Py_NewRef(on_lock);
    session.strict = strict;
    session.contexts = contexts;
    n_remarks = 0;
    session.number++;
    session.thread_class = Py_NewRef(thread_class);
    session.active_threads = Py_NewRef(threads);
    session.started_event = Py_NewRef(started);
    session.new_event = Py_NewRef(new);
    session.checked = checked;
    Py_XSETREF(Abandoned, Py_NewRef(abandoned));
    deque_type = (PyTypeObject *)deque;
    local_type = (PyTypeObject *)local;
    run_method = run;
    if (replace_all() < 0)
        return NULL;
    session.attached = 1;
    if (native)
        follow_memory();
    pml_python_attach(after_execution, enter_thread, state_of_thread, is_exhausted, !checked);
    return methods_of_thread();
}

static PyObject *detach(PyObject *module, PyObject *unused)
{
    if (!session.attached)
        Py_RETURN_NONE;
    pml_python_attach(NULL, NULL, NULL, NULL, 0);
    put_back_all();
    leave_memory();
    for (int i = 0; i < MOST_FIBERS; i++) {
        PyThreadState *ts = fibers[i].ts;
        if (ts == NULL)
            continue;
        fibers[i].ts = NULL;
        use_state(ts);
        follow_state(0);
        leave_stack(ts);
        PyThreadState_Clear(ts);
        use_state(host);
        PyThreadState_Delete(ts);
    }
    Py_CLEAR(session.describe_code);
    Py_CLEAR(session.on_exception);
    Py_CLEAR(session.before);
    Py_CLEAR(session.finish);
    Py_CLEAR(session.after);
    Py_CLEAR(session.random);
    Py_CLEAR(session.quiet);
    Py_CLEAR(session.watch);
    Py_CLEAR(session.on_native);
    Py_CLEAR(session.on_lock);
    Py_CLEAR(session.thread_class);
    Py_CLEAR(session.active_threads);
    Py_CLEAR(session.started_event);
    Py_CLEAR(session.new_event);
    session.attached = 0;
    Py_RETURN_NONE;
}

static PyObject *recording(PyObject *module, PyObject *unused) { return PyBool_FromLong(pml_python_recording()); }

/* {number: places} of the threads that stood somewhere when a recorded execution failed. */
static PyObject *stacks(PyObject *module, PyObject *unused)
{
    return last_stacks ? Py_NewRef(last_stacks) : PyDict_New();
}
