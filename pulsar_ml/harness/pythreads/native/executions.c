/* A Python function as a subject of the engine: its first thread calls the function, waits for the
 * threads that are not daemons, and ends the execution. */

static PyObject *test_function;
static char instance;

/* Takes the current exception for the failure of the running thread. */
static void fail_by_exception(void)
{
    PyObject *type, *value, *traceback, *found, *places;
    const char *rule, *message;
    char kept_rule[28], kept_message[224];
    uint64_t around[64];
    int kind = PYTHON_EXCEPTION, n = 0;
    PyFiber *f = me;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    me = NULL;
    found = PyObject_CallFunctionObjArgs(session.on_exception, value, NULL);
    me = f;
    snprintf(kept_rule, sizeof kept_rule, "exception");
    snprintf(kept_message, sizeof kept_message, "an exception that cannot be shown");
    if (found && PyArg_ParseTuple(found, "issO!", &kind, &rule, &message, &PyList_Type, &places)) {
        snprintf(kept_rule, sizeof kept_rule, "%s", rule);
        snprintf(kept_message, sizeof kept_message, "%s", message);
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places) && n < 64; i++)
            around[n++] = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(places, i));
    }
    Py_XDECREF(found);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyErr_Clear();
    pml_python_stack(around, n);
    pml_python_fail(kind, kept_rule, kept_message);
}

static void join_all(void)
{
    for (int i = 1; i < n_fibers && !PyErr_Occurred(); i++)
        if (!fibers[i].daemon && !fibers[i].done)
            join_number(i, -1);
}

static void run_test(void)
{
    PyFiber *f = &fibers[0];
    PyObject *result = NULL;
    goes_on(f);
    f->started = 1;
    f->done = 0;
    result = PyObject_CallNoArgs(session.before);
    if (result) {
        Py_DECREF(result);
        result = PyObject_CallNoArgs(test_function);
    }
    Py_XDECREF(result);
    end_fiber(f);
    result = PyObject_CallNoArgs(session.finish);
    Py_XDECREF(result);
    end_fiber(f);
    join_all();
    end_fiber(f);
    if (unlikely(n_held))
        remark_held();
    f->done = 1;
    for (int i = 1; i < n_fibers; i++)
        if (!fibers[i].done)
            pml_python_complete();
}

/* The engine's main thread begins an execution of so many threads. */
static void *create(const int64_t *settings, int32_t threads)
{
    pml_python_start();
    threads_made = 0;
    if (unlikely(pml_python_recording())) {
        name_interpreter_lock();
        PyList_SetSlice(noted_values, 0, PyList_GET_SIZE(noted_values), NULL);
    }
    random_seeded = 0;
    n_held = 0;
    for (n_fibers = 0; n_fibers < threads; n_fibers++) {
        if (prepare_fiber(n_fibers) == NULL) {
            PyErr_Clear();
            return NULL;
        }
    }
    return &instance;
}

static void apply(void *unused, int32_t thread, const PmlCall *call, PmlResult *result, PmlViolation *violation)
{
    pml_python_on_stack(fibers[0].stack + STACK_BYTES, run_test);
}

static void check(void *unused, PmlViolation *violation) {}
static void destroy(void *unused) {}

static const PmlOperation RUN = {"test", 1, PML_ANY_THREAD, 0, 0, {{0, 0, 0}}};
/* 1: semantics `free`. The record of a failure has the setting. */
static const PmlArgument SETTINGS[] = {{"free", 0, 1}};

/* The tables of the tests so far, by name: a subject may outlive the next test. */
typedef struct Named {
    struct Named *next;
    PmlSubject subject;
    char name[128];
} Named;
static Named *named_tests;

static Named *named_test(const char *name)
{
    Named *found = named_tests;
    while (found && strncmp(found->name, name, sizeof found->name - 1))
        found = found->next;
    if (found || (found = calloc(1, sizeof *found)) == NULL)
        return found;
    snprintf(found->name, sizeof found->name, "%s", name);
    found->subject = (PmlSubject){PML_SUBJECT_ABI, 1, 1, 1, found->name, found->name, &RUN, SETTINGS,
                                  create, apply, check, destroy};
    found->next = named_tests;
    return named_tests = found;
}

/* test(function, name): the function that executions call from now on; the table's address. */
static PyObject *set_test(PyObject *module, PyObject *arguments)
{
    PyObject *function;
    const char *name;
    Named *found;
    if (!PyArg_ParseTuple(arguments, "Os", &function, &name))
        return NULL;
    found = named_test(name);
    if (found == NULL)
        return PyErr_NoMemory();
    Py_XSETREF(test_function, Py_NewRef(function));
    return PyLong_FromVoidPtr(&found->subject);
}
