/* Native threads, and the condition on which one of them waits for work or for time.
 *
 * Thin over POSIX threads: no control flow, no state of its own. Waiting is measured on the
 * monotonic clock, so that a changed wall clock neither wakes nor delays anybody. */
#ifndef PULSAR_ML_THREAD_H
#define PULSAR_ML_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "pulsar_ml/sync/sync.h"

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} pml_condition;

typedef struct {
    pthread_t thread;
} pml_thread;

/* 0, or the error of the system. */
PML_INLINE int pml_condition_init(pml_condition *c)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error)
        return error;
#if !defined(__APPLE__)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    error = pthread_cond_init(&c->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return error ? error : pthread_mutex_init(&c->mutex, NULL);
}

PML_INLINE void pml_condition_destroy(pml_condition *c)
{
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mutex);
}

PML_INLINE void pml_condition_enter(pml_condition *c) { pthread_mutex_lock(&c->mutex); }
PML_INLINE void pml_condition_leave(pml_condition *c) { pthread_mutex_unlock(&c->mutex); }
PML_INLINE void pml_condition_notify(pml_condition *c) { pthread_cond_broadcast(&c->changed); }

/* Inside: gives the mutex up until a notification, or for so many nanoseconds; may return early. */
PML_INLINE void pml_condition_wait(pml_condition *c, int64_t most_ns)
{
    struct timespec until;
#if defined(__APPLE__)
    until.tv_sec = most_ns / 1000000000;
    until.tv_nsec = most_ns % 1000000000;
    pthread_cond_timedwait_relative_np(&c->changed, &c->mutex, &until);
#else
    int64_t at = pml_monotonic_ns() + most_ns;
    until.tv_sec = at / 1000000000;
    until.tv_nsec = at % 1000000000;
    pthread_cond_timedwait(&c->changed, &c->mutex, &until);
#endif
}

/* 0, or the error of the system. All signals stay with the threads that were there before. */
PML_INLINE int pml_thread_start(pml_thread *t, void *(*body)(void *), void *argument)
{
    sigset_t all, before;
    int error;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&t->thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

PML_INLINE void pml_thread_join(pml_thread *t) { pthread_join(t->thread, NULL); }

#endif
