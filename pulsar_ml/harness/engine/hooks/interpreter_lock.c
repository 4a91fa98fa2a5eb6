/* The interpreter's lock in executions of Python threads. A thread that runs Python offers it at
 * each of its steps and wherever it waits; native code keeps it until PyEval_SaveThread(). Checked
 * modules come here by the linker (building/checked.py), so that sections without the lock run
 * beside the other threads, step by step. */

/* Of CPython, if this process has it. */
extern void PyEval_RestoreThread(void *) __attribute__((weak));
extern int PyGILState_Ensure(void) __attribute__((weak));
extern void PyGILState_Release(int) __attribute__((weak));

enum { STATE_LOCKED, STATE_UNLOCKED };   /* as PyGILState_STATE */

static int python_threads(void) { return python.after != NULL; }

static void lock_reset(void)
{
    python.holder = python.last = NOBODY;
    python.outside = python.waiting = 0;
    python.sections = 0;
    clock_zero(python.clock);
}

static __attribute__((noinline)) void wake_waiting(Thread *t)
{
    Object *o = find_object(t, &python, OBJECT_INTERPRETER);
    python.waiting = 0;
    release_blocked(o, o->blocked);
}

/* Other threads may take the lock from now on. */
static inline void offer_lock(Thread *t)
{
    python.holder = NOBODY;
    python.last = t->number;
    if (unlikely(python.waiting))
        wake_waiting(t);
}

/* What the holder before this thread did is known to this thread. A holder that offered the lock
 * made no step since. */
static __attribute__((noinline)) void learn_from_last(Thread *t)
{
    if (python.last == NOBODY) {
        clock_join(t->clock, python.clock);
    } else {
        Thread *last = &E.threads[python.last];
        clock_join(t->clock, last->clock);
        if (unlikely(E.x_used))
            learn_fences(t, last->x_clock, last->fence_at);
        clock_tick(last);
    }
    python.last = t->number;
}

static __attribute__((noinline)) void wait_for_interpreter(Thread *t, uint64_t pc)
{
    while (python.holder != NOBODY) {
        Object *o = find_object(t, &python, OBJECT_INTERPRETER);
        o->owner = python.holder;
        python.waiting |= t->bit;
        wait_for(t, o, pc);
    }
}

/* Returns when the thread holds the lock. */
static inline void take_lock(Thread *t, uint64_t pc)
{
    if (unlikely(python.holder != NOBODY))
        wait_for_interpreter(t, pc);
    python.holder = t->number;
    if (python.orders && python.last != t->number)
        learn_from_last(t);
}

/* Native code gives the lock back. */
static void leave_interpreter(Thread *t, uint64_t pc)
{
    drain(t);
    offer_lock(t);
    if (python.orders) {
        clock_copy(python.clock, t->clock);
        clock_tick(t);
        python.last = NOBODY;     /* the thread goes on, so its own clock does */
    }
    t->controlled &= (uint8_t)~HOLDS_LOCK;
    python.outside |= t->bit;
    python.sections = 1;
    if (E.recording)
        trace_event(t, OP_UNLOCK, (uintptr_t)&python, 0, 0, pc);
}

/* Native code wants the lock: a step, so that sections of other threads come before it. */
static void enter_interpreter(Thread *t, uint64_t pc)
{
    change_lock_before(t, &python, pc);
    announce(t, (uintptr_t)&python, 1);
    take_lock(t, pc);
    drain(t);
    python.outside &= ~t->bit;
    t->controlled |= HOLDS_LOCK;
    python.enter(t->number);
    if (E.recording)
        trace_event(t, OP_LOCK, (uintptr_t)&python, 0, 0, pc);
}

EXPORT void *__wrap_PyEval_SaveThread(void)
{
    Thread *t = controlled();
    if (t == NULL || !python_threads())
        return PyEval_SaveThread();
    if (!(t->controlled & HOLDS_LOCK))
        misuse(t, NULL, "a thread gives the interpreter's lock back that it does not hold", PC);
    leave_interpreter(t, PC);
    return python.state(t->number);
}

EXPORT void __wrap_PyEval_RestoreThread(void *state)
{
    Thread *t = controlled();
    if (t == NULL || !python_threads()) {
        PyEval_RestoreThread(state);
        return;
    }
    if (!(python.outside & t->bit))
        misuse(t, NULL, "a thread takes the interpreter's lock that it holds", PC);
    enter_interpreter(t, PC);
}

EXPORT int __wrap_PyGILState_Ensure(void)
{
    Thread *t = controlled();
    if (t == NULL || !python_threads())
        return PyGILState_Ensure();
    if (t->controlled & HOLDS_LOCK)
        return STATE_LOCKED;
    if (!(python.outside & t->bit)) {
        fail_with(FAIL_UNCONTROLLED, t, "a thread that native code started takes the interpreter's lock, which is "
                                        "not followed; start it by threading.Thread");
        abandon();
    }
    enter_interpreter(t, PC);
    return STATE_UNLOCKED;
}

EXPORT void __wrap_PyGILState_Release(int state)
{
    Thread *t = controlled();
    if (t == NULL || !python_threads())
        PyGILState_Release(state);
    else if (state == STATE_UNLOCKED)
        leave_interpreter(t, PC);
}

EXPORT int __wrap_PyGILState_Check(void)
{
    Thread *t = controlled();
    if (t == NULL || !python_threads())
        return PyGILState_Check();
    return (t->controlled & HOLDS_LOCK) != 0;
}
