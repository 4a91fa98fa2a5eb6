/* Things that happen once or together: guards of static locals, pthread_once, barriers; and the
 * locks inside libstdc++ and CPython that headers call: of atomic operations on shared_ptr, of
 * futures, PyMutex. */

/* Guards and once flags
 * ----------------------------------------------------------------------------- */

/* 1: the caller initialises, and once_leave() ends that; 0: somebody did, whose work the caller
 * sees. */
static int once_enter(Thread *t, const void *at, int (*is_done)(const void *), uint64_t pc)
{
    Object *o;
    change_lock_before(t, at, pc);
    announce(t, (uintptr_t)at, 1);
    o = find_object(t, at, OBJECT_ONCE);
    if (unlikely(E.reducing))
        note_object(KEY_ONCE);
    while (!is_done(at)) {
        if (o->owner < 0) {
            o->owner = t->number;
            acquired(t, o, OP_LOCK, pc);
            return 1;
        }
        if (o->owner == t->number)
            misuse(t, at, "an initialisation that happens once waits for itself", pc);
        wait_for(t, o, pc);
    }
    lock_touched(o, t);
    acquire_object(t, o);
    watch_reset(t);
    t->watch_lost = 1;
    hash_step((uint64_t)(o - objects) << 40 ^ (uint64_t)(t->number + 1) << 32 ^ 0xC000);
    return 0;
}

static void once_leave(Thread *t, const void *at, uint64_t pc)
{
    Object *o = find_object(t, at, OBJECT_ONCE);
    if (unlikely(E.reducing))
        note_object(KEY_ONCE);
    drain(t);
    o->owner = -1;
    released(t, o, o->clock, OP_UNLOCK, pc);
    release_blocked(o, o->blocked);
}

static int guard_is_done(const void *guard) { return *(const volatile uint8_t *)guard; }

EXPORT int __wrap___cxa_guard_acquire(uint8_t *guard)
{
    static int (*real)(uint8_t *);
    Thread *t = controlled();
    if (t)
        return once_enter(t, guard, guard_is_done, PC);
    if (current == NULL && (real || (*(void **)&real = cxx_symbol("__cxa_guard_acquire")) != NULL))
        return real(guard);
    return *guard == 0;
}

EXPORT void __wrap___cxa_guard_release(uint8_t *guard)
{
    static void (*real)(uint8_t *);
    Thread *t = controlled();
    if (current == NULL && (real || (*(void **)&real = cxx_symbol("__cxa_guard_release")) != NULL)) {
        real(guard);
        return;
    }
    if (current)
        set_back_at_end(guard, 1);
    if (t == NULL) {
        *guard = 1;
        return;
    }
    /* The code reads the guard's first byte itself, with acquire, before it calls. */
    announce(t, (uintptr_t)guard, 1);
    rare_store(t, (uintptr_t)guard, 1, __ATOMIC_RELEASE, PC, 1, 0);
    drain(t);
    once_leave(t, guard, PC);
}

EXPORT void __wrap___cxa_guard_abort(uint8_t *guard)
{
    static void (*real)(uint8_t *);
    Thread *t = controlled();
    if (t)
        once_leave(t, guard, PC);
    else if (current == NULL && (real || (*(void **)&real = cxx_symbol("__cxa_guard_abort")) != NULL))
        real(guard);
}

enum { ONCE_DONE = 2 };           /* as in glibc */

static int once_is_done(const void *control) { return *(const volatile int *)control == ONCE_DONE; }

typedef struct { Thread *thread; int *control; uint64_t pc; int returned; } OnceCall;

/* Also runs when an exception leaves the routine: then the next caller initialises. */
static void once_left(OnceCall *call)
{
    if (call->returned) {
        *call->control = ONCE_DONE;
        set_back_at_end(call->control, sizeof *call->control);
    }
    if (call->thread)
        once_leave(call->thread, call->control, call->pc);
}

/* std::call_once hands its function over in two variables of libstdc++, which other fibers use
 * meanwhile. */
static int call_once_only(int *control, void (*routine)(void), uint64_t pc)
{
    Thread *t = controlled();
    void *callable = *library.once_callable, *call = *library.once_call;
    if (t ? !once_enter(t, control, once_is_done, pc) : once_is_done(control))
        return 0;
    *library.once_callable = callable;
    *library.once_call = call;
    OnceCall once __attribute__((cleanup(once_left))) = {t, control, pc, 0};
    routine();
    once.returned = 1;
    return 0;
}

EXPORT int __wrap_pthread_once(pthread_once_t *control, void (*routine)(void))
{
    return current ? call_once_only(control, routine, PC) : pthread_once(control, routine);
}

EXPORT void __wrap_call_once(int *control, void (*routine)(void))
{
    if (current)
        call_once_only(control, routine, PC);
    else
        pthread_once(control, routine);
}

/* Barriers
 * ------------------------------------------------------------------------------------------ */

/* glibc keeps how many threads meet in the third word. */
static uint32_t barrier_needs(const pthread_barrier_t *barrier) { return ((const uint32_t *)barrier)[2]; }

static int barrier_wait(Thread *t, const pthread_barrier_t *barrier, uint64_t pc)
{
    Object *o;
    will_drain();
    announce(t, (uintptr_t)barrier, 1);
    drain(t);
    o = find_object(t, barrier, OBJECT_BARRIER);
    lock_touched(o, t);
    released(t, o, o->clock, OP_WAIT, pc);
    if (++o->count < barrier_needs(barrier)) {
        wait_for(t, o, pc);
        acquired(t, o, OP_WAIT, pc);
        return 0;
    }
    /* The round is complete: each knows what all did before it, and nothing of the next round. */
    for (uint64_t rest = o->blocked; rest; rest &= rest - 1)
        acquire_object(&E.threads[__builtin_ctzll(rest)], o);
    acquired(t, o, OP_WAIT, pc);
    clock_zero(o->clock);
    o->count = 0;
    release_blocked(o, o->blocked);
    return PTHREAD_BARRIER_SERIAL_THREAD;
}

EXPORT int __wrap_pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attributes, unsigned count)
{
    forget_at(b, sizeof *b, PC);
    return pthread_barrier_init(b, attributes, count);
}

EXPORT int __wrap_pthread_barrier_destroy(pthread_barrier_t *b)
{
    forget_at(b, sizeof *b, PC);
    return current ? 0 : pthread_barrier_destroy(b);
}

/* The main thread finds nobody to meet. */
static int barrier_of_main(const pthread_barrier_t *barrier, uint64_t pc)
{
    if (barrier_needs(barrier) > 1) {
        fail(FAIL_DEADLOCK, current, (uintptr_t)barrier, pc);
        abandon();
    }
    return PTHREAD_BARRIER_SERIAL_THREAD;
}

EXPORT int __wrap_pthread_barrier_wait(pthread_barrier_t *b)
{
    Thread *t = controlled();
    if (t)
        return barrier_wait(t, b, PC);
    return current ? barrier_of_main(b, PC) : pthread_barrier_wait(b);
}

/* Spin locks of libc
 * -------------------------------------------------------------------------------- */

EXPORT int __wrap_pthread_spin_init(pthread_spinlock_t *l, int shared)
{
    forget_at((const void *)l, sizeof *l, PC);
    return pthread_spin_init(l, shared);
}

EXPORT int __wrap_pthread_spin_destroy(pthread_spinlock_t *l)
{
    forget_at((const void *)l, sizeof *l, PC);
    return pthread_spin_destroy(l);
}

EXPORT int __wrap_pthread_spin_lock(pthread_spinlock_t *l)
{
    MODELLED(mutex_lock(t, (const void *)l, MUTEX_PLAIN, FOREVER, PC), pthread_spin_lock(l));
}

EXPORT int __wrap_pthread_spin_trylock(pthread_spinlock_t *l)
{
    MODELLED(mutex_trylock(t, (const void *)l, MUTEX_PLAIN, PC), pthread_spin_trylock(l));
}

EXPORT int __wrap_pthread_spin_unlock(pthread_spinlock_t *l)
{
    MODELLED(mutex_unlock(t, (const void *)l, MUTEX_PLAIN, PC), pthread_spin_unlock(l));
}

/* Atomic operations on std::shared_ptr
 * -------------------------------------------------------------- */

/* libstdc++ has sixteen locks, chosen by a hash of the address. Here each address has its own: a
 * program must be right without the order that a shared lock adds. A locker has two bytes to note
 * its locks. */
enum { SHARED_POINTERS = 255 };
SHARED struct { uint32_t generation, n; const void *of[SHARED_POINTERS]; char locks[SHARED_POINTERS]; } pointers;

static uint8_t pointer_lock(Thread *t, const void *pointer)
{
    if (pointers.generation != E.generation) {
        pointers.generation = E.generation;
        pointers.n = 0;
    }
    for (uint32_t i = 0; i < pointers.n; i++)
        if (pointers.of[i] == pointer)
            return (uint8_t)i;
    if (pointers.n == SHARED_POINTERS) {
        fail_with(FAIL_CAPACITY, t, "the execution has more std::shared_ptr with atomic operations than the engine "
                                    "can follow");
        abandon();
    }
    pointers.of[pointers.n] = pointer;
    return (uint8_t)pointers.n++;
}

static void lock_pointers(uint8_t *locker, const void *first, const void *second, uint64_t pc)
{
    Thread *t = controlled();
    locker[0] = locker[1] = SHARED_POINTERS;
    if (t == NULL)
        return;
    uint8_t a = pointer_lock(t, first), b = second ? pointer_lock(t, second) : a;
    locker[0] = a < b ? a : b;
    mutex_lock(t, &pointers.locks[locker[0]], MUTEX_PLAIN, FOREVER, pc);
    if (a == b)
        return;
    locker[1] = a < b ? b : a;
    mutex_lock(t, &pointers.locks[locker[1]], MUTEX_PLAIN, FOREVER, pc);
}

EXPORT void __wrap__ZNSt10_Sp_lockerC1EPKv(uint8_t *locker, const void *pointer)
{
    static void (*real)(uint8_t *, const void *);
    if (current == NULL && (real || (*(void **)&real = cxx_symbol("_ZNSt10_Sp_lockerC1EPKv")) != NULL))
        real(locker, pointer);
    else
        lock_pointers(locker, pointer, NULL, PC);
}

EXPORT void __wrap__ZNSt10_Sp_lockerC1EPKvS1_(uint8_t *locker, const void *first, const void *second)
{
    static void (*real)(uint8_t *, const void *, const void *);
    if (current == NULL && (real || (*(void **)&real = cxx_symbol("_ZNSt10_Sp_lockerC1EPKvS1_")) != NULL))
        real(locker, first, second);
    else
        lock_pointers(locker, first, second, PC);
}

EXPORT void __wrap__ZNSt10_Sp_lockerD1Ev(uint8_t *locker)
{
    static void (*real)(uint8_t *);
    Thread *t = controlled();
    if (current == NULL && (real || (*(void **)&real = cxx_symbol("_ZNSt10_Sp_lockerD1Ev")) != NULL))
        real(locker);
    for (int i = 1; t && i >= 0; i--)
        if (locker[i] != SHARED_POINTERS)
            mutex_unlock(t, &pointers.locks[locker[i]], MUTEX_PLAIN, PC);
}

/* Futures
 * ------------------------------------------------------------------------------------------- */

/* Whether the wait ended before its time. It is a wait on a futex until `seconds` and
 * `nanoseconds`. */
static int future_wait(uint32_t *word, uint32_t value, int timed, int64_t seconds, int64_t nanoseconds, int what)
{
    struct timespec until = {seconds, nanoseconds};
    if (current && !current->controlled) {
        turn();
        return 1;
    }
    if (__wrap_syscall(SYS_futex, (long)word, what, value, timed ? (long)&until : 0, 0, -1) == 0)
        return 1;
    return errno != ETIMEDOUT;
}

/* Methods of the class under std::future, by their mangled names. */
#define OF_FUTURES "__wrap__ZNSt28__atomic_futex_unsigned_base"
#define UNTIL "EPjjbNSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE"
EXPORT int future_wait_system(void *base, uint32_t *word, uint32_t value, int timed, int64_t seconds,
                              int64_t nanoseconds) __asm__(OF_FUTURES "19_M_futex_wait_until" UNTIL);
EXPORT int future_wait_steady(void *base, uint32_t *word, uint32_t value, int timed, int64_t seconds,
                              int64_t nanoseconds) __asm__(OF_FUTURES "26_M_futex_wait_until_steady" UNTIL);
EXPORT void future_notify(uint32_t *word) __asm__(OF_FUTURES "19_M_futex_notify_allEPj");

int future_wait_system(void *base, uint32_t *word, uint32_t value, int timed, int64_t seconds, int64_t nanoseconds)
{
    (void)base;
    return future_wait(word, value, timed & 1, seconds, nanoseconds,
                       FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
}

int future_wait_steady(void *base, uint32_t *word, uint32_t value, int timed, int64_t seconds, int64_t nanoseconds)
{
    (void)base;
    return future_wait(word, value, timed & 1, seconds, nanoseconds, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG);
}

void future_notify(uint32_t *word)
{
    if (controlled() || current == NULL)
        __wrap_syscall(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, INT32_MAX, 0, 0, 0);
}

/* PyMutex of Python 3.13: a byte that headers exchange from 0 to 1 and back; these calls do the
 * rest. */
enum { PY_LOCKED = 1, PY_PARKED = 2 };
PYTHON(void, PyMutex_Lock, uint8_t *);
PYTHON(void, PyMutex_Unlock, uint8_t *);

static void python_mutex_lock(Thread *t, uint8_t *bits, uint64_t pc)
{
    if (unlikely(E.reducing))
        give_up_reduction(UNREDUCED_PYTHON);
    for (;;) {
        uint64_t seen = *bits, high = 0;
        announce(t, (uintptr_t)bits, 1);
        seen = *bits;
        if (!(seen & PY_LOCKED)) {
            if (atomic_cas(0, t, (uintptr_t)bits, 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST, 0, pc, &seen, &high,
                           seen | PY_LOCKED, 0))
                return;
        } else if ((seen & PY_PARKED) || atomic_cas(0, t, (uintptr_t)bits, 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST, 0, pc,
                                                    &seen, &high, seen | PY_PARKED, 0)) {
            wait_for(t, find_object(t, bits, OBJECT_FUTEX), pc);
        }
    }
}

static void python_mutex_unlock(Thread *t, uint8_t *bits, uint64_t pc)
{
    Object *o;
    uint64_t high;
    if (!(*bits & PY_LOCKED))
        misuse(t, bits, "a thread unlocks a lock that nobody holds", pc);
    announce(t, (uintptr_t)bits, 1);
    atomic_rmw(0, t, (uintptr_t)bits, 1, __ATOMIC_SEQ_CST, pc, RMW_EXCHANGE, 0, 0, &high);
    o = find_object(t, bits, OBJECT_FUTEX);
    release_blocked(o, o->blocked);
}

EXPORT void __wrap_PyMutex_Lock(uint8_t *bits)
{
    Thread *t = controlled();
    if (t) {
        python_mutex_lock(t, bits, PC);
    } else if (current) {
        while (*bits & PY_LOCKED)
            turn();
        *bits |= PY_LOCKED;
    } else {
        PyMutex_Lock(bits);
    }
}

EXPORT void __wrap_PyMutex_Unlock(uint8_t *bits)
{
    Thread *t = controlled();
    if (t)
        python_mutex_unlock(t, bits, PC);
    else if (current)
        *bits = 0;
    else
        PyMutex_Unlock(bits);
}
