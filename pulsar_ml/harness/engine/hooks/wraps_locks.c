/* The locks of libc, libstdc++ and CPython as the code under test calls them. The main thread of an
 * execution is alone: for it a lock is always free, and only semaphores have a value to keep. */

static int rwlock_lock(Thread *t, const void *lock, int writes, int tries, int64_t until, uint64_t pc)
{
    Object *o;
    change_lock_before(t, lock, pc);
    if (unlikely(E.reducing) && !tries)
        will_lock((uintptr_t)lock, writes ? USE_WRITE : USE_READ, until);
    announce(t, (uintptr_t)lock, 1);
    o = find_object(t, lock, OBJECT_RWLOCK);
    if (tries)
        may_drain(t);
    if (unlikely(E.reducing) && tries)
        note_readers((uintptr_t)lock, writes ? TOUCH_READS : TOUCH_WRITES | TOUCH_TOGETHER);
    if (unlikely(E.reducing) && tries && !writes)
        note_failed((uintptr_t)lock, 1);
    if (tries || until != FOREVER)
        observe_lock(t, (uint32_t)(o - objects));
    if (o->owner == t->number && !tries && until == FOREVER)
        misuse(t, lock, "a thread locks a read-write lock that it holds for writing", pc);
    while (o->owner >= 0 || (writes && o->readers)) {
        if (tries) {
            if (unlikely(E.reducing))
                note_failed((uintptr_t)lock, 1);
            return not_taken(t, o, EBUSY, pc);
        }
        if (wait_for_lock(t, o, until, pc))
            return given_up(t, o, pc);
    }
    if (unlikely(E.reducing) && until != FOREVER)
        note_emptied(t);
    if (writes) {
        acquire_readers(t, o);
        o->owner = t->number;
    } else {
        o->readers |= t->bit;
        o->reads[t->number]++;
    }
    lock_touched(o, t);
    acquired(t, o, OP_LOCK, pc);
    return 0;
}

static void rwlock_unlock(Thread *t, const void *lock, uint64_t pc)
{
    Object *o = find_object(t, lock, OBJECT_RWLOCK);
    if (o->owner != t->number && !(o->readers & t->bit))
        misuse(t, lock, "a thread unlocks a read-write lock that it does not hold", pc);
    will_drain();
    announce_unlock(t, (uint32_t)(o - objects), (uintptr_t)lock);
    drain(t);
    if (o->owner == t->number) {
        o->owner = -1;
        released(t, o, o->clock, OP_UNLOCK, pc);
    } else {
        if (--o->reads[t->number] == 0)
            o->readers &= ~t->bit;
        o->readers_seen += mix64(t->step);
        if (unlikely(E.reducing))
            note_unannounced();
        released(t, o, o->readers_clock, OP_UNLOCK, pc);
    }
    release_blocked(o, o->blocked);
}

/* The kernel compares and sleeps in one step, against the newest value. */
static int futex_wait(Thread *t, uint32_t *word, uint32_t expected, int64_t until, uint64_t pc)
{
    Object *o;
    will_drain();
    announce(t, (uintptr_t)word, 0);
    drain(t);
    if (!heap_ok((uintptr_t)word))
        heap_fail(t, (uintptr_t)word, 4, OP_WAIT, pc);
    o = find_object(t, word, OBJECT_FUTEX);
    if (E.recording)
        trace_event(t, OP_WAIT, (uintptr_t)word, 4, expected, pc);
    watch_reset(t);
    t->watch_lost = 1;
    if (*word != expected)
        return EAGAIN;
    if (E.config.faults & FAULT_SPURIOUS && choose(t, CHOOSE_SPURIOUS, 2))
        return 0;
    return wait_for_lock(t, o, until, pc);
}

static int mutex_kind(const pthread_mutex_t *mutex)
{
#if defined(__GLIBC__)
    switch (mutex->__data.__kind & 3) {
    case PTHREAD_MUTEX_RECURSIVE_NP: return MUTEX_RECURSIVE;
    case PTHREAD_MUTEX_ERRORCHECK_NP: return MUTEX_CHECKS;
    default: return MUTEX_PLAIN;
    }
#else
    (void)mutex;
    return MUTEX_PLAIN;
#endif
}

/* An object that is made or unmade while an execution runs has no past. */
static void forget_at(const void *at, size_t bytes, uint64_t pc)
{
    if (current)
        forget_objects(current, (uintptr_t)at, bytes, pc);
}

static int refused(int error)
{
    if (error)
        errno = error;
    return error ? -1 : 0;
}

/* The call in a controlled thread, nothing in the main one, libc's own outside an execution. */
#define MODELLED(call, libc)                                                                        \
    do {                                                                                            \
        Thread *t = controlled();                                                                   \
        if (t)                                                                                      \
            return (call);                                                                          \
        return current ? 0 : (libc);                                                                \
    } while (0)

EXPORT int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attributes)
{
    forget_at(m, sizeof *m, PC);
    return pthread_mutex_init(m, attributes);
}

EXPORT int __wrap_pthread_mutex_destroy(pthread_mutex_t *m)
{
    forget_at(m, sizeof *m, PC);
    return pthread_mutex_destroy(m);
}

EXPORT int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    MODELLED(mutex_lock(t, m, mutex_kind(m), FOREVER, PC), pthread_mutex_lock(m));
}

EXPORT int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
    MODELLED(mutex_trylock(t, m, mutex_kind(m), PC), pthread_mutex_trylock(m));
}

EXPORT int __wrap_pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
    MODELLED(mutex_lock(t, m, mutex_kind(m), nanoseconds(until), PC), pthread_mutex_timedlock(m, until));
}

EXPORT int __wrap_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
    MODELLED(mutex_lock(t, m, mutex_kind(m), nanoseconds(until), PC), pthread_mutex_clocklock(m, clock, until));
}

EXPORT int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    MODELLED(mutex_unlock(t, m, mutex_kind(m), PC), pthread_mutex_unlock(m));
}

EXPORT int __wrap_pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *attributes)
{
    forget_at(l, sizeof *l, PC);
    return pthread_rwlock_init(l, attributes);
}

EXPORT int __wrap_pthread_rwlock_destroy(pthread_rwlock_t *l)
{
    forget_at(l, sizeof *l, PC);
    return pthread_rwlock_destroy(l);
}

#define RWLOCK(name, writes, tries)                                                                 \
    EXPORT int __wrap_pthread_rwlock_##name(pthread_rwlock_t *l)                                    \
    {                                                                                               \
        MODELLED(rwlock_lock(t, l, writes, tries, FOREVER, PC), pthread_rwlock_##name(l));                \
    }
RWLOCK(rdlock, 0, 0)
RWLOCK(wrlock, 1, 0)
RWLOCK(tryrdlock, 0, 1)
RWLOCK(trywrlock, 1, 1)

#define RWLOCK_TIMED(name, writes)                                                                  \
    EXPORT int __wrap_pthread_rwlock_timed##name(pthread_rwlock_t *l, const struct timespec *until) \
    {                                                                                               \
        MODELLED(rwlock_lock(t, l, writes, 0, nanoseconds(until), PC), pthread_rwlock_timed##name(l, until));        \
    }                                                                                               \
    EXPORT int __wrap_pthread_rwlock_clock##name(pthread_rwlock_t *l, clockid_t clock,              \
                                                 const struct timespec *until)                      \
    {                                                                                               \
        MODELLED(rwlock_lock(t, l, writes, 0, nanoseconds(until), PC), pthread_rwlock_clock##name(l, clock, until)); \
    }
RWLOCK_TIMED(rdlock, 0)
RWLOCK_TIMED(wrlock, 1)

static int unlock_rwlock(Thread *t, pthread_rwlock_t *l, uint64_t pc)
{
    rwlock_unlock(t, l, pc);
    return 0;
}

EXPORT int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    MODELLED(unlock_rwlock(t, l, PC), pthread_rwlock_unlock(l));
}

EXPORT int __wrap_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attributes)
{
    forget_at(c, sizeof *c, PC);
    return pthread_cond_init(c, attributes);
}

EXPORT int __wrap_pthread_cond_destroy(pthread_cond_t *c)
{
    forget_at(c, sizeof *c, PC);
    return current ? 0 : pthread_cond_destroy(c);
}

EXPORT int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    MODELLED(condition_wait(t, c, m, FOREVER, PC), pthread_cond_wait(c, m));
}

EXPORT int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    MODELLED(condition_wait(t, c, m, nanoseconds(until), PC), pthread_cond_timedwait(c, m, until));
}

EXPORT int __wrap_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                                         const struct timespec *until)
{
    MODELLED(condition_wait(t, c, m, nanoseconds(until), PC), pthread_cond_clockwait(c, m, clock, until));
}

static int wake_condition(Thread *t, const void *c, uint32_t most, uint64_t pc)
{
    wake_some(t, c, OBJECT_CONDITION, most, pc);
    return 0;
}

EXPORT int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
    MODELLED(wake_condition(t, c, 1, PC), pthread_cond_signal(c));
}

EXPORT int __wrap_pthread_cond_broadcast(pthread_cond_t *c)
{
    MODELLED(wake_condition(t, c, ENGINE_MOST_THREADS, PC), pthread_cond_broadcast(c));
}

/* std::condition_variable waits inside libstdc++. Its first member is a pthread_cond_t; the lock's
 * is a pointer to the std::mutex, which is a pthread_mutex_t. */
EXPORT void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(pthread_cond_t *c,
                                                                            pthread_mutex_t **lock)
{
    if (controlled())
        condition_wait(controlled(), c, *lock, FOREVER, PC);
    else if (current == NULL)
        pthread_cond_wait(c, *lock);
}

EXPORT void __wrap__ZNSt18condition_variable10notify_oneEv(pthread_cond_t *c)
{
    if (controlled())
        wake_condition(controlled(), c, 1, PC);
    else if (current == NULL)
        pthread_cond_signal(c);
}

EXPORT void __wrap__ZNSt18condition_variable10notify_allEv(pthread_cond_t *c)
{
    if (controlled())
        wake_condition(controlled(), c, ENGINE_MOST_THREADS, PC);
    else if (current == NULL)
        pthread_cond_broadcast(c);
}

EXPORT int __wrap_sem_init(sem_t *s, int shared, unsigned value)
{
    forget_at(s, sizeof *s, PC);
    return sem_init(s, shared, value);
}

EXPORT int __wrap_sem_destroy(sem_t *s)
{
    forget_at(s, sizeof *s, PC);
    return sem_destroy(s);
}

/* The object of a semaphore, which takes over the value that sem_init or earlier calls gave it. */
static Object *find_semaphore(Thread *t, sem_t *semaphore)
{
    Object *o = find_object(t, semaphore, OBJECT_SEMAPHORE);
    if (o->owner == -1) {
        int value = 0;
        sem_getvalue(semaphore, &value);
        o->count = (uint32_t)value;
        o->owner = -2;
    }
    return o;
}

/* 0, EAGAIN or ETIMEDOUT. */
static int semaphore_wait(Thread *t, sem_t *semaphore, int tries, int64_t until, uint64_t pc)
{
    Object *o;
    change_lock_before(t, semaphore, pc);
    if (unlikely(E.reducing) && !tries)
        will_lock((uintptr_t)semaphore, USE_UNIT, until);
    announce(t, (uintptr_t)semaphore, 1);
    o = find_semaphore(t, semaphore);
    if (tries)
        may_drain(t);
    while (o->count == 0) {
        if (tries) {
            if (unlikely(E.reducing))
                note_failed((uintptr_t)semaphore, 1);
            return not_taken(t, o, EAGAIN, pc);
        }
        if (wait_for_lock(t, o, until, pc))
            return given_up(t, o, pc);
    }
    if (unlikely(E.reducing) && until != FOREVER)
        note_emptied(t);
    if (unlikely(E.reducing))
        note_units((uintptr_t)semaphore, o->count);
    o->count--;
    lock_touched(o, t);
    acquired(t, o, OP_LOCK, pc);
    return 0;
}

/* A look at the value is a step. It orders nothing, and finds the newest value. */
static int semaphore_value(Thread *t, sem_t *semaphore, uint64_t pc)
{
    Object *o;
    announce(t, (uintptr_t)semaphore, 0);
    o = find_semaphore(t, semaphore);
    if (unlikely(E.reducing))
        note_looked((uintptr_t)semaphore);
    E.hooks++;
    lock_touched(o, t);
    for (int i = 0; i < E.n; i++)
        E.touched_twice |= i != t->number && o->clock[i] > 0;   /* that thread posted */
    show_order(t, o);
    hash_step((uint64_t)(o - objects) << 40 ^ (uint64_t)(t->number + 1) << 32 ^ o->count ^ 0xA000);
    t->watch_lost = 1;
    if (unlikely(E.recording))
        trace_event(t, OP_LOOK, (uintptr_t)semaphore, (int)sizeof(int), o->count, pc);
    return (int)o->count;
}

static void semaphore_post(Thread *t, sem_t *semaphore, uint64_t pc)
{
    Object *o;
    will_drain();
    announce(t, (uintptr_t)semaphore, 1);
    drain(t);
    o = find_semaphore(t, semaphore);
    if (unlikely(E.reducing))
        note_units((uintptr_t)semaphore, o->count);
    o->count++;
    show_order(t, o);
    o->latest = t->step;
    released(t, o, o->clock, OP_UNLOCK, pc);
    release_blocked(o, o->blocked);
}

/* The main thread finds nobody who could still post. */
static int semaphore_of_main(sem_t *s, int tries, int change, uint64_t pc)
{
    Object *o = find_semaphore(current, s);
    if (change < 0 && o->count == 0) {
        if (tries)
            return EAGAIN;
        fail(FAIL_DEADLOCK, current, (uintptr_t)s, pc);
        abandon();
    }
    o->count += (uint32_t)change;
    return 0;
}

#define SEMAPHORE(tries, until, libc)                                                               \
    do {                                                                                            \
        Thread *t = controlled();                                                                   \
        if (t)                                                                                      \
            return refused(semaphore_wait(t, s, tries, until, PC));                                 \
        return current ? refused(semaphore_of_main(s, tries, -1, PC)) : (libc);                     \
    } while (0)

EXPORT int __wrap_sem_wait(sem_t *s) { SEMAPHORE(0, FOREVER, sem_wait(s)); }
EXPORT int __wrap_sem_trywait(sem_t *s) { SEMAPHORE(1, FOREVER, sem_trywait(s)); }
EXPORT int __wrap_sem_timedwait(sem_t *s, const struct timespec *until)
{
    SEMAPHORE(0, nanoseconds(until), sem_timedwait(s, until));
}
EXPORT int __wrap_sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *until)
{
    SEMAPHORE(0, nanoseconds(until), sem_clockwait(s, clock, until));
}

EXPORT int __wrap_sem_post(sem_t *s)
{
    Thread *t = controlled();
    if (t)
        semaphore_post(t, s, PC);
    else if (current)
        semaphore_of_main(s, 0, 1, PC);
    else
        return sem_post(s);
    return 0;
}

EXPORT int __wrap_sem_getvalue(sem_t *s, int *value)
{
    Thread *t = controlled();
    if (current == NULL)
        return sem_getvalue(s, value);
    *value = t ? semaphore_value(t, s, PC) : (int)find_semaphore(current, s)->count;
    return 0;
}

/* CPython's lock, of which cython.pymutex is made before Python 3.13. Who needs the engine from
 * outside Python has no such symbols: they are looked up in the process. */
#define PYTHON(result, name, ...) result name(__VA_ARGS__) __attribute__((weak))
PYTHON(int, PyThread_acquire_lock, void *, int);
PYTHON(int, PyThread_acquire_lock_timed, void *, long long, int);
PYTHON(void, PyThread_release_lock, void *);

static int python_lock(Thread *t, void *lock, int waits, int64_t until, uint64_t pc)
{
    return waits ? mutex_lock(t, lock, MUTEX_FOREIGN, until, pc) == 0
                 : mutex_trylock(t, lock, MUTEX_FOREIGN, pc) == 0;
}

EXPORT int __wrap_PyThread_acquire_lock(void *lock, int waits)
{
    Thread *t = controlled();
    if (t)
        return python_lock(t, lock, waits, FOREVER, PC);
    return current ? 1 : PyThread_acquire_lock(lock, waits);
}

EXPORT int __wrap_PyThread_acquire_lock_timed(void *lock, long long microseconds, int interruptible)
{
    Thread *t = controlled();
    if (t)
        return python_lock(t, lock, microseconds != 0,
                           microseconds > 0 ? later((int64_t)microseconds * 1000) : FOREVER, PC);
    return current ? 1 : PyThread_acquire_lock_timed(lock, microseconds, interruptible);
}

EXPORT void __wrap_PyThread_release_lock(void *lock)
{
    Thread *t = controlled();
    if (t)
        mutex_unlock(t, lock, MUTEX_FOREIGN, PC);
    else if (current == NULL)
        PyThread_release_lock(lock);
}

static int64_t futex_deadline(int what, const struct timespec *time_out)
{
    if (time_out == NULL)
        return FOREVER;
    return what == FUTEX_WAIT ? later(nanoseconds(time_out)) : nanoseconds(time_out);
}

/* Futexes by their system call, as std::atomic::wait and hand-made locks use them. */
EXPORT long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    Thread *t = controlled();
#if defined(__linux__)
    if (t && number == SYS_futex) {
        int what = (int)b & FUTEX_CMD_MASK;
        if (what == FUTEX_WAIT || what == FUTEX_WAIT_BITSET)
            return refused(futex_wait(t, (uint32_t *)a, (uint32_t)c, futex_deadline(what, (void *)d), PC));
        if (what == FUTEX_WAKE || what == FUTEX_WAKE_BITSET)
            return wake_some(t, (void *)a, OBJECT_FUTEX, (uint32_t)c, PC);
        fail_with(FAIL_CAPACITY, t, "a futex operation that the engine does not model: only waiting and waking are");
        abandon();
    }
#endif
    (void)t;
    return syscall(number, a, b, c, d, e, f);
}
