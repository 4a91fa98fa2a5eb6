/* pulsar_ml.harness.pythreads._fibers: the native part of Python threads under the engine. */

#include "pulsar_ml/harness/pythreads/native/interpreter.h"

#ifndef PULSAR_ML_NO_PYTHON_THREADS
#include "pulsar_ml/harness/pythreads/native/state.h"
#include "pulsar_ml/harness/pythreads/native/fibers.c"
#include "pulsar_ml/harness/pythreads/native/locations.c"
#include "pulsar_ml/harness/pythreads/native/codes.c"
#include "pulsar_ml/harness/pythreads/native/replaced/held.c"
#include "pulsar_ml/harness/pythreads/native/replaced/locks.c"
#include "pulsar_ml/harness/pythreads/native/replaced/clocks.c"
#include "pulsar_ml/harness/pythreads/native/replaced/threads.c"
#include "pulsar_ml/harness/pythreads/native/points.c"
#include "pulsar_ml/harness/pythreads/native/events.c"
#include "pulsar_ml/harness/pythreads/native/executions.c"
#include "pulsar_ml/harness/pythreads/native/stuck.c"
#include "pulsar_ml/harness/pythreads/native/objects.c"
#include "pulsar_ml/harness/pythreads/native/replaced/unmodelled.c"
#include "pulsar_ml/harness/pythreads/native/replaced/memory.c"
#include "pulsar_ml/harness/pythreads/native/replace.c"
#endif

#ifdef PULSAR_ML_NO_PYTHON_THREADS
/* The caller asks SUPPORTED before, and names the versions that there are. */
static PyObject *unsupported(PyObject *self, PyObject *arguments)
{
    PyErr_SetString(PyExc_RuntimeError, "this interpreter's threads do not run under the engine");
    return NULL;
}
#endif

static PyMethodDef METHODS[] = {
#ifdef PULSAR_ML_NO_PYTHON_THREADS
    {"attach", unsupported, METH_VARARGS, NULL},
    {"detach", unsupported, METH_VARARGS, NULL},
    {"answer_stuck", unsupported, METH_VARARGS, NULL},
    {"set_test", unsupported, METH_VARARGS, NULL},
    {"set_object", unsupported, METH_VARARGS, NULL},
    {"place_parts", unsupported, METH_VARARGS, NULL},
    {"place_number", unsupported, METH_VARARGS, NULL},
    {"on_start", unsupported, METH_VARARGS, NULL},
    {"on_instruction", unsupported, METH_VARARGS, NULL},
    {"recorded_names", unsupported, METH_VARARGS, NULL},
    {"recording", unsupported, METH_VARARGS, NULL},
    {"stacks", unsupported, METH_VARARGS, NULL},
#else
    {"attach", (PyCFunction)(void *)attach, METH_VARARGS | METH_KEYWORDS, NULL},
    {"detach", detach, METH_NOARGS, NULL},
    {"answer_stuck", answer_stuck, METH_VARARGS, NULL},
    {"set_test", set_test, METH_VARARGS, NULL},
    {"set_object", set_object, METH_VARARGS, NULL},
    {"place_parts", place_parts, METH_O, NULL},
    {"place_number", place_number, METH_VARARGS, NULL},
#ifdef WITH_MONITORING
    {"on_start", (PyCFunction)(void *)on_start, METH_FASTCALL, NULL},
    {"on_instruction", (PyCFunction)(void *)on_instruction, METH_FASTCALL, NULL},
#endif
    {"recorded_names", recorded_names, METH_NOARGS, NULL},
    {"recording", recording, METH_NOARGS, NULL},
    {"stacks", stacks, METH_NOARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_fibers", NULL, -1, METHODS, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__fibers(void)
{
    PyObject *module = PyModule_Create(&MODULE);
#ifndef PULSAR_ML_NO_PYTHON_THREADS
    int supported = 1;
#else
    int supported = 0;
#endif
#ifdef Py_GIL_DISABLED
    if (module && PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED) < 0)
        Py_CLEAR(module);
#endif
    if (module && PyModule_AddIntConstant(module, "SUPPORTED", supported) < 0)
        Py_CLEAR(module);
    return module;
}
