/* Data races for their reports: what they say of stacks, orders and the last synchronisation. */

__attribute__((noinline)) static void race_fill(long *x, long value) { *x = value; }
__attribute__((noinline)) static long race_look(long *x) { return *x; }

/* Both orders happen. */
PROGRAM(race_both, 2, long x;)
{
    if (t == 0) race_fill(&s->x, 1);
    else if (race_look(&s->x) == 5) BROKEN(v, "never");
}
/* Thread 1 looks only when it saw the flag, which says nothing of x. */
PROGRAM(race_after, 2, Cell flag; long x;)
{
    if (t == 0) { race_fill(&s->x, 1); st(s->flag, 1, RLX); }
    else if (ld(s->flag, RLX) && race_look(&s->x) == 5) BROKEN(v, "never");
}
PROGRAM(race_after_fixed, 2, Cell flag; long x;)
{
    if (t == 0) { race_fill(&s->x, 1); st(s->flag, 1, REL); }
    else if (ld(s->flag, ACQ) && race_look(&s->x) == 5) BROKEN(v, "never");
}
/* The threads meet at the flag before, in both directions; what they do to x comes after. */
PROGRAM(race_met, 2, Cell flag; Cell answer; long x;)
{
    if (t == 0) {
        st(s->flag, 1, REL);
        race_fill(&s->x, 1);
    } else if (ld(s->flag, ACQ)) {
        race_fill(&s->x, 2);
        __asm__ volatile("");  /* or Clang merges the two calls, and they have one line */
    }
}
/* One that reads atomically, one that writes as if it were alone. */
PROGRAM(race_mixed, 2, Cell flag; Cell x;)
{
    if (t == 0) (void)ld(s->x, ACQ);
    else { (void)ld(s->flag, RLX); race_fill((long *)&s->x, 3); }
}
/* The second access gives the memory back; in the other order the first comes too late. */
#define RELEASED(name, before, after)                                                           \
    JUDGED_PROGRAM(name, 2, Cell lent; Cell released; long *x;)                                 \
    {                                                                                           \
        if (t == 0) {                                                                           \
            long *x = s->x = malloc(sizeof *x);                                                 \
            *x = 0;                                                                             \
            before; st(s->lent, 1, REL); after;                                                 \
        } else if (ld(s->lent, ACQ)) {                                                          \
            free(s->x);                                                                         \
            st(s->released, 1, RLX);                                                            \
        }                                                                                       \
    }                                                                                           \
    JUDGE(name) { if (!ld(s->released, RLX)) free(s->x); }
RELEASED(race_release, , race_fill(x, 1))
RELEASED(race_release_fixed, race_fill(x, 1), )
/* Atomic accesses of four bytes to what was written as eight. */
PROGRAM(race_sizes, 2, union { long whole; atomic_int half; } x;)
{
    if (t == 0) race_fill(&s->x.whole, 1);
    else (void)atomic_load_explicit(&s->x.half, ACQ);
}
