/* Locks that threads under test hold: one that stays locked when the test ends, and one that
 * another thread releases than the one that acquired it, are worth a remark. Locks that the
 * standard library acquires for its own use are not counted. */

enum { MOST_HELD = 256, MOST_REMARKS = 64 };
typedef enum { LEFT_LOCKED, RELEASED_BY_ANOTHER } LockRemark;

typedef struct { const PyObject *lock; uint64_t place; int number; } Held;
static Held held[MOST_HELD];
static int n_held;                /* in this execution */
static struct { uint64_t first, second; LockRemark what; } remarks[MOST_REMARKS];
static int n_remarks;             /* in this session */

/* The place of the innermost frame if that is under test; else 0. */
static uint64_t direct_place(void)
{
    InterpreterFrame *frame = top_frame(active);
    Code *code = frame ? known_code(frame_code(frame)) : NULL;
    return code && code->n ? place_of(code, frame_instruction(frame)) : 0;
}

static void note_held(const PyObject *lock, uint64_t place)
{
    if (place && n_held < MOST_HELD)
        held[n_held++] = (Held){lock, place, me->number};
}

static int find_held(const PyObject *lock)
{
    int at = n_held - 1;
    while (at >= 0 && held[at].lock != lock)
        at--;
    return at;
}

/* Says each remark once in a session; with `strict` it is the failure of the running thread. */
static void remark_lock(LockRemark what, const Held *h, uint64_t place)
{
    static const char *const RULES[] = {"lock left locked", "lock of another thread"};
    PyFiber *f = me;
    PyObject *text;
    char kept[224];
    for (int i = 0; i < n_remarks && !session.strict; i++)
        if (remarks[i].what == what && remarks[i].first == h->place && remarks[i].second == place)
            return;
    if (n_remarks < MOST_REMARKS)
        remarks[n_remarks++] = (typeof(remarks[0])){h->place, place, what};
    me = NULL;
    text = PyObject_CallFunction(session.on_lock, "iiKiK", (int)what, h->number, (unsigned long long)h->place,
                                 f->number, (unsigned long long)place);
    me = f;
    snprintf(kept, sizeof kept, "%s", text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : "a lock");
    Py_XDECREF(text);
    PyErr_Clear();
    if (session.strict) {
        uint64_t places[1] = {place ? place : h->place};
        pml_python_stack(places, 1);
        pml_python_fail(PYTHON_EXCEPTION, RULES[what], kept);
    }
}

/* The running thread releases the lock. */
static void note_release(const PyObject *lock)
{
    int at = find_held(lock);
    Held h;
    if (at < 0)
        return;
    h = held[at];
    held[at] = held[--n_held];
    if (unlikely(h.number != me->number)) {
        uint64_t place = direct_place();
        if (place)
            remark_lock(RELEASED_BY_ANOTHER, &h, place);
    }
}

/* The lock is free again, or it is no more, and stays locked. */
static void forget_held(const PyObject *lock, int is_free)
{
    int at = find_held(lock);
    if (at >= 0 && is_free)
        held[at] = held[--n_held];
    else if (at >= 0)
        held[at].lock = NULL;
}

/* The test has ended, and so have its threads. */
static void remark_held(void)
{
    while (n_held) {
        Held h = held[--n_held];
        remark_lock(LEFT_LOCKED, &h, 0);
    }
}
