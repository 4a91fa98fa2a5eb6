/* Virtual time: one clock, which moves when it is read, when a time-out or a sleep ends, and not
 * otherwise.
 *
 * A wait with a deadline ends by it only when no other thread can go on, or as a fault that was
 * allowed. Then the clock is set to the earliest deadline, and everything that is due ends. */

static const int64_t FOREVER = INT64_MAX;

static void leave_object(Thread *t);

static void wake(Thread *t)
{
    E.waiting &= ~t->bit;
    E.ready |= t->bit;
}

/* The thread's wait ends by its deadline. */
static void expire(Thread *t)
{
    t->woken = 2;
    E.timed &= ~t->bit;
    leave_object(t);
    wake(t);
}

static __attribute__((noinline)) void expire_due(void)
{
    for (uint64_t rest = E.timed; rest; rest &= rest - 1) {
        Thread *t = &E.threads[__builtin_ctzll(rest)];
        if (t->deadline <= E.now_ns)
            expire(t);
    }
}

static __attribute__((noinline)) void note_clock(int64_t now);

/* Sets the clock to this time unless it is later already. */
static void clock_to(int64_t now)
{
    if (unlikely(E.reducing))
        note_clock(now);
    if (now > E.now_ns)
        E.now_ns = now;
    if (E.timed)
        expire_due();
}

static void expire_earliest(void)
{
    int64_t earliest = FOREVER;
    for (uint64_t rest = E.timed; rest; rest &= rest - 1) {
        Thread *t = &E.threads[__builtin_ctzll(rest)];
        if (t->deadline < earliest)
            earliest = t->deadline;
    }
    if (earliest > E.now_ns)
        E.now_ns = earliest;
    expire_due();
}

/* The thread waits until then, beside what else it waits for. */
static void wait_until(Thread *t, int64_t until)
{
    if (unlikely(E.reducing))
        note_deadline(until);
    t->woken = 0;
    t->deadline = until;
    E.timed |= t->bit;
}

static int64_t nanoseconds(const struct timespec *span)
{
    if (span->tv_sec >= INT64_MAX / 1000000000)
        return FOREVER;
    return (int64_t)span->tv_sec * 1000000000 + span->tv_nsec;
}

/* This long from now. */
static int64_t later(int64_t span)
{
    return span > FOREVER - E.now_ns ? FOREVER : E.now_ns + (span > 0 ? span : 0);
}

/* A look at the clock takes a microsecond; within one operation of a thread, twice as long with
 * every eighth look, and with every fourth in a row while nothing changes. So a loop that polls the
 * clock ends. */
static int64_t read_clock(Thread *t)
{
    enum { MOST_DOUBLINGS = 40 };
    uint32_t doublings;
    if (unlikely(E.reducing) && ++t->looks >= 4)
        note_all();               /* how long it takes depends on what changed meanwhile */
    t->idle_polls = t->polled_changes == E.changes ? t->idle_polls + 1 : 0;
    t->polled_changes = E.changes;
    doublings = t->idle_polls / 4 + t->polls++ / 8;
    clock_to(later(INT64_C(1000) << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS)));
    E.class_hash += mix64(mix64(t->step) ^ (uint64_t)E.now_ns);
    t->turns++;
    t->watch_lost = 1;            /* a loop that looks at the clock may end by it */
    return E.now_ns;
}
