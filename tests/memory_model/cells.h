/* Three atomic cells and a mutex, with an operation for each kind of access and each memory order.
 * A test compares the outcomes of programs over them with those that a memory model allows. */
#ifndef MEMORY_MODEL_CELLS_H
#define MEMORY_MODEL_CELLS_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pulsar_ml/harness/subject.h"

enum { CELLS = 3, MOST_THREADS = 4, MOST_CALLS = 8, MOST_OUTCOMES = 1 << 14, FAILED_CAS = 8 };
enum { LOAD, STORE, EXCHANGE, CAS, FENCE, LOCK, UNLOCK, OPERATIONS };

typedef struct {
    int64_t cells[CELLS];
    pthread_mutex_t mutex;
    int calls[MOST_THREADS];
    uint64_t results[MOST_THREADS]; /* a call's result is four bits */
} World;

/* Results of all threads, and the final values. */
typedef struct {
    uint64_t results[MOST_THREADS];
    uint64_t finals;
} Outcome;

static Outcome outcomes[MOST_OUTCOMES];
static int n_outcomes;

#define UNSEEN __attribute__((no_sanitize_thread, noinline)) static

UNSEEN void note_result(World *w, int t, int64_t value)
{
    w->results[t] |= (uint64_t)(value & 15) << (4 * (w->calls[t]++ & 15));
}

UNSEEN void note_outcome(const World *w, uint64_t finals)
{
    Outcome outcome;
    memset(&outcome, 0, sizeof(outcome));
    for (int t = 0; t < MOST_THREADS; t++)
        outcome.results[t] = w->results[t];
    outcome.finals = finals;
    for (int i = 0; i < n_outcomes; i++)
        if (!memcmp(&outcomes[i], &outcome, sizeof(outcome)))
            return;
    if (n_outcomes < MOST_OUTCOMES)
        outcomes[n_outcomes++] = outcome;
}

/* The builtins take the order as a constant. */
#define BY_ORDER(statement)                                                                     \
    switch (order) {                                                                            \
    case __ATOMIC_RELAXED: statement(__ATOMIC_RELAXED); break;                                  \
    case __ATOMIC_ACQUIRE: statement(__ATOMIC_ACQUIRE); break;                                  \
    case __ATOMIC_RELEASE: statement(__ATOMIC_RELEASE); break;                                  \
    case __ATOMIC_ACQ_REL: statement(__ATOMIC_ACQ_REL); break;                                  \
    default: statement(__ATOMIC_SEQ_CST); break;                                                \
    }
/* Loads never release and stores never acquire; the compiler refuses such orders. */
#define OF_LOAD(order) \
    (order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE : order)
#define OF_STORE(order) \
    (order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL ? __ATOMIC_RELEASE : order)
#define LOADS(order) value = __atomic_load_n(cell, OF_LOAD(order))
#define STORES(order) __atomic_store_n(cell, argument, OF_STORE(order))
#define EXCHANGES(order) value = __atomic_exchange_n(cell, argument, order)
#define SWAPS(order) done = __atomic_compare_exchange_n(cell, &expected, desired, 0, order, __ATOMIC_RELAXED)
#define FENCES(order) __atomic_thread_fence(order)

static void cells_apply(void *instance, int32_t t, const PmlCall *call, PmlResult *result, PmlViolation *v)
{
    World *w = instance;
    int64_t *cell = &w->cells[call->arguments[0] % CELLS];
    int64_t argument = call->arguments[2], value = 0, expected = argument >> 3, desired = argument & 7;
    int order = (int)call->arguments[1], done;
    (void)v;
    switch (call->code) {
    case LOAD: BY_ORDER(LOADS); break;
    case STORE: BY_ORDER(STORES); break;
    case EXCHANGE: BY_ORDER(EXCHANGES); break;
    case CAS:
        BY_ORDER(SWAPS);
        value = done ? expected : expected | FAILED_CAS;
        break;
    case FENCE: BY_ORDER(FENCES); break;
    case LOCK: pthread_mutex_lock(&w->mutex); break;
    case UNLOCK: pthread_mutex_unlock(&w->mutex); break;
    }
    note_result(w, t, value);
    (void)result;
}

static void *cells_create(const int64_t *settings, int32_t threads)
{
    World *w = calloc(1, sizeof(World));
    (void)settings; (void)threads;
    if (w)
        pthread_mutex_init(&w->mutex, NULL);
    return w;
}

static void cells_check(void *instance, PmlViolation *v)
{
    World *w = instance;
    uint64_t finals = 0;
    (void)v;
    for (int i = 0; i < CELLS; i++)
        finals |= (uint64_t)__atomic_load_n(&w->cells[i], __ATOMIC_RELAXED) << (4 * i);
    note_outcome(w, finals);
}

static void cells_destroy(void *instance)
{
    World *w = instance;
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

static const PmlOperation cells_operations[OPERATIONS] = {
    [LOAD] = {"load", 1, PML_ANY_THREAD, 0, 3, {{"cell", 0, 2}, {"order", 0, 5}, {"value", 0, 63}}},
    [STORE] = {"store", 1, PML_ANY_THREAD, 0, 3, {{"cell", 0, 2}, {"order", 0, 5}, {"value", 0, 63}}},
    [EXCHANGE] = {"exchange", 1, PML_ANY_THREAD, 0, 3, {{"cell", 0, 2}, {"order", 0, 5}, {"value", 0, 63}}},
    [CAS] = {"cas", 1, PML_ANY_THREAD, 0, 3, {{"cell", 0, 2}, {"order", 0, 5}, {"value", 0, 63}}},
    [FENCE] = {"fence", 1, PML_ANY_THREAD, 0, 3, {{"cell", 0, 2}, {"order", 0, 5}, {"value", 0, 63}}},
    [LOCK] = {"lock", 1, PML_ANY_THREAD, 0, 0, {{0}}},
    [UNLOCK] = {"unlock", 1, PML_ANY_THREAD, 0, 0, {{0}}},
};

static const PmlArgument cells_no_setting = {0};

static PmlSubject cells_subject = {
    PML_SUBJECT_ABI, OPERATIONS, 0, MOST_THREADS, "cells", "Three atomic cells and a mutex.",
    cells_operations, &cells_no_setting, cells_create, cells_apply, cells_check, cells_destroy,
};

#endif
