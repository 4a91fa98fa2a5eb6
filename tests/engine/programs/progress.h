/* Structures that promise progress, and NAME_fixed that keep the promise, for the check of
 * lock-freedom. */

/* The queue of Michael and Scott on numbered nodes; node 0 is the dummy. Links hold the next node,
 * 0: none. */
#define MICHAEL_SCOTT(name, help)                                                               \
    JUDGED_PROGRAM(name, 3, Cell head; Cell tail; Cell next[5];)                                \
    {                                                                                           \
        if (t < 2) {                                                                            \
            long tail, next, none = 0, node = t + 1;                                            \
            for (;;) {                                                                          \
                tail = ld(s->tail, ACQ);                                                        \
                next = ld(s->next[tail], ACQ);                                                  \
                if (tail != ld(s->tail, ACQ)) continue;                                         \
                if (next == 0) { none = 0; if (cas(s->next[tail], &none, node, ACR)) break; }   \
                else { help; }                                                                  \
            }                                                                                   \
            cas(s->tail, &tail, node, ACR);                                                     \
        } else {                                                                                \
            long head = ld(s->head, ACQ), tail = ld(s->tail, ACQ), next = ld(s->next[head], ACQ); \
            if (head != tail && next) cas(s->head, &head, next, ACR);                           \
        }                                                                                       \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        long n = 0, at = 0;                                                                     \
        while ((at = ld(s->next[at], ACQ)) != 0) n++;                                           \
        if (n != 2) BROKEN(v, "a node is lost");                                                \
    }
MICHAEL_SCOTT(michael_scott, )
MICHAEL_SCOTT(michael_scott_fixed, cas(s->tail, &tail, next, ACR))

/* A stack by compare-exchange, and one behind a lock. */
PROGRAM(lock_free_stack_fixed, 3, Cell top; Cell next[4];)
{
    long top = ld(s->top, ACQ);
    do st(s->next[t + 1], top, RLX); while (!cas(s->top, &top, t + 1, ACR));
}
PROGRAM(spin_lock_stack, 3, Cell lock; Cell top; Cell next[4];)
{
    while (swap(s->lock, 1, ACQ)) pml_pause();
    st(s->next[t + 1], ld(s->top, RLX), RLX); st(s->top, t + 1, RLX);
    st(s->lock, 0, REL);
}
PROGRAM(mutex_stack, 3, pthread_mutex_t lock; Cell top; Cell next[4];)
{
    pthread_mutex_lock(&s->lock);
    st(s->next[t + 1], ld(s->top, RLX), RLX); st(s->top, t + 1, RLX);
    pthread_mutex_unlock(&s->lock);
}
