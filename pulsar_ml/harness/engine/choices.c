/* Choices other than of a thread: which store a load reads, whether a fault happens. 0 is the default. */

/* Exhaustive search: the path through the tree of choices, deepest last. */
typedef struct { uint16_t options, taken; } Node;
static Node *path;
static uint32_t path_length, path_room, path_at, bound_used;
static uint8_t path_pruned;

static uint32_t search_choose(uint32_t options)
{
    if (path_at < path_length) {
        /* A program that behaves differently on the same path is not under control. */
        if (path[path_at].options != options) {
            fail_with(FAIL_CAPACITY, current, "the same choices led to different ones: something outside the "
                                              "engine's control decides what the code does");
            abandon();
        }
        return path[path_at++].taken;
    }
    if (path_length == path_room) {
        uint32_t room = path_room ? 2 * path_room : 4096;
        Node *more = realloc(path, room * sizeof *more);
        if (more == NULL)
            return 0;
        path = more;
        path_room = room;
    }
    path[path_length++] = (Node){(uint16_t)options, 0};
    path_at++;
    return 0;
}

/* Moves to the next path; 0 when every one was taken. */
static int search_advance(void)
{
    while (path_length > 0) {
        Node *node = &path[path_length - 1];
        if (++node->taken < node->options)
            return 1;
        path_length--;
    }
    return 0;
}

static uint32_t replay_choose(const Thread *t, EngineChoice kind, uint32_t options)
{
    const EngineDecision *d = E.config.decisions;
    for (int32_t i = 0; i < E.config.n_decisions; i++)
        if (d[i].at == t->points && d[i].thread == (uint8_t)t->number && d[i].kind == kind)
            return d[i].value < options ? d[i].value : 0;
    return 0;
}

/* Out of 256: how often a random strategy departs from the default. A stale store is read half of the
 * time, so that what depends on one is not rare; faults and insertions are rarer. */
static const uint8_t DEPARTURES[CHOICE_KINDS] = {
    [CHOOSE_READ] = 128, [CHOOSE_INSERT] = 40, [CHOOSE_WEAK_FAILURE] = 24, [CHOOSE_SPURIOUS] = 24,
    [CHOOSE_NO_MEMORY] = 16, [CHOOSE_TIMEOUT] = 24, [CHOOSE_REUSE] = 128, [CHOOSE_DELAY] = 160,
    [CHOOSE_FLUSH] = 64, [CHOOSE_WAITER] = 128,
};

/* 0..options-1, options at least 2. */
static uint32_t choose(Thread *t, EngineChoice kind, uint32_t options)
{
    uint32_t chosen;
    if (E.strategy == STRATEGY_REPLAY) {
        chosen = replay_choose(t, kind, options);
    } else if (E.strategy == STRATEGY_PREEMPTIONS || E.strategy == STRATEGY_DELAYS) {
        chosen = search_choose(options);
    } else {
        uint64_t drawn = draw();
        chosen = (drawn & 255) >= DEPARTURES[kind] ? 0
                 : 1 + (uint32_t)(((drawn >> 32) * (options - 1)) >> 32);
    }
    if (unlikely(E.recording) && chosen)
        decision_made(t, kind, chosen);
    return chosen;
}
