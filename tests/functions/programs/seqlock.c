/* Sequence lock: a writer never waits, readers retry. After Boehm, "Can seqlocks get along with
 * programming language memory models?" (MSPC 2012). */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct {
    atomic_uint seq;
    atomic_int x, y;
} seqlock_t;

typedef struct {
    int x, y;
} point_t;

static void seqlock_write(seqlock_t *s, point_t p)
{
    unsigned seq = atomic_load_explicit(&s->seq, memory_order_relaxed);
    atomic_store_explicit(&s->seq, seq + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&s->x, p.x, memory_order_relaxed);
    atomic_store_explicit(&s->y, p.y, memory_order_relaxed);
    atomic_store_explicit(&s->seq, seq + 2, memory_order_release);
}

static point_t seqlock_read(seqlock_t *s)
{
    for (;;) {
        unsigned before = atomic_load_explicit(&s->seq, memory_order_acquire);
        point_t p;
        p.x = atomic_load_explicit(&s->x, memory_order_relaxed);
        p.y = atomic_load_explicit(&s->y, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        unsigned after = atomic_load_explicit(&s->seq, memory_order_relaxed);
        if (before == after && !(before & 1))
            return p;
        sched_yield();
    }
}

static point_t seqlock_read_buggy(seqlock_t *s)
{
    for (;;) {
        unsigned before = atomic_load_explicit(&s->seq, memory_order_acquire);
        point_t p;
        p.x = atomic_load_explicit(&s->x, memory_order_relaxed);
        p.y = atomic_load_explicit(&s->y, memory_order_relaxed);
        /* an acquire load does not keep the loads above from moving below it */
        unsigned after = atomic_load_explicit(&s->seq, memory_order_acquire);
        if (before == after && !(before & 1))
            return p;
        sched_yield();
    }
}

static seqlock_t lock;

static void *writer(void *unused)
{
    (void)unused;
    for (int i = 1; i <= 2; i++)
        seqlock_write(&lock, (point_t){i, -i});
    return NULL;
}

static void check_reader(point_t (*read)(seqlock_t *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, writer, NULL);
    for (int i = 0; i < 2; i++) {
        point_t p = read(&lock);
        assert(p.x == -p.y);
    }
    pthread_join(thread, NULL);
}

void test_seqlock(void) { check_reader(seqlock_read); }

void test_seqlock_buggy(void) { check_reader(seqlock_read_buggy); }
