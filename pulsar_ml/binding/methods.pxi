# Methods that threads call without counting references to them.
#
# A call of a method takes a reference to it. Without a GIL a method of a Python class is counted by
# deferred reference counting (PEP 703), which writes nothing; one of a compiled class is counted by
# atomic operations on it, which all threads make on one cache line. Since Python 3.14 a module may
# ask for the former.

cdef extern from *:
    """
    static void pml_defer_references(PyObject *method)
    {
    #if defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030E0000
        PyUnstable_Object_EnableDeferredRefcount(method);
    #else
        (void)method;
    #endif
    }
    """
    void defer_references "pml_defer_references"(object method)


for _kind in list(globals().values()):
    if isinstance(_kind, type) and _kind.__module__ == __name__:
        for _method in vars(_kind).values():
            defer_references(_method)
del _kind, _method
