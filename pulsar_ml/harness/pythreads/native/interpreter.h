/* Frames, their value stacks and thread states: they differ between versions of the interpreter. */
#ifndef PULSAR_ML_PYTHREADS_INTERPRETER_H
#define PULSAR_ML_PYTHREADS_INTERPRETER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef Py_GIL_DISABLED
#define OLDEST_SUPPORTED 0x030E0000
#else
#define OLDEST_SUPPORTED 0x030B0000
#endif
#if PY_VERSION_HEX < OLDEST_SUPPORTED || PY_VERSION_HEX >= 0x030F0000
#define PULSAR_ML_NO_PYTHON_THREADS 1  /* the reason is in docs/python-threads.md */
#endif

#ifndef PULSAR_ML_NO_PYTHON_THREADS
#define Py_BUILD_CORE 1
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#else
#include <internal/pycore_frame.h>
#endif
#undef Py_BUILD_CORE
#include <frameobject.h>

typedef struct _PyInterpreterFrame InterpreterFrame;

/* A place of a frame's stack. From 3.14 on it has marks besides the object's address. */
#if PY_VERSION_HEX >= 0x030E0000
typedef _PyStackRef StackPlace;
static inline PyObject *object_at(StackPlace place) { return PyStackRef_AsPyObjectBorrow(place); }
#else
typedef PyObject *StackPlace;
static inline PyObject *object_at(StackPlace place) { return place; }
#endif

#if PY_VERSION_HEX >= 0x030C0000
#define WITH_MONITORING 1         /* steps are events of sys.monitoring, not of a trace function */
#define _PyCode_GetExtra PyUnstable_Code_GetExtra
#define _PyCode_SetExtra PyUnstable_Code_SetExtra
#define _PyEval_RequestCodeExtraIndex PyUnstable_Eval_RequestCodeExtraIndex

#if PY_VERSION_HEX >= 0x030E0000
enum { OWNED_BY_INTERPRETER = FRAME_OWNED_BY_INTERPRETER };
#else
enum { OWNED_BY_INTERPRETER = FRAME_OWNED_BY_CSTACK };
#endif

/* Frames of the interpreter's own C functions run no code of Python. */
static inline InterpreterFrame *python_frame(InterpreterFrame *frame)
{
    while (frame && frame->owner >= OWNED_BY_INTERPRETER)
        frame = frame->previous;
    return frame;
}
#else
static inline InterpreterFrame *python_frame(InterpreterFrame *frame) { return frame; }
#endif

/* The innermost frame of a thread, and the one around a frame. */
static inline InterpreterFrame *outer_frame(InterpreterFrame *frame) { return python_frame(frame->previous); }
#if PY_VERSION_HEX >= 0x030D0000
static inline InterpreterFrame *top_frame(PyThreadState *ts) { return python_frame(ts->current_frame); }
static inline PyCodeObject *frame_code(InterpreterFrame *frame)
{
    return (PyCodeObject *)object_at(frame->f_executable);
}
#else
static inline InterpreterFrame *top_frame(PyThreadState *ts) { return python_frame(ts->cframe->current_frame); }
static inline PyCodeObject *frame_code(InterpreterFrame *frame) { return frame->f_code; }
#define Py_HashPointer _Py_HashPointer
#endif
static inline int frame_instruction(InterpreterFrame *frame) { return _PyInterpreterFrame_LASTI(frame); }

/* The top of the stack. A frame that runs does not say how many values there are. */
static inline const StackPlace *frame_stack(InterpreterFrame *frame, int depth)
{
    return frame->localsplus + frame_code(frame)->co_nlocalsplus + depth;
}
/* The value at this place from the top: 1 is the last one. NULL where there is none. */
static inline PyObject *value_below(const StackPlace *top, int place) { return object_at(top[-place]); }
static inline PyObject *frame_local(InterpreterFrame *frame, int index) { return object_at(frame->localsplus[index]); }
static inline PyObject *frame_globals(InterpreterFrame *frame) { return frame->f_globals; }

/* From 3.14 on the interpreter compares the stack pointer with limits of the thread state, which is
 * the current one. 0; or -1 with an exception. */
static inline int use_stack(PyThreadState *ts, char *lowest, size_t bytes)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyUnstable_ThreadState_SetStackProtection(ts, lowest, bytes);
#else
    return 0;
#endif
}

/* The state runs on the stack of the thread of the system. */
static inline void leave_stack(PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030E0000
    PyUnstable_ThreadState_ResetStackProtection(ts);
#endif
}

/* From 3.14 on threads have contexts, and names that the system knows. */
#if PY_VERSION_HEX >= 0x030E0000
#define HANDLE_OF_THREAD "_os_thread_handle"
#define CONTEXT_OF_THREAD "context"
#else
#define HANDLE_OF_THREAD "_handle"
#define CONTEXT_OF_THREAD NULL
#endif
#endif
#endif
