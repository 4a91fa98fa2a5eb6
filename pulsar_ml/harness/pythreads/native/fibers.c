/* Fibers: Python threads that share one thread of the system. Each has a thread state of the
 * interpreter and a C stack, which executions use again. A fiber makes its thread state the current
 * one when it goes on, so the engine's switch knows nothing of Python.
 *
 * When an execution is ended early, its fibers stand in calls of the engine that do not return.
 * Behind the execution each of them goes on once more, outside the engine: the exception Abandoned
 * leaves the call, `finally` and `with` do what they have to, and the frames are gone. */

#include <sys/mman.h>
#include <unistd.h>

enum { MOST_UNWINDING_STEPS = 200000, COLLECT_AFTER = 512 };
static uint32_t ended_executions;

static void *unwinder[5];

/* The fiber that calls; NULL outside executions, and in a thread of the system beside them. */
static inline PyFiber *running(void) { return me != NULL && PyThreadState_Get() == active ? me : NULL; }

/* Does the caller run between the end of an execution and the next one? */
static int clearing;
static inline int behind_execution(void) { return clearing && PyThreadState_Get() == host; }

static void use_state(PyThreadState *ts)
{
    if (active != ts) {
        active = ts;
        PyThreadState_Swap(ts);
    }
}

static inline int goes_on(PyFiber *f)
{
    me = f;
    f->in_engine = 0;
    use_state(f->ts);
    return 0;
}

/* The engine's callbacks for native code of checked modules, by the number of a thread. */
static void enter_thread(int number) { goes_on(&fibers[number]); }
static void *state_of_thread(int number) { return fibers[number].ts; }

/* The fiber goes on outside the engine, because the execution was ended. */
static __attribute__((noinline)) int was_ended(void)
{
    PyErr_SetNone(Abandoned);
    return -1;
}

/* Makes a call of the engine, in which others may run. 0; or -1 with an exception when the
 * execution was ended meanwhile. The expression that is made has no reference to give back. */
#define IN_ENGINE(f, call)                                                                        \
    (__builtin_setjmp((f)->outside) ? was_ended() : ((f)->in_engine = 1, (void)(call), goes_on(f)))

/* Larger than most frames of C, which could step over a single page. */
static size_t guard_bytes(void) { return 16 * (size_t)sysconf(_SC_PAGESIZE); }

static char *new_stack(void)
{
    size_t guard = guard_bytes();
    char *base = mmap(NULL, STACK_BYTES + guard, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    mprotect(base, guard, PROT_NONE);
    return base + guard;
}

/* Is the address in the guard below the stack of a thread? */
static int is_exhausted(uintptr_t address)
{
    for (int i = 0; i < n_fibers; i++)
        if (fibers[i].stack && (uintptr_t)fibers[i].stack - address <= guard_bytes())
            return 1;
    return 0;
}

static void follow_state(int on);

/* A fiber that can run; NULL with an exception. */
static PyFiber *prepare_fiber(int number)
{
    PyFiber *f = &fibers[number];
    f->number = number;
    if (f->stack == NULL && (f->stack = new_stack()) == NULL)
        return (PyFiber *)PyErr_NoMemory();
    if (f->ts == NULL) {
        PyThreadState *before = active;
        int failed;
        f->ts = PyThreadState_New(host->interp);
        if (f->ts == NULL)
            return (PyFiber *)PyErr_NoMemory();
        use_state(f->ts);
        follow_state(1);
        failed = use_stack(f->ts, f->stack, STACK_BYTES);
        use_state(before);
        if (failed)
            return (PyFiber *)PyErr_NoMemory();
    }
    f->thread = f->function = f->arguments = f->keywords = NULL;
    f->started = f->done = f->unwinding = f->daemon = f->active = f->in_engine = 0;
    f->steps = 0;
    return f;
}

/* What the interpreter keeps for the thread: values of threading.local, the context. */
static void clear_state(PyFiber *f)
{
    if (f->ts == NULL)            /* it is lost, see unwinding_step() */
        return;
    Py_CLEAR(f->ts->dict);
    Py_CLEAR(f->ts->context);
    f->ts->context_ver++;
    Py_CLEAR(f->ts->async_exc);
#if PY_VERSION_HEX >= 0x030D0000
    Py_CLEAR(f->ts->threading_local_key);
    Py_CLEAR(f->ts->threading_local_sentinel);
#endif
}

static void clear_fiber(PyFiber *f)
{
    clear_state(f);
    Py_CLEAR(f->thread);
    Py_CLEAR(f->function);
    Py_CLEAR(f->arguments);
    Py_CLEAR(f->keywords);
}

static void fail_by_exception(void);

/* The thread's end. Does not return when the execution was ended before. */
static void end_fiber(PyFiber *f)
{
    if (f->unwinding) {
        PyErr_Clear();
        clear_fiber(f);
        f->done = 1;
        __builtin_longjmp(unwinder, 1);
    }
    if (PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_SystemExit) && f->number > 0) {
            PyErr_Clear();
        } else {
            f->done = 1;
            fail_by_exception();
        }
    }
}

/* threading knows the thread no more. */
static void forget_thread(const PyFiber *f)
{
    PyObject *ident = PyLong_FromLong(IDENT + f->number);
    if (ident == NULL || PyDict_DelItem(session.active_threads, ident) < 0)
        PyErr_Clear();
    Py_XDECREF(ident);
}

static void *run_thread(void *argument)
{
    PyFiber *f = argument;
    PyObject *result;
    pml_python_begin(f->stack + STACK_BYTES);
    goes_on(f);
    f->started = 1;
    result = PyObject_Call(f->function, f->arguments, f->keywords);
    Py_XDECREF(result);
    end_fiber(f);
    if (f->active)
        forget_thread(f);
    f->active = 0;
    clear_fiber(f);
    end_fiber(f);                 /* finalizers of its values may have been abandoned, too */
    f->done = 1;
    pml_python_end();
    return NULL;
}

static __attribute__((noinline)) void go_outside(PyFiber *f)
{
    __builtin_longjmp(f->outside, 1);
}

/* Nothing can end the thread: its frames, its stack and its thread state stay as they are. */
static void lose_fiber(PyFiber *f)
{
    f->done = 1;
    f->ts = NULL;
    f->stack = NULL;
}

/* A thread inside native code has no call of the engine from which it could be sent outside. */
static __attribute__((noinline)) void unwind(PyFiber *f)
{
    if (!f->in_engine) {
        lose_fiber(f);
        return;
    }
    if (!__builtin_setjmp(unwinder)) {
        goes_on(f);
        f->unwinding = ABANDONED;
        go_outside(f);
    }
}

static void kept_clear(void);
static void forget_object(void);
static void note_stacks(void);

/* The program's log is silent while its abandoned threads end. */
static void call_quietly(int quiet)
{
    PyObject *result = PyObject_CallFunction(session.quiet, "i", quiet);
    if (result == NULL)
        PyErr_WriteUnraisable(session.quiet);
    Py_XDECREF(result);
}

/* Behind an execution, on the stack of whoever runs the engine. */
static void after_execution(int ended)
{
    int alive = 0;
    if (n_fibers == 0)
        return;
    me = NULL;
    use_state(host);
    if (unlikely(pml_python_recording()))
        note_stacks();
    for (int i = 0; i < n_fibers && !alive; i++)
        alive = fibers[i].started && !fibers[i].done;
    if (alive)
        call_quietly(1);
    for (int i = n_fibers - 1; i >= 0; i--) {
        PyFiber *f = &fibers[i];
        if (f->started && !f->done)
            unwind(f);
        else if (!f->started)
            clear_fiber(f);
        f->done = 1;
    }
    me = NULL;
    use_state(host);
    clearing = 1;
    for (int i = 0; i < n_fibers; i++) {
        if (fibers[i].active)
            forget_thread(&fibers[i]);
        fibers[i].active = 0;
        clear_fiber(&fibers[i]);
    }
    n_fibers = 0;
    forget_object();
    kept_clear();
    clearing = 0;
    if (alive)
        call_quietly(0);
    if (++ended_executions % COLLECT_AFTER == 0) {
        PyObject *result = PyObject_CallNoArgs(session.after);
        if (result == NULL)
            PyErr_WriteUnraisable(session.after);
        Py_XDECREF(result);
    }
}

/* In a thread of an execution that was ended: 0 to do as little as possible, or -1 to raise
 * Abandoned once more, because the thread does not come to its end. */
static int unwinding_step(PyFiber *f)
{
    if (f->unwinding == CREATING)
        return 0;
    if (++f->steps % 1000)
        return 0;
    if (f->steps > MOST_UNWINDING_STEPS) {
        lose_fiber(f);
        __builtin_longjmp(unwinder, 1);
    }
    PyErr_SetNone(Abandoned);
    return -1;
}
