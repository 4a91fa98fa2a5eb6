/* Time: deadlines, sleeps and clocks, wrong and, as NAME_fixed, right. */

#include <errno.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

enum { MILLISECOND = 1000000 };

static int64_t time_now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static struct timespec in_nanoseconds(int64_t span)
{
    int64_t at = time_now() + span;
    return (struct timespec){at / 1000000000, at % 1000000000};
}

/* Two waits that nobody ends: the earlier deadline comes first, whichever thread has it. */
#define DEADLINES(name, first_thread)                                                           \
    JUDGED_PROGRAM(name, 2, pthread_mutex_t lock; pthread_cond_t never; int order[2]; int n; Cell x;) \
    {                                                                                           \
        pthread_mutex_lock(&s->lock);                                                           \
        struct timespec until = {5 + (t != first_thread), 0};                                   \
        while (pthread_cond_timedwait(&s->never, &s->lock, &until) != ETIMEDOUT) {}             \
        s->order[s->n++] = t;                                                                   \
        if (time_now() < (int64_t)until.tv_sec * 1000000000) BROKEN(v, "too early");            \
        pthread_mutex_unlock(&s->lock);                                                         \
    }                                                                                           \
    JUDGE(name) { if (s->order[0] != first_thread) BROKEN(v, "the later deadline came first"); }
DEADLINES(deadline_of_0_fixed, 0)
DEADLINES(deadline_of_1_fixed, 1)

/* A sleep is no synchronisation. */
PROGRAM(sleeps_for_data, 2, Cell flag;)
{
    if (t == 0) st(s->flag, 1, REL);
    else { usleep(1000); if (!ld(s->flag, ACQ)) BROKEN(v, "slept and the data were not there"); }
}
PROGRAM(sleeps_for_data_fixed, 2, Cell flag;)
{
    if (t == 0) st(s->flag, 1, REL);
    else while (!ld(s->flag, ACQ)) usleep(1000);
}
PROGRAM(sleeps_for_nothing, 2, Cell flag;)
{
    if (t) while (ld(s->flag, ACQ) < 2) usleep(1000);
    else st(s->flag, 1, REL);
}

/* Loops that poll the clock. */
PROGRAM(polls_fixed, 2, Cell x;)
{
    int64_t end = time_now() + 10 * MILLISECOND;
    while (time_now() < end && !ld(s->x, RLX)) if (t) pml_yield();
}
PROGRAM(polls_and_counts_fixed, 2, Cell x;)
{
    int64_t end = time_now() + 3600 * (int64_t)1000 * MILLISECOND;
    while (time_now() < end) { add(s->x, 1, RLX); if (t) pml_yield(); }
}

/* A few looks at the clock do not make it run: the work in between takes no hour. */
PROGRAM(clock_is_calm_fixed, 2, Cell x;)
{
    int64_t begun = time_now();
    for (int i = 0; i < 8; i++) { add(s->x, 1, RLX); (void)time_now(); }
    if (time_now() - begun > MILLISECOND) BROKEN(v, "the clock ran away");
}

/* A thread whose wait ended by its deadline takes no signal from one that still waits. */
PROGRAM(signal_for_the_waiting_fixed, 3, pthread_mutex_t lock; pthread_cond_t set; long waits; long ready;)
{
    pthread_mutex_lock(&s->lock);
    if (t == 0) {
        struct timespec until = in_nanoseconds(MILLISECOND);
        pthread_cond_timedwait(&s->set, &s->lock, &until);
    } else if (t == 1) {
        s->waits = 1;
        while (!s->ready) pthread_cond_wait(&s->set, &s->lock);
    } else {
        pthread_mutex_unlock(&s->lock);
        usleep(2000);
        pthread_mutex_lock(&s->lock);
        s->ready = 1;
        pthread_cond_broadcast(&s->set);
    }
    pthread_mutex_unlock(&s->lock);
}
