/* Picking a thread out of a set: the n-th, a random one, the one of the highest priority. */

/* NTH_BIT[m][n]: the n-th bit set in m; a loop here would be mispredicted half of the time. */
static uint8_t NTH_BIT[256][8];

static Thread *NTH_THREAD[16][4];   /* the same for the threads of small masks */

static void fill_nth_bit(void)
{
    for (int m = 0; m < 256; m++)
        for (int bit = 0, n = 0; bit < 8; bit++)
            if (m >> bit & 1)
                NTH_BIT[m][n++] = (uint8_t)bit;
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 4; n++)
            NTH_THREAD[m][n] = &E.threads[NTH_BIT[m][n]];
}

static inline Thread *nth_thread(uint64_t mask, uint32_t n)
{
    if (likely(mask < 16))
        return NTH_THREAD[mask][n];
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

static Thread *default_thread(Thread *t, uint64_t mask)
{
    return mask & t->bit ? t : &E.threads[__builtin_ctzll(mask)];
}

/* The execution goes on with this strategy. */
static void strategy_use(const Strategy *strategy)
{
    E.strategy = strategy;
    if (strategy->start)
        strategy->start();
}
