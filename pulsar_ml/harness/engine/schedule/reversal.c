/* Completes the report of a data race: which event of the trace was the first access, what ordered
 * the two threads last, and whether the accesses can also be made in the
 * other order.
 *
 * That is tried, not argued: the execution is made again up to the first access, its thread is held
 * there until the other thread made the second one, and then goes on. What was decided before still
 * decides where it can. */

/* The last access of a thread to exactly these bytes of a kind that races; -1 if the trace has
 * none. */
static int32_t find_access(int thread, uintptr_t address, uint32_t width, EngineOp kind)
{
    for (int64_t i = n_events - 1; i >= 0; i--) {
        const EngineEvent *e = &events[i];
        if (e->thread != thread || e->address != address || e->width != width || e->order == ENGINE_NOT_MADE)
            continue;
        if (kind == OP_READ || kind == OP_WRITE ? e->op == kind
            : e->op == OP_STORE || e->op == OP_RMW || e->op == OP_FLUSH || (e->op == OP_CAS && !e->failed) ||
                  (kind == OP_LOAD && (e->op == OP_LOAD || e->op == OP_CAS)))
            return (int32_t)i;
    }
    return -1;
}

/* How `to` came to know what it knows of `from` at event `before`: two events, or -1 for a thread's
 * end. */
static int find_synchronisation(int from, int to, int32_t before, int32_t *released, int32_t *acquired)
{
    uint32_t known = events[before].clock[from];
    if (known == 0)
        return 0;
    *released = *acquired = -1;
    for (int32_t i = 0; i <= before; i++) {
        if (events[i].thread == from && *released < 0 && events[i].clock[from] > known)
            *released = i;
        if (events[i].thread == to && *acquired < 0 && events[i].clock[from] >= known)
            *acquired = i;
    }
    return *acquired >= 0;
}

static void explain_race(EngineFailure *f, uintptr_t address, uint32_t width)
{
    int32_t released, acquired;
    f->event = (int32_t)n_events - 1;
    f->n_frames = events[f->event].n_frames;
    memcpy(f->frames, events[f->event].frames, sizeof f->frames);
    f->other_event = find_access(f->other_thread, address, width, (EngineOp)f->other_op);
    if (f->other_event < 0)
        return;
    if (find_synchronisation(f->other_thread, f->thread, f->event, &released, &acquired)) {
        f->released = released;
        f->acquired = acquired;
    }
    if (find_synchronisation(f->thread, f->other_thread, f->other_event, &released, &acquired) &&
        acquired > f->acquired) {
        f->released = released;
        f->acquired = acquired;
    }
}

static Thread *pick(Thread *t);
static Thread *start_next(void);

static void drain(Thread *t);

static __attribute__((noinline)) void hold(Thread *t)
{
    if (reversal.eager)
        drain(t);                 /* the other thread may wait for what it stored before */
    reversal.held = HELD;
    E.ready &= ~t->bit;
    switch_to(t, E.starting < E.n ? start_next() : pick(t));
}

/* Whether the thread, which is about to make a plain access, was held meanwhile. */
static __attribute__((noinline)) int hold_plain(Thread *t)
{
    if (!reversal.on || reversal.held || n_events != reversal.at)
        return 0;
    hold(t);
    return 1;
}

/* The same of one that is about to make an atomic access. */
static __attribute__((noinline)) int hold_atomic(Thread *t)
{
    if (reversal.held || reversal.at >= 0 || t->number != reversal.first || points_of(t) != reversal.points)
        return 0;
    hold(t);
    return 1;
}

static void second_access(const Thread *t, uintptr_t address, uint64_t pc)
{
    if (t->number != reversal.second || address != reversal.address || pc != reversal.pc)
        return;
    reversal.held = LET_GO;
    reversal.eager = 0;
    E.ready |= E.threads[reversal.first].bit;
}

/* While one thread is held, the other may be preferred; when it is let go, it comes first. */
static Thread *reversal_thread(uint64_t mask)
{
    int number = reversal.held == LET_GO ? reversal.first : reversal.eager ? reversal.second : -1;
    if (!reversal.held || number < 0 || !(mask & E.threads[number].bit))
        return NULL;
    if (reversal.held == LET_GO)
        reversal.on = 0;
    return &E.threads[number];
}
