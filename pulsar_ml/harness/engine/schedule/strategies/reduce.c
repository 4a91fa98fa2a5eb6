/* Exhaustive search with partial-order reduction: one execution of each class, see
 * schedule/reduction. Where a program does what the reduction does not know, the search begins
 * again without the reduction, as PREEMPTIONS without a bound. */

static Thread *reduce_choose(Thread *t, uint64_t mask)
{
    return reduced_pick(t, mask);
}

static const Strategy REDUCE = {
    {"reduce", "one execution of each class (reads-from and modification order), by partial-order reduction",
     STRATEGY_REDUCES},
    .choose = reduce_choose, .on_step = reduced_on_step,
};

/* From here on the search takes every schedule. */
static void search_unreduced(void)
{
    E.config.strategy = strategy_number(&PREEMPTIONS);
    E.config.bound = INT32_MAX;
    reduction_reset();
    path_length = 0;
}

/* A search of this configuration begins. */
static void reduction_open(void)
{
    reduction_reset();
    reduction.unreduced = 0;
    if (configured_strategy() != &REDUCE)
        return;
    if (E.config.mode == MODE_TSO && E.config.n_weakened)
        reduction.unreduced |= UNREDUCED_BUFFERS;
    if (!E.config.races)
        reduction.unreduced |= UNREDUCED_RACES;
    if (E.config.lock_free)
        reduction.unreduced |= UNREDUCED_HELD;
    if (E.config.n_threads > most_reduced_threads())
        reduction.unreduced |= UNREDUCED_THREADS;
    if (reduction.unreduced)
        search_unreduced();
}

/* Behind an execution of a search: goes to the next path. 0 when there is none left. */
static int search_next(void)
{
    if (configured_strategy() != &REDUCE)
        return search_advance();
    if (!reduction.unreduced && !analyse_execution())
        reduction.unreduced |= UNREDUCED_MEMORY;
    if (reduction.unreduced) {
        search_unreduced();
        return 1;
    }
    keep_footprints();
    return next_reduced_path();
}
