"""Counters whose sections without the GIL race, and their mended twins."""

from libc.stdlib cimport free, malloc

cdef extern from "pthread.h" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_init(pthread_mutex_t*, const void*)
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)


cdef class Counter:
    """Counts without the GIL: each half is right, and two threads lose an update."""
    cdef long value

    def add(self):
        with nogil:
            self.value += 1

    def get(self):
        return self.value


cdef class LockedCounter:
    cdef long value
    cdef pthread_mutex_t mutex

    def __cinit__(self):
        pthread_mutex_init(&self.mutex, NULL)

    def add(self):
        with nogil:
            pthread_mutex_lock(&self.mutex)
            self.value += 1
            pthread_mutex_unlock(&self.mutex)

    def get(self):
        with nogil:
            pthread_mutex_lock(&self.mutex)
            value = self.value
            pthread_mutex_unlock(&self.mutex)
        return value

    def add_and_call(self, function):
        """Call back into Python with the mutex held: with the GIL wanted inside, a deadlock."""
        with nogil:
            pthread_mutex_lock(&self.mutex)
            self.value += 1
            with gil:
                function()
            pthread_mutex_unlock(&self.mutex)

    def add_with_gil(self):
        """Take the mutex while the GIL is held."""
        pthread_mutex_lock(&self.mutex)
        self.value += 1
        pthread_mutex_unlock(&self.mutex)


cdef class Cell:
    """A number in memory of its own, which reading with the GIL does not guard."""
    cdef long* value

    def __cinit__(self):
        self.value = <long*>malloc(sizeof(long))
        self.value[0] = 0

    def __dealloc__(self):
        free(self.value)

    def set(self, long value):
        with nogil:
            self.value[0] = value

    def set_with_gil(self, long value):
        self.value[0] = value

    def get(self):
        return self.value[0]
