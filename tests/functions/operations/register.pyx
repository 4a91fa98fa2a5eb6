"""A register under a lock, of which one method forgets the lock."""

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_init(pthread_mutex_t*, void*)
    int pthread_mutex_destroy(pthread_mutex_t*)
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)


cdef class Register:
    cdef pthread_mutex_t mutex
    cdef int value

    def __cinit__(self, int value=0):
        pthread_mutex_init(&self.mutex, NULL)
        self.value = value

    def __dealloc__(self):
        pthread_mutex_destroy(&self.mutex)

    cdef int read(self) noexcept nogil:
        pthread_mutex_lock(&self.mutex)
        cdef int value = self.value
        pthread_mutex_unlock(&self.mutex)
        return value

    cdef void write(self, int value) noexcept nogil:
        pthread_mutex_lock(&self.mutex)
        self.value = value
        pthread_mutex_unlock(&self.mutex)

    cdef bint swap(self, int old, int new) except -1 nogil:
        cdef bint found = self.read() == old
        if found:
            self.write(new)
        return found

    cdef bint swap_whole(self, int old, int new) noexcept nogil:
        pthread_mutex_lock(&self.mutex)
        cdef bint found = self.value == old
        if found:
            self.value = new
        pthread_mutex_unlock(&self.mutex)
        return found

    cdef void small(self) noexcept nogil:
        assert self.read() < 3, "too large"

    cdef int checked(self) except -1 nogil:
        cdef int value = self.read()
        if value > 2:
            raise ValueError("above two")
        return value
