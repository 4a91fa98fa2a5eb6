/* Behind each execution of a search with reduction: which transitions could have come in another
 * order, and where the search begins with that order; then the next path. Optimal dynamic
 * partial-order reduction (Abdulla, Aronis, Jonsson, Sagonas, JACM 2017) over the transitions of
 * nodes.c.
 *
 * A race is a pair of clashing transitions of two threads with nothing between that orders them. It
 * is reversed by a sequence: what follows the first one without depending on it, then the second.
 * A thread that takes a mutex races with the one that took it before, not with the unlock. */

SHARED struct { Step *steps; uint32_t room; } sequence;

static inline int is_before(const ReducedNode *a, const ReducedNode *b)
{
    return a->own <= b->clock[a->thread];
}

static void join_clocks(ReducedNode *into, const ReducedNode *from)
{
    entries_join(REDUCED_THREADS, into->clock, from->clock);
}

/* Do the two clash in what the second one waits for? */
static int clash_is_hard(const ReducedNode *a, const ReducedNode *b)
{
    for (int j = 0; j < b->footprint.n; j++)
        for (int i = 0; b->footprint.touches[j].mode & TOUCH_HARD && i < a->footprint.n; i++)
            if (touches_clash(&a->footprint.touches[i], &b->footprint.touches[j], TOUCH_WRITES))
                return 1;
    return 0;
}

/* Lets the search begin with this sequence behind a node, unless what it leads to was searched, or
 * will be. 0 without memory. */
static int begin_with(ReducedNode *node, Step *steps, int n)
{
    for (uint64_t rest = node->sleep; rest; rest &= rest - 1) {
        int u = __builtin_ctzll(rest);
        int place = comes_first(steps, n, u, &node->asleep[u], 0);
        if (place >= 0 && place < n)
            return 1;
    }
    return insert_wakeups(&node->wakeups, steps, n);
}

/* The transition from node `second`, or the one that `thread` waits to make, comes before the one
 * from node `first`. */
static int reverse_race(uint32_t first, uint32_t second, int thread, const Footprint *footprint)
{
    const ReducedNode *before = &reduction.nodes[first];
    int n = 0;
    if (first < reduction.floor_nodes || second < reduction.known)
        return 1;
    if (second - first + 1 > sequence.room) {
        uint32_t room = 2 * (second - first + 1);
        Step *more = realloc(sequence.steps, room * sizeof *more);
        if (more == NULL)
            return 0;
        sequence.steps = more;
        sequence.room = room;
    }
    for (uint32_t i = first + 1; i < second; i++)
        if (!is_before(before, &reduction.nodes[i]))
            sequence.steps[n++] = (Step){&reduction.nodes[i].footprint, reduction.nodes[i].thread};
    sequence.steps[n++] = (Step){footprint, (uint8_t)thread};
    return begin_with(&reduction.nodes[first], sequence.steps, n);
}

/* The last node below `at` whose transition took the mutex; NONE: there is none. */
static uint32_t last_taken(uint32_t at, uintptr_t mutex)
{
    while (at-- > 0)
        if (reduction.nodes[at].acquired == mutex)
            return at;
    return NONE;
}

/* Mode c11: could the transition from node `at` store something before the one from node `first`? A
 * compare-exchange has to find what it expects then. */
static int could_store(uint32_t at, uint32_t first)
{
    const ReducedNode *node = &reduction.nodes[at];
    if (node->n_chances == ANY_CHANCE)
        return 1;
    for (int i = 0; i < node->n_chances; i++) {
        uint32_t maker = at;
        while (maker-- > 0 && (reduction.nodes[maker].stored != node->chances[i] || node->chances[i] == 0))
            ;
        if (maker == NONE || maker < first ||
            (maker > first && !is_before(&reduction.nodes[first], &reduction.nodes[maker])))
            return 1;
    }
    return 0;
}

/* Mode c11: the load from node `first` could have read the store from node `at`, had it come first.
 * A read-modify-write may then read another store than it did. One that failed to exchange might
 * have exchanged what another one took. */
static int could_have_read(uint32_t at, uint32_t first, Clash known)
{
    const ReducedNode *node = &reduction.nodes[at], *other = &reduction.nodes[first];
    if (other->stored)
        known = clash(&other->footprint, &node->footprint, SECOND_UNSURE);
    return known == READ_CLASH && could_store(at, first);
}

/* Mode c11: what the transition read came before it. */
static void join_read(uint32_t at)
{
    ReducedNode *node = &reduction.nodes[at];
    for (uint32_t i = at; node->read && i-- > 0;)
        if (reduction.nodes[i].stored == node->read) {
            join_clocks(node, &reduction.nodes[i]);
            break;
        }
}

/* What must come before the transition from node `at`, and its races. */
static int analyse(uint32_t at)
{
    ReducedNode *node = &reduction.nodes[at];
    int thread = node->thread, in_c11 = E.config.mode == MODE_C11;
    uint32_t taken = NONE;
    memset(node->clock, 0, sizeof node->clock);
    for (uint32_t i = at; i-- > 0;)
        if (reduction.nodes[i].thread == thread) {
            join_clocks(node, &reduction.nodes[i]);
            break;
        }
    node->own = ++node->clock[thread];
    if (node->enabler >= 0)
        join_clocks(node, &reduction.nodes[node->enabler]);
    for (uint32_t i = at; node->quiet && i-- > 0;)
        join_clocks(node, &reduction.nodes[i]);
    if (node->waited && node->acquired) {
        taken = last_taken(at, node->acquired);
        if (taken != NONE && (reduction.nodes[taken].thread == thread || is_before(&reduction.nodes[taken], node)))
            taken = NONE;
    }
    for (uint32_t i = at; i-- > 0;) {
        ReducedNode *other = &reduction.nodes[i];
        Clash how;
        if (other->thread == thread || is_before(other, node))
            continue;
        how = clash(&other->footprint, &node->footprint, BOTH_KNOWN);
        if (how == ORDER_CLASH ? !clash_is_hard(other, node) : in_c11 && could_have_read(at, i, how))
            if (!reverse_race(i, at, thread, &node->footprint))
                return 0;
        if (how == ORDER_CLASH)
            join_clocks(node, other);
    }
    if (in_c11)
        join_read(at);
    return taken == NONE || reverse_race(taken, at, thread, &node->footprint);
}

/* At the end the thread still waited for a mutex: it could have taken it before the one that holds
 * it. */
static int analyse_waiting(int thread)
{
    uintptr_t mutex = reduction.announced[thread].mutex;
    uint32_t taken = mutex ? last_taken(reduction.n_nodes, mutex) : NONE, last = reduction.n_nodes;
    uint8_t mode = TOUCH_OBJECT | TOUCH_READS | TOUCH_WRITES | TOUCH_HARD;
    Footprint footprint = {.n = 1, .units = units_of(mutex, 1), .touches = {{mutex, 1, mode, 0}}};
    if (taken == NONE || reduction.nodes[taken].thread == thread)
        return 1;
    while (last > 0 && reduction.nodes[last - 1].thread != thread)
        last--;
    if (last > 0 && is_before(&reduction.nodes[taken], &reduction.nodes[last - 1]))
        return 1;
    return reverse_race(taken, reduction.n_nodes, thread, &footprint);
}

/* Lets the search begin with each thread that could go on at the node. 0 without memory. */
static int try_threads(ReducedNode *node)
{
    uint64_t rest = node->enabled & ~node->sleep & ~(UINT64_C(1) << node->thread);
    for (uint32_t at = node->wakeups; at != NONE; at = wakeups.all[at].next)
        rest &= ~(UINT64_C(1) << wakeups.all[at].thread);
    for (; rest; rest &= rest - 1) {
        Footprint unknown = {.all = 1};
        Step step = {&unknown, (uint8_t)__builtin_ctzll(rest)};
        if (!insert_wakeups(&node->wakeups, &step, 1))
            return 0;
    }
    return 1;
}

/* The execution ended before its threads did, so its races are not known: each thread that could go
 * on at a node of its path is tried there. */
static int try_all(void)
{
    for (uint32_t i = reduction.floor_nodes; i < reduction.n_nodes; i++)
        if (!try_threads(&reduction.nodes[i]))
            return 0;
    return 1;
}

static int analyse_execution(void)
{
    uint32_t beyond;
    int ended = E.live == 0 || E.failure.kind == FAIL_DEADLOCK || E.failure.kind == END_BLOCKED;
    if (!ended && reduction.n_nodes)
        reduction.nodes[reduction.n_nodes - 1].footprint.all = 1;
    for (uint32_t i = reduction.changed; i < reduction.n_nodes; i++)
        if (!analyse(i))
            return 0;
    beyond = leaves_bound(reduction.changed > reduction.floor_nodes ? reduction.changed : reduction.floor_nodes);
    if (beyond != NONE) {
        reduction.left = 1;
        reduction.known = 0;
        end_path(beyond);
        return try_all();
    }
    for (uint64_t rest = reduction.waiting; rest; rest &= rest - 1)
        if (!analyse_waiting(__builtin_ctzll(rest)))
            return 0;
    reduction.known = 0;
    return ended || try_all();
}

/* The transitions from here on were made with these choices of values; another choice may change
 * what they touch. */
static void keep_footprints(void)
{
    for (uint32_t i = reduction.changed; i < reduction.n_nodes; i++) {
        ReducedNode *node = &reduction.nodes[i];
        Footprint *kept = &node->asleep[node->thread];
        if (node->kept)
            join_footprint(kept, &node->footprint);
        else
            *kept = node->footprint;
        node->kept = 1;
    }
}

static int next_reduced_path(void)
{
    while (reduction.n_nodes > reduction.floor_nodes || reduction.n_values > reduction.floor_values) {
        uint32_t last = reduction.n_nodes - 1;
        ReducedNode *node;
        if (reduction.n_values > reduction.floor_values && reduction.values[reduction.n_values - 1].node == last) {
            ReducedValue *value = &reduction.values[reduction.n_values - 1];
            end_branch(&value->branches, reduction.executions);
            if (++value->taken < value->options) {
                reduction.changed = reduction.n_nodes ? last : 0;
                return 1;
            }
            reduction.n_values--;
            continue;
        }
        node = &reduction.nodes[last];
        end_branch(&node->branches, reduction.executions);
        node->sleep |= UINT64_C(1) << node->thread;
        node->half &= ~(UINT64_C(1) << node->thread);
        node->since[node->thread] = last;
        free_wakeups(node->handed);
        node->handed = NONE;
        if (reduction.nothing_new ? first_thread(node, &E.main) : next_sequence(node)) {
            reduction.changed = last;
            return 1;
        }
        reduction.nothing_new = 0;
        reduction.n_nodes--;
    }
    return 0;
}

/* The executions that are left, and the standard deviation of that number; -1: nobody knows. */
double engine_left(double *spread)
{
    Estimate found = {-1, 0};
    uint32_t value = reduction.n_values;
    *spread = 0;
    if (!reduction.executions || reduction.unreduced)
        return -1;
    for (uint32_t i = reduction.n_nodes + 1; i-- > 0;) {
        uint32_t number = i - 1;  /* of a node, or NONE, for what comes before the first */
        for (; value > reduction.floor_values && reduction.values[value - 1].node == number; value--) {
            const ReducedValue *v = &reduction.values[value - 1];
            found = estimate_of(&v->branches, found, (uint32_t)v->options - v->taken - 1);
        }
        if (i > reduction.floor_nodes) {
            const ReducedNode *node = &reduction.nodes[number];
            uint64_t pending = 0;
            for (uint32_t at = node->wakeups; at != NONE; at = wakeups.all[at].next)
                pending |= UINT64_C(1) << wakeups.all[at].thread;
            pending &= ~node->sleep & ~(UINT64_C(1) << node->thread);
            found = estimate_of(&node->branches, found, (uint32_t)__builtin_popcountll(pending));
        }
    }
    *spread = sqrt(found.variance);
    return found.n < 0 ? -1 : found.n < (double)reduction.executions ? 0 : found.n - (double)reduction.executions;
}
