# Native threads, and the condition on which one of them waits for work or for time: thread.h.

from libc.stdint cimport int64_t


ctypedef void* (*ThreadBody)(void* argument) noexcept nogil


cdef extern from "pulsar_ml/sync/thread.h" nogil:
    ctypedef struct pml_condition:
        pass
    ctypedef struct pml_thread:
        pass

    int condition_init "pml_condition_init"(pml_condition* condition) noexcept
    void condition_destroy "pml_condition_destroy"(pml_condition* condition) noexcept
    void condition_enter "pml_condition_enter"(pml_condition* condition) noexcept
    void condition_leave "pml_condition_leave"(pml_condition* condition) noexcept
    void condition_notify "pml_condition_notify"(pml_condition* condition) noexcept
    void condition_wait "pml_condition_wait"(pml_condition* condition, int64_t most_ns) noexcept

    int thread_start "pml_thread_start"(pml_thread* thread, ThreadBody body, void* argument) noexcept
    void thread_join "pml_thread_join"(pml_thread* thread) noexcept
