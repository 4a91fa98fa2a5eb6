cimport cython


cdef class Counter:
    """Two numbers: `add` changes one of them without a lock, `add_guarded` the other with one."""

    cdef long number
    cdef long guarded
    cdef cython.pymutex lock

    def add(self):
        self.number += 1

    def add_guarded(self):
        with self.lock:
            self.guarded += 1
