/* Frames, their value stacks and thread states: they differ between versions of the interpreter. */
#ifndef PULSAR_ML_PYTHREADS_INTERPRETER_H
#define PULSAR_ML_PYTHREADS_INTERPRETER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030C0000
#define PULSAR_ML_NO_PYTHON_THREADS 1  /* the reason is in docs/python-threads.md */
#endif

#ifndef PULSAR_ML_NO_PYTHON_THREADS
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#include <frameobject.h>

typedef struct _PyInterpreterFrame InterpreterFrame;

/* The innermost frame of a thread. */
static inline InterpreterFrame *top_frame(PyThreadState *ts) { return ts->cframe->current_frame; }
static inline InterpreterFrame *outer_frame(InterpreterFrame *frame) { return frame->previous; }
static inline PyCodeObject *frame_code(InterpreterFrame *frame) { return frame->f_code; }
static inline int frame_instruction(InterpreterFrame *frame) { return _PyInterpreterFrame_LASTI(frame); }

/* The value on top of the stack is at [-1]. Only while a trace function is called. */
static inline PyObject **frame_stack(InterpreterFrame *frame) { return frame->localsplus + frame->stacktop; }
static inline PyObject *frame_local(InterpreterFrame *frame, int index) { return frame->localsplus[index]; }
static inline PyObject *frame_globals(InterpreterFrame *frame) { return frame->f_globals; }
#endif
#endif
