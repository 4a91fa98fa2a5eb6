/* Three atomic cells, a mutex, a condition, a read-write lock, a semaphore with one unit, and
 * threads that threads start, with an operation for each kind of access and each memory order. A
 * test compares the outcomes of programs over them with those that a memory model allows; of the
 * read-write lock and the semaphore, the searches with each other. */
#ifndef MEMORY_MODEL_CELLS_H
#define MEMORY_MODEL_CELLS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pulsar_ml/harness/subject.h"
#include "pulsar_ml/sync/sync.h"

enum { CELLS = 3, MOST_THREADS = 4, MOST_CALLS = 16, MOST_OUTCOMES = 1 << 14, FAILED_CAS = 8 };
enum {
    LOAD, STORE, EXCHANGE, CAS, FENCE, LOCK, UNLOCK, WAIT, TIMED_WAIT, NOTIFY_ONE, NOTIFY_ALL, SPAWN, JOIN,
    TRY_LOCK, LOCK_UNTIL, LOCK_FOR, READ_LOCK, WRITE_LOCK, SHARED_UNLOCK, TAKE, GIVE, COUNT, OPERATIONS
};
/* How a read-write lock or a unit of the semaphore is got: the `cell` of a call. */
enum { WAITS, TRIES, UNTIL };
/* The result of a wait of a thread that did not get the mutex: it does not wait. */
enum { NO_WAIT = 2 };
/* Deadlines are this far apart; the clock starts at one second. */
enum { SECONDS_APART = 1000 };

typedef struct World World;

typedef struct {
    World *world;
    int thread;
} Child;

struct World {
    int64_t cells[CELLS];
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_rwlock_t shared;
    sem_t semaphore;
    pthread_t threads[MOST_THREADS];
    int is_started[MOST_THREADS];    /* and not joined */
    int has_mutex[MOST_THREADS], has_shared[MOST_THREADS];
    Child children[MOST_THREADS];
};

/* Results of all threads, four bits a call, and the final values; of a deadlock, the calls that
 * ended. */
typedef struct {
    uint64_t results[MOST_THREADS];
    uint64_t finals;
} Outcome;

static const uint64_t DEADLOCK = UINT64_C(1) << 63;

static int faulty;   /* exchanges are weak, and fences are allocations */
static Outcome outcomes[MOST_OUTCOMES];
static int n_outcomes;
static Outcome current_outcome;               /* of the execution under way */
static int calls_ended[MOST_THREADS];

/* The calls of threads that other threads start. */
static PmlCall child_calls[MOST_THREADS][MOST_CALLS];
static int n_child_calls[MOST_THREADS];

#define UNSEEN __attribute__((no_sanitize_thread, noinline)) static

UNSEEN void begin_outcome(void)
{
    memset(&current_outcome, 0, sizeof(current_outcome));
    memset(calls_ended, 0, sizeof(calls_ended));
}

UNSEEN void note_result(int t, int64_t value)
{
    current_outcome.results[t] |= (uint64_t)(value & 15) << (4 * (calls_ended[t]++ & 15));
}

UNSEEN void note_outcome(uint64_t finals)
{
    current_outcome.finals = finals;
    for (int i = 0; i < n_outcomes; i++)
        if (!memcmp(&outcomes[i], &current_outcome, sizeof(current_outcome)))
            return;
    if (n_outcomes < MOST_OUTCOMES)
        outcomes[n_outcomes++] = current_outcome;
}

UNSEEN void note_deadlock(void)
{
    uint64_t finals = DEADLOCK;
    for (int t = 0; t < MOST_THREADS; t++)
        finals |= (uint64_t)calls_ended[t] << 5 * t;
    note_outcome(finals);
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
#define WEAK_SWAPS(order) done = PML_WEAK_CAS(cell, &expected, desired, order)
#define FENCES(order) __atomic_thread_fence(order)

static void apply(World *w, int t, const PmlCall *call);

/* 1, or 0 when there was no memory, which the thread stores into the cell. */
static int allocates(int64_t *cell)
{
    void *volatile block = malloc(8);
    int done = block != NULL;
    free(block);
    if (!done)
        __atomic_store_n(cell, 7, __ATOMIC_RELAXED);
    return done;
}

/* 0, or 1 when the thread did not get the read-write lock, which it gets once at a time. */
static int shared(World *w, int t, int writes, int how, const struct timespec *deadline)
{
    int error = 1;
    if (w->has_shared[t])
        return 2;
    switch (how * 2 + writes) {
    case 2 * WAITS: error = pthread_rwlock_rdlock(&w->shared); break;
    case 2 * WAITS + 1: error = pthread_rwlock_wrlock(&w->shared); break;
    case 2 * TRIES: error = pthread_rwlock_tryrdlock(&w->shared); break;
    case 2 * TRIES + 1: error = pthread_rwlock_trywrlock(&w->shared); break;
    case 2 * UNTIL: error = pthread_rwlock_timedrdlock(&w->shared, deadline); break;
    case 2 * UNTIL + 1: error = pthread_rwlock_timedwrlock(&w->shared, deadline); break;
    }
    w->has_shared[t] = !error;
    return error != 0;
}

/* 0, or 1 when the thread did not get a unit. */
static int taken(World *w, int how, const struct timespec *deadline)
{
    int error = how == WAITS   ? sem_wait(&w->semaphore)
                : how == TRIES ? sem_trywait(&w->semaphore)
                               : sem_timedwait(&w->semaphore, deadline);
    return error != 0;
}

/* 0, or 1 when the thread did not get the mutex. */
static int locked(World *w, int t, int error)
{
    w->has_mutex[t] = !error;
    return error != 0;
}

static void *child_body(void *argument)
{
    Child *child = argument;
    for (int i = 0; i < n_child_calls[child->thread]; i++)
        apply(child->world, child->thread, &child_calls[child->thread][i]);
    return NULL;
}

static void apply(World *w, int t, const PmlCall *call)
{
    int64_t *cell = &w->cells[call->arguments[0] % CELLS];
    int64_t argument = call->arguments[2], value = 0, expected = argument >> 3, desired = argument & 7;
    int order = (int)call->arguments[1], done, child = (int)(call->arguments[0] % MOST_THREADS);
    struct timespec deadline = {.tv_sec = argument * SECONDS_APART};
    switch (call->code) {
    case LOAD: BY_ORDER(LOADS); break;
    case STORE: BY_ORDER(STORES); break;
    case EXCHANGE: BY_ORDER(EXCHANGES); break;
    case CAS:
        if (faulty) {
            BY_ORDER(WEAK_SWAPS);
        } else {
            BY_ORDER(SWAPS);
        }
        value = done ? expected : expected | FAILED_CAS;
        break;
    case FENCE:
        if (faulty)
            value = allocates(&w->cells[0]);
        else
            BY_ORDER(FENCES);
        break;
    case LOCK: value = locked(w, t, pthread_mutex_lock(&w->mutex)); break;
    case TRY_LOCK: value = locked(w, t, pthread_mutex_trylock(&w->mutex)); break;
    case LOCK_UNTIL: value = locked(w, t, pthread_mutex_timedlock(&w->mutex, &deadline)); break;
    case LOCK_FOR:    /* as std::timed_mutex does */
        clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += argument * SECONDS_APART;
        value = locked(w, t, pthread_mutex_clocklock(&w->mutex, CLOCK_MONOTONIC, &deadline));
        break;
    case UNLOCK:
        if (w->has_mutex[t]) {
            w->has_mutex[t] = 0;
            pthread_mutex_unlock(&w->mutex);
        }
        break;
    case WAIT: case TIMED_WAIT:
        if (!w->has_mutex[t])
            value = NO_WAIT;
        else if (call->code == WAIT)
            pthread_cond_wait(&w->condition, &w->mutex);
        else
            value = pthread_cond_timedwait(&w->condition, &w->mutex, &deadline) != 0;
        break;
    case READ_LOCK: case WRITE_LOCK:
        value = shared(w, t, call->code == WRITE_LOCK, (int)call->arguments[0], &deadline);
        break;
    case SHARED_UNLOCK:
        if (w->has_shared[t]) {
            w->has_shared[t] = 0;
            pthread_rwlock_unlock(&w->shared);
        }
        break;
    case TAKE: value = taken(w, (int)call->arguments[0], &deadline); break;
    case GIVE: sem_post(&w->semaphore); break;
    case COUNT: sem_getvalue(&w->semaphore, &done); value = done; break;
    case NOTIFY_ONE: pthread_cond_signal(&w->condition); break;
    case NOTIFY_ALL: pthread_cond_broadcast(&w->condition); break;
    case SPAWN:
        w->children[child] = (Child){w, child};
        w->is_started[child] = 1;
        pthread_create(&w->threads[child], NULL, child_body, &w->children[child]);
        break;
    case JOIN:
        pthread_join(w->threads[child], NULL);
        w->is_started[child] = 0;
        break;
    }
    note_result(t, value);
}

static void cells_apply(void *instance, int32_t t, const PmlCall *call, PmlResult *result, PmlViolation *v)
{
    (void)result; (void)v;
    apply(instance, t, call);
}

static void *cells_create(const int64_t *settings, int32_t threads)
{
    World *w = calloc(1, sizeof(World));
    (void)settings; (void)threads;
    begin_outcome();
    if (w) {
        pthread_mutex_init(&w->mutex, NULL);
        pthread_cond_init(&w->condition, NULL);
        pthread_rwlock_init(&w->shared, NULL);
        sem_init(&w->semaphore, 0, 1);
    }
    return w;
}

static void cells_check(void *instance, PmlViolation *v)
{
    World *w = instance;
    uint64_t finals = 0;
    (void)v;
    for (int i = 0; i < CELLS; i++)
        finals |= (uint64_t)__atomic_load_n(&w->cells[i], __ATOMIC_RELAXED) << (4 * i);
    note_outcome(finals);
}

static void cells_destroy(void *instance)
{
    World *w = instance;
    for (int t = 0; t < MOST_THREADS; t++)
        if (w->is_started[t])
            pthread_join(w->threads[t], NULL);
    sem_destroy(&w->semaphore);
    pthread_rwlock_destroy(&w->shared);
    pthread_cond_destroy(&w->condition);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

#define ACCESS(name) {name, 1, PML_ANY_THREAD, 3, 0, {{"cell", 0, 3}, {"order", 0, 5}, {"value", 0, 63}}}
static const PmlOperation cells_operations[OPERATIONS] = {
    [LOAD] = ACCESS("load"), [STORE] = ACCESS("store"), [EXCHANGE] = ACCESS("exchange"), [CAS] = ACCESS("cas"),
    [FENCE] = ACCESS("fence"), [LOCK] = ACCESS("lock"), [UNLOCK] = ACCESS("unlock"), [WAIT] = ACCESS("wait"),
    [TIMED_WAIT] = ACCESS("timed_wait"), [NOTIFY_ONE] = ACCESS("notify_one"),
    [NOTIFY_ALL] = ACCESS("notify_all"), [SPAWN] = ACCESS("spawn"), [JOIN] = ACCESS("join"),
    [TRY_LOCK] = ACCESS("try_lock"), [LOCK_UNTIL] = ACCESS("lock_until"), [LOCK_FOR] = ACCESS("lock_for"),
    [READ_LOCK] = ACCESS("read_lock"), [WRITE_LOCK] = ACCESS("write_lock"),
    [SHARED_UNLOCK] = ACCESS("shared_unlock"), [TAKE] = ACCESS("take"), [GIVE] = ACCESS("give"),
    [COUNT] = ACCESS("count"),
};

static const PmlArgument cells_no_setting = {0};

static PmlSubject cells_subject = {
    PML_SUBJECT_ABI, OPERATIONS, 0, MOST_THREADS, "cells",
    "Three atomic cells, locks, a condition, a semaphore, threads.",
    cells_operations, &cells_no_setting, cells_create, cells_apply, cells_check, cells_destroy,
};

#endif
