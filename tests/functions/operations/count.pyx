"""Tests that start threads of their own; some are wrong."""

cdef extern from "pthread.h" nogil:
    ctypedef unsigned long pthread_t
    int pthread_create(pthread_t*, const void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)
cdef extern from "<stdatomic.h>" nogil:
    ctypedef int atomic_int
    int atomic_fetch_add(atomic_int*, int)
    int atomic_load(atomic_int*)
    void atomic_store(atomic_int*, int)


cdef void* add(void* counter) noexcept nogil:
    (<int*>counter)[0] += 1
    return NULL


cdef void* add_atomic(void* counter) noexcept nogil:
    atomic_fetch_add(<atomic_int*>counter, 1)
    return NULL


cdef void* add_badly(void* counter) noexcept nogil:
    atomic_store(<atomic_int*>counter, atomic_load(<atomic_int*>counter) + 1)
    return NULL


cdef int run(void* (*what)(void*) noexcept nogil):
    cdef int counter = 0
    cdef pthread_t other
    with nogil:
        pthread_create(&other, NULL, what, &counter)
        what(&counter)
        pthread_join(other, NULL)
    return counter


cdef void drop(int counter) noexcept nogil:
    assert counter == 3, "dropped"


def races():
    assert run(add) == 2


def adds():
    assert run(add_atomic) == 2


def loses():
    assert run(add_badly) == 2, "lost"


def drops():
    drop(run(add_atomic))


def alone():
    pass
