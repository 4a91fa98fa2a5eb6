/* The only file of the project that names a compiler atomic.
 *
 * Cells are opaque: a structure cannot read or write one without naming the memory order.
 * Every operation is one C11 operation on one cell and owns no control flow.
 * GCC and Clang; MSVC has no counterpart of these builtins and is not supported.
 */
#ifndef PULSAR_ML_SYNC_H
#define PULSAR_ML_SYNC_H

#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define PML_INLINE static inline __attribute__((always_inline, unused))

#define PML_CELL(name, type)                                                                    \
    typedef struct { type v; } pml_##name;                                                      \
    PML_INLINE type pml_##name##_load_relaxed(const pml_##name *c)                              \
    { return __atomic_load_n(&c->v, __ATOMIC_RELAXED); }                                        \
    PML_INLINE type pml_##name##_load_acquire(const pml_##name *c)                              \
    { return __atomic_load_n(&c->v, __ATOMIC_ACQUIRE); }                                        \
    PML_INLINE void pml_##name##_store_relaxed(pml_##name *c, type x)                           \
    { __atomic_store_n(&c->v, x, __ATOMIC_RELAXED); }                                           \
    PML_INLINE void pml_##name##_store_release(pml_##name *c, type x)                           \
    { __atomic_store_n(&c->v, x, __ATOMIC_RELEASE); }                                           \
    PML_INLINE int pml_##name##_cas_strong_release(pml_##name *c, type *seen, type x)           \
    { return __atomic_compare_exchange_n(&c->v, seen, x, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED); } \
    PML_INLINE int pml_##name##_cas_strong_acq_rel(pml_##name *c, type *seen, type x)           \
    { return __atomic_compare_exchange_n(&c->v, seen, x, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); }

/* Clang compiles an exchange with release order, whose result nobody reads, as a store. A store has
 * another place in the order of changes: a read-modify-write may come right before it, unseen. */
#ifdef __clang__
#define PML_READ(value) __asm__ volatile("" : : "r"(value))
#else
#define PML_READ(value) ((void)0)
#endif

/* Clang calls the engine of a checked build alike for weak exchanges and for strong ones. */
#if defined(PML_CHECKED) && defined(__clang__)
int __tsan_atomic32_compare_exchange_weak(volatile uint32_t *at, uint32_t *seen, uint32_t x, int done, int failed);
int __tsan_atomic64_compare_exchange_weak(volatile uint64_t *at, uint64_t *seen, uint64_t x, int done, int failed);
#define PML_WEAK_CAS_OF(bits, at, seen, x, order)                                               \
    __tsan_atomic##bits##_compare_exchange_weak((volatile uint##bits##_t *)(at),                \
        (uint##bits##_t *)(seen), (uint##bits##_t)(x), order, __ATOMIC_RELAXED)
#define PML_WEAK_CAS(at, seen, x, order)                                                        \
    (sizeof(x) == 8 ? PML_WEAK_CAS_OF(64, at, seen, x, order) : PML_WEAK_CAS_OF(32, at, seen, x, order))
#else
#define PML_WEAK_CAS(at, seen, x, order)                                                        \
    __atomic_compare_exchange_n(at, seen, x, 1, order, __ATOMIC_RELAXED)
#endif

#define PML_RMW(name, type)                                                                     \
    PML_INLINE int pml_##name##_cas_weak_relaxed(pml_##name *c, type *seen, type x)             \
    { return PML_WEAK_CAS(&c->v, seen, x, __ATOMIC_RELAXED); }                                  \
    PML_INLINE int pml_##name##_cas_weak_acquire(pml_##name *c, type *seen, type x)             \
    { return PML_WEAK_CAS(&c->v, seen, x, __ATOMIC_ACQUIRE); }                                  \
    PML_INLINE int pml_##name##_cas_weak_release(pml_##name *c, type *seen, type x)             \
    { return PML_WEAK_CAS(&c->v, seen, x, __ATOMIC_RELEASE); }                                  \
    PML_INLINE int pml_##name##_cas_weak_acq_rel(pml_##name *c, type *seen, type x)             \
    { return PML_WEAK_CAS(&c->v, seen, x, __ATOMIC_ACQ_REL); }                                  \
    PML_INLINE type pml_##name##_exchange_acquire(pml_##name *c, type x)                        \
    { return __atomic_exchange_n(&c->v, x, __ATOMIC_ACQUIRE); }                                 \
    PML_INLINE type pml_##name##_exchange_release(pml_##name *c, type x)                        \
    { type old = __atomic_exchange_n(&c->v, x, __ATOMIC_RELEASE); PML_READ(old); return old; }  \
    PML_INLINE type pml_##name##_exchange_acq_rel(pml_##name *c, type x)                        \
    { return __atomic_exchange_n(&c->v, x, __ATOMIC_ACQ_REL); }                                 \
    PML_INLINE type pml_##name##_fetch_add_relaxed(pml_##name *c, type x)                       \
    { return __atomic_fetch_add(&c->v, x, __ATOMIC_RELAXED); }                                  \
    PML_INLINE type pml_##name##_fetch_add_release(pml_##name *c, type x)                       \
    { return __atomic_fetch_add(&c->v, x, __ATOMIC_RELEASE); }                                  \
    PML_INLINE type pml_##name##_fetch_add_acq_rel(pml_##name *c, type x)                       \
    { return __atomic_fetch_add(&c->v, x, __ATOMIC_ACQ_REL); }                                  \
    PML_INLINE type pml_##name##_fetch_sub_relaxed(pml_##name *c, type x)                       \
    { return __atomic_fetch_sub(&c->v, x, __ATOMIC_RELAXED); }                                  \
    PML_INLINE type pml_##name##_fetch_sub_release(pml_##name *c, type x)                       \
    { return __atomic_fetch_sub(&c->v, x, __ATOMIC_RELEASE); }

PML_CELL(u8, uint8_t)
PML_CELL(i32, int32_t)
PML_CELL(u32, uint32_t)
PML_CELL(i64, int64_t)
PML_CELL(u64, uint64_t)
PML_CELL(ptr, void *)
PML_RMW(i32, int32_t)
PML_RMW(u32, uint32_t)
PML_RMW(i64, int64_t)
PML_RMW(u64, uint64_t)

PML_INLINE void pml_fence_acquire(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
PML_INLINE void pml_fence_release(void) { __atomic_thread_fence(__ATOMIC_RELEASE); }
PML_INLINE void pml_fence_seq_cst(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

#ifdef PML_CHECKED
/* A checked build: what no compiler hook sees goes to the engine of the harness. */
void pml_checked_pause(void);
void pml_checked_wait(uint32_t *word, uint32_t expected);
void pml_checked_wake(uint32_t *word, uint32_t most);
void pml_checked_fail_allocation_after(int64_t n);
#endif

/* Memory. A module built with PML_FAULTS can be told to fail one allocation (tests only). */
#if defined(PML_CHECKED)
PML_INLINE void pml_fail_allocation_after(int64_t n) { pml_checked_fail_allocation_after(n); }
PML_INLINE int pml_allocation_fails(void) { return 0; }
#elif defined(PML_FAULTS)
static pml_i64 pml_fault_countdown = {-1};
PML_INLINE void pml_fail_allocation_after(int64_t n) { pml_i64_store_relaxed(&pml_fault_countdown, n); }
PML_INLINE int pml_allocation_fails(void)
{
    if (pml_i64_load_relaxed(&pml_fault_countdown) < 0)
        return 0;
    return pml_i64_fetch_sub_relaxed(&pml_fault_countdown, 1) == 0;
}
#else
PML_INLINE int pml_allocation_fails(void) { return 0; }
#endif

PML_INLINE void *pml_alloc(size_t size) { return pml_allocation_fails() ? NULL : malloc(size); }
PML_INLINE void *pml_alloc_zeroed(size_t n, size_t size)
{ return pml_allocation_fails() ? NULL : calloc(n, size); }
PML_INLINE void pml_free(void *p) { free(p); }
PML_INLINE void pml_prefetch(const void *p) { __builtin_prefetch(p); }

/* Branches. */
PML_INLINE int pml_likely(int condition) { return __builtin_expect(condition != 0, 1); }
PML_INLINE int pml_unlikely(int condition) { return __builtin_expect(condition != 0, 0); }

/* Bits; the lowest one of a word that is not zero. */
PML_INLINE int pml_count_ones(uint64_t word) { return __builtin_popcountll(word); }
PML_INLINE int pml_lowest_one(uint64_t word) { return __builtin_ctzll(word); }

/* Waiting. */
PML_INLINE void pml_pause(void)
{
#if defined(PML_CHECKED)
    pml_checked_pause();
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}
PML_INLINE void pml_yield(void) { sched_yield(); }

/* Sleeps while *c == expected; may return early. Where there is no futex it yields. */
PML_INLINE void pml_wait(pml_u32 *c, uint32_t expected)
{
#if defined(PML_CHECKED)
    pml_checked_wait(&c->v, expected);
#elif defined(__linux__)
    syscall(SYS_futex, &c->v, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
#else
    (void)c; (void)expected; sched_yield();
#endif
}
PML_INLINE void pml_wake_one(pml_u32 *c)
{
#if defined(PML_CHECKED)
    pml_checked_wake(&c->v, 1);
#elif defined(__linux__)
    syscall(SYS_futex, &c->v, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
#else
    (void)c;
#endif
}

/* Nanoseconds of the monotonic clock: the same clock as time.monotonic_ns() in Python. */
PML_INLINE int64_t pml_monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
