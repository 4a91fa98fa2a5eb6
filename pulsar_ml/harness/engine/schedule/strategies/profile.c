/* A program's shape as a few random executions show it: the number of steps, and the accesses of
 * each thread to each location. The executions are the same for every explorer with the same seed
 * and program, so any execution of an explorer can be made again without the others. */

enum { MOST_PROFILED = 64, PROFILE_RUNS = 12 };

SHARED struct {
    uint8_t known, learning;
    uint32_t steps;
    uint32_t n;
    uintptr_t addresses[MOST_PROFILED];
    uint32_t counts[MOST_PROFILED][ENGINE_MOST_THREADS];
    uint32_t n_shared, shared[MOST_PROFILED];
} profile;

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

/* A strategy that goes by priorities may starve a thread that another one waits for. Past a
 * multiple of the expected length, and always in the second half of the step limit, the choice is
 * random, which is fair. */
static inline int past_fair_point(void)
{
    return E.step > 4 * profile.steps + 1000 || E.step > E.config.step_limit / 2;
}
