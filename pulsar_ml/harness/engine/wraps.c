/* What the code under test calls from libc and may not have: the linker sends those calls here
 * (--wrap, see build_checked.py). Outside a controlled run they go on to libc; memory that belongs to
 * the arena is recognised by its address. */

#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#if defined(__linux__)
#include <linux/futex.h>
#endif

static inline Thread *controlled(void)
{
    Thread *t = current;
    return t && t->controlled ? t : NULL;
}

EXPORT void *__wrap_malloc(size_t bytes)
{
    return current ? heap_allocate(current, bytes, 0, PC) : malloc(bytes);
}

EXPORT void *__wrap_calloc(size_t n, size_t bytes)
{
    if (current == NULL)
        return calloc(n, bytes);
    return bytes && n > SIZE_MAX / bytes ? NULL : heap_allocate(current, n * bytes, 1, PC);
}

static void free_memory(void *memory, uint64_t pc)
{
    if (memory == NULL)
        return;
    if (!in_arena((uintptr_t)memory))
        free(memory);
    else if (current)
        heap_release(current, memory, pc);
}

EXPORT void __wrap_free(void *memory) { free_memory(memory, PC); }

EXPORT void *__wrap_realloc(void *memory, size_t bytes)
{
    void *moved;
    size_t before;
    if (current == NULL && !in_arena((uintptr_t)memory))
        return realloc(memory, bytes);
    if (memory == NULL)
        return heap_allocate(current, bytes, 0, PC);
    before = ((Header *)memory - 1)->bytes;
    moved = heap_allocate(current, bytes, 0, PC);
    if (moved) {
        copy_bytes(moved, memory, before < bytes ? before : bytes, PC);
        free_memory(memory, PC);
    }
    return moved;
}

EXPORT int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (current == NULL || alignment > 16)
        return posix_memalign(memory, alignment, bytes);
    *memory = heap_allocate(current, bytes, 0, PC);
    return *memory ? 0 : ENOMEM;
}

EXPORT void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return current == NULL || alignment > 16 ? aligned_alloc(alignment, bytes) : heap_allocate(current, bytes, 0, PC);
}

/* C++: new and delete of all forms. Failure is an assertion, for lack of an exception here. */
static void *new_object(size_t bytes, uint64_t pc)
{
    void *memory = current ? heap_allocate(current, bytes, 0, pc) : malloc(bytes);
    if (memory == NULL)
        abort();
    return memory;
}

EXPORT void *__wrap__Znwm(size_t bytes) { return new_object(bytes, PC); }
EXPORT void *__wrap__Znam(size_t bytes) { return new_object(bytes, PC); }
EXPORT void __wrap__ZdlPv(void *memory) { free_memory(memory, PC); }
EXPORT void __wrap__ZdaPv(void *memory) { free_memory(memory, PC); }
EXPORT void __wrap__ZdlPvm(void *memory, size_t bytes) { (void)bytes; free_memory(memory, PC); }
EXPORT void __wrap__ZdaPvm(void *memory, size_t bytes) { (void)bytes; free_memory(memory, PC); }

static __attribute__((noreturn)) void assertion(const char *what, uint64_t pc)
{
    EngineFailure *f = fail(FAIL_ASSERTION, current, 0, pc);
    if (f)
        snprintf(f->message, sizeof f->message, "%s", what);
    abandon();
}

EXPORT __attribute__((noreturn)) void __wrap_abort(void)
{
    if (current)
        assertion("abort() was called", PC);
    abort();
}

EXPORT __attribute__((noreturn)) void __wrap___assert_fail(const char *what, const char *file, unsigned line,
                                                           const char *function)
{
    char text[200];
    snprintf(text, sizeof text, "%s:%u: %s: assertion %s failed", file, line, function, what);
    if (current)
        assertion(text, PC);
    fprintf(stderr, "%s\n", text);
    abort();
}

/* Time passes by being read or waited for. */
static void turn(void)
{
    Thread *t = controlled();
    if (t)
        turn_over(t);
}

EXPORT void pml_checked_pause(void) { turn(); }

EXPORT int __wrap_sched_yield(void)
{
    if (controlled() == NULL)
        return sched_yield();
    turn();
    return 0;
}

EXPORT int __wrap_clock_gettime(clockid_t which, struct timespec *now)
{
    if (current == NULL)
        return clock_gettime(which, now);
    E.now_ns += 1000;
    now->tv_sec = E.now_ns / 1000000000;
    now->tv_nsec = E.now_ns % 1000000000;
    current->watch_lost = 1;      /* a loop that looks at the clock may end by it */
    return 0;
}

EXPORT int __wrap_nanosleep(const struct timespec *span, struct timespec *left)
{
    if (controlled() == NULL)
        return nanosleep(span, left);
    E.now_ns += span->tv_sec * 1000000000 + span->tv_nsec;
    current->watch_lost = 1;
    turn();
    return 0;
}

EXPORT int __wrap_usleep(unsigned microseconds)
{
    struct timespec span = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    return __wrap_nanosleep(&span, NULL);
}

EXPORT void pml_checked_wait(uint32_t *word, uint32_t expected)
{
    Thread *t = controlled();
    if (t)
        futex_wait(t, word, expected, PC);
    else if (current == NULL)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

EXPORT void pml_checked_wake(uint32_t *word, uint32_t most)
{
    Thread *t = controlled();
    if (t)
        wake_some(t, word, OBJECT_FUTEX, most, PC);
    else if (current == NULL)
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

EXPORT void pml_checked_fail_allocation_after(int64_t n) { heap.countdown = n; }

/* POSIX locks. The main thread of an execution is alone, so libc's own do for it. */
static int is_recursive(const pthread_mutex_t *mutex)
{
#if defined(__GLIBC__)
    return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;
#else
    (void)mutex;
    return 0;
#endif
}

EXPORT int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    Thread *t = controlled();
    if (t == NULL)
        return current ? 0 : pthread_mutex_lock(m);
    mutex_lock(t, m, is_recursive(m), PC);
    return 0;
}

EXPORT int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
    Thread *t = controlled();
    if (t == NULL)
        return current ? 0 : pthread_mutex_trylock(m);
    return mutex_trylock(t, m, is_recursive(m), PC);
}

EXPORT int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    Thread *t = controlled();
    if (t == NULL)
        return current ? 0 : pthread_mutex_unlock(m);
    mutex_unlock(t, m, PC);
    return 0;
}

EXPORT int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
    Thread *t = controlled();
    if (t == NULL)
        return current ? 0 : pthread_rwlock_rdlock(l);
    rwlock_lock(t, l, 0, PC);
    return 0;
}

EXPORT int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
    Thread *t = controlled();
    if (t == NULL)
        return current ? 0 : pthread_rwlock_wrlock(l);
    rwlock_lock(t, l, 1, PC);
    return 0;
}

EXPORT int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    Thread *t = controlled();
    if (t == NULL)
        return current ? 0 : pthread_rwlock_unlock(l);
    rwlock_unlock(t, l, PC);
    return 0;
}

EXPORT int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    Thread *t = controlled();
    return t ? condition_wait(t, c, m, 0, PC) : pthread_cond_wait(c, m);
}

EXPORT int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    Thread *t = controlled();
    return t ? condition_wait(t, c, m, 1, PC) : pthread_cond_timedwait(c, m, until);
}

EXPORT int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
    Thread *t = controlled();
    if (t == NULL)
        return current ? 0 : pthread_cond_signal(c);
    wake_some(t, c, OBJECT_CONDITION, 1, PC);
    return 0;
}

EXPORT int __wrap_pthread_cond_broadcast(pthread_cond_t *c)
{
    Thread *t = controlled();
    if (t == NULL)
        return current ? 0 : pthread_cond_broadcast(c);
    wake_some(t, c, OBJECT_CONDITION, ENGINE_MOST_THREADS, PC);
    return 0;
}

EXPORT int __wrap_sem_wait(sem_t *s)
{
    Thread *t = controlled();
    int result;
    if (t == NULL)
        return sem_wait(s);
    semaphore_wait(t, s, 0, PC, &result);
    return 0;
}

EXPORT int __wrap_sem_trywait(sem_t *s)
{
    Thread *t = controlled();
    int result;
    if (t == NULL)
        return sem_trywait(s);
    semaphore_wait(t, s, 1, PC, &result);
    if (result)
        errno = result;
    return result ? -1 : 0;
}

EXPORT int __wrap_sem_post(sem_t *s)
{
    Thread *t = controlled();
    if (t == NULL)
        return sem_post(s);
    semaphore_post(t, s, PC);
    return 0;
}

/* A thread made inside an operation would run beside the engine, unseen: refused loudly. */
EXPORT int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                                 void *argument)
{
    if (current) {
        fail_with(FAIL_CAPACITY, current, "the code under test starts a thread of its own; the engine runs the "
                                          "threads of the program only");
        abandon();
    }
    return pthread_create(thread, attributes, body, argument);
}
