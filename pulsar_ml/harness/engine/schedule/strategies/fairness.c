/* Fairness of the searches: a thread that spins without a pause is left once it made very many
 * steps in a row, at no cost; the search has a bound there in any case. */

SHARED struct { const Thread *thread; uint32_t stayed, step; } fairness;

static void fairness_start(void)
{
    fairness.thread = NULL;
}

static int must_leave(const Thread *t)
{
    fairness.stayed = t == fairness.thread && E.step == fairness.step + 1 ? fairness.stayed + 1 : 0;
    fairness.thread = t;
    fairness.step = E.step;
    return fairness.stayed > 64 && fairness.stayed > E.config.step_limit / 16;
}

static Thread *next_in_turn(const Thread *t, uint64_t mask)
{
    uint64_t later = mask & ~(t->bit | (t->bit - 1));
    return nth_thread(later ? later : mask & ~t->bit, 0);
}
