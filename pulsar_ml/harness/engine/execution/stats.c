/* Counts of an explorer. */

static void count(EngineStats *stats)
{
    stats->executions++;
    stats->steps += E.step;
    stats->unreduced = reduction.unreduced;
    if (unlikely(reduction.left)) {   /* its class needs more preemptions than the bound */
        stats->pruned++;
        E.touched_twice = 0;
        return;
    }
    stats->complete += E.failure.kind == END_COMPLETE;
    stats->cut += E.failure.kind == END_CUT;
    stats->blocked += E.failure.kind == END_BLOCKED;
    if (unlikely(E.failure.kind == END_BLOCKED)) {
        E.touched_twice = 0;
        return;
    }
    if (unlikely(E.failure.kind == END_DISCARDED)) {
        stats->discarded++;
        E.touched_twice = 0;
        return;
    }
    stats->shared += E.touched_twice;
    stats->pruned += path_pruned;
    stats->spun += path_spun;
    stats->looped += path_looped;
    stats->forgotten += E.forgot;
    stats->mixed += E.mixed;
    if (E.strategy == &PCT && E.spun == 0 && !past_fair_point()) {
        stats->pct_1 += pct.depth == 1;
        stats->pct_2 += pct.depth == 2;
        stats->pct_3 += pct.depth == 3;
        stats->pct_steps = profile.steps;
    }
    if ((uint32_t)E.n > stats->threads)
        stats->threads = (uint32_t)E.n;
    if (E.step > stats->longest)
        stats->longest = E.step;
    E.touched_twice = 0;
    classes_note(E.class_hash + (E.config.judged && searching() ? calls_hash(0) : 0));
}

/* Counters that go on through all campaigns. */
typedef struct { uint64_t hooks, switches, stale, crowded, suppressed; } Counters;

static Counters counters(void)
{
    return (Counters){E.hooks, E.switches, E.stale, E.crowded, known_races.passed};
}

static void collect(EngineStats *stats, Counters before)
{
    stats->hooks += E.hooks - before.hooks;
    stats->switches += E.switches - before.switches;
    stats->stale += E.stale - before.stale;
    stats->crowded += E.crowded - before.crowded;
    stats->suppressed += known_races.passed - before.suppressed;
    classes_report(stats);
}

/* What is exhausted when no path is left: 1 within the bounds that were hit, 2 if none was. */
static int32_t all_paths_taken(const EngineStats *stats)
{
    return stats->pruned || stats->spun || stats->looped || stats->cut ||
                   stats->forgotten || stats->mixed || stats->crowded ? 1 : 2;
}
