/* Threads that the code under test starts: fibers of the same execution, numbered behind the
 * program's own in the order of their start. The number that is a thread's pthread_t never is 0. */

static void set_width(int32_t threads);
static void start_thread(Thread *t);
static void thread_end(Thread *t);

/* The engine's calls at a thread's end need less of its stack than this. A lock that lost the
 * thread may lead others to its local variables afterwards: they find what the thread left there,
 * and no frames of the engine, which differ when an execution is repeated with a trace. */
enum { STACK_AT_END = 2048 };

static __attribute__((noinline)) void call_body(Thread *t)
{
    char unused[STACK_AT_END];
    __asm__ volatile("" : : "r"(unused) : "memory");
    t->value = t->body(t->argument);
}

static void spawned_entry(void)
{
    Thread *t = current;
    call_body(t);
    settle(t);
    t->depth = 0;
    if (unlikely(owns(t)))
        end_owned(t);
    thread_end(t);
    __builtin_unreachable();
}

static int spawn_ready(Thread *u)
{
    if (u->stack == NULL)
        u->stack = stack_new();
    if (u->buffer == NULL)
        u->buffer = malloc(ENGINE_BUFFER * sizeof *u->buffer);
    return u->stack && u->buffer && grow_calls(u, 1);
}

/* The new thread's number, or an error below 0. */
static int spawn(Thread *t, void *(*body)(void *), void *argument, uint64_t pc)
{
    Thread *u;
    LibraryState inherited;
    will_drain();
    announce(t, 0, 1);
    if (unlikely(E.reducing))
        note_only(KEY_STARTS, TOUCH_OBJECT | TOUCH_READS | TOUCH_WRITES);
    if (E.n == E.width) {
        if (E.n == ENGINE_MOST_THREADS) {
            fail_with(FAIL_CAPACITY, t, "the code under test starts more threads than the engine can follow");
            abandon();
        }
        /* The clocks have no room: this execution is made again, from its beginning, with more. */
        E.wider = 1;
        abandon();
    }
    u = &E.threads[E.n];
    u->number = E.n;
    u->bit = UINT64_C(1) << E.n;
    own_entry(u);
    if (!spawn_ready(u))
        return -EAGAIN;
    drain(t);
    start_thread(u);
    u->fresh = 0;
    u->body = body;
    u->argument = argument;
    u->value = NULL;
    clock_copy(u->clock, t->clock);
    u->clock[u->number] = 1;
    clock_zero(u->x_clock);
    clock_zero(u->x_pending);
    clock_zero(u->x_fenced);
    if (E.x_used)
        clock_copy(u->x_clock, t->x_clock);
    u->fence_at = t->fence_at;
    clock_tick(t);
    t->own_stack = NOT_PRIVATE;   /* what it captured for the new thread lies there */
    get_library_state(&inherited);
    if (library.floats) {
        u->library.float_control = inherited.float_control;
        u->library.float_status = inherited.float_status;
    }
    u->fiber = fiber_prepare(u->stack + STACK_BYTES, spawned_entry);
    u->priority = (uint32_t)(draw() >> 33) % PCT_FIRST + PCT_FIRST;
    u->weight = 1;
    if (E.starting == E.n)
        E.starting++;
    E.n++;
    E.live++;
    E.unjoined++;
    E.ready |= u->bit;
    E.changes++;
    E.broken = 1;                 /* the fiber is not at its beginning in the next execution */
    E.touched_twice = 1;
    hash_step((uint64_t)u->number << 32 ^ 0xA000);
    if (E.recording)
        trace_event(t, OP_SPAWN, (uintptr_t)u->number + 1, 0, (uint64_t)u->number, pc);
    return u->number;
}

static int join_thread(Thread *t, uintptr_t handle, void **value, uint64_t pc)
{
    Thread *u;
    Object *o;
    if (unlikely(E.reducing))
        will_join(handle);
    announce(t, 0, 1);
    if (handle <= (uintptr_t)E.config.n_threads || handle > (uintptr_t)E.n)
        misuse(t, NULL, "a thread joins what is not a thread of this execution", pc);
    u = &E.threads[handle - 1];
    if (u == t)
        misuse(t, NULL, "a thread joins itself", pc);
    if (u->joined)
        misuse(t, NULL, "a thread is joined that was joined or detached before", pc);
    o = find_object(t, (void *)handle, OBJECT_THREAD);
    while (!u->done)
        wait_for(t, o, pc);
    if (unlikely(E.reducing))
        note_only(KEY_ENDS + (uintptr_t)u->number, TOUCH_OBJECT | TOUCH_READS | TOUCH_HARD);
    drain(u);
    u->joined = 1;
    E.unjoined--;
    clock_join(t->clock, u->clock);
    if (unlikely(E.x_used))
        learn_fences(t, u->x_clock, u->fence_at);
    hash_step((uint64_t)u->number << 32 ^ 0xB000);
    watch_reset(t);
    t->watch_lost = 1;
    if (value)
        *value = u->value;
    if (E.recording)
        trace_event(t, OP_JOIN, handle, 0, (uint64_t)u->number, pc);
    return 0;
}

/* Those that wait for the thread's end go on. */
static void wake_joiners(const Thread *t)
{
    for (uint32_t i = 0; i < n_objects; i++)
        if (objects[i].kind == OBJECT_THREAD && objects[i].address == (uintptr_t)t->number + 1)
            release_blocked(&objects[i], objects[i].blocked);
}

static int start_pthread(pthread_t *thread, void *(*body)(void *), void *argument, uint64_t pc)
{
    int number;
    if (!current->controlled) {
        fail_with(FAIL_CAPACITY, current, "create(), check() or destroy() starts a thread; the engine runs "
                                          "threads that an operation starts");
        abandon();
    }
    number = spawn(current, body, argument, pc);
    if (number < 0)
        return -number;
    *thread = (pthread_t)(number + 1);
    return 0;
}

static int detach(pthread_t thread)
{
    if (unlikely(E.reducing))
        note_object(KEY_ENDS + (uintptr_t)thread - 1);
    E.threads[thread - 1].joined = 1;
    return 0;
}

EXPORT int pml_checked_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                                      void *argument)
{
    return current ? start_pthread(thread, body, argument, PC) : pthread_create(thread, attributes, body, argument);
}

/* The main thread finds all threads at their ends. */
static int join_of_main(Thread *t, pthread_t handle, void **value, uint64_t pc)
{
    Thread *u = &E.threads[handle - 1];
    if (handle <= (pthread_t)E.config.n_threads || handle > (pthread_t)E.n)
        misuse(t, NULL, "a thread joins what is not a thread of this execution", pc);
    if (u->joined)
        misuse(t, NULL, "a thread is joined that was joined or detached before", pc);
    u->joined = 1;
    E.unjoined--;
    if (value)
        *value = u->value;
    return 0;
}

static int join_from(pthread_t thread, void **value, uint64_t pc)
{
    Thread *t = controlled();
    if (t)
        return join_thread(t, thread, value, pc);
    return current ? join_of_main(current, thread, value, pc) : pthread_join(thread, value);
}

EXPORT int __wrap_pthread_join(pthread_t thread, void **value) { return join_from(thread, value, PC); }

EXPORT int __wrap_pthread_detach(pthread_t thread)
{
    return current && thread - 1 < (pthread_t)E.n ? detach(thread) : pthread_detach(thread);
}

/* Ends a thread that the code under test started. Destructors of its local variables do not run. */
EXPORT __attribute__((noreturn)) void __wrap_pthread_exit(void *value)
{
    Thread *t = controlled();
    if (t == NULL && current == NULL)
        pthread_exit(value);
    if (t == NULL || t->number < E.config.n_threads)
        misuse(current, NULL, "an operation ends the thread that it was called in", PC);
    t->value = value;
    t->depth = 0;
    end_owned(t);
    thread_end(t);
    __builtin_unreachable();
}

/* std::thread: its state is an object with a virtual destructor and, third, a virtual _M_run; the
 * thread owns it. The std::thread itself is a pthread_t. */
static void *run_state(void *state)
{
    void (***methods)(void *) = state;
    (*methods)[2](state);
    (*methods)[1](state);
    return NULL;
}

EXPORT void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    pthread_t *thread, void **owned, void (*depends)(void))
{
    void *state = *owned;
    int error;
    (void)depends;
    *owned = NULL;
    error = current ? start_pthread(thread, run_state, state, PC) : pthread_create(thread, NULL, run_state, state);
    if (error)
        abort();
}

EXPORT void __wrap__ZNSt6thread4joinEv(pthread_t *thread)
{
    join_from(*thread, NULL, PC);
    *thread = 0;
}

EXPORT void __wrap__ZNSt6thread6detachEv(pthread_t *thread)
{
    __wrap_pthread_detach(*thread);
    *thread = 0;
}
