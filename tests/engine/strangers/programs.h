/* Programs over ck_style.h, wrong and, as NAME_fixed, right. */
#include "tests/engine/strangers/ck_style.h"

#define RING_PROGRAM(name, fence_store, fence_load)                                             \
    RING(name, fence_store, fence_load)                                                         \
    PROGRAM(name, 2, struct ring r;)                                                            \
    {                                                                                           \
        for (long i = 1; i <= 4; i++) {                                                         \
            long value = 0;                                                                     \
            if (t == 0) { while (!name##_enqueue(&s->r, i)) pr_stall(); continue; }             \
            while (!name##_dequeue(&s->r, &value)) pr_stall();                                  \
            if (value != i) BROKEN(v, "out of order");                                          \
        }                                                                                       \
    }
RING_PROGRAM(ck_ring_unpublished, , pr_fence())
RING_PROGRAM(ck_ring_unacquired, pr_fence(), )
RING_PROGRAM(ck_ring_fixed, pr_fence(), pr_fence())

#define STACK_PROGRAM(name, fence_load, fence_memory)                                           \
    STACK(name, pr_fence(), fence_load)                                                         \
    EPOCH(name, fence_memory)                                                                   \
    JUDGED_PROGRAM(name, 3, struct stack stack; struct epoch epoch; Cell sum; Cell pushed;)     \
    {                                                                                           \
        for (int i = 0; i < (t == 0 ? 2 : 1); i++) {                                            \
            struct node *mine = malloc(sizeof *mine), *got;                                     \
            mine->value = 1 + t;                                                                \
            add(s->pushed, 1 + t, RLX);                                                         \
            name##_push(&s->stack, mine);                                                       \
            name##_begin(&s->epoch, t);                                                         \
            got = name##_pop(&s->stack);                                                        \
            if (got) add(s->sum, got->value, RLX);                                              \
            name##_end(&s->epoch, t);                                                           \
            if (got) { name##_synchronize(&s->epoch); free(got); }                              \
        }                                                                                       \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        for (struct node *n; (n = name##_pop(&s->stack)); free(n)) add(s->sum, n->value, RLX);  \
        if (ld(s->sum, RLX) != ld(s->pushed, RLX)) BROKEN(v, "a node was lost or found twice"); \
    }
STACK_PROGRAM(ck_stack_unacquired, , pr_fence())
STACK_PROGRAM(ck_epoch_unfenced, pr_fence(), )
STACK_PROGRAM(ck_stack_fixed, pr_fence(), pr_fence())

/* One writer replaces what two readers look at. */
#define EPOCH_PROGRAM(name, fence_memory, waits)                                                \
    EPOCH(name, fence_memory)                                                                   \
    JUDGED_PROGRAM(name, 3, struct epoch epoch; long *shown;)                                   \
    {                                                                                           \
        if (t) {                                                                                \
            name##_begin(&s->epoch, t);                                                         \
            long *seen = pr_load(&s->shown);                                                    \
            pr_fence();                                                                         \
            if (seen && *seen != 1 && *seen != 2) BROKEN(v, "not what was stored");             \
            name##_end(&s->epoch, t);                                                           \
            return;                                                                             \
        }                                                                                       \
        for (long i = 1; i <= 2; i++) {                                                         \
            long *fresh = malloc(sizeof *fresh), *old = pr_load(&s->shown);                     \
            *fresh = i;                                                                         \
            pr_fence();                                                                         \
            pr_store(&s->shown, fresh);                                                         \
            if (waits) name##_synchronize(&s->epoch);                                           \
            free(old);                                                                          \
        }                                                                                       \
    }                                                                                           \
    JUDGE(name) { free(s->shown); }
EPOCH_PROGRAM(ck_replace_unfenced, , 1)
EPOCH_PROGRAM(ck_replace_at_once, pr_fence(), 0)
EPOCH_PROGRAM(ck_replace_fixed, pr_fence(), 1)
