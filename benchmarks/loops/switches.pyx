"""Two fibers of the engine that only switch, at random: the floor of a step."""

from __future__ import annotations

cdef extern from *:
    """
    #define _GNU_SOURCE
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #include <time.h>
    #pragma GCC diagnostic ignored "-Wunused-function"
    #pragma GCC diagnostic ignored "-Wunused-variable"
    #include "pulsar_ml/harness/engine/state.h"
    #include "pulsar_ml/harness/engine/execution/random.c"
    #include "pulsar_ml/harness/engine/schedule/fiber.c"

    static Fiber bare_fibers[3];
    static int bare_running;
    static volatile int bare_last;
    static int64_t bare_left;

    static void bare_step(void)
    {
        int from = bare_running, to = --bare_left < 0 ? 2 : (int)draw_below(2);
        bare_running = to;
        fiber_switch(&bare_fibers[from], &bare_fibers[to]);
    }

    /* Two places of the code, as a program's load and its store. */
    static __attribute__((noinline)) void bare_load(void) { bare_step(); bare_last = 1; }
    static __attribute__((noinline)) void bare_store(void) { bare_step(); bare_last = 2; }

    static void bare_thread(void)
    {
        for (;;) {
            bare_load();
            bare_store();
        }
    }

    /* Seconds of processor time for so many steps; below 0 without memory. */
    static double bare_switches(int64_t steps)
    {
        struct timespec before, after;
        static char *stacks[2];       /* taken once */
        for (int i = 0; i < 2; i++) {
            if (stacks[i] == NULL && (stacks[i] = stack_new()) == NULL)
                return -1;
            bare_fibers[i] = fiber_prepare(stacks[i] + STACK_BYTES - i * 448, bare_thread);
        }
        random_start(1, 1);
        bare_left = steps;
        bare_running = 0;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        fiber_switch(&bare_fibers[2], &bare_fibers[0]);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        return (double)(after.tv_sec - before.tv_sec) +
               (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    }
    """
    double bare_switches(int steps) nogil


def seconds(int steps) -> float:
    """The processor time of so many steps."""
    return bare_switches(steps)
