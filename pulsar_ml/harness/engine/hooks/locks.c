/* Blocking: mutexes and condition variables of the code under test, by address; read-write locks,
 * futexes and semaphores are in wraps_locks.c. They order memory as release and acquire do. A
 * thread that cannot go on leaves the ready set; with nobody left the execution is a deadlock,
 * explained by who waits for whom. */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

typedef enum {
    OBJECT_MUTEX, OBJECT_RWLOCK, OBJECT_CONDITION, OBJECT_SEMAPHORE, OBJECT_FUTEX, OBJECT_THREAD,
    OBJECT_ONCE, OBJECT_BARRIER, OBJECT_NOTED, OBJECT_INTERPRETER
} ObjectKind;

typedef struct {
    uintptr_t address;
    ObjectKind kind;
    int32_t owner;                /* -1: nobody; of a read-write lock, the writer */
    uint32_t count;               /* recursion, or the value of a semaphore */
    uint32_t last;                /* id of the last acquisition */
    uint32_t latest;  /* of the last step that others come behind in classes, see show_order() */
    uint64_t readers_seen;        /* mixed ids of the steps by which readers came and went */
    uint64_t readers;
    uint8_t reads[ENGINE_MOST_THREADS];   /* how often each of them holds it */
    uint64_t blocked;
    CLOCK(clock);
    CLOCK(readers_clock);   /* of those that read: they order only writers */
    /* The same of what seq_cst fences order, see Thread.x_clock. */
    CLOCK(x_clock);
    CLOCK(readers_x_clock);
    uint32_t fence_at, readers_fence_at;
} Object;

/* MUTEX_FOREIGN: a lock that any thread may give back, as Python's are. */
enum { MUTEX_PLAIN, MUTEX_RECURSIVE, MUTEX_CHECKS, MUTEX_FOREIGN };

SHARED Object objects[ENGINE_MOST_OBJECTS];
SHARED uint32_t n_objects;

static Object *find_object(Thread *t, const void *at, ObjectKind kind)
{
    uintptr_t address = (uintptr_t)at;
    Object *o = NULL;
    if (unlikely(E.reducing) && kind >= OBJECT_NOTED)
        give_up_reduction(UNREDUCED_OBJECTS);
    for (uint32_t i = 0; i < n_objects; i++) {
        if (objects[i].address == address && objects[i].kind == kind)
            return &objects[i];
        if (objects[i].address == 0 && o == NULL)
            o = &objects[i];
    }
    if (o) {
        *o = (Object){.address = address, .kind = kind, .owner = -1};
        return o;
    }
    if (n_objects == ENGINE_MOST_OBJECTS) {
        fail_with(FAIL_CAPACITY, t, "the execution uses more locks and conditions than the engine can follow");
        abandon();
    }
    o = &objects[n_objects++];
    *o = (Object){.address = address, .kind = kind, .owner = -1};
    return o;
}

static __attribute__((noreturn)) void misuse(Thread *t, const void *object, const char *what, uint64_t pc)
{
    EngineFailure *f = fail(FAIL_LOCK_MISUSE, t, (uintptr_t)object, pc);
    if (f)
        snprintf(f->message, sizeof f->message, "%s", what);
    abandon();
}

/* A lock's life ends, or begins anew: nobody may hold it or wait for it. */
static void forget_object(Thread *t, Object *o, uint64_t pc)
{
    if ((o->kind == OBJECT_MUTEX || o->kind == OBJECT_RWLOCK) && (o->owner >= 0 || o->readers))
        misuse(t, (void *)o->address, "a lock is destroyed while a thread holds it", pc);
    if (unlikely(E.reducing))
        note_object(o->address);
    if (t->controlled)
        observe_lock(t, (uint32_t)(o - objects));
    if (o->blocked && o->kind != OBJECT_FUTEX && o->kind != OBJECT_THREAD)
        misuse(t, (void *)o->address, "a lock or condition is destroyed while a thread waits for it", pc);
    if (o->blocked == 0)
        o->address = 0;
}

static void forget_objects(Thread *t, uintptr_t address, size_t bytes, uint64_t pc)
{
    for (uint32_t i = 0; i < n_objects; i++)
        if (objects[i].address && objects[i].address - address < bytes)
            forget_object(t, &objects[i], pc);
}

static __attribute__((noinline)) void explain_deadlock(void)
{
    static const char *const NAMES[] = {"mutex", "read-write lock", "condition", "semaphore", "futex", "thread end",
                                        "initialisation", "barrier", "annotation", "the interpreter's lock,"};
    char text[224];
    size_t at = 0;
    Thread *first = NULL;
    int blocked = 0;
    for (int i = 0; i < E.n && at < sizeof text; i++) {
        Thread *t = &E.threads[i];
        if (t->done)
            continue;
        if (first == NULL)
            first = t;
        if (t->blocked_on != NONE) {
            const Object *o = &objects[t->blocked_on];
            blocked = 1;
            if (o->kind == OBJECT_THREAD)
                at += (size_t)snprintf(text + at, sizeof text - at, "%sthread %d waits for the end of thread %u",
                                       at ? "; " : "", i, (unsigned)o->address - 1);
            else
                at += (size_t)snprintf(text + at, sizeof text - at, "%sthread %d waits for %s %u", at ? "; " : "",
                                       i, NAMES[o->kind], t->blocked_on);
            if (o->owner >= 0 && at < sizeof text)
                at += (size_t)snprintf(text + at, sizeof text - at, " held by thread %d", o->owner);
            if (o->readers && at < sizeof text)
                at += (size_t)snprintf(text + at, sizeof text - at, " held by reader %d", __builtin_ctzll(o->readers));
        } else {
            at += (size_t)snprintf(text + at, sizeof text - at,
                                   "%sthread %d spins on what nobody changes", at ? "; " : "", i);
        }
    }
    if (first)
        fail_waiting(blocked ? FAIL_DEADLOCK : FAIL_LIVELOCK, first, text);
    for (int i = 0; blocked && E.failure.kind == FAIL_DEADLOCK && i < E.n; i++) {
        const Thread *t = &E.threads[i];
        if (!t->done && t->blocked_on != NONE && objects[t->blocked_on].kind != OBJECT_THREAD)
            E.failure.waits_for[i] = objects[t->blocked_on].address;
    }
}

/* Classes show behind which step of the object this one comes. */
static void show_order(const Thread *t, const Object *o)
{
    E.class_hash += mix64((uint64_t)o->latest << 32 | t->step);
}

/* And how a wait or an attempt ended, where it is not by its success. */
static void show_end(const Thread *t, const Object *o, int error)
{
    show_order(t, o);
    E.class_hash += o->readers_seen ? mix64(o->readers_seen ^ t->step) : 0;
    E.class_hash += mix64(~((uint64_t)t->step << 32 | (uint64_t)error << 1 | (o->owner >= 0)));
}

/* The wait or attempt ends by its deadline. */
static void show_late(const Thread *t, Object *o)
{
    show_end(t, o, ETIMEDOUT);
    if (o->kind == OBJECT_CONDITION)
        o->latest = ~t->step;
}

/* And which notification ended a wait. */
static void show_wake(const Thread *t, const Thread *waiter)
{
    E.class_hash += mix64(mix64(t->step) ^ waiter->step);
}

/* The deadline ends the thread's wait for its object; a wake-up goes to another one. */
static void leave_object(Thread *t)
{
    if (t->blocked_on != NONE) {
        objects[t->blocked_on].blocked &= ~t->bit;
        show_late(t, &objects[t->blocked_on]);
    }
}

/* The step empties the thread's buffer or does not, depending on what it finds. */
static inline void may_drain(const Thread *t)
{
    if (unlikely(E.reducing) && t->buffer_count)
        give_up_reduction(UNREDUCED_BUFFERS);
}

static void wait_for(Thread *t, Object *o, uint64_t pc)
{
    t->blocked_at = pc;
    o->blocked |= t->bit;
    t->blocked_on = (uint32_t)(o - objects);
    drain(t);
    block(t);
    t->blocked_on = NONE;
    if (unlikely(E.reducing) && o->kind != OBJECT_CONDITION && o->kind != OBJECT_THREAD)
        note_object(o->address);
}

/* Those that wait until a deadline at most are woken by something else, or a thread sets the
 * clock: the order matters. */
static __attribute__((noinline)) void note_woken(uint64_t which)
{
    for (uint64_t rest = E.timed & which; rest; rest &= rest - 1)
        note_deadline(E.threads[__builtin_ctzll(rest)].deadline);
}

static __attribute__((noinline)) void note_clock(int64_t now)
{
    note_time(E.now_ns, now);
    depend_on_time(0);
    for (uint64_t rest = E.timed; rest; rest &= rest - 1) {
        const Thread *t = &E.threads[__builtin_ctzll(rest)];
        if (t->deadline <= now && t->blocked_on != NONE)
            note_object(objects[t->blocked_on].address);
    }
}

static void release_blocked(Object *o, uint64_t which)
{
    if (unlikely(E.reducing))
        note_woken(which);
    o->blocked &= ~which;
    E.ready |= which;
    E.timed &= ~which;
    E.changes++;
}

static void acquire_object(Thread *t, const Object *o)
{
    clock_join(t->clock, o->clock);
    if (unlikely(E.x_used))
        learn_fences(t, o->x_clock, o->fence_at);
}

static void acquire_readers(Thread *t, const Object *o)
{
    clock_join(t->clock, o->readers_clock);
    if (unlikely(E.x_used))
        learn_fences(t, o->readers_x_clock, o->readers_fence_at);
}

static void acquired(Thread *t, Object *o, EngineOp op, uint64_t pc)
{
    uint32_t id = t->step;
    drain(t);  /* taken by an atomic exchange, which under TSO empties the buffer */
    acquire_object(t, o);
    E.hooks++;
    show_order(t, o);
    if (o->kind != OBJECT_RWLOCK || o->owner >= 0)
        o->latest = id;
    else
        o->readers_seen += mix64(id);
    o->last = id;
    if (unlikely(E.reducing) && (o->kind != OBJECT_MUTEX || o->count == 1))
        note_acquired(o->address, o->kind == OBJECT_RWLOCK && o->owner < 0);
    hash_step((uint64_t)(o - objects) << 40 ^ (uint64_t)(t->number + 1) << 32 ^ 0x8000);
    watch_reset(t);
    t->watch_lost = 1;
    if (E.recording)
        trace_event(t, op, o->address, 0, 0, pc);
}

static void released(Thread *t, Object *o, uint32_t *clock, EngineOp op, uint64_t pc)
{
    clock_join(clock, t->clock);
    if (unlikely(E.reducing) && clock == o->readers_clock)
        note_readers(o->address, TOUCH_WRITES | TOUCH_TOGETHER);
    else if (unlikely(E.reducing))
        note_object(o->address);
    if (unlikely(E.x_used)) {
        int reads = clock == o->readers_clock;
        uint32_t *fence_at = reads ? &o->readers_fence_at : &o->fence_at;
        clock_join(reads ? o->readers_x_clock : o->x_clock, t->x_clock);
        if (t->fence_at > *fence_at)
            *fence_at = t->fence_at;
    }
    clock_tick(t);
    E.changes++;
    if (E.recording)
        trace_event(t, op, o->address, 0, 0, pc);
}

/* A thread that shares no location but shares a lock was exercised as well. */
static void lock_touched(const Object *o, const Thread *t)
{
    if (o->last && (int)(o->last >> 26) != t->number)
        E.touched_twice = 1;
}

static int may_expire(Thread *t);

/* A search with reduction offers no thread that would wait for it. */
static inline int waits_unoffered(const Object *o)
{
    return o->kind == OBJECT_MUTEX || o->kind == OBJECT_RWLOCK || o->kind == OBJECT_SEMAPHORE;
}

/* A choice, but not where a search with reduction offers no thread that would wait for the lock. */
static int may_end_now(Thread *t, const Object *o)
{
    if (likely(!E.reducing) || !waits_unoffered(o))
        return may_expire(t);
    if (unlikely(E.recording) && !reduction.stuck)
        decision_made(t, CHOOSE_TIMEOUT, 1);
    return !reduction.stuck;
}

/* The deadline has passed, or passes now as a fault. A loop of such waits lets others go first. */
static int too_late(Thread *t, Object *o, int64_t until)
{
    t->woken = 0;
    if (until == FOREVER)
        return 0;
    if (unlikely(E.reducing) && !(E.config.faults & FAULT_TIMEOUT && waits_unoffered(o)))
        note_deadline(until);
    if (until <= E.now_ns) {
        show_late(t, o);
        t->late = 1;
        turn_over(t, 0);
        return 1;
    }
    if (!(E.config.faults & FAULT_TIMEOUT) || !may_end_now(t, o))
        return 0;
    reduction.expires = 1;
    clock_to(until);
    reduction.expires = 0;
    show_late(t, o);
    return 1;
}

/* Waits for the object, until then at most. Whether the deadline ended the wait. */
static int wait_in_time(Thread *t, Object *o, int64_t until, uint64_t pc)
{
    t->woken = 0;
    if (until != FOREVER)
        wait_until(t, until);
    wait_for(t, o, pc);
    return t->woken == 2;
}

/* 0, or ETIMEDOUT. */
static int wait_for_lock(Thread *t, Object *o, int64_t until, uint64_t pc)
{
    return too_late(t, o, until) || wait_in_time(t, o, until, pc) ? ETIMEDOUT : 0;
}

/* The thread did not get the object: this error says why. Returns the error. */
static int not_taken(Thread *t, const Object *o, int error, uint64_t pc)
{
    if (error != ETIMEDOUT) {
        show_end(t, o, error);
        hash_step((uint64_t)(o - objects) << 40 ^ 0x8100);
    }
    if (unlikely(E.recording)) {
        int32_t at = trace_event(t, OP_LOCK, o->address, 0, error == ETIMEDOUT, pc);
        if (at >= 0)
            events[at].failed = 1;
    }
    return error;
}

static inline void change_lock_before(Thread *t, const void *lock, uint64_t pc);

static int given_up(Thread *t, const Object *o, uint64_t pc)
{
    if (unlikely(E.reducing))
        note_given_up(o->address, t->woken == 2);
    return not_taken(t, o, ETIMEDOUT, pc);
}

/* 0, or what pthread_mutex_lock returns for its kind. */
static int mutex_lock(Thread *t, const void *mutex, int kind, int64_t until, uint64_t pc)
{
    Object *o;
    change_lock_before(t, mutex, pc);
    if (unlikely(E.reducing))
        will_lock((uintptr_t)mutex, USE_MUTEX, until);
    announce(t, (uintptr_t)mutex, 1);
    o = find_object(t, mutex, OBJECT_MUTEX);
    if (until != FOREVER)
        observe_lock(t, (uint32_t)(o - objects));
    if (o->owner == t->number && kind == MUTEX_CHECKS)
        return EDEADLK;
    if (o->owner == t->number && kind != MUTEX_RECURSIVE && until == FOREVER)
        misuse(t, mutex, "a thread locks a mutex that it already holds", pc);
    while (o->owner >= 0 && (o->owner != t->number || kind != MUTEX_RECURSIVE))
        if (wait_for_lock(t, o, until, pc))
            return given_up(t, o, pc);
    if (unlikely(E.reducing) && until != FOREVER)
        note_emptied(t);
    o->owner = t->number;
    o->count++;
    lock_touched(o, t);
    acquired(t, o, OP_LOCK, pc);
    return 0;
}

static int mutex_trylock(Thread *t, const void *mutex, int kind, uint64_t pc)
{
    Object *o;
    change_lock_before(t, mutex, pc);
    will_try();
    announce(t, (uintptr_t)mutex, 1);
    o = find_object(t, mutex, OBJECT_MUTEX);
    observe_lock(t, (uint32_t)(o - objects));
    if (o->owner >= 0 && !(kind == MUTEX_RECURSIVE && o->owner == t->number)) {
        if (unlikely(E.reducing))
            note_failed((uintptr_t)mutex, 1);
        return not_taken(t, o, EBUSY, pc);
    }
    if (unlikely(E.reducing))
        note_emptied(t);
    o->owner = t->number;
    o->count++;
    lock_touched(o, t);
    acquired(t, o, OP_LOCK, pc);
    return 0;
}

/* The mutex is free; under TSO this empties the buffer. */
static void give_back(Thread *t, Object *o, uint64_t pc)
{
    drain(t);
    o->count = 0;
    o->owner = -1;
    released(t, o, o->clock, OP_UNLOCK, pc);
    release_blocked(o, o->blocked);
}

/* Unlocking is a step of its own, see unlocking.c. Under TSO stores are held back until here. */
static int mutex_unlock(Thread *t, const void *mutex, int kind, uint64_t pc)
{
    Object *o = find_object(t, mutex, OBJECT_MUTEX);
    if (o->owner != t->number && kind == MUTEX_CHECKS)
        return EPERM;
    if (o->owner != t->number && kind != MUTEX_FOREIGN)
        misuse(t, mutex, "a thread unlocks a mutex that it does not hold", pc);
    if (o->owner < 0)
        misuse(t, mutex, "a thread unlocks a lock that nobody holds", pc);
    if (o->count > 1) {
        o->count--;
        return 0;
    }
    will_drain();
    if (kind == MUTEX_FOREIGN)
        announce(t, (uintptr_t)mutex, 1);
    else
        announce_unlock(t, (uint32_t)(o - objects), (uintptr_t)mutex);
    if (o->owner < 0)
        misuse(t, mutex, "a thread unlocks a lock that nobody holds", pc);
    give_back(t, o, pc);
    return 0;
}

/* 0, or ETIMEDOUT. Giving the mutex back and beginning to wait are one step. */
static int condition_wait(Thread *t, const void *condition, const void *mutex, int64_t until, uint64_t pc)
{
    Object *o, *held;
    int spurious, late = 0;
    will_drain();
    announce(t, (uintptr_t)condition, 1);
    o = find_object(t, condition, OBJECT_CONDITION);
    spurious = E.config.faults & FAULT_SPURIOUS && choose(t, CHOOSE_SPURIOUS, 2);
    held = find_object(t, mutex, OBJECT_MUTEX);
    if (held->owner != t->number)
        misuse(t, mutex, "a thread unlocks a mutex that it does not hold", pc);
    if (held->count > 1)
        held->count--;
    else
        give_back(t, held, pc);
    show_order(t, o);
    if (spurious)
        E.class_hash += mix64(~mix64(t->step));
    o->latest = t->step;
    if (!spurious)
        late = too_late(t, o, until) || wait_in_time(t, o, until, pc);
    mutex_lock(t, mutex, MUTEX_PLAIN, FOREVER, pc);
    return late ? ETIMEDOUT : 0;
}

static int wake_some(Thread *t, const void *at, ObjectKind kind, uint32_t most, uint64_t pc)
{
    Object *o;
    int woken = 0;
    if (kind == OBJECT_FUTEX)
        will_drain();
    announce(t, (uintptr_t)at, 1);
    if (kind == OBJECT_FUTEX)
        drain(t);                 /* a system call, so a barrier; notifying nobody is none */
    o = find_object(t, at, kind);
    while (o->blocked && most--) {
        uint32_t n = (uint32_t)__builtin_popcountll(o->blocked);
        uint32_t which = most == 0 && n > 1 ? choose(t, CHOOSE_WAITER, n) : 0;
        show_wake(t, nth_thread(o->blocked, which));
        release_blocked(o, nth_thread(o->blocked, which)->bit);
        woken++;
    }
    show_order(t, o);
    if (woken)
        o->latest = t->step;
    else if (unlikely(E.reducing))
        note_failed((uintptr_t)at, 1);
    hash_step((uint64_t)(o - objects) << 40 ^ (uint64_t)(t->number + 1) << 32 ^ 0x9000);
    if (E.recording)
        trace_event(t, OP_WAKE, (uintptr_t)at, 0, (uint64_t)woken, pc);
    return woken;
}
