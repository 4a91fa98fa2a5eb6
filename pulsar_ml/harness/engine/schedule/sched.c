/* Scheduling points: a thread announces its next step, somebody is picked, and a thread that was not
 * picked waits in its fiber. Also what blocks, and the verdict when nobody can go on. */

enum { STUCK_ROUNDS = 200 };

static void flush_oldest(Thread *t);
static void observe_newest(Thread *t, Variable *v);
static __attribute__((noinline)) void explain_deadlock(void);

static void wake(Thread *t)
{
    E.waiting &= ~t->bit;
    E.ready |= t->bit;
}

/* Nobody is ready: buffered stores reach memory, a time-out fires, spinning threads look once more,
 * or the execution is stuck. */
static __attribute__((noinline)) void unstick(void)
{
    if (E.buffered) {
        flush_oldest(&E.threads[__builtin_ctzll(E.buffered)]);
        return;
    }
    if (E.timed) {
        Thread *t = &E.threads[__builtin_ctzll(E.timed)];
        t->woken = 2;
        E.timed &= ~t->bit;
        wake(t);
        return;
    }
    if (E.waiting) {
        /* A loop that gives up after some turns is not stuck: it ends within the rounds. */
        if (E.changes != E.stuck_changes) {
            E.stuck_changes = E.changes;
            E.stuck_rounds = 0;
        }
        if (++E.stuck_rounds <= STUCK_ROUNDS) {
            E.ready |= E.waiting;
            E.waiting = 0;
            return;
        }
    }
    if (reversal.held != HELD)    /* else it waits for the thread that is held: not in this order */
        explain_deadlock();
    abandon();
}

static __attribute__((noinline)) Thread *pick(Thread *t)
{
    uint64_t mask;
    Thread *chosen;
    if (unlikely(E.at_start)) {
        /* All threads stand before their first step: none is the running one. */
        E.at_start = 0;
        t = &E.main;
    }
    for (;;) {
        mask = E.ready;
        if (likely(mask)) {
            uint32_t flushed;
            if (likely(!E.buffered))
                break;
            flushed = choose(t, CHOOSE_FLUSH, 1 + (uint32_t)__builtin_popcountll(E.buffered));
            if (flushed == 0)
                break;
            flush_oldest(nth_thread(E.buffered, flushed - 1));
            t->points++;
            continue;
        }
        unstick();
    }
    if (unlikely(E.yielded)) {
        for (uint64_t rest = E.yielded; rest; rest &= rest - 1) {
            Thread *u = &E.threads[__builtin_ctzll(rest)];
            if ((u->owed & E.ready) == 0)
                E.yielded &= ~u->bit;
        }
        if (mask & ~E.yielded)
            mask &= ~E.yielded;
    }
    chosen = mask & (mask - 1) ? choose_thread(t, mask) : &E.threads[__builtin_ctzll(mask)];
    for (uint64_t rest = E.yielded; rest; rest &= rest - 1)
        E.threads[__builtin_ctzll(rest)].owed &= ~chosen->bit;
    return chosen;
}

static __attribute__((noinline)) void step_limit(Thread *t)
{
    SHARED uint32_t returned_at;
    uint32_t returned = 0;
    for (int i = 0; i < E.n; i++)
        returned += E.threads[i].call + E.threads[i].done;
    if (E.step == E.config.step_limit / 2) {
        returned_at = returned;
        E.step_check = E.config.step_limit;
        return;
    }
    if (returned == returned_at) {
        fail_with(FAIL_LIVELOCK, t, "no operation ended within half of the step limit");
    } else {
        E.failure.kind = END_CUT;
    }
    abandon();
}

/* What some strategies do at every step. Whether the thread was held meanwhile. */
static __attribute__((noinline)) int attend(Thread *t, uintptr_t address)
{
    if (E.strategy == STRATEGY_POS)
        t->priority = (uint32_t)(draw() >> 33);
    if (profile.learning)
        profile_note(t, address);
    return reversal.on && hold_atomic(t);
}

/* The common case, with the same draws as in pick(). */
static inline __attribute__((always_inline)) Thread *pick_fast(Thread *t)
{
    if (likely(E.plain_walk && E.ready && !(E.yielded | E.buffered))) {
        E.at_start = 0;
        return E.ready & (E.ready - 1) ? random_thread(E.ready) : &E.threads[__builtin_ctzll(E.ready)];
    }
    return pick(t);
}

/* The thread's next step is `op` at `address`; returns when it may be taken. */
static inline __attribute__((always_inline)) void announce(Thread *t, EngineOp op, uintptr_t address, int writes)
{
    Thread *next;
    t->points++;
    t->op = op;
    t->op_address = address;
    t->op_writes = (uint8_t)writes;
    if (unlikely(E.attentive) && attend(t, address)) {
        /* Others went first. */
    } else if (unlikely(E.starting < E.n)) {
        /* All threads come to their first step before the first choice: what is before it is
         * nobody else's business. */
        next = &E.threads[E.starting++];
        switch_to(t, next);
    } else if (E.ready != t->bit || E.buffered) {
        next = pick_fast(t);
        if (next != t)
            switch_to(t, next);
    }
    if (unlikely(++E.step == E.step_check))
        step_limit(t);
    if (t->fresh) {
        t->fresh = 0;
        t->calls[t->call].invoked = E.step;
        t->calls[t->call].exchanged = 0;
        t->calls[t->call].exchanged_last = 0;
    }
}

/* The thread cannot go on; returns when it was woken and picked. */
static void block(Thread *t)
{
    Thread *next;
    E.ready &= ~t->bit;
    t->points++;
    next = E.starting < E.n ? &E.threads[E.starting++] : pick(t);
    if (next != t)
        switch_to(t, next);
}

static void watch_reset(Thread *t)
{
    t->n_watched = 0;
    t->watch_lost = 0;
}

/* A spin loop's turn is over. If it only read, another turn cannot end otherwise until one of the
 * locations read changes: the thread waits for that. Else it lets the others go first. */
static __attribute__((noinline)) void turn_over(Thread *t)
{
    int changed = t->watch_lost || t->n_watched == 0;
    t->n_watched = t->n_watched < ENGINE_MOST_WATCHED ? t->n_watched : ENGINE_MOST_WATCHED;
    for (uint32_t i = 0; i < t->n_watched; i++) {
        Variable *v = &E.variables[t->watched[i]];
        changed |= v->version != t->watched_version[i];
    }
    if (!changed) {
        E.waiting |= t->bit;
        E.ready &= ~t->bit;
    } else {
        t->owed = E.ready & ~t->bit;
        if (t->owed)
            E.yielded |= t->bit;
    }
    if (E.strategy == STRATEGY_PCT)
        t->priority = PCT_YIELDED - ++pct.yields;
    t->points++;
    t->op = OP_YIELD;
    t->op_address = 0;
    if (unlikely(E.starting < E.n)) {
        switch_to(t, &E.threads[E.starting++]);
    } else {
        Thread *next = pick(t);
        if (next != t)
            switch_to(t, next);
    }
    if (unlikely(++E.step == E.step_check))
        step_limit(t);
    if (E.strategy == STRATEGY_SURW)
        t->priority = (uint32_t)(draw() >> 33);
    /* A pause is long enough for every store to arrive. */
    for (uint32_t i = 0; i < t->n_watched; i++)
        observe_newest(t, &E.variables[t->watched[i]]);
    watch_reset(t);
}

static __attribute__((noinline)) void wake_watchers(uint32_t variable)
{
    for (uint64_t rest = E.waiting; rest; rest &= rest - 1) {
        Thread *u = &E.threads[__builtin_ctzll(rest)];
        for (uint32_t i = 0; i < u->n_watched; i++)
            if (u->watched[i] == variable) {
                wake(u);
                break;
            }
    }
}

static inline void watch_write(Thread *t, uint32_t variable)
{
    t->watch_lost = 1;
    t->n_watched = 0;
    E.changes++;
    if (unlikely(E.waiting))
        wake_watchers(variable);
}

/* The last reads since the last pause or write; duplicates do no harm. A loop without a pause is
 * recognised by many reads without a write. */
static inline void watch_read(Thread *t, uint32_t variable, uint32_t version)
{
    enum { IN_VAIN = 64 };
    uint32_t at = t->n_watched++ % ENGINE_MOST_WATCHED;
    t->watched[at] = variable;
    t->watched_version[at] = version;
    if (unlikely(t->n_watched > IN_VAIN))
        turn_over(t);
}
