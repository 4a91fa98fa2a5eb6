/* Frames, their value stacks and thread states: they differ between versions of the interpreter. */
#ifndef PULSAR_ML_PYTHREADS_INTERPRETER_H
#define PULSAR_ML_PYTHREADS_INTERPRETER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000 || defined(Py_GIL_DISABLED)
#define PULSAR_ML_NO_PYTHON_THREADS 1  /* the reason is in docs/python-threads.md */
#endif

#ifndef PULSAR_ML_NO_PYTHON_THREADS
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#include <frameobject.h>

typedef struct _PyInterpreterFrame InterpreterFrame;

#if PY_VERSION_HEX >= 0x030C0000
#define WITH_MONITORING 1         /* steps are events of sys.monitoring, not of a trace function */
#define _PyCode_GetExtra PyUnstable_Code_GetExtra
#define _PyCode_SetExtra PyUnstable_Code_SetExtra
#define _PyEval_RequestCodeExtraIndex PyUnstable_Eval_RequestCodeExtraIndex

/* Frames of the interpreter's own C functions run no code of Python. */
static inline InterpreterFrame *python_frame(InterpreterFrame *frame)
{
    while (frame && frame->owner == FRAME_OWNED_BY_CSTACK)
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
static inline PyCodeObject *frame_code(InterpreterFrame *frame) { return (PyCodeObject *)frame->f_executable; }
#else
static inline InterpreterFrame *top_frame(PyThreadState *ts) { return python_frame(ts->cframe->current_frame); }
static inline PyCodeObject *frame_code(InterpreterFrame *frame) { return frame->f_code; }
#endif
static inline int frame_instruction(InterpreterFrame *frame) { return _PyInterpreterFrame_LASTI(frame); }

/* The value on top of the stack is at [-1]. A frame that runs does not say how many there are. */
static inline PyObject **frame_stack(InterpreterFrame *frame, int depth)
{
    return frame->localsplus + frame_code(frame)->co_nlocalsplus + depth;
}
static inline PyObject *frame_local(InterpreterFrame *frame, int index) { return frame->localsplus[index]; }
static inline PyObject *frame_globals(InterpreterFrame *frame) { return frame->f_globals; }
#endif
#endif
