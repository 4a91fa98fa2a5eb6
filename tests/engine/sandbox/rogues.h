/* Code under test that takes its process along: each does so when thread 1 comes first, so that it
 * depends on the schedule which execution it is. */

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#define ROGUE(name, deed)                                                                       \
    PROGRAM(name, 2, Cell first;)                                                               \
    {                                                                                           \
        long none = 0;                                                                          \
        if (cas(s->first, &none, t + 1, SEQ) && t == 1) { deed; }                               \
    }

/* Overwrites the writable memory whose line in /proc/self/maps holds a text, as a wild pointer
 * would. */
static __attribute__((no_sanitize("thread"), noinline)) void scribble(const char *what)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], rights[8];
    unsigned long low, high;
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, what) && sscanf(line, "%lx-%lx %7s", &low, &high, rights) == 3 && rights[1] == 'w')
            for (volatile char *at = (volatile char *)low; at < (volatile char *)high; at++)
                *at = 0x5A;
}

/* The engine's clock comes by a signal. */
static __attribute__((no_sanitize("thread"), noinline)) void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

static __attribute__((no_sanitize("thread"), noinline)) void read_for_ever(void)
{
    int ends[2];
    char byte;
    if (pipe(ends) == 0)
        while (read(ends[0], &byte, 1) < 0) ;
}

/* No handler of the engine's ends this one. */
static __attribute__((no_sanitize("thread"), noinline)) void compute_for_ever(void)
{
    block_signals();
    for (volatile unsigned turns = 0;; turns++) ;
}

ROGUE(overwrites_the_engine, scribble("_engine."))
ROGUE(overwrites_the_stack, scribble("[stack]"))
ROGUE(overwrites_the_heap, scribble("[heap]"); abort())
ROGUE(ends_the_process, _exit(3))
ROGUE(kills_the_process, kill(getpid(), SIGKILL))
ROGUE(reads_for_ever, block_signals(); read_for_ever())
ROGUE(computes_for_ever, compute_for_ever())
ROGUE(behaves, (void)0)

/* These block as well, and the engine sees it. */
ROGUE(waits_for_input, read_for_ever())

/* A lock as a library that was not recompiled takes it: the linker does not redirect the call. */
static pthread_mutex_t of_library;
static __attribute__((no_sanitize("thread"), noinline))
void in_library(int (*call)(pthread_mutex_t *), const char *name)
{
    *(void **)&call = dlsym(RTLD_DEFAULT, name);
    call(&of_library);
}
PROGRAM(waits_in_library, 2, Cell x;)
{
    in_library(NULL, "pthread_mutex_lock");
    add(s->x, 1, SEQ);
    add(s->x, 1, SEQ);
    in_library(NULL, "pthread_mutex_unlock");
}
/* It waits until a thread of the system comes, which is no deadlock. */
PROGRAM(sleeps_in_library, 2, Cell x;)
{
    int (*sleeps)(useconds_t);
    add(s->x, 1, SEQ);
    *(void **)&sleeps = dlsym(RTLD_DEFAULT, "usleep");
    sleeps(1000);
    add(s->x, 1, SEQ);
}
