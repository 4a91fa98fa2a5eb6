/* Lock-freedom, checked on request: one thread of an execution is held back in front of a step, for
 * good, and the others must end all the same. It goes on when it is the last one. */

static int may_be_held(const Thread *t)
{
    return (E.config.lock_free || E.strategy->row.kind == STRATEGY_FOLLOWS) && !E.held_once && E.live > 1 &&
           t->controlled && !profile.learning;
}

static void hold_back(Thread *t)
{
    if (E.spinner)
        end_spin();
    E.held_once = 1;
    E.held = t->bit;
    E.ready &= ~t->bit;
    switch_to(t, E.starting < E.n ? start_next() : pick(t));
}

static void fail_held_back(const Thread *t)
{
    char text[96];
    snprintf(text, sizeof text, "thread %d is held back, and the others cannot end without it",
             __builtin_ctzll(E.held));
    fail_waiting(FAIL_HELD_BACK, t, text);
}

/* No other thread can go on. */
static void end_hold(void)
{
    if (E.live > 1) {
        fail_held_back(&E.threads[__builtin_ctzll(E.held)]);
        abandon();
    }
    E.ready |= E.held;
    E.held = 0;
}
