/* Behind each execution of a search with reduction: which transitions could have come in another
 * order, and where the search begins with that order; then the next path. Optimal dynamic
 * partial-order reduction (Abdulla, Aronis, Jonsson, Sagonas, JACM 2017) over the transitions of
 * nodes.c.
 *
 * A race is a pair of clashing transitions of two threads with nothing between that orders them. It
 * is reversed by a sequence: what follows the first one without depending on it, then the second.
 * A thread that takes a lock races with those that took it before, not with the unlock. */

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
            if (a->footprint.touches[i].address != a->had_units &&
                touches_clash(&a->footprint.touches[i], &b->footprint.touches[j], TOUCH_WRITES))
                return 1;
    return 0;
}

/* The clock when the transition from node `at` is made without the one from node `first` and all
 * that follows it. */
static int64_t clock_without(uint32_t first, uint32_t at)
{
    int64_t now = reduction.nodes[first].began;
    for (uint32_t i = first + 1; i < at; i++)
        if (reduction.nodes[i].now > now && !is_before(&reduction.nodes[first], &reduction.nodes[i]))
            now = reduction.nodes[i].now;
    return now;
}

/* Lets the search begin with this sequence behind a node, unless what it leads to was searched, or
 * will be. 0 without memory. */
static int begin_with(ReducedNode *node, Step *steps, int n)
{
    for (uint64_t rest = node->sleep; rest; rest &= rest - 1) {
        int u = __builtin_ctzll(rest);
        int place = comes_first(steps, n, u, &node->asleep[u], 0);
        if (place >= 0 && place < n && node->parted >> u & 1)
            place = comes_first(steps, n, u, with_fault(node, u), 0);
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

/* The footprint of a thread that waits for a lock. */
static Footprint attempt_at(uintptr_t lock, LockUse use, int thread)
{
    Footprint attempt = {0};
    add_lock(&attempt, lock, use);
    if (E.config.mode == MODE_TSO)
        add_touch(&attempt, KEY_ENDS + (uintptr_t)thread, 1, TOUCH_OBJECT | TOUCH_READS | TOUCH_HARD);
    return attempt;
}

/* A thread that gets a lock, or waits for it, in front of node `at` could have come before those
 * that took it, unless they come first anyway, by `clock`. */
static int reverse_taken(const uint32_t *clock, uint32_t at, int thread, uintptr_t lock, LockUse use,
                         const Footprint *attempt)
{
    uint32_t first[REDUCED_THREADS] __attribute__((aligned(16)));
    memcpy(first, clock, sizeof first);
    for (uint32_t i = at; i-- > 0;) {
        const ReducedNode *taken = &reduction.nodes[i];
        if (taken->acquired != lock || taken->thread == thread || taken->own <= first[taken->thread] ||
            (taken->shares && use == USE_READ))
            continue;
        if (!reverse_race(i, at, thread, attempt))
            return 0;
        entries_join(REDUCED_THREADS, first, taken->clock);
    }
    return 1;
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

/* Mode tso: does a load find a store of its own thread, whether a store of another thread arrives
 * before or behind it? Unlike in finds_own(), all between the two is known. */
static int found_own(uint32_t first, uint32_t second, const Touch *a, const Touch *b)
{
    if (a->mode & TOUCH_WRITES)   /* that store arrived before the one that the load found */
        return b->hides;
    for (uint32_t i = first + 1; i < second; i++)
        if (reduction.nodes[i].thread == reduction.nodes[first].thread && reduction.nodes[i].entered == a->address)
            return 0;
    return finds_own(a, b);
}

/* Does the order of two transitions of the path matter? */
static Clash nodes_clash(uint32_t first, uint32_t second)
{
    const Footprint *a = &reduction.nodes[first].footprint, *b = &reduction.nodes[second].footprint;
    if (E.config.mode != MODE_TSO || a->all | b->all || !(a->units & b->units))
        return clash(a, b, BOTH_KNOWN);
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            const Touch *x = &a->touches[i], *y = &b->touches[j];
            if (x->own && y->own && x->own != y->own && x->address == y->address && x->bytes == y->bytes &&
                (x->mode ^ y->mode) & TOUCH_WRITES) {
                if (!found_own(first, second, x, y))
                    return ORDER_CLASH;
            } else if (touches_clash(x, y, TOUCH_WRITES)) {
                return ORDER_CLASH;
            }
        }
    return NO_CLASH;
}

static int changes(const Footprint *f, uintptr_t object)
{
    for (int i = 0; i < f->n; i++)
        if (f->touches[i].address == object && f->touches[i].mode & TOUCH_WRITES)
            return 1;
    return 0;
}

/* Mode tso: an attempt that got the lock came when its buffer was empty. In vain, before the lock
 * was given back, it would not have waited for that. */
static int reverse_emptied(const uint32_t *first, uint32_t at)
{
    const ReducedNode *node = &reduction.nodes[at];
    uint8_t mode = TOUCH_OBJECT | TOUCH_READS | TOUCH_MAY_WRITE;
    Footprint vain = {.n = 1, .units = units_of(node->acquired, 1), .touches = {{node->acquired, 1, mode, 0, 0, 0}}};
    uint32_t i = at;
    while (i-- > 0 && !changes(&reduction.nodes[i].footprint, node->acquired))
        ;
    if (i == NONE || reduction.nodes[i].acquired == node->acquired || reduction.nodes[i].thread == node->thread ||
        reduction.nodes[i].own <= first[reduction.nodes[i].thread] ||
        (node->lock && !can_give_up(node->until, clock_without(i, at))))
        return 1;
    return reverse_race(i, at, node->thread, &vain);
}

/* What must come before the transition from node `at`, and its races. */
static int analyse(uint32_t at)
{
    ReducedNode *node = &reduction.nodes[at];
    int thread = node->thread, in_c11 = E.config.mode == MODE_C11, waited = 0;
    uint32_t first[REDUCED_THREADS] __attribute__((aligned(16)));
    memset(node->clock, 0, sizeof node->clock);
    for (uint32_t i = at; i-- > 0;)
        if (reduction.nodes[i].thread == thread) {
            join_clocks(node, &reduction.nodes[i]);
            break;
        }
    node->own = ++node->clock[thread];
    if (node->lock && !node->acquired && node->quiet) {
        Footprint attempt = attempt_at(node->lock, node->use, thread);
        if (!reverse_taken(node->clock, node->behind, thread, node->lock, node->use, &attempt))
            return 0;
    }
    if (node->enabler >= 0)
        join_clocks(node, &reduction.nodes[node->enabler]);
    memcpy(first, node->clock, sizeof first);
    for (uint32_t i = node->behind; i-- > 0;)
        join_clocks(node, &reduction.nodes[i]);
    for (uint32_t i = at; i-- > 0;) {
        ReducedNode *other = &reduction.nodes[i];
        int waits;
        Clash how;
        if (other->thread == thread || is_before(other, node))
            continue;
        how = nodes_clash(i, at);
        waits = how == ORDER_CLASH && clash_is_hard(other, node) &&
                !(node->lock && can_give_up(node->until, clock_without(i, at)));
        waited |= waits;
        if (how == ORDER_CLASH ? !waits : in_c11 && could_have_read(at, i, how))
            if (!reverse_race(i, at, thread, &node->footprint))
                return 0;
        if (how == ORDER_CLASH)
            join_clocks(node, other);
    }
    if (in_c11)
        join_read(at);
    if (node->acquired && node->drains == DRAINS_IF_FREE && E.config.mode == MODE_TSO && !reverse_emptied(first, at))
        return 0;
    return !waited || !node->lock || !node->acquired ||
           reverse_taken(first, at, thread, node->lock, node->use, &node->footprint);
}

/* At the end the thread still waited for a lock. */
static int analyse_waiting(int thread)
{
    static const uint32_t none[REDUCED_THREADS];
    const Announced *next = &reduction.announced[thread];
    uint32_t last = reduction.n_nodes;
    Footprint attempt;
    if (!next->lock)
        return 1;
    attempt = attempt_at(next->lock, next->use, thread);
    while (last > 0 && reduction.nodes[last - 1].thread != thread)
        last--;
    return reverse_taken(last > 0 ? reduction.nodes[last - 1].clock : none, reduction.n_nodes, thread,
                         next->lock, next->use, &attempt);
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
 * what they touch. So may what a thread reads that was woken for new stores alone. */
static void keep_footprints(void)
{
    for (uint32_t i = reduction.changed; i < reduction.n_nodes; i++) {
        ReducedNode *node = &reduction.nodes[i];
        uint64_t bit = UINT64_C(1) << node->thread;
        int is_half = (node->half & bit) != 0, faulty;
        Footprint *usual = &node->asleep[node->thread], *fault = with_fault(node, node->thread);
        if (!node->kept && (node->option == OPTION_NONE || is_half)) {
            node->parted &= ~bit;
        } else if (!node->kept && !(node->parted & bit)) {
            node->parted |= bit;
            *usual = *fault = (Footprint){0};
        }
        faulty = node->parted & bit && node->option == OPTION_FAULT;
        if (node->kept >> faulty & 1 || is_half)
            join_footprint(faulty ? fault : usual, &node->footprint);
        else
            *(faulty ? fault : usual) = node->footprint;
        node->kept |= (uint8_t)(1 << faulty);
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
            if (!value->closed && ++value->taken < value->options) {
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
        node->partly &= ~(UINT64_C(1) << node->thread);
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
            found = estimate_of(&v->branches, found, v->closed ? 0 : (uint32_t)v->options - v->taken - 1);
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
