/* Small programs with locks of libc and threads that the code under test starts, wrong and, as
 * NAME_fixed, right. */

#include <errno.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/futex.h>

/* One second after the beginning of an execution. */
static const struct timespec SOON = {2, 0};

#define lock(m) pthread_mutex_lock(&s->m)
#define unlock(m) pthread_mutex_unlock(&s->m)

/* Mutexes
 * ------------------------------------------------------------------------------------------ */

#define EXCLUSION(name, before, after)                                                          \
    JUDGED_PROGRAM(name, 3, pthread_mutex_t m; Cell inside; long x;)                            \
    {                                                                                           \
        for (int i = 0; i < 2; i++) { before; st(s->inside, t, RLX); s->x++; after; }           \
    }                                                                                           \
    JUDGE(name) { if (s->x != 6) BROKEN(v, "an update was lost"); }
EXCLUSION(unlocked, if (t) lock(m), if (t) unlock(m))
EXCLUSION(locked_fixed, lock(m), unlock(m))
EXCLUSION(try_ignored, int got = pthread_mutex_trylock(&s->m), if (got == 0) unlock(m))
EXCLUSION(try_fixed, while (pthread_mutex_trylock(&s->m)) sched_yield(), unlock(m))
EXCLUSION(timed_ignored, int got = pthread_mutex_timedlock(&s->m, &SOON), if (got == 0) unlock(m))
EXCLUSION(timed_fixed, while (pthread_mutex_timedlock(&s->m, &SOON)) {}, unlock(m))

#define CYCLE(name, last)                                                                       \
    PROGRAM(name, 3, pthread_mutex_t m[3];)                                                     \
    {                                                                                           \
        int first = t == 2 && last ? 0 : t, second = t == 2 && last ? 2 : (t + 1) % 3;          \
        lock(m[first]); lock(m[second]); unlock(m[second]); unlock(m[first]);                   \
    }
CYCLE(cycle_of_three, 0)
CYCLE(cycle_of_three_fixed, 1)

PROGRAM(lock_twice, 2, pthread_mutex_t m;)
{
    lock(m); if (t) lock(m); unlock(m);
}
PROGRAM(unlock_unheld, 2, pthread_mutex_t m;)
{
    lock(m); unlock(m); if (t) unlock(m);
}
PROGRAM(destroy_held, 2, pthread_mutex_t m; Cell held;)
{
    if (t == 0) { lock(m); st(s->held, 1, SEQ); unlock(m); }
    else if (ld(s->held, SEQ) == 1) pthread_mutex_destroy(&s->m);
}
PROGRAM(destroy_held_fixed, 2, pthread_mutex_t m; Cell held;)
{
    if (t == 0) { lock(m); st(s->held, 1, SEQ); unlock(m); st(s->held, 2, SEQ); }
    else if (ld(s->held, SEQ) == 2) pthread_mutex_destroy(&s->m);
}
/* An unlock is a step: what the section did is seen before it. */
#define SEEN(name, ours, theirs, unlocks, before, after)                                        \
    PROGRAM(name, 2, pthread_mutex_t m; pthread_rwlock_t l; Cell seen;)                         \
    {                                                                                           \
        if (t == 0) { ours; before; unlocks; after; }                                           \
        else if (ld(s->seen, SEQ)) {                                                            \
            if (theirs) BROKEN(v, "the lock is still held"); else unlocks; }                    \
    }
#define SEES_MUTEX lock(m), pthread_mutex_trylock(&s->m), unlock(m)
#define SEES_READERS                                                                            \
    pthread_rwlock_rdlock(&s->l), pthread_rwlock_trywrlock(&s->l), pthread_rwlock_unlock(&s->l)
#define SEES_WRITER                                                                             \
    pthread_rwlock_wrlock(&s->l), pthread_rwlock_tryrdlock(&s->l), pthread_rwlock_unlock(&s->l)
#define SEEN_AT_ONCE(name, uses) SEEN(name, uses, st(s->seen, 1, SEQ), )
#define SEEN_BEHIND(name, uses) SEEN(name, uses, , st(s->seen, 1, SEQ))
SEEN_AT_ONCE(mutex_seen, SEES_MUTEX)
SEEN_BEHIND(mutex_seen_fixed, SEES_MUTEX)
SEEN_AT_ONCE(readers_seen, SEES_READERS)
SEEN_BEHIND(readers_seen_fixed, SEES_READERS)
SEEN_AT_ONCE(writer_seen, SEES_WRITER)
SEEN_BEHIND(writer_seen_fixed, SEES_WRITER)
typedef struct { pthread_mutex_t m; long x; } Guarded;
#define FREED(name, between)                                                                    \
    PROGRAM(name, 2, Cell x;)                                                                   \
    {                                                                                           \
        Guarded *box = calloc(1, sizeof *box);                                                  \
        pthread_mutex_lock(&box->m); add(s->x, 1, SEQ); between; free(box);                     \
    }
FREED(freed_held, )
FREED(freed_held_fixed, pthread_mutex_unlock(&box->m))

/* Condition variables
 * ------------------------------------------------------------------------------ */

#define WAKING(name, wait_part, wake_part)                                                      \
    PROGRAM(name, 2, pthread_mutex_t m; pthread_cond_t c; Cell ready; long data;)               \
    {                                                                                           \
        if (t) { wait_part } else { wake_part }                                                 \
    }
#define WAIT pthread_cond_wait(&s->c, &s->m)
#define WAIT_TIMED pthread_cond_timedwait(&s->c, &s->m, &SOON)
#define WAKE lock(m); s->data = 7; st(s->ready, 1, RLX); pthread_cond_signal(&s->c); unlock(m);
#define SEES if (s->data != 7) BROKEN(v, "woken before the data were there");
WAKING(wake_lost, if (!ld(s->ready, SEQ)) { lock(m); WAIT; unlock(m); }, WAKE)
WAKING(wake_lost_fixed, lock(m); while (!ld(s->ready, RLX)) WAIT; unlock(m); SEES, WAKE)
WAKING(wake_spurious, lock(m); if (!ld(s->ready, RLX)) WAIT; SEES unlock(m);, WAKE)
WAKING(wake_late, lock(m); if (!ld(s->ready, RLX)) WAIT_TIMED; SEES unlock(m);, WAKE)
WAKING(wake_late_fixed, lock(m); while (!ld(s->ready, RLX)) WAIT_TIMED; SEES unlock(m);, WAKE)
WAKING(wake_nobody_fixed, lock(m); int late = 0; while (!late) late = WAIT_TIMED; unlock(m);, lock(m); unlock(m);)

#define WAKING_TWO(name, wake_them)                                                             \
    PROGRAM(name, 3, pthread_mutex_t m; pthread_cond_t c; long ready;)                          \
    {                                                                                           \
        lock(m);                                                                                \
        if (t) { while (!s->ready) WAIT; }                                                      \
        else { s->ready = 1; wake_them(&s->c); }                                                \
        unlock(m);                                                                              \
    }
WAKING_TWO(wake_one_of_two, pthread_cond_signal)
WAKING_TWO(wake_two_fixed, pthread_cond_broadcast)

/* Read-write locks
 * --------------------------------------------------------------------------------- */

#define READERS(name, how)                                                                      \
    PROGRAM(name, 3, pthread_rwlock_t l; long a; long b;)                                       \
    {                                                                                           \
        if (t == 0) { how(&s->l); s->a++; s->b++; }                                             \
        else { pthread_rwlock_rdlock(&s->l); if (s->a != s->b) BROKEN(v, "half of a write"); }  \
        pthread_rwlock_unlock(&s->l);                                                           \
    }
READERS(writer_reads, pthread_rwlock_rdlock)
READERS(writer_writes_fixed, pthread_rwlock_wrlock)
JUDGED_PROGRAM(readers_share_fixed, 2, pthread_rwlock_t l; Cell inside; Cell both;)
{
    pthread_rwlock_rdlock(&s->l);
    if (add(s->inside, 1, SEQ) == 1) st(s->both, 1, SEQ);
    add(s->inside, -1, SEQ);
    pthread_rwlock_unlock(&s->l);
}
JUDGE(readers_share_fixed) { OUTCOME(readers_share_fixed, ld(s->both, SEQ)); }
PROGRAM(upgrade, 2, pthread_rwlock_t l;)
{
    pthread_rwlock_rdlock(&s->l); pthread_rwlock_wrlock(&s->l);
    pthread_rwlock_unlock(&s->l); pthread_rwlock_unlock(&s->l);
}
PROGRAM(upgrade_fixed, 2, pthread_rwlock_t l;)
{
    pthread_rwlock_rdlock(&s->l);
    int got = pthread_rwlock_trywrlock(&s->l);
    if (got == 0) pthread_rwlock_unlock(&s->l);
    pthread_rwlock_unlock(&s->l);
}
PROGRAM(rwlock_unheld, 2, pthread_rwlock_t l;)
{
    if (t) pthread_rwlock_unlock(&s->l);
    else { pthread_rwlock_rdlock(&s->l); pthread_rwlock_rdlock(&s->l);
           pthread_rwlock_unlock(&s->l); pthread_rwlock_unlock(&s->l); }
}

/* Semaphores, from 0
 * -------------------------------------------------------------------------------- */

#define HANDED_OVER(name, taken)                                                                \
    PROGRAM(name, 2, sem_t full; long x;)                                                       \
    {                                                                                           \
        if (t == 0) { s->x = 1; sem_post(&s->full); }                                           \
        else { taken; if (s->x != 1) BROKEN(v, "taken before it was there"); }                  \
    }
HANDED_OVER(semaphore_ignored, (void)sem_trywait(&s->full))
HANDED_OVER(semaphore_fixed, sem_wait(&s->full))
HANDED_OVER(semaphore_late, (void)sem_timedwait(&s->full, &SOON))
HANDED_OVER(semaphore_late_fixed, while (sem_timedwait(&s->full, &SOON)) {})
PROGRAM(semaphore_short, 3, sem_t full;)
{
    if (t == 0) sem_post(&s->full); else sem_wait(&s->full);
}
/* Thread 1 looks at the value twice. */
#define LOOKING(name, wrong)                                                                    \
    PROGRAM(name, 2, sem_t full;)                                                               \
    {                                                                                           \
        int first, second;                                                                      \
        if (t == 0) { sem_post(&s->full); return; }                                             \
        sem_getvalue(&s->full, &first);                                                         \
        sem_getvalue(&s->full, &second);                                                        \
        OUTCOME(name, 2 * first + second);                                                      \
        if (wrong) BROKEN(v, "the value changed between two looks");                            \
    }
LOOKING(semaphore_looks, first != second)
LOOKING(semaphore_looks_fixed, first > second)

/* A look orders nothing. */
#define POLLED(name, taken)                                                                     \
    PROGRAM(name, 2, sem_t full; long x;)                                                       \
    {                                                                                           \
        int value = 0;                                                                          \
        if (t == 0) { s->x = 1; sem_post(&s->full); return; }                                   \
        while (sem_getvalue(&s->full, &value), value == 0) sched_yield();                       \
        taken;                                                                                  \
        if (s->x != 1) BROKEN(v, "seen before it was there");                                   \
    }
POLLED(semaphore_polled, )
POLLED(semaphore_polled_fixed, sem_wait(&s->full))

JUDGED_PROGRAM(semaphore_main_fixed, 2, sem_t full; Cell x;)
{
    add(s->x, 1, SEQ);
    sem_post(&s->full);
}
JUDGE(semaphore_main_fixed)
{
    int left = 0;
    sem_wait(&s->full);
    sem_wait(&s->full);
    sem_getvalue(&s->full, &left);
    if (left) BROKEN(v, "two were posted and two taken");
}

/* Futexes
 * ------------------------------------------------------------------------------------------- */

#define FUTEX(name, order)                                                                      \
    PROGRAM(name, 2, atomic_uint word; long x;)                                                 \
    {                                                                                           \
        if (t == 0) { s->x = 1; order }                                                         \
        else { while (!atomic_load_explicit(&s->word, ACQ))                                     \
                   syscall(SYS_futex, &s->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);          \
               if (s->x != 1) BROKEN(v, "woken before"); }                                      \
    }
FUTEX(futex_lost,
      syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
      atomic_store_explicit(&s->word, 1, REL);)
FUTEX(futex_fixed,
      atomic_store_explicit(&s->word, 1, REL);
      syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);)

/* Threads
 * ------------------------------------------------------------------------------------------- */

static void *adds_one(void *x) { ++*(long *)x; return x; }
static void *adds_locked(void *guarded)
{
    Guarded *g = guarded;
    pthread_mutex_lock(&g->m); g->x++; pthread_mutex_unlock(&g->m);
    return NULL;
}
#define STARTS(name, before_join, after_join)                                                   \
    PROGRAM(name, 2, long x[2]; Cell y;)                                                        \
    {                                                                                           \
        pthread_t id; void *value = NULL;                                                       \
        s->x[t] = 1; add(s->y, 1, SEQ);                                                         \
        pthread_create(&id, NULL, adds_one, &s->x[t]);                                          \
        before_join; pthread_join(id, &value); after_join;                                      \
        if (value != &s->x[t] || s->x[t] != 2) BROKEN(v, "a join that did not wait");           \
    }
STARTS(started_race, s->x[t]++, )
STARTS(started_fixed, , )
STARTS(joined_twice, , pthread_join(id, NULL))

#define MANY(name, joined)                                                                      \
    PROGRAM(name, 1, Guarded g;)                                                                \
    {                                                                                           \
        pthread_t id[6];                                                                        \
        for (int i = 0; i < 6; i++) pthread_create(&id[i], NULL, adds_locked, &s->g);           \
        for (int i = 0; i < joined; i++) pthread_join(id[i], NULL);                             \
        if (s->g.x != 6) BROKEN(v, "an update was lost");                                       \
    }
MANY(many_started, 5)
MANY(many_started_fixed, 6)

#define JOINS_LOCKED(name, before, after)                                                       \
    PROGRAM(name, 2, Guarded g;)                                                                \
    {                                                                                           \
        pthread_t id;                                                                           \
        if (t) return;                                                                          \
        pthread_mutex_lock(&s->g.m);                                                            \
        pthread_create(&id, NULL, adds_locked, &s->g);                                          \
        before; pthread_join(id, NULL); after;                                                  \
    }
JOINS_LOCKED(join_deadlock, , pthread_mutex_unlock(&s->g.m))
JOINS_LOCKED(join_deadlock_fixed, pthread_mutex_unlock(&s->g.m), )
