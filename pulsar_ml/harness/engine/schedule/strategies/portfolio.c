/* The samplers in turn; each execution draws one. */

static void portfolio_start(void)
{
    uint32_t at = draw_below(100);
    strategy_use(at < 35 ? &POS : at < 65 ? &SURW : at < 85 ? &PCT : &RANDOM);
}

static const Strategy PORTFOLIO = {
    {"portfolio", "the samplers in turn", STRATEGY_SAMPLES},
    .profiled = 1, .start = portfolio_start, .choose = walk_choose,
};
