/* Calls about what belongs to a thread: its variables, values, identity and signal stack. */

EXPORT void *__wrap___tls_get_addr(TlsIndex *index)
{
    Thread *t = current;
    return t ? local_at(t, index, PC) : __tls_get_addr(index);
}

EXPORT int __wrap___cxa_thread_atexit(void (*run)(void *), void *object, void *module)
{
    static int (*real)(void (*)(void *), void *, void *);
    if (current)
        return add_ending(current, run, object);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_DEFAULT, "__cxa_thread_atexit_impl");
    return real ? real(run, object, module) : -1;
}

/* Static locals that are constructed within an execution are destroyed at its end. */
extern int __cxa_atexit(void (*run)(void *), void *object, void *module);
EXPORT int __wrap___cxa_atexit(void (*run)(void *), void *object, void *module)
{
    return current ? add_static_ending(run, object) : __cxa_atexit(run, object, module);
}

EXPORT int __wrap_pthread_key_create(pthread_key_t *key, void (*destroy)(void *))
{
    int error;
    if (current)
        return new_key(key, destroy);
    error = pthread_key_create(key, destroy);
    if (error == 0 && *key < REAL_KEYS)
        real_destructors[*key] = destroy;
    return error;
}

EXPORT int __wrap_pthread_key_delete(pthread_key_t key)
{
    if (current == NULL)
        return pthread_key_delete(key);
    if (key < REAL_KEYS || key - REAL_KEYS >= n_keys || !keys[key - REAL_KEYS].live)
        return EINVAL;
    keys[key - REAL_KEYS].live = 0;
    return 0;
}

EXPORT void *__wrap_pthread_getspecific(pthread_key_t key)
{
    const Value *v;
    if (current == NULL)
        return pthread_getspecific(key);
    v = find_value(current, key, 0);
    return v ? v->value : NULL;
}

EXPORT int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    if (current == NULL)
        return pthread_setspecific(key, value);
    if (key >= REAL_KEYS && (key - REAL_KEYS >= n_keys || !keys[key - REAL_KEYS].live))
        return EINVAL;
    find_value(current, key, 1)->value = (void *)(uintptr_t)value;
    return 0;
}

/* Identity. The numbers are the same in every process, so that code which hashes them can be
 * replayed; no process of the system has so high a thread number. */
enum { FIRST_TID = 1 << 23, MAIN_THREAD = ENGINE_MOST_THREADS + 1 };

static pthread_t own_handle(const Thread *t)
{
    return t->number < 0 ? MAIN_THREAD : (pthread_t)t->number + 1;
}

static int is_handle(pthread_t thread)
{
    return current && (thread == MAIN_THREAD || thread - 1 < (pthread_t)E.n);
}

EXPORT pthread_t __wrap_pthread_self(void)
{
    return current ? own_handle(current) : pthread_self();
}

EXPORT pid_t __wrap_gettid(void)
{
    return current ? FIRST_TID + (pid_t)own_handle(current) : (pid_t)syscall(SYS_gettid);
}

EXPORT int __wrap_sched_getcpu(void)
{
    return current ? (int)own_handle(current) - 1 : sched_getcpu();
}

EXPORT int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    if (is_handle(thread))
        return strlen(name) < 16 ? 0 : ERANGE;
    return pthread_setname_np(thread, name);
}

EXPORT int __wrap_pthread_getname_np(pthread_t thread, char *name, size_t bytes)
{
    if (!is_handle(thread))
        return pthread_getname_np(thread, name, bytes);
    return snprintf(name, bytes, "thread %d", (int)thread - 1) < (int)bytes ? 0 : ERANGE;
}

/* Which processor and which priority a fiber has is the engine's affair. */
EXPORT int __wrap_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set)
{
    return is_handle(thread) ? 0 : pthread_setaffinity_np(thread, bytes, set);
}

EXPORT int __wrap_pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t *set)
{
    return pthread_getaffinity_np(is_handle(thread) ? pthread_self() : thread, bytes, set);
}

EXPORT int __wrap_pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *parameters)
{
    return is_handle(thread) ? 0 : pthread_setschedparam(thread, policy, parameters);
}

EXPORT int __wrap_pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *parameters)
{
    return pthread_getschedparam(is_handle(thread) ? pthread_self() : thread, policy, parameters);
}

/* The signal stack of the thread of the system is the engine's. A fiber's request is only
 * remembered. */
EXPORT int __wrap_sigaltstack(const stack_t *stack, stack_t *before_stack)
{
    Owned *o;
    if (current == NULL)
        return sigaltstack(stack, before_stack);
    if (current->owned == NULL)
        owned(current)->signal_stack.ss_flags = SS_DISABLE;
    o = current->owned;
    if (before_stack)
        *before_stack = o->signal_stack;
    if (stack)
        o->signal_stack = *stack;
    return 0;
}

/* From the first of these calls on, a switch exchanges the floating-point environment, too. Before
 * it, that of the thread of the system is everybody's. */
#include <fenv.h>

static void uses_floats(void)
{
    if (current == NULL)
        return;
    library.floats = 1;
    library.busy = 1;
}

#define FLOATS(name, parameters, arguments)                                                        \
    EXPORT int __wrap_##name parameters { uses_floats(); return name arguments; }
FLOATS(fesetround, (int how), (how))
FLOATS(fesetenv, (const fenv_t *env), (env))
FLOATS(feupdateenv, (const fenv_t *env), (env))
FLOATS(feholdexcept, (fenv_t *env), (env))
FLOATS(feclearexcept, (int which), (which))
FLOATS(feraiseexcept, (int which), (which))
FLOATS(fesetexceptflag, (const fexcept_t *flags, int which), (flags, which))
FLOATS(feenableexcept, (int which), (which))
FLOATS(fedisableexcept, (int which), (which))
