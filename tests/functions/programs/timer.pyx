# cython: language_level=3
"""A timer thread: runs at its deadline, unless it was cancelled before."""

from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)
    int pthread_mutex_init(pthread_mutex_t*, void*)
    int pthread_mutex_destroy(pthread_mutex_t*)
    int pthread_mutex_lock(pthread_mutex_t*)
    int pthread_mutex_unlock(pthread_mutex_t*)
    int pthread_cond_init(pthread_cond_t*, void*)
    int pthread_cond_destroy(pthread_cond_t*)
    int pthread_cond_timedwait(pthread_cond_t*, pthread_mutex_t*, const timespec*)
    int pthread_cond_signal(pthread_cond_t*)

cdef extern from "<errno.h>" nogil:
    enum:
        ETIMEDOUT

cdef enum State:
    WAITING
    FIRED
    CANCELLED

cdef pthread_mutex_t lock
cdef pthread_cond_t changed
cdef State state = WAITING
cdef int fired = 0
cdef int delay = 0  # seconds; a timer may be due at once


cdef void* fire_later(void* careful) noexcept nogil:
    global state, fired
    cdef timespec deadline
    cdef int error = 0
    clock_gettime(CLOCK_REALTIME, &deadline)
    deadline.tv_sec += delay
    pthread_mutex_lock(&lock)
    while state == WAITING and error != ETIMEDOUT:
        error = pthread_cond_timedwait(&changed, &lock, &deadline)
    if careful:
        if state == WAITING:
            state = FIRED
            fired += 1
    elif error == ETIMEDOUT:
        # The time was out, but the mutex came later: it may have been cancelled meanwhile.
        state = FIRED
        fired += 1
    pthread_mutex_unlock(&lock)
    return NULL


cdef bint cancel() noexcept nogil:
    global state
    cdef bint in_time
    pthread_mutex_lock(&lock)
    in_time = state == WAITING
    if in_time:
        state = CANCELLED
    pthread_cond_signal(&changed)
    pthread_mutex_unlock(&lock)
    return in_time


cdef int start_and_cancel(bint careful) except -1:
    cdef pthread_t timer
    cdef bint cancelled
    with nogil:
        pthread_mutex_init(&lock, NULL)
        pthread_cond_init(&changed, NULL)
        pthread_create(&timer, NULL, fire_later, <void*>careful)
        cancelled = cancel()
        pthread_join(timer, NULL)
        pthread_cond_destroy(&changed)
        pthread_mutex_destroy(&lock)
    if cancelled and fired:
        raise RuntimeError("the timer fired after it was cancelled")
    if not cancelled and fired != 1:
        raise RuntimeError("the timer neither fired nor was cancelled")
    return 0


def test_timer():
    start_and_cancel(True)


def test_timer_buggy():
    start_and_cancel(False)
