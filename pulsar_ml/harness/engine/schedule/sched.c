/* Scheduling points: a thread announces its next step, a thread is picked, and a thread that was
 * not picked waits in its fiber. */

static void flush_oldest(Thread *t);
static __attribute__((noinline)) void unstick(Thread *t);
static int may_be_held(const Thread *t);
static void hold_back(Thread *t);
static void fail_held_back(const Thread *t);
static void let_go(Thread *t);

/* All threads of the program have started; what is left is a plain walk, or not. */
static void begin_walk(void)
{
    E.walks = E.starting == E.n && E.plain_walk && !E.attentive && E.config.mode != MODE_TSO;
}

static Thread *start_next(void)
{
    Thread *next = &E.threads[E.starting++];
    begin_walk();
    return next;
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
            if (likely(!E.buffered) || E.reducing)
                break;
            flushed = choose(t, CHOOSE_FLUSH, 1 + (uint32_t)__builtin_popcountll(E.buffered));
            if (flushed == 0)
                break;
            flush_oldest(nth_thread(E.buffered, flushed - 1));
            t->idle_points++;
            continue;
        }
        if (unlikely(E.reducing) && E.buffered && !E.held_back)
            break;
        unstick(t);
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
    if (unlikely(E.reducing)) {
        chosen = reduced_pick(t, mask);
        return chosen ? chosen : pick(t);
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
    if (unlikely(E.reducing) && reduction.hurries)
        give_up_loops();
    for (int i = 0; i < E.n; i++)
        returned += E.threads[i].call + E.threads[i].done;
    if (E.step == E.config.step_limit / 2) {
        returned_at = returned;
        E.step_check = E.config.step_limit;
        return;
    }
    if (returned == returned_at && E.held) {
        fail_held_back(t);
    } else if (returned == returned_at) {
        fail_waiting(FAIL_LIVELOCK, t, "no operation ended within half of the step limit");
    } else {
        E.failure.kind = END_CUT;
    }
    abandon();
}

/* What some strategies do at every step. Whether the thread was held meanwhile. */
static __attribute__((noinline)) int attend(Thread *t, uintptr_t address)
{
    if (E.strategy->on_step)
        E.strategy->on_step(t);
    /* Outside of the lock a thread of Python is in memory that lies elsewhere in each execution. */
    if (profile.learning && !(python.outside & t->bit))
        profile_note(t, address);
    if (may_be_held(t) && choose(t, CHOOSE_HOLD, 2)) {
        hold_back(t);
        return 1;
    }
    return reversal.on && hold_atomic(t);
}

static inline Thread *walk_to(uint64_t mask)
{
    return mask & (mask - 1) ? random_thread(mask) : &E.threads[__builtin_ctzll(mask)];
}

/* In a plain walk, with the same draws as in pick(). No processor predicts whether to switch, so
 * the running thread switches to itself. */
INLINED Thread *walk(Thread *t)
{
    return switch_to(t, likely(!E.yielded) ? random_thread(E.ready) : pick(t));
}

/* Where it is not a plain walk past its start. */
static __attribute__((noinline)) void go_in_turn(Thread *t, uintptr_t address, int writes)
{
    Thread *next;
    t->op_address = address;
    t->op_writes = (uint8_t)writes;
    if (unlikely(E.attentive) && attend(t, address)) {
        /* Others went first. */
    } else if (unlikely(E.starting < E.n)) {
        /* All threads come to their first step before the first choice: what is before it is
         * nobody else's business. */
        switch_to(t, start_next());
    } else if (E.ready != t->bit || E.buffered) {
        next = pick(t);
        if (next != t)
            switch_to(t, next);
    }
}

static inline void begin_call(Thread *t)
{
    t->fresh = 0;
    if (unlikely(E.reducing))
        note_call();
    t->calls[t->call].invoked = E.step;
    t->calls[t->call].exchanged = 0;
    t->calls[t->call].exchanged_last = 0;
}

/* The thread's next step is at `address`; returns the thread when it may be taken. */
INLINED Thread *announce_quickly(Thread *t, uintptr_t address, int writes)
{
    t->step++;
    if (unlikely(!E.walks))
        go_in_turn(t, address, writes);
    else if (E.ready != t->bit)
        t = walk(t);
    if (unlikely(++E.step == E.step_check))
        step_limit(t);
    if (unlikely(t->fresh))
        begin_call(t);
    return t;
}

/* Where it is rarer: not inlined. */
static __attribute__((noinline)) void announce(Thread *t, uintptr_t address, int writes)
{
    if (unlikely(t->change_lock == CHANGE_ENDS))
        let_go(t);
    announce_quickly(t, address, writes);
}

/* The thread cannot go on; returns when it was woken and picked. */
static void block(Thread *t)
{
    Thread *next;
    E.ready &= ~t->bit;
    t->idle_points++;
    next = E.starting < E.n ? start_next() : pick(t);
    if (next != t)
        switch_to(t, next);
}
