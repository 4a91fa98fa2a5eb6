/* A module whose functions start threads of their own; one of them loses an increment. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdatomic.h>

static void *add(void *counter)
{
    atomic_fetch_add((atomic_int *)counter, 1);
    return NULL;
}

static void *add_in_two_steps(void *counter)
{
    atomic_store((atomic_int *)counter, atomic_load((atomic_int *)counter) + 1);
    return NULL;
}

static PyObject *run(void *(*body)(void *))
{
    atomic_int counter = 0;
    pthread_t other;
    pthread_create(&other, NULL, body, &counter);
    body(&counter);
    pthread_join(other, NULL);
    if (counter == 2)
        Py_RETURN_NONE;
    return PyErr_Format(PyExc_AssertionError, "%d instead of 2", (int)counter);
}

static PyObject *adds(PyObject *self, PyObject *unused) { return run(add); }
static PyObject *loses(PyObject *self, PyObject *unused) { return run(add_in_two_steps); }

static PyMethodDef methods[] = {
    {"adds", adds, METH_NOARGS, NULL}, {"loses", loses, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "counter", NULL, -1, methods,
                             NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_counter(void) { return PyModule_Create(&module); }
