/* The queue lock of Mellor-Crummey and Scott (TOCS 1991), in one header. */
#ifndef MCS_H
#define MCS_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct mcs_node {
    _Atomic(struct mcs_node *) next;
    atomic_bool locked;
} mcs_node;

typedef struct {
    _Atomic(mcs_node *) tail;
} mcs_lock;

static inline void mcs_acquire(mcs_lock *lock, mcs_node *me)
{
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->locked, true, memory_order_relaxed);
    mcs_node *before = atomic_exchange_explicit(&lock->tail, me, memory_order_acq_rel);
    if (before == NULL)
        return;
    atomic_store_explicit(&before->next, me, memory_order_release);
    while (atomic_load_explicit(&me->locked, memory_order_acquire))
        sched_yield();
}

static inline void mcs_release(mcs_lock *lock, mcs_node *me)
{
    mcs_node *next = atomic_load_explicit(&me->next, memory_order_acquire);
    if (next == NULL) {
        mcs_node *expected = me;
        if (atomic_compare_exchange_strong_explicit(&lock->tail, &expected, NULL,
                                                    memory_order_release, memory_order_relaxed))
            return;
        /* another thread is in the queue, and has not linked itself yet */
        while ((next = atomic_load_explicit(&me->next, memory_order_acquire)) == NULL)
            sched_yield();
    }
    atomic_store_explicit(&next->locked, false, memory_order_release);
}

/* Forgets a thread that is in the queue and has not linked itself yet. */
static inline void mcs_release_buggy(mcs_lock *lock, mcs_node *me)
{
    mcs_node *next = atomic_load_explicit(&me->next, memory_order_acquire);
    if (next == NULL) {
        mcs_node *expected = me;
        atomic_compare_exchange_strong_explicit(&lock->tail, &expected, NULL, memory_order_release,
                                                memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&next->locked, false, memory_order_release);
}

#endif
