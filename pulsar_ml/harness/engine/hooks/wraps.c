/* Stands in for functions of libc that would escape the engine: the linker sends those calls here
 * (--wrap, see building/checked.py). Outside a controlled run they go on to libc; memory that
 * belongs to the arena is recognised by its address. */

#include <signal.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#if defined(__linux__)
#include <linux/futex.h>
#endif

static void *cxx_symbol(const char *name);

static inline Thread *controlled(void)
{
    Thread *t = current;
    if (t == NULL || !t->controlled)
        return NULL;
    settle(t);
    return t;
}

EXPORT void *__wrap_malloc(size_t bytes)
{
    return current ? heap_allocate(current, bytes, 0, 0, PC) : from_libc(malloc(bytes));
}

EXPORT void *__wrap_calloc(size_t n, size_t bytes)
{
    if (current == NULL)
        return from_libc(calloc(n, bytes));
    return bytes && n > SIZE_MAX / bytes ? NULL : heap_allocate(current, n * bytes, 0, 1, PC);
}

static void free_memory(void *memory, uint64_t pc)
{
    if (memory == NULL)
        return;
    if (!in_arena((uintptr_t)memory))
        free_outside(current, memory, pc);
    else if (current)
        heap_release(current, memory, pc);
}

EXPORT void __wrap_free(void *memory) { free_memory(memory, PC); }

EXPORT void *__wrap_realloc(void *memory, size_t bytes)
{
    void *moved;
    size_t before;
    if (current == NULL && !in_arena((uintptr_t)memory)) {
        if (unlikely(kept_blocks.records))
            unrecord_block(memory);
        return from_libc(realloc(memory, bytes));
    }
    if (memory == NULL)
        return heap_allocate(current, bytes, 0, 0, PC);
    before = in_arena((uintptr_t)memory) ? ((Header *)memory - 1)->bytes : malloc_usable_size(memory);
    moved = heap_allocate(current, bytes, 0, 0, PC);
    if (moved) {
        copy_bytes(moved, memory, before < bytes ? before : bytes, PC);
        free_memory(memory, PC);
    }
    return moved;
}

EXPORT int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (current == NULL)
        return posix_memalign(memory, alignment, bytes);
    if (alignment % sizeof(void *) || alignment & (alignment - 1))
        return EINVAL;
    *memory = heap_allocate(current, bytes, alignment, 0, PC);
    return *memory ? 0 : ENOMEM;
}

EXPORT void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return current ? heap_allocate(current, bytes, alignment, 0, PC) : aligned_alloc(alignment, bytes);
}

EXPORT void *__wrap_memalign(size_t alignment, size_t bytes)
{
    return current ? heap_allocate(current, bytes, alignment, 0, PC) : aligned_alloc(alignment, bytes);
}

/* C++: new and delete of all forms. */
static void *new_object(size_t bytes, size_t alignment, uint64_t pc)
{
    if (current)
        return heap_allocate(current, bytes, alignment, 0, pc);
    return from_libc(alignment ? aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                               : malloc(bytes));
}

/* std::bad_alloc comes from libstdc++. */
static void *new_or_throw(size_t bytes, size_t alignment, uint64_t pc)
{
    void *memory = new_object(bytes, alignment, pc);
    if (memory == NULL) {
        void (*bad_alloc)(void) = NULL;
        *(void **)&bad_alloc = cxx_symbol("_ZSt17__throw_bad_allocv");
        if (bad_alloc)
            bad_alloc();
        abort();
    }
    return memory;
}

EXPORT void *__wrap__Znwm(size_t bytes) { return new_or_throw(bytes, 0, PC); }
EXPORT void *__wrap__Znam(size_t bytes) { return new_or_throw(bytes, 0, PC); }
#define NEW(name, with) EXPORT void *__wrap_##name(size_t bytes, with)
NEW(_ZnwmRKSt9nothrow_t, const void *tag) { (void)tag; return new_object(bytes, 0, PC); }
NEW(_ZnamRKSt9nothrow_t, const void *tag) { (void)tag; return new_object(bytes, 0, PC); }
NEW(_ZnwmSt11align_val_t, size_t alignment) { return new_or_throw(bytes, alignment, PC); }
NEW(_ZnamSt11align_val_t, size_t alignment) { return new_or_throw(bytes, alignment, PC); }
#define DELETE(name) EXPORT void __wrap_##name(void *memory) { free_memory(memory, PC); }
DELETE(_ZdlPv)
DELETE(_ZdaPv)
/* With a size, an alignment or both behind the address, which nothing here needs. */
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
DELETE(_ZdlPvRKSt9nothrow_t)
DELETE(_ZdaPvRKSt9nothrow_t)
DELETE(_ZdlPvSt11align_val_t)
DELETE(_ZdaPvSt11align_val_t)
DELETE(_ZdlPvmSt11align_val_t)
DELETE(_ZdaPvmSt11align_val_t)

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

/* Called by the glue of test functions; returns outside executions. */
EXPORT void pml_engine_fail(const char *message)
{
    if (current)
        assertion(message, PC);
}

EXPORT __attribute__((noreturn)) void __wrap__ZSt9terminatev(void)
{
    if (current)
        assertion("std::terminate() was called: an exception that nothing catches, or a std::thread that is "
                  "destroyed before it was joined", PC);
    abort();
}

EXPORT __attribute__((noreturn)) void __wrap__ZSt21__glibcxx_assert_failPKciS0_S0_(const char *file, int line,
                                                                                const char *function, const char *what)
{
    char text[200];
    snprintf(text, sizeof text, "%s:%d: %s: assertion %s failed", file, line, function, what);
    if (current)
        assertion(text, PC);
    fprintf(stderr, "%s\n", text);
    abort();
}

/* The main thread is alone: what it waits for does not come. */
static __attribute__((noinline)) void main_turn(Thread *t)
{
    if (++E.main_turns <= E.config.step_limit)
        return;
    fail_with(FAIL_LIVELOCK, t, "create(), check() or destroy() waits for what nobody changes");
    abandon();
}

static void turn(void)
{
    Thread *t = current;
    if (t == NULL)
        return;
    settle(t);
    if (t->controlled)
        turn_over(t, 0);
    else
        main_turn(t);
}

EXPORT void pml_checked_pause(void) { turn(); }

EXPORT int __wrap_sched_yield(void)
{
    if (current == NULL)
        return sched_yield();
    turn();
    return 0;
}

/* All threads of an execution are one thread of the system, whose signals are the engine's: a mask
 * has no effect. An execution that is abandoned could not give it back. */
EXPORT int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before_set)
{
    if (current == NULL)
        return pthread_sigmask(how, set, before_set);
    if (before_set != NULL)
        sigemptyset(before_set);
    return 0;
}

static int futex_wait(Thread *t, uint32_t *word, uint32_t expected, int64_t until, uint64_t pc);

EXPORT void pml_checked_wait(uint32_t *word, uint32_t expected)
{
    Thread *t = controlled();
    if (t)
        futex_wait(t, word, expected, FOREVER, PC);
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
