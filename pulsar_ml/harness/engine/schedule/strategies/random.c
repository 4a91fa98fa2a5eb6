/* A random walk: at each point any thread that can go on. */

static Thread *walk_choose(Thread *t, uint64_t mask)
{
    (void)t;
    return random_thread(mask);
}

static const Strategy RANDOM = {
    {"random", "at each point any thread that can go on", STRATEGY_SAMPLES}, .choose = walk_choose,
};
