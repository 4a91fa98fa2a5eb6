/* Python threads: the functions by which pulsar_ml/harness/pythreads makes threads of the
 * interpreter fibers of an execution. The caller names places of code, because its callers are not
 * native, and calls in with the interpreter's lock held by the engine's thread of the system.
 *
 * A function that ends the execution does not return to its caller; the caller sees to its fibers
 * when the engine calls `after` behind the execution. */

#include "pulsar_ml/harness/pythreads/fibers.h"

/* Calls `after` behind each execution from now on; NULL: no more. Signals of the system are not
 * taken for failures meanwhile: the interpreter's state would not survive to leave it anywhere.
 * `orders`: the interpreter's lock orders what its holders do. */
EXPORT void pml_python_attach(void (*after)(int ended), void (*enter)(int number), void *(*state)(int number),
                              int (*exhausted)(uintptr_t address), int orders)
{
    python.after = after;
    python.enter = enter;
    python.state = state;
    python.exhausted = exhausted;
    python.orders = (uint8_t)orders;
}

/* The address that stands for the interpreter's lock in a trace. */
EXPORT uintptr_t pml_python_lock(void) { return (uintptr_t)&python; }

/* The interpreter gives out this memory. Accesses to an object that was there before are nothing
 * to the new one: the interpreter's allocator orders them, whatever thread it hands memory to. */
EXPORT void pml_python_allocated(uintptr_t address, size_t bytes)
{
    if (likely(!python.sections))
        return;
    if (bytes / 8 > E.n_variables) {
        for (uint32_t i = 0; i < E.n_variables; i++)
            if (E.variables[i].address - address < bytes)
                forget_accesses(&E.variables[i]);
        return;
    }
    for (uintptr_t at = address & ~(uintptr_t)7; at < address + bytes; at += 8) {
        const Cell *cell = find_cell(at);
        if (cell_used(cell))
            for (uint32_t i = cell->first; i != NO_VARIABLE; i = E.variables[i].next)
                forget_accesses(&E.variables[i]);
    }
}

/* An execution begins. */
EXPORT void pml_python_start(void) { lock_reset(); }

/* What the running thread does is no step from now on, or it is again. */
EXPORT void pml_python_quiet(int on)
{
    if (on)
        current->controlled = 0;
    else
        current->controlled = E.control | HOLDS_LOCK;
}

/* A thread begins, with this stack: it waits for the interpreter's lock. */
EXPORT void pml_python_begin(char *top)
{
    Thread *t = current;
    t->own_stack = (uintptr_t)top - STACK_BYTES;
    t->controlled |= HOLDS_LOCK;
    take_lock(t, 0);
}

/* A thread ends. */
EXPORT void pml_python_end(void) { offer_lock(current); }

/* The running thread of the program; -1 outside. */
EXPORT int pml_python_number(void) { return current && current->controlled ? current->number : -1; }

EXPORT int pml_python_recording(void) { return E.recording; }

EXPORT uint64_t pml_python_random(void) { return next_random(); }

EXPORT int64_t pml_python_clock(int step)
{
    return step && current && current->controlled ? read_clock(current) : E.now_ns;
}

/* A step at which others may go first, and nothing else. */
EXPORT void pml_python_point(uintptr_t address, int writes)
{
    Thread *t = current;
    E.hooks++;
    if (unlikely(E.reducing))
        give_up_reduction(UNREDUCED_PYTHON);
    offer_lock(t);
    announce(t, address, writes);
    take_lock(t, 0);
}

/* Beside native code in another memory model: a variable of Python has its newest value for all. */
static __attribute__((noinline)) void sequential_access(Thread *t, uintptr_t address, int writes, uint64_t value,
                                                        uint64_t pc)
{
    int32_t mode = E.config.mode;
    uint8_t common = E.common;
    E.config.mode = MODE_SC;
    E.common = 0;
    if (writes)
        any_store64(t, address, value, __ATOMIC_RELAXED, pc);
    else
        any_load64(t, address, __ATOMIC_RELAXED, pc);
    E.config.mode = mode;
    E.common = common;
}

/* A step that reads or writes the eight bytes at `address`, which stand for a variable of Python;
 * it orders nothing. `shadow`: bytes for the detector of races, or 0. */
EXPORT void pml_python_access(uintptr_t address, uintptr_t shadow, int writes, uint64_t value, uint64_t pc)
{
    Thread *t = current;
    int ends;
    E.hooks++;
    if (unlikely(E.reducing))
        give_up_reduction(UNREDUCED_PYTHON);
    offer_lock(t);
    ends = t->controlled & CHANGES_CODE && change_before(t, pc);
    announce(t, address, writes);
    take_lock(t, pc);
    if (shadow)
        plain_bytes(t, shadow, 8, writes ? OP_WRITE : OP_READ, pc);
    if (unlikely(E.config.mode != MODE_SC))
        sequential_access(t, address, writes, value, pc);
    else if (writes)
        any_store64(t, address, value, __ATOMIC_RELAXED, pc);
    else
        any_load64(t, address, __ATOMIC_RELAXED, pc);
    if (unlikely(ends)) {
        offer_lock(t);
        let_go(t);
        take_lock(t, pc);
    }
}

/* The thread holds a lock, or got what another thread released at this address. */
EXPORT void pml_python_acquired(uintptr_t address, int owned, uint64_t pc)
{
    Thread *t = current;
    Object *o = find_object(t, (void *)address, OBJECT_MUTEX);
    if (owned)
        o->owner = t->number;
    lock_touched(o, t);
    acquired(t, o, OP_LOCK, pc);
}

/* What the thread did so far is known to whoever acquires at this address; those that wait there
 * look again. */
EXPORT void pml_python_released(uintptr_t address, uint64_t pc)
{
    Thread *t = current;
    Object *o = find_object(t, (void *)address, OBJECT_MUTEX);
    o->owner = -1;
    lock_touched(o, t);
    released(t, o, o->clock, OP_UNLOCK, pc);
    if (o->blocked)
        release_blocked(o, o->blocked);
}

/* Waits until a thread releases at this address, for `span` nanoseconds at most (negative: for
 * ever). 0 when the time was over. `deadline` keeps the end of the wait between calls; 0 at
 * first. */
EXPORT int pml_python_wait(uintptr_t address, int64_t span, int64_t *deadline, uint64_t pc)
{
    Thread *t = current;
    Object *o = find_object(t, (void *)address, OBJECT_MUTEX);
    int in_time;
    if (*deadline == 0)
        *deadline = span < 0 ? FOREVER : later(span);
    offer_lock(t);
    in_time = wait_for_lock(t, o, *deadline, pc) == 0;
    take_lock(t, pc);
    return in_time;
}

/* A sleep may end before the threads that run have gone on: its span is no promise to them. */
EXPORT void pml_python_sleep(int64_t span)
{
    Thread *t = current;
    int64_t until = later(span);
    offer_lock(t);
    if (span > 0 && (E.ready & ~t->bit) && !profile.learning && choose(t, CHOOSE_SLEEP, 2)) {
        clock_to(until);
        turn_over(t, 0);
    } else {
        turn_over(t, until);
    }
    take_lock(t, 0);
}

/* Starts body(argument) as a thread that has this stack; its number. */
EXPORT int pml_python_spawn(void *(*body)(void *), void *argument, char *top, uint64_t pc)
{
    Thread *t = current;
    int number;
    offer_lock(t);
    number = spawn(t, body, argument, pc);
    take_lock(t, pc);
    if (number >= 0)
        E.threads[number].fiber = fiber_prepare(top, spawned_entry);
    return number;
}

/* Waits for the end of a thread, which many may do. 0 when the time was over. */
EXPORT int pml_python_join(int number, int64_t span, uint64_t pc)
{
    Thread *t = current, *u = &E.threads[number];
    Object *o;
    int64_t until = span < 0 ? FOREVER : later(span);
    int late = 0;
    offer_lock(t);
    announce(t, 0, 1);
    o = find_object(t, (void *)((uintptr_t)number + 1), OBJECT_THREAD);
    while (!u->done && !late)
        late = wait_for_lock(t, o, until, pc) != 0;
    take_lock(t, pc);
    if (late)
        return 0;
    if (!u->joined) {
        u->joined = 1;
        E.unjoined--;
    }
    clock_join(t->clock, u->clock);
    hash_step((uint64_t)u->number << 32 ^ 0xB000);
    watch_reset(t);
    t->watch_lost = 1;
    if (E.recording)
        trace_event(t, OP_JOIN, (uintptr_t)number + 1, 0, (uint64_t)number, pc);
    return 1;
}

EXPORT int pml_python_ended(int number) { return E.threads[number].done; }

/* The stack of the running thread, from the outside in, for a failure that follows. */
EXPORT void pml_python_stack(const uint64_t *places, int n)
{
    for (int i = 0; i < n && i < FRAMES; i++)
        current->frames[i] = (uintptr_t)places[i];
    current->depth = (uint32_t)(n < FRAMES ? n : FRAMES);
}

/* Ends the execution with a failure of the running thread. */
EXPORT void pml_python_fail(int kind, const char *rule, const char *message)
{
    static const EngineEnd KINDS[] = {FAIL_INVARIANT, FAIL_ASSERTION, FAIL_UNCONTROLLED};
    Thread *t = current;
    uint64_t pc = 0;
    EngineFailure *f;
    if (t->depth)
        pc = t->frames[--t->depth % FRAMES];
    f = fail(KINDS[kind], t, 0, pc);
    if (f) {
        snprintf(f->invariant, sizeof f->invariant, "%s", rule);
        snprintf(f->message, sizeof f->message, "%s", message);
    }
    abandon();
}

/* Ends the execution without a failure, whatever threads are left. */
EXPORT void pml_python_complete(void) { abandon(); }

/* The lock at this address is no more. */
EXPORT void pml_python_forget(uintptr_t address)
{
    for (uint32_t i = 0; i < n_objects; i++)
        if (objects[i].address == address && objects[i].kind == OBJECT_MUTEX && objects[i].blocked == 0)
            objects[i].address = 0;
}

/* Runs body() of a thread of the program on a stack of its own. */
SHARED struct { Fiber outer; void (*body)(void); char *top; } other_stacks[ENGINE_MOST_THREADS];

static void on_other_stack(void)
{
    Fiber unused;
    int number = current->number;
    pml_python_begin(other_stacks[number].top);
    other_stacks[number].body();
    fiber_switch(&unused, &other_stacks[number].outer);
    __builtin_unreachable();
}

EXPORT void pml_python_on_stack(char *top, void (*body)(void))
{
    Fiber inner = fiber_prepare(top, on_other_stack);
    int number = current->number;
    other_stacks[number].body = body;
    other_stacks[number].top = top;
    fiber_switch(&other_stacks[number].outer, &inner);
}
