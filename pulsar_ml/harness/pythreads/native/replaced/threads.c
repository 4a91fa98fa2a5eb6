/* threading.Thread as the code under test uses it: the class stays, its methods are these while
 * executions run. Subclasses and their instances work as before. */

static uint32_t threads_made;     /* in this execution, for their names */
static PyObject *run_method;      /* Thread.run */

static PyObject *N_target, *N_args, *N_kwargs, *N_ident, *N_name, *N_daemonic, *N_started, *N_initialized,
    *N_is_stopped, *N_handle, *N_invoke, *N_number, *N_run, *N_context, *N_tstate_lock, *N_stderr, *N_native_id,
    *N_made;

static int intern_names(void)
{
    struct { PyObject **into; const char *text; } all[] = {
        {&N_target, "_target"}, {&N_args, "_args"}, {&N_kwargs, "_kwargs"}, {&N_ident, "_ident"},
        {&N_name, "_name"}, {&N_daemonic, "_daemonic"}, {&N_started, "_started"},
        {&N_initialized, "_initialized"}, {&N_is_stopped, "_is_stopped"}, {&N_handle, HANDLE_OF_THREAD},
        {&N_invoke, "_invoke_excepthook"}, {&N_number, "_pulsar_ml_number"}, {&N_run, "run"},
        {&N_tstate_lock, "_tstate_lock"}, {&N_stderr, "_stderr"}, {&N_native_id, "_native_id"},
        {&N_made, "_pulsar_ml_made"}, {&N_context, "_context"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (*all[i].into == NULL && (*all[i].into = PyUnicode_InternFromString(all[i].text)) == NULL)
            return 0;
    return 1;
}

/* The dictionary of a thread's own variables; no descriptor of the class matters to them. */
static PyObject *variables_of(PyObject *thread)
{
    PyObject **at = _PyObject_GetDictPtr(thread);
    if (at && *at)
        return Py_NewRef(*at);
    return PyObject_GenericGetDict(thread, NULL);
}

/* The number of the thread's fiber, -1 when it was not started in this execution. */
static int number_of(PyObject *thread)
{
    PyObject *variables = variables_of(thread), *number;
    long long found = -1;
    if (variables == NULL) {
        PyErr_Clear();
        return -1;
    }
    number = PyDict_GetItemWithError(variables, N_number);
    if (number)
        found = PyLong_AsLongLong(number);
    Py_DECREF(variables);
    return found >= 0 && (uint32_t)(found / MOST_FIBERS) == generation ? (int)(found % MOST_FIBERS) : -1;
}

static PyObject *thread_init(PyObject *thread, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"group", "target", "name", "args", "kwargs", "daemon", CONTEXT_OF_THREAD, NULL};
    PyObject *group = Py_None, *target = Py_None, *name = Py_None, *args = NULL, *kwargs = NULL, *daemon = Py_None,
             *context = Py_None;
    PyObject *variables, *text, *creation, *empty = NULL;
    int failed;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, CONTEXT_OF_THREAD ? "|OOOOO$OO:Thread" : "|OOOOO$O:Thread",
                                     names, &group, &target, &name, &args, &kwargs, &daemon, &context))
        return NULL;
    if (group != Py_None) {
        PyErr_SetString(PyExc_AssertionError, "group argument must be None for now");
        return NULL;
    }
    if (kwargs == NULL || kwargs == Py_None)
        kwargs = empty = PyDict_New();
    threads_made++;
    if (name != Py_None) {
        text = PyObject_Str(name);
    } else if (target != Py_None && PyFunction_Check(target)) {
        text = PyUnicode_FromFormat("Thread-%u (%U)", threads_made, ((PyFunctionObject *)target)->func_name);
    } else {
        text = PyUnicode_FromFormat("Thread-%u", threads_made);
    }
    variables = variables_of(thread);
    creation = PyLong_FromUnsignedLong(threads_made);
    failed = kwargs == NULL || text == NULL || variables == NULL || creation == NULL ||
             (running() && PyDict_SetItem(variables, N_made, creation) < 0) ||
             PyDict_SetItem(variables, N_target, target) < 0 ||
             PyDict_SetItem(variables, N_name, text) < 0 ||
             PyDict_SetItem(variables, N_args, args && args != Py_None ? args : no_arguments) < 0 ||
             PyDict_SetItem(variables, N_kwargs, kwargs) < 0 ||
             PyDict_SetItem(variables, N_daemonic, daemon != Py_None ? daemon
                            : running() && me->daemon ? Py_True : Py_False) < 0 ||
             (CONTEXT_OF_THREAD && PyDict_SetItem(variables, N_context, context) < 0) ||
             PyDict_SetItem(variables, N_ident, Py_None) < 0 ||
             PyDict_SetItem(variables, N_native_id, Py_None) < 0 ||
             PyDict_SetItem(variables, N_started, session.new_event) < 0 ||
             PyDict_SetItem(variables, N_is_stopped, Py_False) < 0 ||
             PyDict_SetItem(variables, N_handle, session.new_event) < 0 ||
             PyDict_SetItem(variables, N_tstate_lock, Py_None) < 0 ||
             PyDict_SetItem(variables, N_stderr, Py_None) < 0 ||
             PyDict_SetItem(variables, N_initialized, Py_True) < 0;
    Py_XDECREF(creation);
    Py_XDECREF(text);
    Py_XDECREF(empty);
    Py_XDECREF(variables);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

/* Starts function(*arguments, **keywords) as a thread; takes new references. Its number, or -1. */
static int start_fiber(PyObject *thread, PyObject *function, PyObject *arguments, PyObject *keywords, int daemon)
{
    PyFiber *f = me, *new;
    volatile int number = n_fibers;
    uint64_t place;
    if (f->unwinding) {
        PyErr_SetNone(Abandoned);
        return -1;
    }
    if (number == MOST_FIBERS)
        pml_python_fail(PYTHON_UNCONTROLLED, "", "the test starts more than 63 threads");
    new = prepare_fiber(number);
    if (new == NULL)
        return -1;
    new->thread = Py_XNewRef(thread);
    new->function = Py_NewRef(function);
    new->arguments = Py_NewRef(arguments);
    new->keywords = Py_XNewRef(keywords);
    new->active = thread != NULL;
    new->daemon = (uint8_t)daemon;
    n_fibers++;
    note_stack();
    place = my_place();
    if (IN_ENGINE(f, number = pml_python_spawn(run_thread, new, new->stack + STACK_BYTES, place)) < 0)
        return -1;
    if (number != new->number)
        pml_python_fail(PYTHON_UNCONTROLLED, "", "native code of the test starts threads beside Python's");
    return number;
}

/* The method by which a thread that has a context calls its function, from 3.14 on; None for a
 * context of its own, which each fiber begins with. */
static PyObject *run_in_context(PyObject *variables)
{
    PyObject *context = CONTEXT_OF_THREAD ? PyDict_GetItem(variables, N_context) : NULL, *found;
    if ((context == NULL || context == Py_None) && !session.contexts)
        return Py_NewRef(Py_None);
    context = context && context != Py_None ? Py_NewRef(context) : PyContext_CopyCurrent();
    found = context ? PyObject_GetAttr(context, N_run) : NULL;
    Py_XDECREF(context);
    return found;
}

/* start_fiber() for a thread with its context. Steals `arguments`; -1 with an exception. */
static int start_in_context(PyObject *thread, PyObject *variables, PyObject *function, PyObject *arguments,
                            PyObject *keywords)
{
    int daemon = PyDict_GetItem(variables, N_daemonic) == Py_True, number = -1;
    PyObject *enter = arguments ? run_in_context(variables) : NULL, *all = NULL, *first;
    if (enter == Py_None) {
        number = start_fiber(thread, function, arguments, keywords, daemon);
    } else if (enter && (first = PyTuple_Pack(1, function))) {
        all = PySequence_Concat(first, arguments);
        Py_DECREF(first);
        number = all ? start_fiber(thread, enter, all, keywords, daemon) : -1;
    }
    Py_XDECREF(all);
    Py_XDECREF(enter);
    Py_XDECREF(arguments);
    return number;
}

static PyObject *thread_start(PyObject *thread, PyObject *unused)
{
    PyObject *variables, *target, *run, *number, *ident, *args, *kwargs;
    int started, failed;
    if (running() == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "a thread was started outside the executions of its test");
        return NULL;
    }
    variables = variables_of(thread);
    if (variables == NULL)
        return NULL;
    if (PyDict_GetItem(variables, N_initialized) != Py_True) {
        Py_DECREF(variables);
        PyErr_SetString(PyExc_RuntimeError, "thread.__init__() not called");
        return NULL;
    }
    if (number_of(thread) >= 0) {
        Py_DECREF(variables);
        PyErr_SetString(PyExc_RuntimeError, "threads can only be started once");
        return NULL;
    }
    number = PyLong_FromLongLong((long long)generation * MOST_FIBERS + n_fibers);
    ident = PyLong_FromLong(IDENT + n_fibers);
    failed = number == NULL || ident == NULL || PyDict_SetItem(variables, N_number, number) < 0 ||
             PyDict_SetItem(variables, N_ident, ident) < 0 ||
             PyDict_SetItem(variables, N_native_id, ident) < 0 ||
             PyDict_SetItem(variables, N_started, session.started_event) < 0 ||
             PyDict_SetItem(session.active_threads, ident, thread) < 0;
    Py_XDECREF(number);
    Py_XDECREF(ident);
    if (failed) {
        Py_DECREF(variables);
        return NULL;
    }
    target = PyDict_GetItem(variables, N_target);
    args = PyDict_GetItem(variables, N_args);
    kwargs = PyDict_GetItem(variables, N_kwargs);
    run = PyDict_GetItem(variables, N_run) ? NULL : _PyType_Lookup(Py_TYPE(thread), N_run);
    if (run == run_method && target && target != Py_None && args && kwargs) {
        /* The method run() of the class would do nothing but call the target. */
        started = start_in_context(thread, variables, target, PySequence_Tuple(args), kwargs);
    } else {
        PyObject *method = PyObject_GetAttr(thread, N_run);
        started = method ? start_in_context(thread, variables, method, Py_NewRef(no_arguments), NULL) : -1;
        Py_XDECREF(method);
    }
    Py_DECREF(variables);
    if (started < 0)
        return NULL;
    Py_RETURN_NONE;
}

static int join_number(int number, int64_t span)
{
    PyFiber *f = me;
    volatile int in_time = 1;
    if (fibers[number].done && f->unwinding)
        return 1;
    if (f->unwinding) {
        PyErr_SetNone(Abandoned);
        return -1;
    }
    note_waiting_stack();
    if (IN_ENGINE(f, in_time = pml_python_join(number, span, my_place())) < 0)
        return -1;
    return in_time;
}

static PyObject *thread_join(PyObject *thread, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"timeout", NULL};
    PyObject *timeout = Py_None;
    int64_t span = -1;
    int number;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:join", names, &timeout))
        return NULL;
    if (timeout != Py_None) {
        double seconds = PyFloat_AsDouble(timeout);
        if (PyErr_Occurred() || span_of(seconds < 0 ? 0 : seconds, 1, &span) < 0)
            return NULL;
    }
    number = running() ? number_of(thread) : -1;
    if (number < 0) {
        PyErr_SetString(PyExc_RuntimeError, "cannot join thread before it is started");
        return NULL;
    }
    if (number == me->number) {
        PyErr_SetString(PyExc_RuntimeError, "cannot join current thread");
        return NULL;
    }
    if (join_number(number, span) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *thread_is_alive(PyObject *thread, PyObject *unused)
{
    PyFiber *f = running();
    int number = f ? number_of(thread) : -1;
    if (number < 0)
        Py_RETURN_FALSE;
    if (!f->unwinding && IN_ENGINE(f, pml_python_point((uintptr_t)number + 1, 0)) < 0)
        return NULL;
    return PyBool_FromLong(!fibers[number].done);
}

/* _thread.start_new_thread(function, args[, kwargs]) */
static PyObject *start_new_thread(PyObject *module, PyObject *arguments)
{
    PyObject *function, *args, *kwargs = NULL;
    int number;
    if (running() == NULL)
        return original.start_new_thread(module, arguments);
    if (!PyArg_ParseTuple(arguments, "OO!|O!:start_new_thread", &function, &PyTuple_Type, &args, &PyDict_Type,
                          &kwargs))
        return NULL;
    number = start_fiber(NULL, function, args, kwargs, 1);
    return number < 0 ? NULL : PyLong_FromLong(IDENT + number);
}

static PyObject *virtual_get_ident(PyObject *module, PyObject *unused)
{
    PyFiber *f = running();
    if (f == NULL || f->number == 0)
        return original.get_ident(module, unused);
    return PyLong_FromLong(IDENT + f->number);
}

/* By the order of creation, so that sets of threads have the same order in each repetition. */
static Py_hash_t thread_hash(PyObject *thread)
{
    PyObject *variables = variables_of(thread), *creation;
    Py_hash_t hash = -1;
    if (variables == NULL) {
        PyErr_Clear();
        return Py_HashPointer(thread);
    }
    creation = PyDict_GetItemWithError(variables, N_made);
    hash = creation ? (Py_hash_t)PyLong_AsLong(creation) : Py_HashPointer(thread);
    Py_DECREF(variables);
    return hash;
}

static PyObject *thread_hash_method(PyObject *thread, PyObject *unused)
{
    return PyLong_FromSsize_t(thread_hash(thread));
}

/* The name of a fiber is nothing to the system. */
static PyObject *thread_set_os_name(PyObject *thread, PyObject *unused) { Py_RETURN_NONE; }

static PyMethodDef thread_methods[] = {
    {"__hash__", thread_hash_method, METH_NOARGS, NULL},
    {"__init__", (PyCFunction)(void *)thread_init, METH_VARARGS | METH_KEYWORDS, NULL},
    {"start", thread_start, METH_NOARGS, NULL},
    {"join", (PyCFunction)(void *)thread_join, METH_VARARGS | METH_KEYWORDS, NULL},
    {"is_alive", thread_is_alive, METH_NOARGS, NULL},
    {"_set_os_name", thread_set_os_name, METH_NOARGS, NULL},   /* from 3.14 on */
    {NULL, NULL, 0, NULL},
};

/* The methods of threading.Thread for executions: name -> method. */
static PyObject *methods_of_thread(void)
{
    PyObject *found = PyDict_New();
    for (PyMethodDef *each = thread_methods; found && each->ml_name; each++) {
        PyObject *method = PyDescr_NewMethod((PyTypeObject *)session.thread_class, each);
        if (method == NULL || PyDict_SetItemString(found, each->ml_name, method) < 0)
            Py_CLEAR(found);
        Py_XDECREF(method);
    }
    return found;
}
