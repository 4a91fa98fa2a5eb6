/* Unlocking as a step. Between the last access of a section and its unlock another thread can fail
 * to lock, or destroy the lock, although it sees all that the section did. No other step tells an
 * early unlock from a late one.
 *
 * So a search unlocks at once, and comes back for the rest when such an observer follows: then the
 * choice at the unlock gets its second option, to let another thread go first, which costs one
 * switch. An observer that knows of the unlock by happens-before cannot come before it. Samplers
 * and replays have an ordinary scheduling point. */

enum { MOST_UNLOCKS = 1024 };

/* The unlocks of this execution that a search made at once. */
SHARED struct {
    uint32_t at;                  /* of the choice in the path */
    uint32_t object, clock;
    uint8_t thread, bounded;      /* the bound on switches leaves no choice */
} unlocks[MOST_UNLOCKS];
SHARED uint32_t n_unlocks;

static void may_come_late(uint32_t at, int bounded)
{
    if (bounded)
        path_pruned = 1;
    else if (at >= path_floor && path[at].options == ONE_OPTION)
        path[at].options = 2;
}

/* The thread fails to lock, or forgets the lock, if it is held; or could. */
static __attribute__((noinline)) void observe_lock(const Thread *t, uint32_t object)
{
    for (uint32_t i = 0; i < n_unlocks; i++)
        if (unlocks[i].object == object && t->clock[unlocks[i].thread] < unlocks[i].clock)
            may_come_late(unlocks[i].at, unlocks[i].bounded);
}

/* 1: the search lets another thread go first. */
static int comes_late(const Thread *t, uint32_t object)
{
    int bounded = bound_used >= (uint32_t)E.config.bound;
    uint32_t at = path_at;
    if (!bounded && search_choose_late()) {
        bound_used++;
        return 1;
    }
    if (n_unlocks == MOST_UNLOCKS) {
        may_come_late(at, bounded);
    } else {
        unlocks[n_unlocks].at = at;
        unlocks[n_unlocks].object = object;
        unlocks[n_unlocks].clock = t->clock[t->number];
        unlocks[n_unlocks].thread = (uint8_t)t->number;
        unlocks[n_unlocks++].bounded = (uint8_t)bounded;
    }
    return 0;
}

/* Another thread than this one, which could go on, makes the next step. */
static void leave(Thread *t)
{
    Thread *next;
    E.ready &= ~t->bit;
    next = pick(t);
    E.ready |= t->bit;
    if (E.recording) {
        const EngineDecision *last = n_decisions ? &decisions_made[n_decisions - 1] : NULL;
        if (!last || last->kind != CHOOSE_THREAD || last->thread != t->number || last->at != points_of(t))
            decision_made(t, CHOOSE_THREAD, (uint32_t)next->number + 1);
        n_preemptions++;
    }
    switch_to(t, next);
}

/* The thread's next step is to unlock; returns when it may be taken. */
static void announce_unlock(Thread *t, uint32_t object, uintptr_t address)
{
    if (!searching() || E.attentive || E.starting < E.n || E.yielded || t->buffer_count) {
        announce(t, address, 1);
        return;
    }
    t->step++;
    t->op_address = address;
    t->op_writes = 1;
    if (E.ready != t->bit && !past_turns(t) && comes_late(t, object))
        leave(t);
    if (unlikely(++E.step == E.step_check))
        step_limit(t);
    if (unlikely(t->fresh))
        begin_call(t);
}
