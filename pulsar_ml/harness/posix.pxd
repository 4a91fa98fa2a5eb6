# POSIX threads, signals and processors, as far as the native runner uses them.

from posix.signal cimport sigset_t
from posix.time cimport timespec

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    ctypedef struct pthread_mutex_t: pass
    ctypedef struct pthread_cond_t: pass
    ctypedef struct pthread_condattr_t: pass
    int pthread_create(pthread_t* thread, const void* attributes, void* (*body)(void*) noexcept nogil,
                       void* argument) noexcept
    int pthread_join(pthread_t thread, void** result) noexcept
    int pthread_detach(pthread_t thread) noexcept
    int pthread_mutex_init(pthread_mutex_t* mutex, const void* attributes) noexcept
    int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept
    int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept
    int pthread_condattr_init(pthread_condattr_t* attributes) noexcept
    int pthread_condattr_setclock(pthread_condattr_t* attributes, int clock) noexcept
    int pthread_condattr_destroy(pthread_condattr_t* attributes) noexcept
    int pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t* attributes) noexcept
    int pthread_cond_signal(pthread_cond_t* condition) noexcept
    int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                               const timespec* deadline) noexcept
    int pthread_cond_destroy(pthread_cond_t* condition) noexcept

cdef extern from "<signal.h>" nogil:
    enum:
        SIG_SETMASK, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP
    int pthread_sigmask(int how, const sigset_t* mask, sigset_t* old) noexcept

cdef extern from "<sched.h>" nogil:
    enum:
        CPU_SETSIZE
    ctypedef struct cpu_set_t: pass
    void CPU_ZERO(cpu_set_t* cpus) noexcept
    void CPU_SET(int cpu, cpu_set_t* cpus) noexcept
    int CPU_ISSET(int cpu, cpu_set_t* cpus) noexcept
    int sched_getaffinity(int pid, size_t size, cpu_set_t* cpus) noexcept
    int sched_setaffinity(int pid, size_t size, const cpu_set_t* cpus) noexcept
    int sched_getcpu() noexcept
