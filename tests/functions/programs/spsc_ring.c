/* Bounded ring between one producer and one consumer. C11 atomics and C11 threads. */
#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <threads.h>

#define CAPACITY 4 /* a power of two */

struct message {
    int id;
    int payload;
};

struct ring {
    _Atomic size_t head; /* next slot to read, moved by the consumer */
    _Atomic size_t tail; /* next slot to write, moved by the producer */
    struct message slots[CAPACITY];
};

static bool ring_push(struct ring *r, struct message m, memory_order publish)
{
    size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    size_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    if (tail - head == CAPACITY)
        return false;
    r->slots[tail % CAPACITY] = m;
    atomic_store_explicit(&r->tail, tail + 1, publish);
    return true;
}

static bool ring_pop(struct ring *r, struct message *m)
{
    size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    size_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    if (head == tail)
        return false;
    *m = r->slots[head % CAPACITY];
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
    return true;
}

static struct ring ring;
static memory_order publish;

static int producer(void *arg)
{
    int n = *(int *)arg;
    for (int i = 1; i <= n; i++)
        while (!ring_push(&ring, (struct message){i, i * 10}, publish))
            thrd_yield();
    return 0;
}

static void run(int n)
{
    thrd_t thread;
    assert(thrd_create(&thread, producer, &n) == thrd_success);
    for (int expected = 1; expected <= n; expected++) {
        struct message m;
        while (!ring_pop(&ring, &m))
            thrd_yield();
        assert(m.id == expected);
        assert(m.payload == expected * 10);
    }
    thrd_join(thread, NULL);
}

static void test_ring(void)
{
    publish = memory_order_release;
    run(5);
}

/* The slot may arrive after the index. */
static void test_ring_buggy(void)
{
    publish = memory_order_relaxed;
    run(5);
}

int main(void)
{
    test_ring();
    test_ring_buggy();
    puts("ok");
    return 0;
}
