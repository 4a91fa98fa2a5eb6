/* Selectively uniform random walk: the accesses to one location are interleaved uniformly, by their
 * expected number left in each thread (Zhao et al., ASPLOS 2025). */

SHARED struct {
    uintptr_t address;
    int intended;
    uint64_t held;
} surw;

static void surw_start(void)
{
    if (profile.n_shared == 0) {
        strategy_use(&POS);
        return;
    }
    uint32_t which = profile.shared[draw_below(profile.n_shared)];
    surw.address = profile.addresses[which];
    surw.intended = -1;
    surw.held = 0;
    for (int i = 0; i < E.n; i++) {
        uint32_t count = profile.counts[which][i];
        E.threads[i].weight = count ? (count + PROFILE_RUNS / 2) / PROFILE_RUNS : 0;
        if (count && E.threads[i].weight == 0)
            E.threads[i].weight = 1;
        E.threads[i].priority = (uint32_t)(draw() >> 33);
    }
}

static int surw_intention(uint64_t mask)
{
    uint32_t total = 0, at;
    for (uint64_t rest = mask; rest; rest &= rest - 1)
        total += E.threads[__builtin_ctzll(rest)].weight;
    if (total == 0)
        return (int)random_thread(mask)->number;
    at = draw_below(total);
    for (uint64_t rest = mask; rest; rest &= rest - 1) {
        Thread *u = &E.threads[__builtin_ctzll(rest)];
        if (at < u->weight)
            return u->number;
        at -= u->weight;
    }
    return __builtin_ctzll(mask);
}

/* A thread that comes to the location out of turn is held. */
static Thread *surw_choose(Thread *t, uint64_t mask)
{
    (void)t;
    if (past_fair_point())
        return random_thread(mask);
    for (;;) {
        uint64_t free_ones = mask & ~surw.held;
        if (free_ones == 0) {
            surw.held = 0;
            surw.intended = surw_intention(mask);
            free_ones = mask;
        }
        Thread *u = highest(free_ones);
        if (u->op_address != surw.address)
            return u;
        if (surw.intended < 0)
            surw.intended = surw_intention(E.ready | E.waiting);
        if (u->number == surw.intended) {
            surw.held = 0;
            surw.intended = -1;
            if (u->weight > 1)
                u->weight--;
            return u;
        }
        surw.held |= u->bit;
    }
}

static void surw_yield(Thread *t)
{
    t->priority = (uint32_t)(draw() >> 33);
}

static const Strategy SURW = {
    {"surw", "by remaining events on one chosen location", STRATEGY_SAMPLES},
    .profiled = 1, .start = surw_start, .choose = surw_choose, .on_yield = surw_yield,
};
