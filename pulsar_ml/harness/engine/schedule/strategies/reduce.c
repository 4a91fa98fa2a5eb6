/* Exhaustive searches without a bound on switches. ENUMERATE takes every schedule. REDUCE takes one
 * execution of each class, see schedule/reduction, and ends where a program does what the reduction
 * does not cover. EXHAUST begins again there, as ENUMERATE. */

static const Strategy ENUMERATE = {
    {"enumerate", "every schedule, without reduction", STRATEGY_SEARCHES},
    .start = fairness_start, .choose = preemptions_choose,
};

static Thread *reduce_choose(Thread *t, uint64_t mask)
{
    return reduced_pick(t, mask);
}

static const Strategy EXHAUST = {
    {"exhaust", "one execution of each class, by partial-order reduction; all where that does not cover the program",
     STRATEGY_REDUCES},
    .choose = reduce_choose, .on_step = reduced_on_step,
};

static const Strategy REDUCE = {
    {"reduce", "the same, and no execution more where the reduction does not cover the program",
     STRATEGY_REDUCES},
    .choose = reduce_choose, .on_step = reduced_on_step,
};

static int reduces(void) { return configured_strategy()->row.kind == STRATEGY_REDUCES; }

/* Of a search that takes every schedule. */
static int32_t most_preemptions(void) { return E.config.preemptions < 0 ? INT32_MAX : E.config.preemptions; }

/* The reduction was given up: the search takes every schedule from here on. A part of a search
 * ends, because the whole has to begin again. */
static int search_unreduced(void)
{
    reduction_reset();
    reduction.ended = configured_strategy() == &REDUCE || E.config.n_begun;
    if (reduction.ended)
        return 0;
    E.config.strategy = strategy_number(&ENUMERATE);
    E.config.bound = most_preemptions();
    path_length = 0;
    return 1;
}

static int part_load(const uint64_t *words, uint32_t n);

/* A search of this configuration begins. 0: where it should begin is damaged. */
static int reduction_open(void)
{
    reduction_reset();
    reduction.unreduced = 0;
    reduction.ended = 0;
    if (configured_strategy() == &ENUMERATE)
        E.config.bound = most_preemptions();
    if (!reduces())
        return 1;
    if (E.config.unreduced) {     /* so it was before, and the path is of such a search */
        reduction.unreduced = E.config.unreduced;
        E.config.strategy = strategy_number(&ENUMERATE);
        E.config.bound = most_preemptions();
        return 1;
    }
    if (E.config.mode == MODE_TSO && E.config.n_changes)
        reduction.unreduced |= UNREDUCED_BUFFERS;
    if (!E.config.races)
        reduction.unreduced |= UNREDUCED_RACES;
    if (E.config.lock_free)
        reduction.unreduced |= UNREDUCED_HELD;
    if (E.config.n_threads > most_reduced_threads())
        reduction.unreduced |= UNREDUCED_THREADS;
    if (reduction.unreduced)
        search_unreduced();
    return !E.config.n_begun || reduction.unreduced || part_load(E.config.begun, (uint32_t)E.config.n_begun);
}

/* The path goes on where the execution had no choice. */
static int path_is_left(void)
{
    if (E.reducing)
        return !reduction.unreduced &&
               (reduction.node_at < reduction.n_nodes || reduction.value_at < reduction.n_values);
    return path_at < path_length;
}

/* Behind an execution: its races, and whether it left the bound of preemptions. */
static void search_look(void)
{
    if (!E.reducing || reduction.analysed)
        return;
    reduction.analysed = 1;
    if (!reduction.unreduced && !analyse_execution())
        reduction.unreduced |= UNREDUCED_MEMORY;
    path_pruned = reduction.left;
}

/* Behind an execution of a search: goes to the next path. 0 when there is none left. */
static int search_next(void)
{
    if (!reduces())
        return search_advance();
    reduction.executions++;
    search_look();
    if (reduction.unreduced)
        return search_unreduced();
    keep_footprints();
    return next_reduced_path();
}
