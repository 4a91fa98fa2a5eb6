/* Programs that come to the bounds of the engine. */

#define MANY_STORES(name, n)                                                                    \
    PROGRAM(name, 2, Cell x;)                                                                   \
    {                                                                                           \
        if (t == 0) for (int i = 1; i <= n; i++) st(s->x, i, RLX);                              \
        else (void)ld(s->x, RLX);                                                               \
    }
MANY_STORES(seven_stores, 7)
MANY_STORES(nine_stores, 9)

/* The same in one thread: nobody can read what a location forgets. */
PROGRAM(nine_stores_alone, 1, Cell x;) { for (int i = 1; i <= 9; i++) st(s->x, i, RLX); }

/* The first of eleven stores, counting the initial one, is read behind the last. */
JUDGED_PROGRAM(first_of_eleven, 2, Cell x; Cell y; long seen;)
{
    if (t == 0) {
        for (int i = 1; i <= 10; i++) st(s->x, i, RLX);
        st(s->y, 1, RLX);
    } else if (ld(s->y, RLX)) {
        s->seen = 1 + ld(s->x, RLX);
    }
}
JUDGE(first_of_eleven) { OUTCOME(first_of_eleven, s->seen); }

PROGRAM(first_is_broken, 2, Cell x; Cell y;)
{
    if (t == 0) {
        for (int i = 1; i <= 10; i++) st(s->x, i, RLX);
        st(s->y, 1, RLX);
    } else if (ld(s->y, RLX) && ld(s->x, RLX) == 0) {
        BROKEN(v, "ten stores late");
    }
}

/* An atomic store of eight bytes where four were stored: their history is lost. */
PROGRAM(two_widths, 2, union { Cell whole; atomic_int half; } x;)
{
    if (t == 0) {
        atomic_store_explicit(&s->x.half, 1, RLX);
        st(s->x.whole, 2, RLX);
        (void)atomic_load_explicit(&s->x.half, RLX);
    } else {
        (void)atomic_load_explicit(&s->x.half, RLX);
    }
}

/* More locations than the engine follows. */
PROGRAM(too_large, 2, Cell x; long *all;)
{
    if (t == 0) {
        s->all = calloc(1, 1 << 20);
        memset(s->all, 1, 1 << 20);
        free(s->all);
    }
    st(s->x, t, RLX);
}

/* What no schedule decides. */
static int calls_before;
PROGRAM(uncontrolled, 2, Cell x;)
{
    calls_before++;
    for (int i = calls_before % 3; i < 3; i++) st(s->x, i, RLX);
}

/* A lock of static storage, which a race leaves held in the execution that it ends. */
static Cell static_lock;
#define STATIC_LOCK(name, locks)                                                                \
    PROGRAM(name, 2, Cell x; long data;)                                                        \
    {                                                                                           \
        if (locks) while (swap(static_lock, 1, ACQ)) pml_pause();                               \
        add(s->x, 1, RLX);                                                                      \
        s->data++;                                                                              \
        add(s->x, 1, RLX);                                                                      \
        if (locks) st(static_lock, 0, REL);                                                     \
    }
STATIC_LOCK(static_lock_left_out, t)
STATIC_LOCK(static_lock_fixed, 1)

/* Waits. Under TSO what is waited for lies in the other thread's buffer at first. */
PROGRAM(handshake, 2, Cell x; Cell y;)
{
    if (t == 0) { st(s->x, 1, RLX); while (!ld(s->y, RLX)) pml_pause(); }
    else { while (!ld(s->x, RLX)) pml_pause(); st(s->y, 1, RLX); }
}
PROGRAM(handshake_once, 2, Cell x; Cell y;)
{
    if (t == 0) { st(s->x, 1, RLX); while (!ld(s->y, RLX)) pml_pause(); }
    else while (!ld(s->x, RLX)) pml_pause();
}
/* Of the thread that judges, which is alone. */
JUDGED_PROGRAM(judge_waits, 2, Cell x;) { st(s->x, t, RLX); }
JUDGE(judge_waits) { while (ld(s->x, ACQ) < 2) pml_pause(); }
JUDGED_PROGRAM(judge_spins, 2, Cell x;) { st(s->x, t, RLX); }
JUDGE(judge_spins) { while (ld(s->x, ACQ) < 2) ; }
/* A loop on a plain variable never gives way. */
PROGRAM(plain_spin, 2, volatile long go;)
{
    if (t == 0) while (!s->go) ;
    else s->go = 1;
}

/* Threads that share nothing: one class. */
PROGRAM(apart, 2, Cell x[2];)
{
    add(s->x[t], 1, SEQ);
    add(s->x[t], 1, SEQ);
}
