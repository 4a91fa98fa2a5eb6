"""A module with inline assembly, and its twin without: SUBJECTS[name]."""

from libc.stdint cimport int32_t

from pulsar_ml.harness.subjects.subject cimport PmlSubject, wrap_subject

cdef extern from *:
    r"""
    #include "tests/engine/programs/kit.h"
    #if defined(WITH_ASSEMBLY) && defined(__aarch64__)
    static inline void bump(long *x)
    {
        long one = 1;
        __asm__ volatile(".arch armv8.1-a\n\tldaddal %0, %0, %1" : "+r"(one), "+Q"(*x));
    }
    static inline void full_fence(void) { __asm__ volatile("dmb ish" ::: "memory"); }
    #elif defined(WITH_ASSEMBLY)
    static inline void bump(long *x) { __asm__ volatile("lock incq %0" : "+m"(*x)); }
    static inline void full_fence(void) { __asm__ volatile("mfence" ::: "memory"); }
    #else
    static inline void bump(long *x) { __atomic_fetch_add(x, 1, __ATOMIC_SEQ_CST); }
    static inline void full_fence(void) { __asm__ volatile("" ::: "memory"); }
    #endif
    #ifdef INITIAL_EXEC
    static __attribute__((tls_model("initial-exec"))) _Thread_local long shared_by_fibers;
    #else
    static _Thread_local long shared_by_fibers;
    #endif
    PROGRAM(bumps, 2, long x;)
    {
        bump(&s->x);
        full_fence();
        shared_by_fibers++;
    }
    """
    ctypedef struct Program:
        PmlSubject subject
        int32_t threads
    Program[256] programs

SUBJECTS = {"bumps": wrap_subject(&programs[0].subject, "programs", None)}
