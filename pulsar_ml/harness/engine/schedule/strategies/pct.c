/* Probabilistic concurrency testing: priorities with a few random change points (Burckhardt et al.,
 * ASPLOS 2010). */

enum { MOST_DEPTH = 8 };
enum { PCT_FIRST = 1 << 20, PCT_CHANGED = 1 << 19, PCT_YIELDED = 1 << 18 };

SHARED struct {
    uint32_t depth, next_change, n_changes;
    uint32_t changes[MOST_DEPTH];
    uint32_t yields;
} pct;

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

/* The highest priority runs; at depth-1 random steps the one about to run falls
 * below all others, which may be before its first step. */
static Thread *pct_choose(Thread *t, uint64_t mask)
{
    (void)t;
    if (past_fair_point())
        return random_thread(mask);
    while (pct.next_change < pct.n_changes && E.step >= pct.changes[pct.next_change]) {
        if (E.step == pct.changes[pct.next_change])
            highest(mask)->priority = PCT_CHANGED - pct.next_change;
        pct.next_change++;
    }
    return highest(mask);
}

/* A thread that gives way falls below all others. */
static void pct_yield(Thread *t)
{
    t->priority = PCT_YIELDED - ++pct.yields;
}

static const Strategy PCT = {
    {"pct", "priorities with d - 1 random change points, d from a mixture", STRATEGY_SAMPLES},
    .profiled = 1, .start = pct_start, .choose = pct_choose, .on_yield = pct_yield,
};
