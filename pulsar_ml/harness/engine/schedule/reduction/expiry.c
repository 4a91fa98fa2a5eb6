/* Waits that end by their deadline where that may happen as a fault, too. The fault sets the clock
 * to the deadline and ends the wait at once, with all other waits that are due. Without it, the
 * wait ends when no thread can go on. That is the same class if nothing but those waits' ends
 * happened at the condition meanwhile, and nothing depended on whether the clock was at the
 * deadline yet; the search leaves such an execution.
 *
 * reduction.least: of each thread, the earliest time on which something depended since its wait
 * began; 0: the fault was not one of its options. beside: the threads that waited until a time when
 * it began. latest: what its condition shows while only their waits end. */

/* The wait that begins may end at once, as a fault. */
static int may_expire(Thread *t)
{
    int ends = (int)choose(t, CHOOSE_TIMEOUT, 2);
    if (unlikely(E.reducing) && (uint32_t)t->number < REDUCED_THREADS) {
        reduction.least[t->number] = ends || past_turns(t) || E.config.judged ? 0 : INT64_MAX;
        reduction.beside[t->number] = E.timed;
        reduction.latest[t->number] = t->step;
    }
    return ends;
}

/* The waits of these threads end, and the clock moves to their deadline. */
static void end_beside(uint64_t due, int64_t deadline, const Object *o)
{
    for (int i = 0; i < E.n && i < REDUCED_THREADS; i++) {
        const Thread *first = &E.threads[__builtin_ctzll(due)], *t = &E.threads[i];
        if (reduction.least[i] <= deadline || t == first)
            continue;
        if (due == first->bit && reduction.beside[i] & due && t->blocked_on == first->blocked_on &&
            o->latest == reduction.latest[i])
            reduction.latest[i] = ~first->step;
        else
            reduction.least[i] = deadline;
    }
}

/* No thread can go on, so the next deadline passes: would it end what the fault ended elsewhere in
 * the search? The fault ends the wait behind all that it ends with it, and so does the deadline
 * where this thread has the highest number. */
static int was_a_fault(void)
{
    int64_t deadline = INT64_MAX;
    uint64_t due = 0;
    const Thread *last;
    const Object *o;
    if (E.waiting || E.n > REDUCED_THREADS)
        return 0;
    for (uint64_t rest = E.timed; rest; rest &= rest - 1) {
        const Thread *t = &E.threads[__builtin_ctzll(rest)];
        due = t->deadline < deadline ? t->bit : t->deadline == deadline ? due | t->bit : due;
        deadline = t->deadline < deadline ? t->deadline : deadline;
    }
    last = &E.threads[63 - __builtin_clzll(due)];
    o = last->blocked_on == NONE ? NULL : &objects[last->blocked_on];
    if (o && o->kind == OBJECT_CONDITION && o->latest == reduction.latest[last->number] &&
        reduction.least[last->number] > deadline && !(due & ~last->bit & ~reduction.beside[last->number]) &&
        !(due & ~o->blocked))
        return 1;
    end_beside(due, deadline, o);
    return 0;
}
