/* Programs whose number of distinct executions is published for a model checker. */

#define INCREMENTS(n)                                                                           \
    JUDGED_PROGRAM(increments_##n, n, Cell x;) { add(s->x, 1, RLX); }                           \
    JUDGE(increments_##n) { if (ld(s->x, RLX) != n) BROKEN(v, "an update was lost"); }
INCREMENTS(2)
INCREMENTS(3)
INCREMENTS(4)
INCREMENTS(5)
INCREMENTS(6)
INCREMENTS(7)

#define LOCKED_INCREMENTS(n)                                                                    \
    JUDGED_PROGRAM(locked_increments_##n, n, pthread_mutex_t lock; long x;)                     \
    {                                                                                           \
        pthread_mutex_lock(&s->lock); s->x++; pthread_mutex_unlock(&s->lock);                   \
    }                                                                                           \
    JUDGE(locked_increments_##n) { if (s->x != n) BROKEN(v, "an update was lost"); }
LOCKED_INCREMENTS(2)
LOCKED_INCREMENTS(3)
LOCKED_INCREMENTS(4)
LOCKED_INCREMENTS(5)
LOCKED_INCREMENTS(6)
LOCKED_INCREMENTS(7)

/* One writer and n readers of one cell. */
#define ONE_WRITER(n)                                                                           \
    PROGRAM(readers_##n, n + 1, Cell x;) { if (t == 0) st(s->x, 1, RLX); else (void)ld(s->x, RLX); }
ONE_WRITER(2)
ONE_WRITER(4)
ONE_WRITER(8)

/* A sequence lock with one write and one read. Outcome 1: the read was valid. */
JUDGED_PROGRAM(seqlock_once, 2, Cell version; Cell a; Cell b; long valid;)
{
    if (t == 0) {
        st(s->version, 1, RLX); fence(REL); st(s->a, 1, RLX); st(s->b, 1, RLX); st(s->version, 2, REL);
    } else {
        long before = ld(s->version, ACQ);
        if (before & 1) return;
        (void)ld(s->a, RLX); (void)ld(s->b, RLX);
        fence(ACQ);
        s->valid = ld(s->version, RLX) == before;
    }
}
JUDGE(seqlock_once)
{
    OUTCOME(seqlock_once, s->valid);
}

/* Szymanski's mutual exclusion of two with its waits as single tests. Outcome 1: both passed all of
 * them. */
JUDGED_PROGRAM(szymanski, 2, Cell flag[2]; Cell x; long passed[2];)
{
#define OTHER ld(s->flag[!t], RLX)
#define SAY(value) st(s->flag[t], value, RLX); fence(SEQ)
    SAY(1);
    if (OTHER >= 3) return;
    SAY(3);
    if (OTHER == 1) {
        SAY(2);
        if (OTHER != 4) return;
    }
    SAY(4);
    if (OTHER >= 2) return;
    st(s->x, t, RLX);
    (void)ld(s->x, RLX);
    if (ld(s->x, RLX) != t) BROKEN(v, "both are inside");
    fence(SEQ);
    long other = OTHER;
    if (other == 2 || other == 3) return;
    st(s->flag[t], 0, RLX);
    s->passed[t] = 1;
}
JUDGE(szymanski)
{
    OUTCOME(szymanski, s->passed[0] && s->passed[1]);
}

/* Thread t exchanges x from t to t + 1. */
#define EXCHANGES(n)                                                                            \
    PROGRAM(exchanges_##n, n, Cell x;) { long seen = t; (void)cas(s->x, &seen, t + 1, RLX); }
EXCHANGES(4)
EXCHANGES(5)
EXCHANGES(6)
EXCHANGES(7)

/* Five threads, each with a cell of its own. */
PROGRAM(apart_5, 5, Cell x[5];) { st(s->x[t], 1, RLX); (void)ld(s->x[t], RLX); }

/* Two threads that each take a block of memory and give it back. */
PROGRAM(allocates_2, 2, Cell x; void *volatile block[2];)
{
    (void)ld(s->x, RLX); s->block[t] = malloc(16);
    (void)ld(s->x, RLX); free(s->block[t]);
}

/* Only executions count in which the read comes behind both stores of a thread. */
extern void pml_engine_discard(void);
PROGRAM(assumes_last, 3, Cell x; Cell y;)
{
    if (t == 0) {
        if (ld(s->x, RLX) != 2) pml_engine_discard();
    } else if (t == 1) {
        st(s->x, 1, RLX); st(s->x, 2, RLX); st(s->y, 1, RLX);
    } else {
        (void)ld(s->y, RLX);
    }
}

/* The stack of Treiber on numbered nodes with counted links (the count is above COUNTED). Threads
 * below `pushes` push one node each, threads from `pops` on take one. With `assumes` only
 * executions count in which no attempt to take one fails, as in the test suite of GenMC. */
enum { COUNTED = 16 };
#define TREIBER(name, n, pushes, pops, assumes) \
    PROGRAM(name, n, Cell top; Cell x[n + 1]; Cell next[n + 1]; long value[n + 1];)             \
    {                                                                                           \
        if (t < (pushes)) {                                                                     \
            long seen;                                                                          \
            st(s->x[t], t + 42, RLX);                                                           \
            s->value[t + 1] = t;                                                                \
            do {                                                                                \
                seen = ld(s->top, ACQ);                                                         \
                st(s->next[t + 1], seen, RLX);                                                  \
            } while (!cas(s->top, &seen, t + 1 + (seen / COUNTED + 1) * COUNTED, REL));         \
        }                                                                                       \
        if (t >= (pops)) {                                                                      \
            long seen, node, next;                                                              \
            do {                                                                                \
                seen = ld(s->top, ACQ);                                                         \
                if ((node = seen % COUNTED) == 0) return;                                       \
                next = ld(s->next[node], RLX);                                                  \
            } while (!cas(s->top, &seen, next % COUNTED + (seen / COUNTED + 1) * COUNTED, REL)  \
                     && TRY_AGAIN(assumes));                                                    \
            if (s->value[node]) (void)ld(s->x[s->value[node]], RLX);                            \
        }                                                                                       \
    }
#define TRY_AGAIN(assumes) ((assumes) ? (pml_engine_discard(), 1) : 1)
TREIBER(treiber_two_push_one_pops, 3, 2, 2, 0)
TREIBER(treiber_two_push_one_assumes, 3, 2, 2, 1)
TREIBER(treiber_two_do_both, 2, 2, 0, 0)

/* The queue of Michael and Scott on numbered nodes with counted links, node 0 its first one.
 * Threads below `enqueues` add one node each, threads from `dequeues` on take one. With `assumes`
 * only executions count in which each turn of the loop that takes one changes something, as in the
 * test suite of GenMC. */
#define QUEUE(name, n, enqueues, dequeues, assumes)                                             \
    PROGRAM(name, n, Cell head; Cell tail; Cell next[n + 1]; long value[n + 1];)                \
    {                                                                                           \
        if (t < (enqueues)) {                                                                   \
            long node = t + 1, tail, next;                                                      \
            s->value[node] = 10 * t;                                                            \
            st(s->next[node], ld(s->next[node], RLX), RLX);                                     \
            for (;;) {                                                                          \
                tail = ld(s->tail, ACQ);                                                        \
                next = ld(s->next[tail % COUNTED], ACQ);                                        \
                if (ld(s->tail, RLX) != tail) continue;                                         \
                if (next % COUNTED == 0                                                         \
                    && cas(s->next[tail % COUNTED], &next,                                      \
                           node + (next / COUNTED + 1) * COUNTED, REL)) break;                  \
                next = ld(s->next[tail % COUNTED], ACQ);                                        \
                (void)cas(s->tail, &tail,                                                       \
                          next % COUNTED + (tail / COUNTED + 1) * COUNTED, REL);                \
            }                                                                                   \
            (void)cas(s->tail, &tail, node + (tail / COUNTED + 1) * COUNTED, REL);              \
        }                                                                                       \
        if (t >= (dequeues)) {                                                                  \
            for (;;) {                                                                          \
                long head = ld(s->head, ACQ), tail = ld(s->tail, RLX);                          \
                long next = ld(s->next[head % COUNTED], ACQ);                                   \
                if (ld(s->head, RLX) != head && TRY_AGAIN(assumes)) continue;                   \
                if (head % COUNTED != tail % COUNTED) {                                         \
                    (void)s->value[next % COUNTED];                                             \
                    if (cas(s->head, &head,                                                     \
                            next % COUNTED + (head / COUNTED + 1) * COUNTED, REL)) return;      \
                    (void)TRY_AGAIN(assumes);                                                   \
                } else if (next % COUNTED == 0) {                                               \
                    return;                                                                     \
                } else {                                                                        \
                    (void)cas(s->tail, &tail,                                                   \
                              next % COUNTED + (tail / COUNTED + 1) * COUNTED, REL);            \
                }                                                                               \
            }                                                                                   \
        }                                                                                       \
    }
QUEUE(queue_two_do_both, 2, 2, 0, 0)
QUEUE(queue_two_do_both_assumes, 2, 2, 0, 1)
