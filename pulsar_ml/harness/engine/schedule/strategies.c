/* The table of strategies: one row each, one file each. A strategy is a row here and nothing
 * elsewhere: the numbers, the names in Python, the choices of commands and the rules for samples
 * and searches follow from the table. */

#include "pulsar_ml/harness/engine/schedule/strategies/kit.c"
#include "pulsar_ml/harness/engine/schedule/strategies/profile.c"
#include "pulsar_ml/harness/engine/schedule/strategies/random.c"
#include "pulsar_ml/harness/engine/schedule/strategies/pct.c"
#include "pulsar_ml/harness/engine/schedule/strategies/pos.c"
#include "pulsar_ml/harness/engine/schedule/strategies/surw.c"
#include "pulsar_ml/harness/engine/schedule/strategies/fairness.c"
#include "pulsar_ml/harness/engine/schedule/strategies/preemptions.c"
#include "pulsar_ml/harness/engine/schedule/strategies/delays.c"
#include "pulsar_ml/harness/engine/schedule/reduction/footprints.c"
#include "pulsar_ml/harness/engine/schedule/reduction/wakeups.c"
#include "pulsar_ml/harness/engine/schedule/reduction/buffers.c"
#include "pulsar_ml/harness/engine/schedule/reduction/estimates.c"
#include "pulsar_ml/harness/engine/schedule/reduction/nodes.c"
#include "pulsar_ml/harness/engine/schedule/reduction/picks.c"
#include "pulsar_ml/harness/engine/schedule/reduction/preemptions.c"
#include "pulsar_ml/harness/engine/schedule/reduction/races.c"
static int32_t strategy_number(const Strategy *strategy);
static const Strategy *configured_strategy(void);
#include "pulsar_ml/harness/engine/schedule/strategies/reduce.c"
#include "pulsar_ml/harness/engine/schedule/strategies/replay.c"
#include "pulsar_ml/harness/engine/schedule/strategies/portfolio.c"

static const Strategy *const STRATEGIES[] = {
    &RANDOM, &PCT, &POS, &SURW, &PREEMPTIONS, &DELAYS, &EXHAUST, &REDUCE, &ENUMERATE, &REPLAY, &PORTFOLIO,
};

enum { N_STRATEGIES = sizeof STRATEGIES / sizeof *STRATEGIES };

/* The row of a strategy that is named to an explorer by its number; NULL past the last one. */
const EngineStrategy *engine_strategy(int32_t number)
{
    return number >= 0 && number < N_STRATEGIES ? &STRATEGIES[number]->row : NULL;
}

static int32_t strategy_number(const Strategy *strategy)
{
    int32_t number = 0;
    while (STRATEGIES[number] != strategy)
        number++;
    return number;
}

static const Strategy *configured_strategy(void)
{
    return STRATEGIES[E.config.strategy];
}

static void strategy_start(void)
{
    strategy_use(profile.learning ? &RANDOM : configured_strategy());
    E.attentive = E.strategy->on_step || profile.learning || reversal.on || E.config.lock_free ||
                  E.strategy->row.kind == STRATEGY_FOLLOWS;
    E.many_reads = E.strategy->row.kind == STRATEGY_SAMPLES ? IN_VAIN : MANY_READS;
    E.plain_walk = E.strategy == &RANDOM && !E.recording;
    E.sampling = E.strategy->row.kind == STRATEGY_SAMPLES && !E.recording;
    E.common = E.sampling && E.config.mode == MODE_C11 && E.width == 4 &&
               E.config.stores == ENGINE_STORES && E.config.n_changes == 0;
}

static inline Thread *choose_thread(Thread *t, uint64_t mask)
{
    Thread *chosen = E.strategy->choose(t, mask);
    if (unlikely(E.recording) && chosen != default_thread(t, mask)) {
        decision_made(t, CHOOSE_THREAD, (uint32_t)chosen->number + 1);
        n_preemptions += (mask & t->bit) != 0;
    }
    return chosen;
}
