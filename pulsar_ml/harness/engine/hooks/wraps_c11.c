/* The threads of C11 are those of POSIX by other names, in glibc as well as here. */

#include <threads.h>

static int c11_result(int error)
{
    switch (error) {
    case 0: return thrd_success;
    case EBUSY: return thrd_busy;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
    }
}

#define MUTEX(m) ((pthread_mutex_t *)(void *)(m))
#define CONDITION(c) ((pthread_cond_t *)(void *)(c))

EXPORT int __wrap_mtx_init(mtx_t *m, int kind)
{
    forget_at(m, sizeof *m, PC);
    return mtx_init(m, kind);
}

EXPORT void __wrap_mtx_destroy(mtx_t *m)
{
    forget_at(m, sizeof *m, PC);
    if (current == NULL)
        mtx_destroy(m);
}

/* These call the POSIX ones, whose places would be here: the model gets the caller's instead. */
EXPORT int __wrap_mtx_lock(mtx_t *m)
{
    MODELLED(c11_result(mutex_lock(t, m, mutex_kind(MUTEX(m)), FOREVER, PC)), mtx_lock(m));
}

EXPORT int __wrap_mtx_trylock(mtx_t *m)
{
    MODELLED(c11_result(mutex_trylock(t, m, mutex_kind(MUTEX(m)), PC)), mtx_trylock(m));
}

EXPORT int __wrap_mtx_timedlock(mtx_t *m, const struct timespec *until)
{
    return current ? c11_result(__wrap_pthread_mutex_timedlock(MUTEX(m), until)) : mtx_timedlock(m, until);
}

EXPORT int __wrap_mtx_unlock(mtx_t *m)
{
    MODELLED(c11_result(mutex_unlock(t, m, mutex_kind(MUTEX(m)), PC)), mtx_unlock(m));
}

EXPORT int __wrap_cnd_init(cnd_t *c)
{
    forget_at(c, sizeof *c, PC);
    return cnd_init(c);
}

EXPORT void __wrap_cnd_destroy(cnd_t *c)
{
    forget_at(c, sizeof *c, PC);
    if (current == NULL)
        cnd_destroy(c);
}

EXPORT int __wrap_cnd_wait(cnd_t *c, mtx_t *m)
{
    MODELLED(c11_result(condition_wait(t, c, m, FOREVER, PC)), cnd_wait(c, m));
}

EXPORT int __wrap_cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *until)
{
    if (current == NULL)
        return cnd_timedwait(c, m, until);
    return c11_result(__wrap_pthread_cond_timedwait(CONDITION(c), MUTEX(m), until));
}

EXPORT int __wrap_cnd_signal(cnd_t *c)
{
    MODELLED(wake_condition(t, c, 1, PC), cnd_signal(c));
}

EXPORT int __wrap_cnd_broadcast(cnd_t *c)
{
    MODELLED(wake_condition(t, c, ENGINE_MOST_THREADS, PC), cnd_broadcast(c));
}

/* The function returns an int, which is the low half of what a pthread returns. */
EXPORT int __wrap_thrd_create(thrd_t *thread, thrd_start_t body, void *argument)
{
    union { thrd_start_t c11; void *(*posix)(void *); } function = {body};
    return current ? c11_result(start_pthread(thread, function.posix, argument, PC))
                   : thrd_create(thread, body, argument);
}

EXPORT int __wrap_thrd_join(thrd_t thread, int *result)
{
    void *value = NULL;
    int error;
    if (current == NULL)
        return thrd_join(thread, result);
    error = join_from(thread, &value, PC);
    if (result)
        *result = (int)(intptr_t)value;
    return c11_result(error);
}

EXPORT int __wrap_thrd_detach(thrd_t thread) { return c11_result(__wrap_pthread_detach(thread)); }
EXPORT thrd_t __wrap_thrd_current(void) { return __wrap_pthread_self(); }
EXPORT void __wrap_thrd_yield(void) { __wrap_sched_yield(); }
EXPORT __attribute__((noreturn)) void __wrap_thrd_exit(int result)
{
    __wrap_pthread_exit((void *)(intptr_t)result);
}

EXPORT int __wrap_thrd_sleep(const struct timespec *span, struct timespec *left)
{
    return current ? __wrap_nanosleep(span, left) : thrd_sleep(span, left);
}

EXPORT int __wrap_tss_create(tss_t *key, tss_dtor_t destroy)
{
    return c11_result(__wrap_pthread_key_create(key, destroy));
}
EXPORT void __wrap_tss_delete(tss_t key) { __wrap_pthread_key_delete(key); }
EXPORT void *__wrap_tss_get(tss_t key) { return __wrap_pthread_getspecific(key); }
EXPORT int __wrap_tss_set(tss_t key, void *value) { return c11_result(__wrap_pthread_setspecific(key, value)); }
