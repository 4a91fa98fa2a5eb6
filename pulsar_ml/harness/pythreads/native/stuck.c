/* Where the running thread of Python stands when its execution does not end: a signal from the
 * process that watches this one writes the thread's frames into a page that both share. The handler
 * reads what the interpreter's loop reads, and calls nothing that takes a lock. The signal comes
 * only when the process is about to be ended: if the handler fails, the place is unknown, and
 * nothing else. */

#include <signal.h>

enum { MOST_FRAMES = 40, PAGE_TEXT = 16, MOST_PAGE = 4096 };

/* The page: the process that answered, the number of its running thread, and lines of text, one for
 * each frame from the inside out: line, function and file, with tabs between them. */
static char *stuck_page;

static char *put_number(char *at, long number)
{
    char digits[24];
    int n = 0;
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 && n < 20);
    while (n)
        *at++ = digits[--n];
    return at;
}

/* The text of a string, if it is of bytes and there is room; others are rare in names of files. */
static char *put_string(char *at, const char *end, PyObject *text)
{
    if (text && PyUnicode_Check(text) && PyUnicode_IS_COMPACT_ASCII(text) &&
        PyUnicode_GET_LENGTH(text) < end - at) {
        memcpy(at, PyUnicode_1BYTE_DATA(text), (size_t)PyUnicode_GET_LENGTH(text));
        return at + PyUnicode_GET_LENGTH(text);
    }
    *at++ = '?';
    return at;
}

static void write_frames(int number)
{
    PyFiber *f = me;
    char *at = stuck_page + PAGE_TEXT, *end = stuck_page + MOST_PAGE - 64;
    InterpreterFrame *frame = f ? top_frame(f->ts) : NULL;
    for (int i = 0; frame && i < MOST_FRAMES && at < end; i++, frame = outer_frame(frame)) {
        PyCodeObject *code = frame_code(frame);
        int line;
        if (code == NULL || !PyCode_Check(code))
            continue;
        line = PyCode_Addr2Line(code, frame_instruction(frame) * (int)sizeof(_Py_CODEUNIT));
        at = put_number(at, line > 0 ? line : 0);
        *at++ = '\t';
        at = put_string(at, end, code->co_qualname);
        *at++ = '\t';
        at = put_string(at, end, code->co_filename);
        *at++ = '\n';
    }
    *at = 0;
    ((int32_t *)stuck_page)[1] = f ? f->number : -1;
    *(volatile int32_t *)stuck_page = (int32_t)getpid();   /* the reader stops this process first */
}

/* answer_stuck(page, signal): this process answers the signal from now on. */
static PyObject *answer_stuck(PyObject *module, PyObject *arguments)
{
    Py_buffer page;
    int number;
    struct sigaction action = {.sa_handler = write_frames, .sa_flags = SA_RESTART};
    if (!PyArg_ParseTuple(arguments, "w*i", &page, &number))
        return NULL;
    if (page.len < MOST_PAGE) {
        PyBuffer_Release(&page);
        return PyErr_Format(PyExc_ValueError, "the page has %zd bytes; it needs %d", page.len, MOST_PAGE);
    }
    stuck_page = page.buf;        /* the caller keeps it */
    PyBuffer_Release(&page);
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, NULL) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}
