/* Follows the decisions of an earlier execution; the default decides what they leave open. */

/* The tape names threads by number + 1. */
static Thread *replay_schedule(Thread *t, uint64_t mask)
{
    uint32_t wanted = replay_choose(t, CHOOSE_THREAD, ENGINE_MOST_THREADS + 1);
    Thread *reversing;
    if (unlikely(reversal.on) && (reversing = reversal_thread(mask)) != NULL)
        return reversing;
    if (wanted && mask >> (wanted - 1) & 1)
        return &E.threads[wanted - 1];
    return default_thread(t, mask);
}

static const Strategy REPLAY = {
    {"replay", "the decisions of an earlier execution", STRATEGY_FOLLOWS}, .choose = replay_schedule,
};
