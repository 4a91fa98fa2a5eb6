/* A ring, a stack and an epoch reclaimer in the style of Concurrency Kit built on compiler
 * builtins: volatile loads and stores, full fences, __sync operations. It knows nothing of
 * pulsar_ml. Each structure gets its fences by name, so that a twin may leave one out. */
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#define pr_load(p) (*(volatile __typeof__(*(p)) *)(p))
#define pr_store(p, v) (*(volatile __typeof__(*(p)) *)(p) = (v))
#define pr_cas(p, old, new) __sync_bool_compare_and_swap(p, old, new)
#define pr_faa(p, n) __sync_fetch_and_add(p, n)
#define pr_fence() __sync_synchronize()
#define pr_stall() sched_yield()

/* Ring of one producer and one consumer. */
struct ring { unsigned c_head, p_tail, mask; long slots[2]; };

#define RING(name, fence_store, fence_load)                                                     \
    static bool name##_enqueue(struct ring *r, long value)                                      \
    {                                                                                           \
        unsigned tail = r->p_tail;                                                              \
        if (tail - pr_load(&r->c_head) == 2) return false;                                      \
        fence_load;                                                                             \
        r->slots[tail & 1] = value;                                                             \
        fence_store;                                                                            \
        pr_store(&r->p_tail, tail + 1);                                                         \
        return true;                                                                            \
    }                                                                                           \
    static bool name##_dequeue(struct ring *r, long *value)                                     \
    {                                                                                           \
        unsigned head = r->c_head;                                                              \
        if (pr_load(&r->p_tail) == head) return false;                                          \
        fence_load;                                                                             \
        *value = r->slots[head & 1];                                                            \
        fence_store;                                                                            \
        pr_store(&r->c_head, head + 1);                                                         \
        return true;                                                                            \
    }

/* Stack of many that push and pop. Who pops a node gives it to the epoch. */
struct node { struct node *next; long value; };
struct stack { struct node *head; };

#define STACK(name, fence_store, fence_load)                                                    \
    static void name##_push(struct stack *s, struct node *n)                                    \
    {                                                                                           \
        struct node *head;                                                                      \
        do { head = pr_load(&s->head); n->next = head; fence_store; }                           \
        while (!pr_cas(&s->head, head, n));                                                     \
    }                                                                                           \
    static struct node *name##_pop(struct stack *s)                                             \
    {                                                                                           \
        struct node *head, *next;                                                               \
        do {                                                                                    \
            if ((head = pr_load(&s->head)) == NULL) return NULL;                                \
            fence_load;                                                                         \
            next = head->next;                                                                  \
        } while (!pr_cas(&s->head, head, next));                                                \
        return head;                                                                            \
    }

/* Epochs: what was removed may be freed when each thread was outside of its section since. */
enum { RECORDS = 3 };
struct epoch { unsigned now; struct { unsigned active, epoch; } records[RECORDS]; };

#define EPOCH(name, fence_memory)                                                               \
    static void name##_begin(struct epoch *e, int t)                                            \
    {                                                                                           \
        pr_store(&e->records[t].epoch, pr_load(&e->now));                                       \
        pr_store(&e->records[t].active, 1);                                                     \
        fence_memory;                                                                           \
    }                                                                                           \
    static void name##_end(struct epoch *e, int t)                                              \
    {                                                                                           \
        pr_fence();                                                                             \
        pr_store(&e->records[t].active, 0);                                                     \
    }                                                                                           \
    static void name##_synchronize(struct epoch *e)                                             \
    {                                                                                           \
        pr_fence();                                                                             \
        for (int round = 0; round < 2; round++) {                                               \
            unsigned now = pr_load(&e->now);                                                    \
            for (int t = 0; t < RECORDS; t++)                                                   \
                while (pr_load(&e->records[t].active) && pr_load(&e->records[t].epoch) != now)  \
                    pr_stall();                                                                 \
            pr_cas(&e->now, now, now + 1);                                                      \
        }                                                                                       \
        pr_fence();                                                                             \
    }
