/* Partial order sampling: random priorities of events, drawn anew for those that race (Yuan et al.,
 * CAV 2018). */

static inline int races_with(const Thread *a, const Thread *b)
{
    return a->op_address == b->op_address && a->op_address != 0 && (a->op_writes || b->op_writes);
}

/* Every pending step has a random priority; those that race with the one taken
 * draw a new one. */
static Thread *pos_choose(Thread *t, uint64_t mask)
{
    (void)t;
    Thread *best = highest(mask);
    for (uint64_t rest = E.ready & ~best->bit; rest; rest &= rest - 1) {
        Thread *u = &E.threads[__builtin_ctzll(rest)];
        if (races_with(u, best))
            u->priority = (uint32_t)(draw() >> 33);
    }
    return best;
}

static void pos_step(Thread *t)
{
    t->priority = (uint32_t)(draw() >> 33);
}

static const Strategy POS = {
    {"pos", "random priorities of events, drawn anew for those that race", STRATEGY_SAMPLES},
    .profiled = 1, .choose = pos_choose, .on_step = pos_step,
};
