/* An object of Python as a subject of the engine: each thread of a program calls its methods, and
 * their answers are results that a judge compares with a model's. The object is created by the
 * first call of an execution, without a step. */

enum { MOST_METHODS = 32, MOST_NAME = 64 };
static PyObject *object_factory, *object_answer;   /* () -> object; value -> (status, four words) */
static PyObject *object_under_test;
static PyObject *method_names[MOST_METHODS];
static char method_texts[MOST_METHODS][MOST_NAME];
static PmlOperation methods[MOST_METHODS];
static char object_name[128] = "object";
static PmlSubject OBJECT = {PML_SUBJECT_ABI, 0, 1, 0, object_name, object_name, methods, SETTINGS,
                            create, NULL, check, destroy};

static struct { const PmlCall *call; PmlResult *result; } calls_of[MOST_FIBERS];

static void forget_object(void) { Py_CLEAR(object_under_test); }

static void create_object(PyFiber *f)
{
    f->unwinding = CREATING;
    pml_python_quiet(1);
    object_under_test = PyObject_CallNoArgs(object_factory);
    pml_python_quiet(0);
    f->unwinding = NOT_UNWINDING;
    if (object_under_test == NULL) {
        if (PyErr_ExceptionMatches(Abandoned)) {
            PyErr_Clear();
            pml_python_fail(PYTHON_UNCONTROLLED, "", "the object waits or starts a thread while it is created; give "
                            "it what it needs ready-made");
        }
        f->done = 1;
        fail_by_exception();
    }
}

/* The answer of a call that ended: its value, or the exception that left it. */
static int note_answer(PyFiber *f, PyObject *value, PmlResult *result)
{
    PyObject *found, *raised = NULL;
    long long words[5];
    if (value == NULL) {
        PyObject *type, *traceback;
        PyErr_Fetch(&type, &raised, &traceback);
        PyErr_NormalizeException(&type, &raised, &traceback);
        Py_XDECREF(type);
        Py_XDECREF(traceback);
    }
    me = NULL;
    found = PyObject_CallFunction(object_answer, "OO", value ? value : Py_None, raised ? raised : Py_None);
    me = f;
    Py_XDECREF(raised);
    if (found == NULL || !PyArg_ParseTuple(found, "LLLLL", &words[0], &words[1], &words[2], &words[3], &words[4])) {
        Py_XDECREF(found);
        return -1;
    }
    Py_DECREF(found);
    result->status = words[0];
    for (int i = 0; i < PML_RESULT_WORDS; i++)
        result->words[i] = words[i + 1];
    return 0;
}

static void run_call(void)
{
    PyFiber *f = &fibers[pml_python_number()];
    const PmlCall *call = calls_of[f->number].call;
    const PmlOperation *operation = &methods[call->code];
    PyObject *values[1 + PML_MAX_ARGUMENTS] = {NULL}, *value = NULL;
    int n = 0, failed = 0;
    goes_on(f);
    f->started = 1;
    f->done = 0;
    if (object_under_test == NULL)
        create_object(f);
    values[n++] = Py_NewRef(object_under_test);
    for (int i = 0; i < operation->n_arguments && !failed; i++)
        failed = (values[n++] = PyLong_FromLongLong(call->arguments[i])) == NULL;
    if (!failed)
        value = PyObject_VectorcallMethod(method_names[call->code], values,
                                          (size_t)n | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    while (n)
        Py_XDECREF(values[--n]);
    if (f->unwinding)
        end_fiber(f);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AssertionError))
        end_fiber(f);
    if (note_answer(f, value, calls_of[f->number].result) < 0)
        end_fiber(f);
    Py_XDECREF(value);
    f->done = 1;
    pml_python_end();
}

static void apply_call(void *unused, int32_t thread, const PmlCall *call, PmlResult *result, PmlViolation *violation)
{
    calls_of[thread].call = call;
    calls_of[thread].result = result;
    pml_python_on_stack(fibers[thread].stack + STACK_BYTES, run_call);
}

/* set_object(factory, answer, name, [(method, [(low, high), ...]), ...]): the table's address. */
static PyObject *set_object(PyObject *module, PyObject *arguments)
{
    PyObject *factory, *answer, *list;
    const char *name;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(arguments, "OOsO!", &factory, &answer, &name, &PyList_Type, &list))
        return NULL;
    n = PyList_GET_SIZE(list);
    if (n < 1 || n > MOST_METHODS)
        return PyErr_Format(PyExc_ValueError, "%zd methods; there should be 1 to %d", n, MOST_METHODS);
    for (Py_ssize_t i = 0; i < n; i++) {
        PmlOperation *each = &methods[i];
        PyObject *ranges;
        const char *method;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "sO!", &method, &PyList_Type, &ranges))
            return NULL;
        if (PyList_GET_SIZE(ranges) > PML_MAX_ARGUMENTS)
            return PyErr_Format(PyExc_ValueError, "%s has more than %d arguments", method, PML_MAX_ARGUMENTS);
        snprintf(method_texts[i], MOST_NAME, "%s", method);
        *each = (PmlOperation){method_texts[i], 1, PML_ANY_THREAD, (int32_t)PyList_GET_SIZE(ranges), 0, {{0, 0, 0}}};
        for (int32_t a = 0; a < each->n_arguments; a++) {
            long long low, high;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(ranges, a), "LL", &low, &high))
                return NULL;
            each->arguments[a] = (PmlArgument){"argument", low, high};
        }
        Py_XSETREF(method_names[i], PyUnicode_InternFromString(method));
        if (method_names[i] == NULL)
            return NULL;
    }
    Py_XSETREF(object_factory, Py_NewRef(factory));
    Py_XSETREF(object_answer, Py_NewRef(answer));
    snprintf(object_name, sizeof object_name, "%s", name);
    OBJECT.n_operations = (int32_t)n;
    OBJECT.apply = apply_call;
    return PyLong_FromVoidPtr(&OBJECT);
}
