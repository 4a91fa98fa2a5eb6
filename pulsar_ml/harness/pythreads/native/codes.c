/* Code objects of the code under test: which of their instructions are steps, and the numbers that
 * stand for their places where the engine expects an address of code. */

/* Kinds of instructions, the same numbers as in points.py. */
typedef enum {
    NO_STEP, ATTRIBUTE_READ, ATTRIBUTE_WRITE, ITEM_READ, ITEM_WRITE, ITEM_DELETE, GLOBAL_READ, GLOBAL_WRITE,
    CELL_READ, CELL_WRITE, CALLS, ITERATES, CONTAINS, IN_PLACE
} Kind;

typedef struct {
    uint8_t kind;
    int32_t depth;                /* values on the stack before it */
    int32_t number;               /* of a cell: its local; of a call: its arguments; of an item: how
                                   * far its container is from the top of the stack */
    PyObject *name;               /* of an attribute or a global variable */
    const void *native;           /* of a call: the native code that was noted here last */
    uint32_t noted;               /* in the session of this number */
} Instruction;

typedef struct {
    PyObject *code;
    uint32_t selection;           /* of the session that described it */
    uint32_t number;
    uint32_t watched;             /* in the session of this number */
    int32_t n;                    /* 0: not under test */
    Instruction *instructions;
} Code;

#define PLACES (UINT64_C(1) << 60)   /* no code of a module has an address from here on */
enum { PLACE_BITS = 20 };

static Py_ssize_t extra_index = -1;
static Code **codes;
static uint32_t n_codes, codes_room;
static Code *not_under_test;      /* of this selection */

/* Code objects that were seen with another selection are described anew. 0 without memory. */
static int use_selection(uint32_t selection)
{
    if (not_under_test && not_under_test->selection == selection)
        return 1;
    not_under_test = calloc(1, sizeof *not_under_test);
    if (not_under_test)
        not_under_test->selection = selection;
    return not_under_test != NULL;
}

static inline uint64_t place_of(const Code *code, int instruction)
{
    return PLACES + ((uint64_t)code->number << PLACE_BITS) + (uint32_t)(instruction < 0 ? 0 : instruction) + 1;
}

/* Asks Python about a code object that was not seen before. NULL with an exception. */
static __attribute__((noinline)) Code *new_code(PyObject *object)
{
    PyFiber *f = me;
    PyObject *kinds, *numbers, *depths, *names, *described, *type, *value, *traceback;
    Code *code;
    PyErr_Fetch(&type, &value, &traceback);
    me = NULL;
    described = PyObject_CallOneArg(session.describe_code, object);
    me = f;
    if (described == NULL)
        return NULL;
    PyErr_Restore(type, value, traceback);
    if (described == Py_None) {
        Py_DECREF(described);
        return _PyCode_SetExtra(object, extra_index, not_under_test) < 0 ? NULL : not_under_test;
    }
    if (!PyArg_ParseTuple(described, "SOOO", &kinds, &numbers, &depths, &names))
        return NULL;
    if (n_codes == codes_room) {
        uint32_t room = codes_room ? 2 * codes_room : 256;
        Code **more = realloc(codes, room * sizeof *codes);
        if (more == NULL)
            return (Code *)PyErr_NoMemory();
        codes = more;
        codes_room = room;
    }
    code = calloc(1, sizeof *code);
    if (code == NULL)
        return (Code *)PyErr_NoMemory();
    code->n = (int32_t)PyBytes_GET_SIZE(kinds);
    code->instructions = calloc((size_t)code->n + 1, sizeof *code->instructions);
    if (code->instructions == NULL) {
        free(code);
        return (Code *)PyErr_NoMemory();
    }
    code->code = Py_NewRef(object);
    code->selection = not_under_test->selection;
    code->number = n_codes;
    for (int32_t i = 0; i < code->n; i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        code->instructions[i].kind = (uint8_t)PyBytes_AS_STRING(kinds)[i];
        code->instructions[i].number = (int32_t)PyLong_AsLong(PyList_GET_ITEM(numbers, i));
        code->instructions[i].depth = (int32_t)PyLong_AsLong(PyList_GET_ITEM(depths, i));
        code->instructions[i].name = name == Py_None ? NULL : Py_NewRef(name);
    }
    Py_DECREF(described);
    codes[n_codes++] = code;
    return _PyCode_SetExtra(object, extra_index, code) < 0 ? NULL : code;
}

static inline Code *code_of(PyCodeObject *object)
{
    void *extra = NULL;
    if (unlikely(_PyCode_GetExtra((PyObject *)object, extra_index, &extra) < 0))
        return NULL;
    if (likely(extra != NULL) && likely(((Code *)extra)->selection == not_under_test->selection))
        return extra;
    return new_code((PyObject *)object);
}

/* The same without asking: NULL for what was not seen. */
static inline Code *known_code(PyCodeObject *object)
{
    void *extra = NULL;
    if (_PyCode_GetExtra((PyObject *)object, extra_index, &extra) < 0)
        PyErr_Clear();
    return extra;
}

/* The places of the running thread under test, from the inside out. */
static int stack_places(PyThreadState *ts, uint64_t *places, int room)
{
    int n = 0;
    for (InterpreterFrame *frame = top_frame(ts); frame && n < room; frame = outer_frame(frame)) {
        Code *code = known_code(frame_code(frame));
        if (code && code->n)
            places[n++] = place_of(code, frame_instruction(frame));
    }
    return n;
}

static uint64_t my_place(void)
{
    uint64_t place = 0;
    stack_places(active, &place, 1);
    return place;
}

/* For the engine's trace: the frames around the innermost one. */
static void note_stack(void)
{
    uint64_t places[64], around[64];
    int n = stack_places(active, places, 64);
    for (int i = 1; i < n; i++)
        around[n - 1 - i] = places[i];
    pml_python_stack(around, n > 0 ? n - 1 : 0);
}

/* The same with the innermost one, where the thread is about to wait. */
static void note_waiting_stack(void)
{
    uint64_t places[64], all[64];
    int n = stack_places(active, places, 64);
    for (int i = 0; i < n; i++)
        all[n - 1 - i] = places[i];
    pml_python_stack(all, n);
}

/* {number: places} of the threads that have not ended, from the inside out. */
static PyObject *last_stacks;

static void note_stacks(void)
{
    PyObject *found = PyDict_New();
    for (int i = 0; found && i < n_fibers; i++) {
        uint64_t places[64];
        PyObject *list, *key;
        int n;
        if (!fibers[i].started || fibers[i].done)
            continue;
        n = stack_places(fibers[i].ts, places, 64);
        list = PyList_New(0);
        key = PyLong_FromLong(i);
        for (int j = 0; list && j < n; j++) {
            PyObject *place = PyLong_FromUnsignedLongLong(places[j]);
            if (place == NULL || PyList_Append(list, place) < 0)
                Py_CLEAR(list);
            Py_XDECREF(place);
        }
        if (list == NULL || key == NULL || PyDict_SetItem(found, key, list) < 0)
            Py_CLEAR(found);
        Py_XDECREF(list);
        Py_XDECREF(key);
    }
    PyErr_Clear();
    Py_XSETREF(last_stacks, found);
}

/* (code object, index of the instruction) of a place, or None. */
static PyObject *place_parts(PyObject *module, PyObject *argument)
{
    uint64_t place = PyLong_AsUnsignedLongLong(argument);
    uint32_t number;
    if (PyErr_Occurred())
        return NULL;
    number = (uint32_t)((place - PLACES - 1) >> PLACE_BITS);
    if (place <= PLACES || number >= n_codes)
        Py_RETURN_NONE;
    return Py_BuildValue("Oi", codes[number]->code, (int)((place - PLACES - 1) & ((1 << PLACE_BITS) - 1)));
}

/* The place of an instruction of a code object under test, 0 for others. */
static PyObject *place_number(PyObject *module, PyObject *arguments)
{
    PyObject *object;
    int instruction;
    Code *code;
    if (!PyArg_ParseTuple(arguments, "O!i", &PyCode_Type, &object, &instruction))
        return NULL;
    code = known_code((PyCodeObject *)object);
    return PyLong_FromUnsignedLongLong(code && code->n ? place_of(code, instruction) : 0);
}
