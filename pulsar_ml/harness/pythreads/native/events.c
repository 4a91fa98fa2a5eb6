/* The interpreter's announcements of instructions: by sys.monitoring from 3.12 on, by a trace
 * function on 3.11. */

#ifdef WITH_MONITORING

static PyObject *no_more;         /* sys.monitoring.DISABLE: this place is not announced again */

/* The trace function of a thread state; events of sys.monitoring need none. */
static void follow_state(int on) {}

/* on_start(code, offset): a function begins or goes on. Its instructions are announced from now on
 * if it is under test. */
static PyObject *on_start(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
    PyFiber *f = me;
    PyObject *result;
    Code *code;
    if (running() == NULL)   /* a thread of the system beside the execution */
        Py_RETURN_NONE;
    code = code_of((PyCodeObject *)arguments[0]);
    if (code == NULL)
        return NULL;
    if (code->n && code->watched != session.number) {
        code->watched = session.number;
        me = NULL;
        result = PyObject_CallOneArg(session.watch, arguments[0]);
        me = f;
        if (result == NULL)
            return NULL;
        Py_DECREF(result);
    }
    return Py_NewRef(no_more);
}

/* on_instruction(code, offset): before an instruction. */
static PyObject *on_instruction(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
    InterpreterFrame *frame;
    const Instruction *i;
    Code *code;
    int at;
    if (unlikely(running() == NULL))
        Py_RETURN_NONE;
    code = code_of((PyCodeObject *)arguments[0]);
    if (code == NULL)
        return NULL;
    at = (int)(PyLong_AsLong(arguments[1]) / 2);
    if (at < 0 || at >= code->n || code->instructions[at].kind == NO_STEP)
        return Py_NewRef(no_more);
    i = &code->instructions[at];
    frame = top_frame(active);
    if (unlikely(me->unwinding) ? unwinding_step(me) < 0
                                : step_of(frame, frame_stack(frame, i->depth), i, place_of(code, at)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static int events_open(void)
{
    PyObject *monitoring = PySys_GetObject("monitoring");
    if (no_more == NULL && monitoring)
        no_more = PyObject_GetAttrString(monitoring, "DISABLE");
    return no_more != NULL;
}

#else

static int events_open(void) { return 1; }

/* The trace function of the fibers' thread states, for each call and each instruction. */
static int on_trace(PyObject *unused, PyFrameObject *frame, int what, PyObject *argument)
{
    InterpreterFrame *inner = frame->f_frame;
    const Instruction *i;
    Code *code;
    int at;
    if (me == NULL)
        return 0;
    if (likely(what == PyTrace_OPCODE)) {
        code = code_of(frame_code(inner));
        at = frame_instruction(inner);
        if (code == NULL || at < 0 || at >= code->n || code->instructions[at].kind == NO_STEP)
            return code == NULL ? -1 : 0;
        if (unlikely(me->unwinding))
            return unwinding_step(me);
        i = &code->instructions[at];
        return step_of(inner, frame_stack(inner, i->depth), i, place_of(code, at));
    }
    if (what == PyTrace_CALL) {
        code = code_of(frame_code(inner));
        frame->f_trace_lines = 0;
        frame->f_trace_opcodes = code && code->n;
        return code == NULL ? -1 : 0;
    }
    return 0;
}

static void follow_state(int on) { PyEval_SetTrace(on ? on_trace : NULL, NULL); }

#endif
