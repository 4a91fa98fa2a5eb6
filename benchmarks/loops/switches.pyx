"""Two fibers of the engine that only switch, at random: the floor of a step, and what the engine
adds to a switch for the words that belong to a thread.
"""

from __future__ import annotations

cdef extern from *:
    """
    #define _GNU_SOURCE
    #include <errno.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #include <time.h>
    #pragma GCC diagnostic ignored "-Wunused-function"
    #pragma GCC diagnostic ignored "-Wunused-variable"
    #include "pulsar_ml/harness/engine/state.h"
    #include "pulsar_ml/harness/engine/execution/random.c"
    #include "pulsar_ml/harness/engine/schedule/fiber.c"

    static Thread switching[3];
    static int switching_now;
    static volatile int switching_last;
    static int64_t switching_left;

    static int next_switch(void)
    {
        return switching_now = --switching_left < 0 ? 2 : (int)draw_below(2);
    }

    static void bare_step(void)
    {
        int from = switching_now, to = next_switch();
        fiber_switch(&switching[from].fiber, &switching[to].fiber);
    }

    static void engine_step(void)
    {
        int from = switching_now, to = next_switch();
        switch_to(&switching[from], &switching[to]);
    }

    /* Two places of the code each, as a program's load and its store. */
    #define SWITCHING(name)                                                                         \
        static __attribute__((noinline)) void name##_load(void) { name##_step(); switching_last = 1; }  \
        static __attribute__((noinline)) void name##_store(void) { name##_step(); switching_last = 2; } \
        static void name##_thread(void)                                                             \
        {                                                                                           \
            for (;;) {                                                                              \
                name##_load();                                                                      \
                name##_store();                                                                     \
            }                                                                                       \
        }
    SWITCHING(bare)
    SWITCHING(engine)

    enum { BARE, NOTHING_IN_USE, WORDS_IN_USE, FLOATS_IN_USE };

    /* Seconds of processor time for so many steps; below 0 without memory. */
    static double time_switches(int64_t steps, int way)
    {
        static uint64_t exceptions[2];
        static char *stacks[2];       /* taken once */
        struct timespec before, after;
        for (int i = 0; i < 2; i++) {
            if (stacks[i] == NULL && (stacks[i] = stack_new()) == NULL)
                return -1;
            switching[i].fiber = fiber_prepare(stacks[i] + STACK_BYTES - i * 448,
                                               way == BARE ? bare_thread : engine_thread);
        }
        library.exceptions = exceptions;
        library.error = &errno;
        library.floats = way == FLOATS_IN_USE;
        library.busy = way >= WORDS_IN_USE;
        errno = 0;
        for (int i = 0; i < 3; i++)
            get_library_state(&switching[i].library);
        random_start(1, 1);
        switching_left = steps;
        switching_now = 0;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        fiber_switch(&switching[2].fiber, &switching[0].fiber);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        return (double)(after.tv_sec - before.tv_sec) +
               (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    }
    """
    enum: BARE, NOTHING_IN_USE, WORDS_IN_USE, FLOATS_IN_USE
    double time_switches(int steps, int way) nogil

WAYS = {
    "bare": BARE,
    "nothing in use": NOTHING_IN_USE,
    "errno or an exception in use": WORDS_IN_USE,
    "floating-point environment in use": FLOATS_IN_USE,
}


def seconds(int steps, str way="bare") -> float:
    """The processor time of so many steps."""
    return time_switches(steps, WAYS[way])
