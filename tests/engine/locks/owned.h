/* Small programs about what belongs to one thread and what happens once, wrong and, as NAME_fixed,
 * right. */

#include <errno.h>
#include <fenv.h>
#include <sched.h>
#include <threads.h>
#include <unistd.h>

#define STEP(t) add(s->x, (t) + 1, SEQ)

/* Thread-local variables
 * ---------------------------------------------------------------------------- */

static _Thread_local long mine, begun = 7;
static _Thread_local struct { char c; _Alignas(64) long x; } wide = {1, 2};
PROGRAM(locals_fixed, 3, Cell x;)
{
    if (mine != 0 || begun != 7 || wide.x != 2) BROKEN(v, "a variable of another thread");
    mine = t + 1; begun += t; wide.x = t;
    if ((uintptr_t)&wide.x % 64) BROKEN(v, "not aligned");
    STEP(t);
    if (mine != t + 1 || begun != 7 + t || wide.x != t) BROKEN(v, "another thread wrote it");
}
#define SHARED_LOCAL(name, order)                                                               \
    PROGRAM(name, 2, _Atomic(long *) at; Cell done;)                                            \
    {                                                                                           \
        long *other = NULL;                                                                     \
        if (t == 0) { mine = 5; st(s->at, &mine, order); while (!ld(s->done, ACQ)) sched_yield(); } \
        else { while ((other = ld(s->at, ACQ)) == NULL) sched_yield();                          \
               if (*other != 5) BROKEN(v, "stale");                                     \
               st(s->done, 1, REL); }                                                           \
    }
SHARED_LOCAL(local_shared, RLX)
SHARED_LOCAL(local_shared_fixed, REL)
static void *shows_local(void *at) { mine = 9; *(long **)at = &mine; return NULL; }
PROGRAM(local_outlived, 1, Cell x; long *at;)
{
    pthread_t id;
    pthread_create(&id, NULL, shows_local, &s->at);
    pthread_join(id, NULL);
    if (*s->at != 9) BROKEN(v, "the thread is gone");
}

/* Other threads' pointers into the stack of a thread that ended: they find what it left there. */
enum { LEFT = 48 };
static void *leaves_cells(void *at)
{
    Cell cells[LEFT];
    for (int i = 0; i < LEFT; i++) st(cells[i], i + 1, RLX);
    st(*(_Atomic(Cell *) *)at, cells, REL);
    return NULL;
}
PROGRAM(local_left, 2, _Atomic(Cell *) at;)
{
    pthread_t id;
    if (t == 0) return;
    pthread_create(&id, NULL, leaves_cells, (void *)&s->at);
    pthread_join(id, NULL);
    Cell *cells = ld(s->at, ACQ);
    for (int i = 0; i < LEFT; i++)
        if (ld(cells[i], RLX) != i + 1) BROKEN(v, "the engine wrote there");
}

/* errno, floating point, identity
 * --------------------------------------------------------------------- */

PROGRAM(errno_fixed, 3, Cell x;)
{
    errno = 0;
    STEP(t);
    if (t == 1) (void)!close(-1); else if (t == 2) (void)!chdir("/nowhere/at/all");
    STEP(t);
    if (errno != (t == 1 ? EBADF : t == 2 ? ENOENT : 0)) BROKEN(v, "the errno of another thread");
}
PROGRAM(rounding_fixed, 3, Cell x; volatile double third[3];)
{
    static const int HOW[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD};
    if (fegetround() != FE_TONEAREST) BROKEN(v, "the rounding of an earlier execution");
    fesetround(HOW[t]);
    STEP(t);
    volatile double one = 1, three = 3;
    s->third[t] = one / three;
    if (fegetround() != HOW[t]) BROKEN(v, "the rounding of another thread");
    if ((s->third[t] * 3 > 1) != (t == 1)) BROKEN(v, "the result of another rounding");
}
PROGRAM(identity_fixed, 3, Cell x; Cell seen;)
{
    pthread_t self = pthread_self();
    long one = 1L << (gettid() % 60);
    if (add(s->seen, one, SEQ) & one) BROKEN(v, "two threads with one number");
    if (!pthread_equal(self, pthread_self())) BROKEN(v, "a thread that is another one later");
    if (pthread_setname_np(self, "worker")) BROKEN(v, "no name");
}
PROGRAM(signal_stack_fixed, 2, Cell x; char stack[2][64];)
{
    stack_t mine_too = {.ss_sp = s->stack[t], .ss_size = sizeof s->stack[t]}, now;
    sigaltstack(NULL, &now);
    if (!(now.ss_flags & SS_DISABLE)) BROKEN(v, "a stack that nobody gave");
    sigaltstack(&mine_too, NULL);
    STEP(t);
    sigaltstack(NULL, &now);
    if (now.ss_sp != s->stack[t]) BROKEN(v, "the stack of another thread");
}

/* Once
 * ------------------------------------------------------------------------------------------------
 */

static pthread_once_t once_control = PTHREAD_ONCE_INIT;
static pthread_key_t once_key;
static long once_runs;
static Cell once_steps;
static void initialise(void)
{
    atomic_fetch_add(&once_steps, 1);
    once_runs++;
    pthread_key_create(&once_key, free);
    atomic_fetch_add(&once_steps, 1);
}
#define ONCE(name, call)                                                                        \
    JUDGED_PROGRAM(name, 3, Cell x;)                                               \
    {                                                                                           \
        STEP(t);                                                                                \
        call;                                                                                   \
        if (once_runs == 0) BROKEN(v, "not initialised");                                       \
        if (pthread_getspecific(once_key)) BROKEN(v, "a value of another thread");              \
        long *own = malloc(sizeof *own);                                                        \
        *own = t;                                                                               \
        pthread_setspecific(once_key, own);                                                     \
        STEP(t);                                                                                \
        own = pthread_getspecific(once_key);                                                    \
        if (own == NULL || *own != t) BROKEN(v, "a value of another thread");                   \
    }                                                                                           \
    JUDGE(name) { if (once_runs != 1) BROKEN(v, "not once"); once_runs = 0; }
ONCE(once_by_hand, if (!once_runs) initialise())
ONCE(once_fixed, pthread_once(&once_control, initialise))
static once_flag c11_once = ONCE_FLAG_INIT;
ONCE(c11_once_fixed, call_once(&c11_once, initialise))
PROGRAM(value_leaks, 2, Cell x; pthread_once_t once;)
{
    pthread_key_t key;
    STEP(t);
    pthread_key_create(&key, NULL);
    pthread_setspecific(key, malloc(8));
}

/* Barriers and spin locks
 * ----------------------------------------------------------------------------- */

#define MEETS(name, wait_part)                                                                  \
    PROGRAM(name, 2, pthread_barrier_t b; long x[2]; Cell ready;)                               \
    {                                                                                           \
        if (t == 0) { pthread_barrier_init(&s->b, NULL, 2); st(s->ready, 1, REL); }             \
        while (!ld(s->ready, ACQ)) sched_yield();                                               \
        for (int round = 1; round < 3; round++) {                                               \
            s->x[t] = round;                                                                    \
            wait_part;                                                                          \
            if (s->x[1 - t] != round) BROKEN(v, "the other one was not there");                 \
            wait_part;                                                                          \
        }                                                                                       \
    }
MEETS(meets_nobody, (void)0)
MEETS(meets_fixed, pthread_barrier_wait(&s->b))
PROGRAM(meets_too_many, 2, Cell x; pthread_barrier_t b;)
{
    if (t == 0) { pthread_barrier_init(&s->b, NULL, 3); st(s->x, 1, SEQ); }
    else while (!ld(s->x, SEQ)) sched_yield();
    pthread_barrier_wait(&s->b);
}
JUDGED_PROGRAM(spin_fixed, 3, pthread_spinlock_t l; long x; Cell inside;)
{
    pthread_spin_lock(&s->l); st(s->inside, t, RLX); s->x++; pthread_spin_unlock(&s->l);
}
JUDGE(spin_fixed) { if (s->x != 3) BROKEN(v, "an update was lost"); }

/* C11 threads
 * ----------------------------------------------------------------------------------------- */

typedef struct { mtx_t m; cnd_t c; long ready, sum; tss_t key; } C11;
static int c11_adds(void *of)
{
    C11 *c = of;
    mtx_lock(&c->m);
    while (!c->ready) cnd_wait(&c->c, &c->m);
    c->sum += (long)(intptr_t)tss_get(c->key) + 1;
    mtx_unlock(&c->m);
    return 17;
}
#define C11_THREADS(name, joined)                                                               \
    PROGRAM(name, 1, Cell x; C11 c;)                                                            \
    {                                                                                           \
        thrd_t ids[2]; int result = 0;                                                          \
        mtx_init(&s->c.m, mtx_plain); cnd_init(&s->c.c); tss_create(&s->c.key, NULL);           \
        tss_set(s->c.key, (void *)100);                                                         \
        for (int i = 0; i < 2; i++) thrd_create(&ids[i], c11_adds, &s->c);                      \
        mtx_lock(&s->c.m); s->c.ready = 1; cnd_broadcast(&s->c.c); mtx_unlock(&s->c.m);         \
        for (int i = 0; i < joined; i++) {                                                      \
            thrd_join(ids[i], &result);                                                         \
            if (result != 17) BROKEN(v, "another result");                                      \
        }                                                                                       \
        if (s->c.sum != 2) BROKEN(v, "a sum that is not whole");                                \
        for (int i = joined; i < 2; i++) thrd_join(ids[i], NULL);                               \
        mtx_destroy(&s->c.m); cnd_destroy(&s->c.c);                                             \
    }
C11_THREADS(c11_unjoined, 1)
C11_THREADS(c11_fixed, 2)

/* A mutex of Python 3.13, or one that does what the headers of 3.13 do
 * --------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030D0000
#define py_lock(m) PyMutex_Lock(m)
#define py_unlock(m) PyMutex_Unlock(m)
#else
typedef _Atomic unsigned char PyMutex;
void PyMutex_Lock(unsigned char *bits);
void PyMutex_Unlock(unsigned char *bits);
static void py_lock(PyMutex *bits)
{
    unsigned char none = 0;
    if (!atomic_compare_exchange_strong(bits, &none, 1)) PyMutex_Lock((unsigned char *)bits);
}
static void py_unlock(PyMutex *bits)
{
    unsigned char held = 1;
    if (!atomic_compare_exchange_strong(bits, &held, 0)) PyMutex_Unlock((unsigned char *)bits);
}
#endif
#define PYTHON_MUTEX(name, last)                                                                \
    JUDGED_PROGRAM(name, 3, PyMutex m; long x; Cell inside;)                                    \
    {                                                                                           \
        py_lock(&s->m); st(s->inside, t, RLX); s->x++; if (t != 2 || last) py_unlock(&s->m);    \
    }                                                                                           \
    JUDGE(name) { if (s->x != 3) BROKEN(v, "an update was lost"); }
PYTHON_MUTEX(python_kept, 0)
PYTHON_MUTEX(python_fixed, 1)

/* Annotations: this lock's order is where instrumentation does not see it
 * -------------------------------- */

void __tsan_acquire(void *at);
void __tsan_release(void *at);
void AnnotateHappensBefore(const char *file, int line, const volatile void *at);
void AnnotateHappensAfter(const char *file, int line, const volatile void *at);
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *at, size_t bytes, const char *what);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void __tsan_mutex_pre_lock(void *at, unsigned flags);
void __tsan_mutex_post_lock(void *at, unsigned flags, int recursion);
int __tsan_mutex_pre_unlock(void *at, unsigned flags);
void __tsan_mutex_post_unlock(void *at, unsigned flags);

#define NOTED_HANDOVER(name, released, acquired)                                                \
    PROGRAM(name, 2, Cell x; long data;)                                                        \
    {                                                                                           \
        if (t == 0) { s->data = 3; released; st(s->x, 1, RLX); }                                \
        else if (ld(s->x, RLX)) { acquired; if (s->data != 3) BROKEN(v, "stale"); }             \
    }
NOTED_HANDOVER(noted_not, , )
NOTED_HANDOVER(noted_half, __tsan_release(&s->x), )
NOTED_HANDOVER(noted_fixed, __tsan_release(&s->x), __tsan_acquire(&s->x))
NOTED_HANDOVER(noted_old_fixed, AnnotateHappensBefore(__FILE__, __LINE__, &s->x),
               AnnotateHappensAfter(__FILE__, __LINE__, &s->x))
NOTED_HANDOVER(noted_lock_fixed,
               __tsan_mutex_pre_unlock(&s->x, 0); __tsan_mutex_post_unlock(&s->x, 0),
               __tsan_mutex_pre_lock(&s->x, 0); __tsan_mutex_post_lock(&s->x, 0, 0))
NOTED_HANDOVER(noted_readers, __tsan_mutex_pre_unlock(&s->x, 8), __tsan_mutex_post_lock(&s->x, 8, 0))
NOTED_HANDOVER(noted_benign_fixed, AnnotateBenignRaceSized(__FILE__, __LINE__, &s->data, 8, ""), )
NOTED_HANDOVER(noted_ignored_fixed, , AnnotateIgnoreReadsBegin("", 0); long d = s->data;
               AnnotateIgnoreReadsEnd("", 0); (void)d; return)

/* A race that is known, and one behind it
 * ------------------------------------------------------------------ */

static __attribute__((noinline)) void counts_hits(long *hits) { ++*hits; }
#define KNOWN_RACE(name, behind)                                                                \
    PROGRAM(name, 2, Cell x; long hits; long other;)                                            \
    {                                                                                           \
        counts_hits(&s->hits);                                                                  \
        STEP(t);                                                                                \
        counts_hits(&s->hits);                                                                  \
        behind;                                                                                 \
    }
KNOWN_RACE(known_race, (void)0)
KNOWN_RACE(known_race_and_more, s->other++)
PROGRAM(known_race_of_atomics, 2, Cell x;)
{
    if (t) st(s->x, 1, RLX); else *(long *)&s->x = 2;
}
