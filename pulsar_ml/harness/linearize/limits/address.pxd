# The memory of an array of numpy, which stays there as long as the array.

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer


# Raises TypeError for what shows no memory, and ValueError for an array with gaps.
cdef inline void* address_of(object array) except? NULL:
    cdef Py_buffer view
    cdef void* address
    PyObject_GetBuffer(array, &view, PyBUF_SIMPLE)
    address = view.buf
    PyBuffer_Release(&view)
    return address
