/* The state of the native part of Python threads. One translation unit, module.c, includes the
 * parts in the order of their use. Everything runs in one thread of the system, which holds the
 * interpreter's lock. */
#ifndef PULSAR_ML_PYTHREADS_STATE_H
#define PULSAR_ML_PYTHREADS_STATE_H

#include "pulsar_ml/harness/pythreads/native/interpreter.h"
#include "pulsar_ml/harness/pythreads/fibers.h"
#include "pulsar_ml/harness/subject.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum { MOST_FIBERS = 64 };
#if PY_VERSION_HEX >= 0x030C0000
enum { STACK_BYTES = 8 << 20 };   /* as the interpreter's limit of nested calls in C needs */
#else
enum { STACK_BYTES = 2 << 20 };
#endif
enum { IDENT = 1000000 };         /* thread identifiers of an execution follow this number */

/* Steps and waits of a thread that is abandoned, or creates the object under test, are none. */
typedef enum { NOT_UNWINDING, ABANDONED, CREATING } Unwinding;

/* A Python thread of the execution under way. */
typedef struct {
    int number;
    PyThreadState *ts;            /* kept for the next execution */
    char *stack;                  /* likewise */
    PyObject *thread;             /* the threading.Thread, or NULL */
    PyObject *function, *arguments, *keywords;
    void *outside[5];             /* where it goes on when the execution was ended */
    uint8_t unwinding;            /* one of Unwinding */
    uint8_t started, done, daemon, active;   /* active: threading has it */
    uint8_t in_engine;            /* it stands in a call of the engine that `outside` leaves */
    uint32_t steps;               /* since the execution was ended */
} PyFiber;

static PyFiber fibers[MOST_FIBERS];
static int n_fibers;              /* of this execution */
static PyFiber *me;               /* the running one; NULL outside executions */
static PyThreadState *host, *active;
static PyObject *Abandoned;       /* raised in the threads of an execution that was ended */

static struct {
    PyObject *describe_code;      /* code -> None, or (kinds, numbers, names) */
    PyObject *on_exception;       /* exception -> (kind, rule, message, places) */
    PyObject *before;             /* of each execution */
    PyObject *finish;             /* of its test function, in the first thread */
    PyObject *after;              /* of many executions */
    PyObject *quiet;              /* (1) before threads are abandoned, (0) behind that */
    PyObject *watch;              /* code object -> its instructions are announced */
    PyObject *on_native;          /* a native callable that the code under test calls */
    PyObject *on_lock;            /* (what, thread, place, thread, place) -> text of a remark */
    PyObject *random;             /* the generator of the module's functions */
    PyObject *thread_class, *active_threads, *started_event, *new_event;
    int checked;                  /* semantics `free`: accesses are checked for races */
    int contexts;                 /* a thread has a copy of the context in which it is started */
    int strict;                   /* a remark about a lock is a failure */
    int attached;
    uint32_t number;              /* of the session */
} session;

#endif
