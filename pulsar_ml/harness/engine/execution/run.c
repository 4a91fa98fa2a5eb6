/* The code of an execution's fibers: the calls of the program's threads, and the main thread, which
 * creates the instance, runs the threads, checks and destroys. */

static void fail_invariant(Thread *t, const PmlViolation *violation)
{
    EngineFailure *f = fail(FAIL_INVARIANT, t, 0, 0);
    if (f == NULL)
        return;
    f->n_frames = 0;
    memcpy(f->invariant, violation->invariant, sizeof f->invariant);
    memcpy(f->message, violation->message, sizeof f->message);
    f->invariant[sizeof f->invariant - 1] = f->message[sizeof f->message - 1] = 0;
}

static void run_calls(Thread *t)
{
    const EngineConfig *c = &E.config;
    PmlViolation violation;
    PmlCall call;
    violation.found = 0;
    for (t->call = 0; (int32_t)t->call < c->n_calls[t->number]; t->call++) {
        EngineCall *done = &t->calls[t->call];
        call = c->calls[t->number][t->call];
        memset(&done->result, 0, sizeof done->result);
        t->fresh = 1;
        t->polls = 0;
        t->turns = 0;
        t->came_late = 0;
        watch_reset(t);
        if (unlikely(E.recording))
            trace_event(t, OP_CALL, t->call, 0, (uint64_t)call.code, 0);
        if (unlikely(t->controlled & CHANGES_CODE))
            begin_change(t, (uint64_t)call.code);
        c->subject->apply(E.main.value, t->number, &call, &done->result, &violation);
        settle(t);
        end_change(t);
        if (unlikely(E.recording)) {
            int32_t at = trace_event(t, OP_RETURN, t->call, 0, (uint64_t)done->result.status, 0);
            if (at >= 0)
                events[at].before = (uint64_t)done->result.words[0];
        }
        if (unlikely(E.reducing))
            note_return(t->fresh);
        if (t->fresh) {
            done->invoked = E.step;
            done->exchanged = done->exchanged_last = 0;
        }
        done->returned = E.step;
        t->depth = 0;
        if (unlikely(violation.found)) {
            fail_invariant(t, &violation);
            abandon();
        }
    }
}

/* The rest of the thread's fiber: others go on, or the main thread when all are done. */
static void thread_end(Thread *t)
{
    end_change(t);
    t->done = 1;
    if (unlikely(E.reducing))
        note_touch(KEY_ENDS + (uintptr_t)t->number, 1, TOUCH_OBJECT | TOUCH_READS | TOUCH_WRITES | TOUCH_TOGETHER);
    t->op_address = 0;
    E.ready &= ~t->bit;
    E.yielded &= ~t->bit;
    E.live--;
    if (unlikely(n_objects))
        wake_joiners(t);
    if (E.starting < E.n) {
        switch_to(t, start_next());
    } else if (E.live == 0) {
        /* Stores of a thread that has ended may still be on their way; joining waits for them. */
        flush_last(t);
        switch_to(t, &E.main);
    } else {
        t->step++;
        switch_to(t, likely(E.walks && E.ready && !E.yielded) ? walk_to(E.ready) : pick(t));
    }
}

/* The destructors of a thread's variables are code under test as well. Their steps belong to the
 * thread's last call, whose times and answer they leave alone. */
static __attribute__((noinline)) void end_calls(Thread *t)
{
    EngineCall *last, kept;
    if (t->call == 0)
        return;
    last = &t->calls[--t->call];
    kept = *last;
    t->fresh = 0;
    end_owned(t);
    *last = kept;
    t->call++;
}

static void thread_entry(void)
{
    Thread *t = current;
    for (;;) {
        run_calls(t);
        if (unlikely(owns(t)))
            end_calls(t);
        thread_end(t);
        t = current;
    }
}

static inline __attribute__((always_inline)) void start_thread(Thread *t)
{
    t->controlled = E.control;
    t->change_lock = CHANGE_FREE;
    t->own_stack = (uintptr_t)t->stack;
    t->locals_from = UINTPTR_MAX;
    t->library = E.library_start;
    start_owned(t);
    t->done = 0;
    t->joined = 0;
    t->step = t->id;
    t->idle_points = 0;
    t->values = 0;
    t->allocation = t->allocation_at = 0;
    t->call = 0;
    t->op_address = 0;
    t->any_pending = 0;
    t->any_fenced = 0;
    t->fence_at = t->fence_pending = t->fence_fenced = 0;
    waiting_start(t);
    t->blocked_on = NONE;
    t->buffer_head = t->buffer_count = 0;
    t->depth = 0;
    t->priority = 0;
    clock_zero(t->clock);
    t->clock[t->number] = 1;
}

static void run_threads(void)
{
    E.live = E.n;
    E.ready = E.n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << E.n) - 1;
    for (int i = 0; i < E.n; i++)
        start_thread(&E.threads[i]);
    strategy_start();
    E.running = 1;
    E.starting = 1;
    begin_walk();
    E.at_start = E.n > 1;
    E.main.step = E.main.id;
    E.main.idle_points = 0;
    switch_to(&E.main, &E.threads[0]);
    E.running = 0;
}

static void main_entry(void)
{
    const PmlSubject *subject;
    void *instance;
    PmlViolation violation;
    for (;;) {
        subject = E.config.subject;
        instance = subject->create(E.config.settings, E.n);
        if (instance == NULL) {
            if (E.config.leaks) /* of what create() had allocated by then */
                check_leaks();
            fail_with(FAIL_CAPACITY, &E.main, "the subject's create() returned NULL");
            abandon();
        }
        E.main.value = instance;
        run_threads();
        violation.found = 0;
        E.main.depth = 0;
        if (unlikely(E.recording)) {
            check_begins = n_events;
            check_found = &violation;
        }
        subject->check(instance, &violation);
        check_begins = -1;
        if (unlikely(violation.found))
            fail_invariant(&E.main, &violation);
        subject->destroy(instance);
        end_owned(&E.main);
        end_statics();
        if (E.config.leaks)
            check_leaks();
        E.ended = 1;
        current = NULL;
        fiber_switch(&E.main.fiber, &E.host);
    }
}

static void prepare_fibers(void)
{
    E.main.fiber = fiber_prepare(E.main.stack + STACK_BYTES, main_entry);
    for (int i = 0; i < E.n; i++)
        /* Each begins at another offset in its page, or the stacks would compete for the same cache
         * sets. */
        E.threads[i].fiber = fiber_prepare(E.threads[i].stack + STACK_BYTES - (i + 1) % 16 * 448, thread_entry);
}
