/* The samplers in turn; each execution draws one. With a tape some executions depart from it first.
 */

enum { UNGUIDED = 50 };            /* of 100 executions with a tape: those that leave it alone */

static void portfolio_start(void)
{
    int guides = has_tape() && draw_below(100) >= UNGUIDED;
    uint32_t at = draw_below(100);
    strategy_use(at < 35 ? &POS : at < 65 ? &SURW : at < 85 ? &PCT : &RANDOM);
    if (guides) {
        guided_start(E.strategy);
        E.strategy = configured_strategy();
    }
}

static const Strategy PORTFOLIO = {
    {"portfolio", "the samplers in turn", STRATEGY_SAMPLES},
    .profiled = 1, .start = portfolio_start, .choose = guided_choose, .on_step = guided_on_step,
    .on_yield = guided_on_yield,
};
