/* Signals of the code under test: a fault, an abort or an endless loop without any access ends the
 * execution as a failure, and the process goes on. Handlers stand only while executions run. */

#include <execinfo.h>
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
    if (t && python.after && signal == SIGSEGV && python.exhausted(address)) {
        static const char TEXT[] = "pulsar_ml: native code used up the stack of a Python thread\n";
        if (write(STDERR_FILENO, TEXT, sizeof TEXT - 1) >= 0)
            _exit(STACK_EXHAUSTED);
        _exit(STACK_EXHAUSTED);
    }
    if (t == NULL || python.after) {
        /* Not ours, or in the interpreter: as if there were no handler. */
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

/* A call that blocks in code without hooks uses no processor time. Every WALL_MS of real time this
 * looks whether the thread of the system has stood in one system call since the last looks. */
enum { WALL_MS = 250, MOST_WALL_TICKS = 8, MOST_NATIVE = 64, BUSY_NS = 50 * 1000 * 1000 };
static timer_t wall_timer;
static uint8_t wall_runs;
SHARED uint64_t wall_progress;
SHARED int wall_ticks;
SHARED int64_t wall_cpu;

static int64_t processor_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Whether the signal came while the thread was in a system call, which is restarted or has just
 * ended. */
static int in_system_call(uint64_t pc)
{
#if defined(__x86_64__)
    const uint8_t *code = (const uint8_t *)(uintptr_t)(pc - 1);
    return (code[0] == 0x0F && code[1] == 0x05) || (code[-2] == 0x0F && code[-1] == 0x05);
#elif defined(__aarch64__)
    const uint32_t *code = (const uint32_t *)(uintptr_t)(pc - 1);
    return code[0] == 0xD4000001 || code[-1] == 0xD4000001;
#else
    (void)pc;
    return 1;
#endif
}

/* The stack of the interrupted code, which the compiler's hooks do not know. */
static void native_stack(EngineFailure *f, uint64_t pc)
{
    void *found[MOST_NATIVE];
    int n = backtrace(found, MOST_NATIVE), at = 0;
    while (at < n && (uint64_t)(uintptr_t)found[at] != pc - 1)
        at++;
    if (at == n)
        return;
    f->n_frames = 0;
    f->frames[f->n_frames++] = pc;
    while (++at < n && f->n_frames < ENGINE_MOST_FRAMES)
        f->frames[f->n_frames++] = (uint64_t)(uintptr_t)found[at];
}

static void on_wall_tick(int signal, void *context)
{
    uint64_t progress = E.stats->executions * 1000003 + E.step + E.hooks;
    int64_t used = processor_time();
    uint64_t pc;
    EngineFailure *f;
    if (current == NULL || python.after || progress != wall_progress || used - wall_cpu > BUSY_NS) {
        wall_progress = progress;
        wall_cpu = used;
        wall_ticks = 0;
        return;
    }
    pc = interrupted_pc(context, current);
    if (!in_system_call(pc)) {
        wall_ticks = 0;
        return;
    }
    if (++wall_ticks < MOST_WALL_TICKS)
        return;
    wall_ticks = 0;
    f = fail(FAIL_BLOCKED, current, 0, pc);
    if (f) {
        native_stack(f, pc);
        snprintf(f->message, sizeof f->message,
                 "thread %d is blocked in a call of code that was not recompiled, which the engine cannot see",
                 (int)current->number);
    }
    leave_handler(signal);
}

static void wall_start(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGVTALRM};
    struct itimerspec every = {{0, WALL_MS * 1000000}, {0, WALL_MS * 1000000}};
    void *first[1];
    backtrace(first, 1);          /* loads the unwinder, which a signal handler must not */
    event.sigev_value.sival_ptr = &wall_timer;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    wall_ticks = 0;
    wall_runs = timer_create(CLOCK_MONOTONIC, &event, &wall_timer) == 0;
    if (wall_runs)
        timer_settime(wall_timer, 0, &every, NULL);
}

static void wall_stop(void)
{
    if (wall_runs)
        timer_delete(wall_timer);
    wall_runs = 0;
}

static void on_tick(int signal, siginfo_t *info, void *context)
{
    EngineFailure *f;
    if (info->si_code == SI_TIMER) {
        on_wall_tick(signal, context);
        return;
    }
    uint64_t progress = E.stats->executions * 1000003 + E.step;
    int moves = E.hooks != seen_hooks;
    seen_hooks = E.hooks;
    if (current == NULL || python.after || progress != seen_progress) {
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
    wall_start();
}

static void signals_stop(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    wall_stop();
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    for (int i = 0; i < N_FAULTS; i++)
        sigaction(FAULTS[i], &before[i], NULL);
    sigaction(SIGVTALRM, &before_alarm, NULL);
    sigaltstack(&before_stack, NULL);
    pthread_sigmask(SIG_SETMASK, &before_mask, NULL);
}
