/* Exhaustive search within a number of preemptions (Musuvathi and Qadeer, PLDI 2007). */

/* Leaving a thread that could go on costs one. */
static Thread *preemptions_choose(Thread *t, uint64_t mask)
{
    uint32_t options = (uint32_t)__builtin_popcountll(mask), taken;
    int stays = (mask & t->bit) != 0;
    if (past_turns(t))
        return stays && !must_leave(t) ? t : next_in_turn(t, mask);
    if (stays && bound_used >= (uint32_t)E.config.bound) {
        path_pruned = 1;
        return must_leave(t) ? next_in_turn(t, mask) : t;
    }
    taken = search_choose(options);
    if (!stays)
        return nth_thread(mask, taken);
    if (taken == 0)
        return t;
    bound_used++;
    return nth_thread(mask & ~t->bit, taken - 1);
}

static const Strategy PREEMPTIONS = {
    {"preemptions", "every schedule within the bound of switches away from a thread that could go on",
     STRATEGY_SEARCHES},
    .start = fairness_start, .choose = preemptions_choose,
};
