/* Reader-writer lock in one word: the number of readers, or WRITER. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define WRITER (1u << 31)

typedef struct {
    atomic_uint state;
} rwlock;

static void read_lock(rwlock *l)
{
    unsigned readers = atomic_load_explicit(&l->state, memory_order_relaxed);
    for (;;) {
        if (readers & WRITER) {
            sched_yield();
            readers = atomic_load_explicit(&l->state, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&l->state, &readers, readers + 1,
                                                         memory_order_acquire,
                                                         memory_order_relaxed)) {
            return;
        }
    }
}

static void read_unlock(rwlock *l) { atomic_fetch_sub_explicit(&l->state, 1, memory_order_release); }

/* The order is too weak: the next writer does not wait for what the reader has read. */
static void read_unlock_buggy(rwlock *l)
{
    atomic_fetch_sub_explicit(&l->state, 1, memory_order_relaxed);
}

static void write_lock(rwlock *l)
{
    unsigned free = 0;
    while (!atomic_compare_exchange_weak_explicit(&l->state, &free, WRITER, memory_order_acquire,
                                                  memory_order_relaxed)) {
        free = 0;
        sched_yield();
    }
}

static void write_unlock(rwlock *l) { atomic_store_explicit(&l->state, 0, memory_order_release); }

static rwlock lock;
static struct {
    int first, second;
} pair;
static void (*unlock_reader)(rwlock *);

static void *reader(void *unused)
{
    (void)unused;
    read_lock(&lock);
    assert(pair.first == pair.second);
    unlock_reader(&lock);
    return NULL;
}

static void *writer(void *unused)
{
    (void)unused;
    write_lock(&lock);
    pair.first++;
    pair.second++;
    write_unlock(&lock);
    return NULL;
}

static void run(void)
{
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, writer, NULL);
    pthread_create(&threads[2], NULL, reader, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

void test_rwlock(void)
{
    unlock_reader = read_unlock;
    run();
}

void test_rwlock_buggy(void)
{
    unlock_reader = read_unlock_buggy;
    run();
}
