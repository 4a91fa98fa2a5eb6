/* The common part of the programs of this folder. A program is a subject with one operation: thread
 * number t runs its part. check() judges, and notes which outcome an execution had. */
#ifndef QUALITY_KIT_H
#define QUALITY_KIT_H

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pulsar_ml/harness/subject.h"
#include "pulsar_ml/sync/sync.h"

#define RLX memory_order_relaxed
#define ACQ memory_order_acquire
#define REL memory_order_release
#define ACR memory_order_acq_rel
#define SEQ memory_order_seq_cst

typedef atomic_long Cell;

#define ld(cell, order) atomic_load_explicit(&(cell), order)
#define st(cell, value, order) atomic_store_explicit(&(cell), value, order)
#define add(cell, value, order) atomic_fetch_add_explicit(&(cell), value, order)
#define swap(cell, value, order) atomic_exchange_explicit(&(cell), value, order)
#define cas(cell, expected, value, order) \
    atomic_compare_exchange_strong_explicit(&(cell), expected, value, order, RLX)
#define fence(order) atomic_thread_fence(order)

enum { MOST_PROGRAMS = 256, MOST_OUTCOMES = 64 };

typedef struct {
    PmlSubject subject;
    int32_t threads;
    uint64_t outcomes[MOST_OUTCOMES];
} Program;

static Program programs[MOST_PROGRAMS];
static int n_programs;

static const PmlOperation RUN = {"run", 1, PML_ANY_THREAD, 0, 0, {{0}}};
static const PmlArgument NO_SETTING = {0};

__attribute__((no_sanitize_thread)) static void define(const char *name, int threads,
                                                       void *(*create)(const int64_t *, int32_t),
                   void (*apply)(void *, int32_t, const PmlCall *, PmlResult *, PmlViolation *),
                   void (*check)(void *, PmlViolation *), void (*destroy)(void *))
{
    Program *p = &programs[n_programs++];
    p->threads = threads;
    p->subject = (PmlSubject){PML_SUBJECT_ABI, 1, 0, threads, name, name, &RUN, &NO_SETTING,
                              create, apply, check, destroy};
}

#define BROKEN(v, text) \
    do { if (!(v)->found) { (v)->found = 1; strcpy((v)->invariant, "Q"); strcpy((v)->message, text); } } while (0)

/* PROGRAM(name, threads, fields) { body }: s is the state, zeroed, t the thread, v the violation.
 * JUDGED_PROGRAM is followed by JUDGE(name) { ... }, which runs alone at the end. */
#define PROGRAM(name, n_threads, ...)                                                           \
    JUDGED_PROGRAM_STATE(name, __VA_ARGS__)                                                     \
    static void name##_check(void *instance, PmlViolation *v) { (void)instance; (void)v; }      \
    JUDGED_PROGRAM_REST(name, n_threads)

#define JUDGED_PROGRAM(name, n_threads, ...)                                                    \
    JUDGED_PROGRAM_STATE(name, __VA_ARGS__)                                                     \
    static inline void name##_judge(name##_state *s, PmlViolation *v);                          \
    static void name##_check(void *instance, PmlViolation *v) { name##_judge(instance, v); }    \
    JUDGED_PROGRAM_REST(name, n_threads)

#define JUDGE(name)                                                                             \
    static inline void name##_judge(__attribute__((unused)) name##_state *s,                    \
                                    __attribute__((unused)) PmlViolation *v)

#define JUDGED_PROGRAM_STATE(name, ...)                                                         \
    typedef struct { __VA_ARGS__ } name##_state;                                                \
    __attribute__((unused)) static int name##_number;                                           \
    static inline void name##_body(name##_state *s, int t, PmlViolation *v);                    \
    static void *name##_create(const int64_t *settings, int32_t threads)                        \
    {                                                                                           \
        (void)settings; (void)threads;                                                          \
        return calloc(1, sizeof(name##_state));                                                 \
    }                                                                                           \
    static void name##_apply(void *instance, int32_t t, const PmlCall *call, PmlResult *result, \
                             PmlViolation *v)                                                   \
    {                                                                                           \
        (void)call; (void)result;                                                               \
        name##_body(instance, t, v);                                                            \
    }                                                                                           \
    static void name##_destroy(void *instance) { free(instance); }

#define JUDGED_PROGRAM_REST(name, n_threads)                                                    \
    __attribute__((constructor, no_sanitize_thread)) static void name##_define(void)            \
    {                                                                                           \
        name##_number = n_programs;                                                             \
        define(#name, n_threads, name##_create, name##_apply, name##_check, name##_destroy);    \
    }                                                                                           \
    static inline void name##_body(__attribute__((unused)) name##_state *s,                     \
                                   __attribute__((unused)) int t,                               \
                                   __attribute__((unused)) PmlViolation *v)

#define OUTCOME(name, value) (programs[name##_number].outcomes[(value) % MOST_OUTCOMES]++)

#endif
