/* Steps: before an instruction of the code under test that reads or writes what threads can share,
 * others may go first. An instruction whose operands nobody else can see is no step. */

static PyTypeObject *deque_type, *local_type;   /* collections.deque, threading.local */

/* Values that programs name and do not change: a read of such a variable is no step. */
static inline int is_fixed(PyObject *value)
{
    return value == NULL || PyFunction_Check(value) || PyType_Check(value) || PyModule_Check(value) ||
           PyCFunction_Check(value);
}

static inline int is_container(PyObject *value)
{
    return PyList_Check(value) || PyDict_Check(value) || PyAnySet_Check(value) || PyByteArray_Check(value) ||
           Py_IS_TYPE(value, deque_type);
}

/* Is the attribute a variable, and not a method, a property or a constant of a module? */
static int is_variable(PyObject *owner, PyObject *name, int writes)
{
    PyTypeObject *type = Py_TYPE(owner);
    PyObject *found;
    if (type->tp_dictoffset == 0 && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return 0;
    if (PyType_IsSubtype(type, local_type))
        return 0;                 /* each thread has its own */
    if (PyModule_Check(owner)) {
        if (writes)
            return 1;
        found = PyDict_GetItemWithError(PyModule_GetDict(owner), name);
        return !is_fixed(found);
    }
    if (PyType_Check(owner))
        return writes || !is_fixed(_PyType_Lookup((PyTypeObject *)owner, name));
    found = _PyType_Lookup(type, name);
    if (found == NULL || Py_IS_TYPE(found, &PyMemberDescr_Type))
        return 1;
    if (Py_TYPE(found)->tp_descr_set != NULL)
        return 0;
    return writes || !(PyFunction_Check(found) || Py_IS_TYPE(found, &PyClassMethod_Type) ||
                       Py_IS_TYPE(found, &PyStaticMethod_Type) || Py_IS_TYPE(found, &PyMethodDescr_Type) ||
                       PyCFunction_Check(found) || PyType_Check(found));
}

static const char *const READERS[] = {"get", "keys", "items", "values", "copy", "index", "count", "isdisjoint",
                                      "issubset", "issuperset", "union", "difference", "intersection", NULL};

static int only_reads(const char *method)
{
    if (method[0] == '_')
        return strcmp(method, "__getitem__") == 0 || strcmp(method, "__contains__") == 0 ||
               strcmp(method, "__len__") == 0;
    for (int i = 0; READERS[i]; i++)
        if (strcmp(READERS[i], method) == 0)
            return 1;
    return 0;
}

static int step_at(PyObject *owner, PyObject *name, int variable, int writes, PyObject *value, int checked,
                   uint64_t place)
{
    PyFiber *f = me;
    uintptr_t address = location(owner, name, variable);
    uint64_t noted = writes ? note_value(value) : 0;
    if (unlikely(pml_python_recording()))
        note_stack();
    return IN_ENGINE(f, pml_python_access(address, checked && session.checked ? shadow_of(address) : 0, writes,
                                          noted, place));
}

/* Built-in containers are safe to use from many threads, one operation at a time: no race. */
static inline int contents(PyObject *container, int writes, uint64_t place)
{
    return step_at(container, NULL, 0, writes, NULL, 0, place);
}

/* Tells the session of native code that is called here, or of a set that is read in its order: the
 * report names the first, for a call of it is one step unless its module is a checked one, and both
 * may be the cause of executions that cannot be repeated. */
static __attribute__((noinline)) void note_native(Instruction *i, PyObject *callable, const void *native,
                                                  uint64_t place)
{
    PyFiber *f = me;
    PyObject *result;
    i->native = native;
    i->noted = session.number;
    me = NULL;
    result = PyObject_CallFunction(session.on_native, "OK", callable, (unsigned long long)place);
    me = f;
    if (result == NULL)
        PyErr_WriteUnraisable(session.on_native);
    Py_XDECREF(result);
}

static inline void native_at(const Instruction *i, PyObject *callable, uint64_t place)
{
    const void *native = callable;
    if (Py_IS_TYPE(callable, &PyFunction_Type))
        return;
    if (PyCFunction_Check(callable))
        native = ((PyCFunctionObject *)callable)->m_ml;
    if (unlikely(native != i->native || i->noted != session.number))
        note_native((Instruction *)i, callable, native, place);
    if (unlikely(pml_python_recording()))
        note_waiting_stack();     /* the frames around those of checked code */
}

/* A set is read in its own order. */
static inline void note_order(const Instruction *i, PyObject *set, uint64_t place)
{
    if (unlikely(i->native != Py_TYPE(set) || i->noted != session.number))
        note_native((Instruction *)i, set, Py_TYPE(set), place);
}

/* A call of native code that takes or belongs to a container. */
static int native_call(const StackPlace *top, const Instruction *i, uint64_t place)
{
    int count = i->number;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *callable = value_below(top, count + 2), *self = value_below(top, count + 1);
    int is_method = self != NULL;
#else
    int is_method = value_below(top, count + 2) != NULL;
    PyObject *callable = value_below(top, count + 1 + is_method);
    PyObject *self = is_method ? value_below(top, count + 1) : NULL;
#endif
    PyObject *first = count > 0 ? value_below(top, count) : NULL;
    const char *name;
    native_at(i, callable, place);
    if (is_method) {
        if (Py_IS_TYPE(callable, &PyMethodDescr_Type) && is_container(self)) {
            name = ((PyMethodDescrObject *)callable)->d_method->ml_name;
            return contents(self, !only_reads(name), place);
        }
        return 0;
    }
    if (PyCFunction_Check(callable)) {
        self = PyCFunction_GET_SELF(callable);
        if (self && is_container(self))
            return contents(self, !only_reads(((PyCFunctionObject *)callable)->m_ml->ml_name), place);
        name = ((PyCFunctionObject *)callable)->m_ml->ml_name;
        if (count >= 2 && strncmp(name + 1, "etattr", 6) == 0 && PyUnicode_CheckExact(value_below(top, count - 1))) {
            PyObject *attribute = value_below(top, count - 1);
            int writes = name[0] == 's';
            if (PyUnicode_CHECK_INTERNED(attribute) && is_variable(first, attribute, writes))
                return step_at(first, attribute, 0, writes, writes && count > 2 ? value_below(top, count - 2) : NULL, 1,
                               place);
            return 0;
        }
        if (first && strcmp(name, "next") == 0 && !PyGen_CheckExact(first))
            return contents(first, 1, place);
        return first && is_container(first) && strcmp(name, "id") ? contents(first, 0, place) : 0;
    }
    if (PyType_Check(callable) && first && PyAnySet_Check(first))
        note_order(i, first, place);
    if (PyType_Check(callable) && first && is_container(first))
        return contents(first, 0, place);
    return 0;
}

typedef struct { PyObject_HEAD Py_ssize_t index; PyObject *list; } ListIterator;
typedef struct { PyObject_HEAD PyObject *container; } OtherIterator;

static int iterate(PyObject *iterator, const Instruction *i, uint64_t place)
{
    PyTypeObject *type = Py_TYPE(iterator);
    PyObject *container = NULL;
    if (type == &PyListIter_Type)
        container = ((ListIterator *)iterator)->list;
    else if (type == &PyDictIterKey_Type || type == &PyDictIterItem_Type || type == &PyDictIterValue_Type)
        container = ((OtherIterator *)iterator)->container;
    else if (type == &PySetIter_Type && ((OtherIterator *)iterator)->container)
        note_order(i, ((OtherIterator *)iterator)->container, place);
    return container ? contents(container, 0, place) : 0;
}

/* 0, or -1 with an exception when the execution was ended. */
static int step_of(InterpreterFrame *frame, const StackPlace *top, const Instruction *i, uint64_t place)
{
    PyObject *owner;
    switch ((Kind)i->kind) {
    case ATTRIBUTE_READ:
        owner = value_below(top, 1);
        return is_variable(owner, i->name, 0) ? step_at(owner, i->name, 0, 0, NULL, 1, place) : 0;
    case ATTRIBUTE_WRITE:
        if (!is_variable(value_below(top, 1), i->name, 1))
            return 0;
        return step_at(value_below(top, 1), i->name, 0, 1, i->number ? NULL : value_below(top, 2), 1, place);
    case GLOBAL_READ:
        owner = frame_globals(frame);
        if (is_fixed(PyDict_GetItemWithError(owner, i->name)))
            return 0;
        return step_at(owner, i->name, 1, 0, NULL, 1, place);
    case GLOBAL_WRITE:
        return step_at(frame_globals(frame), i->name, 1, 1, i->number ? NULL : value_below(top, 1), 1, place);
    case CELL_READ:
        owner = frame_local(frame, i->number);
        if (owner == NULL || !PyCell_Check(owner) || is_fixed(PyCell_GET(owner)))
            return 0;
        return step_at(owner, i->name, 1, 0, NULL, 1, place);
    case CELL_WRITE:
        owner = frame_local(frame, i->number);
        return owner && PyCell_Check(owner) ? step_at(owner, i->name, 1, 1, value_below(top, 1), 1, place) : 0;
    case ITEM_READ:
        owner = value_below(top, i->number);
        return is_container(owner) ? contents(owner, 0, place) : 0;
    case ITEM_WRITE:
    case ITEM_DELETE:
        owner = value_below(top, i->number);
        return is_container(owner) ? contents(owner, 1, place) : 0;
    case CONTAINS:
        return is_container(value_below(top, 1)) ? contents(value_below(top, 1), 0, place) : 0;
    case IN_PLACE:
        return is_container(value_below(top, 2)) ? contents(value_below(top, 2), 1, place) : 0;
    case ITERATES:
        return iterate(value_below(top, 1), i, place);
    case CALLS:
        return native_call(top, i, place);
    case NO_STEP:
        break;
    }
    return 0;
}
