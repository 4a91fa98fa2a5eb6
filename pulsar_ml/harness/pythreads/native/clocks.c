/* Clocks, random numbers and the thread's identifier within an execution: time is virtual, and
 * random numbers follow from the seed. */

/* Clocks --------------------------------------------------------------------------------------- */

static const double EPOCH = 1700000000;   /* of virtual wall time, in seconds */

#define CLOCK(name, value)                                                        \
    static PyObject *virtual_##name(PyObject *module, PyObject *unused)           \
    {                                                                             \
        int64_t now;                                                              \
        if (running() == NULL)                                                           \
            return original.name(module, unused);                                 \
        now = pml_python_clock(!me->unwinding);                                   \
        return value;                                                             \
    }

CLOCK(time, PyFloat_FromDouble(EPOCH + (double)now / 1e9))
CLOCK(time_ns, PyLong_FromLongLong((long long)EPOCH * 1000000000 + now))
CLOCK(monotonic, PyFloat_FromDouble((double)now / 1e9))
CLOCK(monotonic_ns, PyLong_FromLongLong(now))
CLOCK(perf_counter, PyFloat_FromDouble((double)now / 1e9))
CLOCK(perf_counter_ns, PyLong_FromLongLong(now))

static PyObject *virtual_sleep(PyObject *module, PyObject *seconds)
{
    PyFiber *f = running();
    double span;
    int64_t nanoseconds;
    if (f == NULL)
        return original.sleep(module, seconds);
    span = PyFloat_AsDouble(seconds);
    if (PyErr_Occurred())
        return NULL;
    if (span < 0) {
        PyErr_SetString(PyExc_ValueError, "sleep length must be non-negative");
        return NULL;
    }
    if (f->unwinding)
        return unwinding_step(f) < 0 ? NULL : Py_NewRef(Py_None);
    if (span_of(span, 1, &nanoseconds) < 0)
        return NULL;
    note_stack();
    if (IN_ENGINE(f, pml_python_sleep(nanoseconds)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Random numbers ------------------------------------------------------------------------------- */

static PyObject *virtual_urandom(PyObject *module, PyObject *size)
{
    PyObject *result;
    Py_ssize_t n;
    if (running() == NULL)
        return original.urandom(module, size);
    n = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    if (n < 0) {
        PyErr_SetString(PyExc_ValueError, "negative argument not allowed");
        return NULL;
    }
    result = PyBytes_FromStringAndSize(NULL, n);
    for (Py_ssize_t i = 0; result && i < n; i++)
        PyBytes_AS_STRING(result)[i] = (char)(pml_python_random() >> 24);
    return result;
}

static int random_seeded;         /* the module's generator, in this execution */

/* Seeds a generator from the engine's numbers. */
static PyObject *seed_by_engine(PyObject *generator)
{
    PyObject *seed = PyLong_FromUnsignedLongLong(pml_python_random()), *result;
    if (seed == NULL)
        return NULL;
    result = original.random_seed(generator, &seed, 1);
    Py_DECREF(seed);
    return result;
}

static int seed_once(PyObject *generator)
{
    PyObject *result;
    if (running() == NULL || random_seeded || generator != session.random)
        return 0;
    random_seeded = 1;
    result = seed_by_engine(generator);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static PyObject *virtual_random(PyObject *generator, PyObject *unused)
{
    return seed_once(generator) < 0 ? NULL : original.random_random(generator, unused);
}

static PyObject *virtual_getrandbits(PyObject *generator, PyObject *bits)
{
    return seed_once(generator) < 0 ? NULL : original.random_getrandbits(generator, bits);
}

static PyObject *virtual_seed(PyObject *generator, PyObject *const *arguments, Py_ssize_t n)
{
    if (running() && generator == session.random)
        random_seeded = 1;
    if (running() && (n == 0 || arguments[0] == Py_None))
        return seed_by_engine(generator);
    return original.random_seed(generator, arguments, n);
}

static PyObject *virtual_get_ident(PyObject *module, PyObject *unused)
{
    if (running() == NULL || me->number == 0)
        return original.get_ident(module, unused);
    return PyLong_FromLong(IDENT + me->number);
}
