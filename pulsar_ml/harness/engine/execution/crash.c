/* Signals of the code under test: a fault, an abort or an endless loop without any access ends the
 * execution as a failure, and the process goes on. Handlers stand only while executions run. */

#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
enum { N_FAULTS = sizeof FAULTS / sizeof *FAULTS, ALTERNATE = 64 * 1024, TICK_MS = 100 };
static struct sigaction before[N_FAULTS], before_alarm;
static stack_t before_stack;
static sigset_t before_mask;
static char *alternate;
SHARED uint64_t seen_progress, seen_hooks;
SHARED int seen_ticks;

static void leave_handler(int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    abandon();
}

/* Where the code stood. */
static uint64_t interrupted_pc(const void *context, const Thread *t)
{
    const ucontext_t *user = context;
#if defined(__x86_64__)
    (void)t;
    return (uint64_t)user->uc_mcontext.gregs[REG_RIP] + 1;
#elif defined(__aarch64__)
    (void)t;
    return user->uc_mcontext.pc + 1;
#else
    (void)user;
    return t->depth ? t->frames[(t->depth - 1) % FRAMES] : 0;
#endif
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    Thread *t = current;
    uintptr_t address = (uintptr_t)info->si_addr;
    EngineFailure *f;
    if (t == NULL) {
        /* Not ours: as if there were no handler. */
        for (int i = 0; i < N_FAULTS; i++)
            sigaction(FAULTS[i], &before[i], NULL);
        raise(signal);
        return;
    }
    f = fail(signal == SIGSEGV && address - ((uintptr_t)t->stack - page_bytes()) < page_bytes()
                 ? FAIL_STACK_OVERFLOW : FAIL_CRASH,
             t, address, interrupted_pc(context, t));
    if (f) {
        f->signal = signal;
        snprintf(f->message, sizeof f->message, "signal %d at address %#lx", signal, (unsigned long)address);
    }
    leave_handler(signal);
}

static void on_tick(int signal, siginfo_t *info, void *context)
{
    EngineFailure *f;
    (void)info;
    uint64_t progress = E.stats->executions * 1000003 + E.step;
    int moves = E.hooks != seen_hooks;
    seen_hooks = E.hooks;
    if (current == NULL || progress != seen_progress) {
        seen_progress = progress;
        seen_ticks = 0;
        return;
    }
    /* Plain accesses are no steps; so many of them between two steps take a while. */
    if (++seen_ticks < (moves ? 6 : 4))
        return;
    f = fail(FAIL_ENDLESS, current, 0, interrupted_pc(context, current));
    if (f)
        snprintf(f->message, sizeof f->message,
                 moves ? "a thread runs without end and without a step that others could see"
                       : "a thread computes without end and without touching shared memory");
    leave_handler(signal);
}

static void signals_start(void)
{
    struct sigaction action = {0};
    stack_t stack = {0};
    struct itimerval every = {{0, TICK_MS * 1000}, {0, TICK_MS * 1000}};
    sigset_t ours;
    if (alternate == NULL)
        alternate = malloc(ALTERNATE);
    stack.ss_sp = alternate;
    stack.ss_size = ALTERNATE;
    sigaltstack(&stack, &before_stack);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < N_FAULTS; i++)
        sigaction(FAULTS[i], &action, &before[i]);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    action.sa_sigaction = on_tick;
    sigaction(SIGVTALRM, &action, &before_alarm);
    sigemptyset(&ours);
    sigaddset(&ours, SIGVTALRM);
    for (int i = 0; i < N_FAULTS; i++)
        sigaddset(&ours, FAULTS[i]);
    pthread_sigmask(SIG_UNBLOCK, &ours, &before_mask);
    seen_ticks = 0;
    setitimer(ITIMER_VIRTUAL, &every, NULL);
}

static void signals_stop(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    for (int i = 0; i < N_FAULTS; i++)
        sigaction(FAULTS[i], &before[i], NULL);
    sigaction(SIGVTALRM, &before_alarm, NULL);
    sigaltstack(&before_stack, NULL);
    pthread_sigmask(SIG_SETMASK, &before_mask, NULL);
}
