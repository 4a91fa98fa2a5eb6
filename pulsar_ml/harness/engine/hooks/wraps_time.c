/* The clocks and sleeps of libc and libstdc++ as the code under test calls them. All clocks are
 * one, which starts at one second; see schedule/time.c. */

#include <sys/time.h>

/* A look is a step: the order in which threads look decides whose time is up first. */
static void tell_time(struct timespec *now)
{
    int64_t at;
    settle(current);
    if (current->controlled)
        announce(current, (uintptr_t)&E.now_ns, 1);
    at = read_clock(current);
    now->tv_sec = at / 1000000000;
    now->tv_nsec = at % 1000000000;
}

EXPORT int __wrap_clock_gettime(clockid_t which, struct timespec *now)
{
    if (current == NULL)
        return clock_gettime(which, now);
    tell_time(now);
    return 0;
}

EXPORT int __wrap_gettimeofday(struct timeval *now, void *zone)
{
    struct timespec at;
    if (current == NULL)
        return gettimeofday(now, zone);
    tell_time(&at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

EXPORT time_t __wrap_time(time_t *now)
{
    struct timespec at;
    if (current == NULL)
        return time(now);
    tell_time(&at);
    if (now)
        *now = at.tv_sec;
    return at.tv_sec;
}

/* std::chrono reads the clock inside libstdc++. */
EXPORT int64_t __wrap__ZNSt6chrono3_V212steady_clock3nowEv(void)
{
    struct timespec now;
    __wrap_clock_gettime(CLOCK_MONOTONIC, &now);
    return nanoseconds(&now);
}

EXPORT int64_t __wrap__ZNSt6chrono3_V212system_clock3nowEv(void)
{
    struct timespec now;
    __wrap_clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(&now);
}

/* The main thread is alone: for it time passes at once. */
static void sleep_until(int64_t until)
{
    settle(current);
    if (current->controlled)
        turn_over(current, until);
    else
        clock_to(until);
}

EXPORT int __wrap_nanosleep(const struct timespec *span, struct timespec *left)
{
    if (current == NULL)
        return nanosleep(span, left);
    sleep_until(later(nanoseconds(span)));
    return 0;
}

EXPORT int __wrap_clock_nanosleep(clockid_t which, int flags, const struct timespec *span, struct timespec *left)
{
    if (current == NULL)
        return clock_nanosleep(which, flags, span, left);
    sleep_until(flags & TIMER_ABSTIME ? nanoseconds(span) : later(nanoseconds(span)));
    return 0;
}

EXPORT int __wrap_usleep(unsigned microseconds)
{
    struct timespec span = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    return __wrap_nanosleep(&span, NULL);
}

EXPORT unsigned __wrap_sleep(unsigned seconds)
{
    struct timespec span = {seconds, 0};
    return __wrap_nanosleep(&span, NULL) ? seconds : 0;
}
