/* Exhaustive search within a number of delays (Emmi et al., POPL 2011). */

/* The next thread in turn is free, each one skipped costs one. */
static Thread *delays_choose(Thread *t, uint64_t mask)
{
    uint32_t options = (uint32_t)__builtin_popcountll(mask), taken, left = (uint32_t)E.config.bound - bound_used;
    int turn = t->number < 0 ? 0 : t->number;
    uint64_t later = mask & ~((UINT64_C(1) << turn) - 1), sooner = mask & ~later;
    if (past_turns(t)) {
        left = 0;
        options = 1;
    }
    if (options > left + 1) {
        path_pruned = 1;
        options = left + 1;
    }
    if (options == 1 && mask & t->bit && must_leave(t))
        return next_in_turn(t, mask);
    taken = options > 1 ? search_choose(options) : 0;
    bound_used += taken;
    uint32_t n_later = (uint32_t)__builtin_popcountll(later);
    return taken < n_later ? nth_thread(later, taken) : nth_thread(sooner, taken - n_later);
}

static const Strategy DELAYS = {
    {"delays", "every schedule within the bound of deviations from round robin", STRATEGY_SEARCHES},
    .start = fairness_start, .choose = delays_choose,
};
