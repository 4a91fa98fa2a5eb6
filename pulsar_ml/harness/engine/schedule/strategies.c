/* Which thread goes on: one function per strategy, each given the threads that may. */

enum { MOST_PROFILED = 64, PROFILE_RUNS = 12, MOST_DEPTH = 8 };
enum { PCT_FIRST = 1 << 20, PCT_CHANGED = 1 << 19, PCT_YIELDED = 1 << 18 };

/* What a few random executions taught: the number of steps, and who accesses which location how often.
 * They are the same for every campaign with the same seed and program, so any execution of it can
 * be made again without the others. */
SHARED struct {
    uint8_t known, learning;
    uint32_t steps;
    uint32_t n;
    uintptr_t addresses[MOST_PROFILED];
    uint32_t counts[MOST_PROFILED][ENGINE_MOST_THREADS];
    uint32_t n_shared, shared[MOST_PROFILED];
} profile;

SHARED struct {
    uint32_t depth, next_change, n_changes;
    uint32_t changes[MOST_DEPTH];
    uint32_t yields;
} pct;

SHARED struct {
    uintptr_t address;
    int intended;
    uint64_t held;
} surw;

/* NTH_BIT[m][n]: the n-th bit set in m; a loop here would be mispredicted half of the time. */
static uint8_t NTH_BIT[256][8];

static void fill_nth_bit(void)
{
    for (int m = 0; m < 256; m++)
        for (int bit = 0, n = 0; bit < 8; bit++)
            if (m >> bit & 1)
                NTH_BIT[m][n++] = (uint8_t)bit;
}

static inline Thread *nth_thread(uint64_t mask, uint32_t n)
{
    if (likely(mask < 256))
        return &E.threads[NTH_BIT[mask][n]];
    while (n--)
        mask &= mask - 1;
    return &E.threads[__builtin_ctzll(mask)];
}

static inline Thread *random_thread(uint64_t mask)
{
    return nth_thread(mask, draw_below((uint32_t)__builtin_popcountll(mask)));
}

static inline Thread *highest(uint64_t mask)
{
    Thread *best = &E.threads[__builtin_ctzll(mask)];
    for (mask &= mask - 1; mask; mask &= mask - 1) {
        Thread *u = &E.threads[__builtin_ctzll(mask)];
        if (u->priority > best->priority)
            best = u;
    }
    return best;
}

/* PCT and SURW may starve a thread that another one waits for. Past a multiple of the expected length,
 * and always in the second half of the step limit, their choice is random, which is fair. */
static inline int past_fair_point(void)
{
    return E.step > 4 * profile.steps + 1000 || E.step > E.config.step_limit / 2;
}

/* PCT (Burckhardt et al.): the highest priority runs; at depth-1 random steps the one about to run falls
 * below all others, which may be before its first step. */
static Thread *pct_thread(uint64_t mask)
{
    if (past_fair_point())
        return random_thread(mask);
    while (pct.next_change < pct.n_changes && E.step >= pct.changes[pct.next_change]) {
        if (E.step == pct.changes[pct.next_change])
            highest(mask)->priority = PCT_CHANGED - pct.next_change;
        pct.next_change++;
    }
    return highest(mask);
}

static inline int races_with(const Thread *a, const Thread *b)
{
    return a->op_address == b->op_address && a->op_address != 0 && (a->op_writes || b->op_writes);
}

/* POS (Yuan et al.): every pending step has a random priority; those that race with the one taken
 * draw a new one. A thread's next step draws in announce(). */
static Thread *pos_thread(uint64_t mask)
{
    Thread *best = highest(mask);
    for (uint64_t rest = E.ready & ~best->bit; rest; rest &= rest - 1) {
        Thread *u = &E.threads[__builtin_ctzll(rest)];
        if (races_with(u, best))
            u->priority = (uint32_t)(draw() >> 33);
    }
    return best;
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

/* SURW (Zhao et al.): the accesses to one location are interleaved uniformly, by their expected number
 * left in each thread; a thread that comes to one out of turn is held. */
static Thread *surw_thread(uint64_t mask)
{
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

/* Exhaustive within a number of preemptions: leaving a thread that could go on costs one. */
static Thread *preemption_thread(Thread *t, uint64_t mask)
{
    uint32_t options = (uint32_t)__builtin_popcountll(mask), taken;
    int stays = (mask & t->bit) != 0;
    if (stays && bound_used >= (uint32_t)E.config.bound) {
        path_pruned = 1;
        return t;
    }
    taken = search_choose(options);
    if (!stays)
        return nth_thread(mask, taken);
    if (taken == 0)
        return t;
    bound_used++;
    return nth_thread(mask & ~t->bit, taken - 1);
}

/* Exhaustive within a number of delays: the next thread in turn is free, each one skipped costs one. */
static Thread *delay_thread(Thread *t, uint64_t mask)
{
    uint32_t options = (uint32_t)__builtin_popcountll(mask), taken, left = (uint32_t)E.config.bound - bound_used;
    int turn = t->number < 0 ? 0 : t->number;
    uint64_t later = mask & ~((UINT64_C(1) << turn) - 1), sooner = mask & ~later;
    if (options > left + 1) {
        path_pruned = 1;
        options = left + 1;
    }
    taken = options > 1 ? search_choose(options) : 0;
    bound_used += taken;
    uint32_t n_later = (uint32_t)__builtin_popcountll(later);
    return taken < n_later ? nth_thread(later, taken) : nth_thread(sooner, taken - n_later);
}

static Thread *default_thread(Thread *t, uint64_t mask)
{
    return mask & t->bit ? t : &E.threads[__builtin_ctzll(mask)];
}

/* The tape names threads by number + 1. */
static Thread *replay_thread(Thread *t, uint64_t mask)
{
    uint32_t wanted = replay_choose(t, CHOOSE_THREAD, ENGINE_MOST_THREADS + 1);
    Thread *reversing;
    if (unlikely(reversal.on) && (reversing = reversal_thread(mask)) != NULL)
        return reversing;
    if (wanted && mask >> (wanted - 1) & 1)
        return &E.threads[wanted - 1];
    return default_thread(t, mask);
}

static inline Thread *choose_thread(Thread *t, uint64_t mask)
{
    Thread *chosen;
    switch (E.strategy) {
    case STRATEGY_RANDOM: chosen = random_thread(mask); break;
    case STRATEGY_PCT: chosen = pct_thread(mask); break;
    case STRATEGY_POS: chosen = pos_thread(mask); break;
    case STRATEGY_SURW: chosen = surw_thread(mask); break;
    case STRATEGY_PREEMPTIONS: chosen = preemption_thread(t, mask); break;
    case STRATEGY_DELAYS: chosen = delay_thread(t, mask); break;
    default: chosen = replay_thread(t, mask); break;
    }
    if (unlikely(E.recording) && chosen != default_thread(t, mask)) {
        decision_made(t, CHOOSE_THREAD, (uint32_t)chosen->number + 1);
        n_preemptions += (mask & t->bit) != 0;
    }
    return chosen;
}

static void profile_note(const Thread *t, uintptr_t address)
{
    uint32_t i = 0;
    if (address == 0)
        return;
    while (i < profile.n && profile.addresses[i] != address)
        i++;
    if (i == MOST_PROFILED)
        return;
    if (i == profile.n) {
        profile.addresses[profile.n++] = address;
        memset(profile.counts[i], 0, sizeof profile.counts[i]);
    }
    profile.counts[i][t->number]++;
}

static void profile_finish(void)
{
    for (uint32_t i = 0; i < profile.n; i++) {
        int threads = 0;
        for (int u = 0; u < E.n; u++)
            threads += profile.counts[i][u] > 0;
        if (threads > 1)
            profile.shared[profile.n_shared++] = i;
    }
    profile.known = 1;
}

static void pct_start(void)
{
    static const uint8_t MIXTURE[10] = {1, 2, 2, 2, 2, 3, 3, 3, 3, 4};
    uint32_t length = profile.steps ? profile.steps : 1;
    pct.depth = E.config.depth ? (uint32_t)E.config.depth : MIXTURE[draw_below(10)];
    if (pct.depth > MOST_DEPTH)
        pct.depth = MOST_DEPTH;
    pct.yields = 0;
    pct.next_change = 0;
    pct.n_changes = pct.depth - 1;
    for (uint32_t i = 0; i < pct.n_changes; i++) {
        uint32_t at = i, step = 1 + draw_below(length);
        while (at > 0 && pct.changes[at - 1] > step) {
            pct.changes[at] = pct.changes[at - 1];
            at--;
        }
        pct.changes[at] = step;
    }
    for (int i = 0; i < E.n; i++) {
        int j = (int)draw_below((uint32_t)i + 1);
        E.threads[i].priority = E.threads[j].priority;
        E.threads[j].priority = PCT_FIRST + (uint32_t)i;
    }
}

static void surw_start(void)
{
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

/* Decides the strategy of this execution; the portfolio draws one. */
static void strategy_start(void)
{
    int strategy = E.config.strategy;
    if (strategy == STRATEGY_PORTFOLIO) {
        uint32_t at = draw_below(100);
        strategy = at < 35 ? STRATEGY_POS : at < 65 ? STRATEGY_SURW : at < 85 ? STRATEGY_PCT : STRATEGY_RANDOM;
    }
    if (strategy == STRATEGY_SURW && profile.n_shared == 0)
        strategy = STRATEGY_POS;
    E.strategy = (uint8_t)strategy;
    E.attentive = strategy == STRATEGY_POS || profile.learning || reversal.on;
    E.plain_walk = strategy == STRATEGY_RANDOM && !E.recording;
    if (strategy == STRATEGY_PCT)
        pct_start();
    else if (strategy == STRATEGY_SURW)
        surw_start();
}
