/* Sense-reversing barrier that threads pass again and again. C11 atomics and pthreads. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 2, ROUNDS = 2 };

struct barrier {
    atomic_int waiting;
    atomic_int sense;
    int parties;
};

static void barrier_wait(struct barrier *b)
{
    int sense = atomic_load(&b->sense);
    if (atomic_fetch_add(&b->waiting, 1) == b->parties - 1) {
        atomic_store(&b->waiting, 0);
        atomic_store(&b->sense, !sense);
    } else {
        while (atomic_load(&b->sense) == sense)
            sched_yield();
    }
}

/* The others go on to the next round before the count is zero again. */
static void barrier_wait_buggy(struct barrier *b)
{
    int sense = atomic_load(&b->sense);
    if (atomic_fetch_add(&b->waiting, 1) == b->parties - 1) {
        atomic_store(&b->sense, !sense);
        atomic_store(&b->waiting, 0);
    } else {
        while (atomic_load(&b->sense) == sense)
            sched_yield();
    }
}

static struct barrier barrier = {.parties = THREADS};
static void (*wait_at)(struct barrier *);
static int cells[THREADS];

static void *worker(void *arg)
{
    int me = (int)(long)arg;
    for (int round = 1; round <= ROUNDS; round++) {
        cells[me] = round;
        wait_at(&barrier);
        for (int i = 0; i < THREADS; i++)
            assert(cells[i] == round);
        wait_at(&barrier);
    }
    return NULL;
}

static void run_workers(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

void test_barrier(void)
{
    wait_at = barrier_wait;
    run_workers();
}

void test_barrier_buggy(void)
{
    wait_at = barrier_wait_buggy;
    run_workers();
}
