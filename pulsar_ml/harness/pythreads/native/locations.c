/* Locations: an attribute of an object, a global variable, a cell, the contents of a container.
 * They are numbered in the order of their first use in an execution, which is the same in each
 * repetition, as addresses of objects are not. For the engine each number stands for eight bytes.
 *
 * An object that has a location lives until the end of the execution, or another object could get
 * its address, and with it its locations. */

enum { LOCATIONS = 1 << 16 };

typedef struct {
    uintptr_t object;
    const void *name;
    uint32_t generation, number;
} Location;

static Location *locations;
static uint32_t generation = 1, n_locations;
static PyObject **kept;
static uint32_t n_kept, kept_room;
static char *bytes_of_locations;  /* the second half is for the detector of races */
static PyObject *location_names;  /* of a recorded execution: address -> text */
static PyObject *noted_values;    /* likewise: texts of the values written */

static int locations_open(void)
{
    if (locations)
        return 1;
    locations = calloc(LOCATIONS, sizeof *locations);
    bytes_of_locations = mmap(NULL, 2 * 8 * LOCATIONS, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    location_names = PyDict_New();
    noted_values = PyList_New(0);
    return locations && bytes_of_locations != MAP_FAILED && location_names && noted_values;
}

static void locks_clear(void);

static void kept_clear(void)
{
    generation++;
    n_locations = 0;
    locks_clear();
    while (n_kept)
        Py_DECREF(kept[--n_kept]);
}

static void keep(PyObject *object)
{
    if (n_kept == kept_room) {
        uint32_t room = kept_room ? 2 * kept_room : 1024;
        PyObject **more = realloc(kept, room * sizeof *kept);
        if (more == NULL)
            return;
        kept = more;
        kept_room = room;
    }
    kept[n_kept++] = Py_NewRef(object);
}

static void name_location(uintptr_t address, PyObject *owner, PyObject *name, int is_variable)
{
    PyObject *key = PyLong_FromUnsignedLongLong(address), *text;
    if (is_variable)
        text = Py_NewRef(name);
    else if (name)
        text = PyUnicode_FromFormat("%s.%U", PyType_Check(owner) ? ((PyTypeObject *)owner)->tp_name
                                                                 : Py_TYPE(owner)->tp_name, name);
    else
        text = PyUnicode_FromFormat("%s%u", Py_TYPE(owner)->tp_name, n_locations);
    if (key == NULL || text == NULL || PyDict_SetItem(location_names, key, text) < 0)
        PyErr_Clear();
    Py_XDECREF(key);
    Py_XDECREF(text);
}

/* The first name of a recorded execution. */
static void name_interpreter_lock(void)
{
    PyObject *key = PyLong_FromUnsignedLongLong(pml_python_lock()), *text = PyUnicode_FromString("GIL");
    PyDict_Clear(location_names);
    if (key == NULL || text == NULL || PyDict_SetItem(location_names, key, text) < 0)
        PyErr_Clear();
    Py_XDECREF(key);
    Py_XDECREF(text);
}

/* The address that stands for it. `name` is interned, or NULL for the contents of a container. */
static uintptr_t location(PyObject *owner, PyObject *name, int is_variable)
{
    uintptr_t object = (uintptr_t)owner;
    uint32_t at = (uint32_t)(((object >> 4) * UINT64_C(0x9E3779B97F4A7C15) ^
                              ((uintptr_t)name >> 4) * UINT64_C(0xD1342543DE82EF95)) >> 40) & (LOCATIONS - 1);
    uintptr_t address;
    while (locations[at].generation == generation) {
        if (locations[at].object == object && locations[at].name == name)
            return (uintptr_t)bytes_of_locations + 8 * (uintptr_t)locations[at].number;
        at = (at + 1) & (LOCATIONS - 1);
    }
    if (unlikely(n_locations == LOCATIONS / 2))
        return (uintptr_t)bytes_of_locations;   /* too many: the others are one */
    locations[at] = (Location){object, name, generation, n_locations++};
    keep(owner);
    address = (uintptr_t)bytes_of_locations + 8 * (uintptr_t)locations[at].number;
    *(uint64_t *)address = 0;
    if (unlikely(pml_python_recording()))
        name_location(address, owner, name, is_variable);
    return address;
}

static inline uintptr_t shadow_of(uintptr_t address) { return address + 8 * LOCATIONS; }

/* A number for the value in the trace: its text's place from 1 on. 0 unless it is recorded. */
static uint64_t note_value(PyObject *value)
{
    PyObject *text;
    if (likely(!pml_python_recording()))
        return 0;
    if (value == NULL)
        text = PyUnicode_FromString("nothing");
    else if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
             PyUnicode_CheckExact(value) || PyBytes_CheckExact(value))
        text = PyObject_Repr(value);
    else
        text = PyUnicode_FromFormat("<%s>", Py_TYPE(value)->tp_name);
    if (text == NULL || PyList_Append(noted_values, text) < 0)
        PyErr_Clear();
    Py_XDECREF(text);
    return (uint64_t)PyList_GET_SIZE(noted_values);
}

/* ({address: name}, [value]) of the last recorded execution. */
static PyObject *recorded_names(PyObject *module, PyObject *unused)
{
    return Py_BuildValue("OO", location_names, noted_values);
}

/* Locks ---------------------------------------------------------------------------------------- *
 * They are numbered likewise, but are not kept: a condition makes one for each wait. A lock's
 * number is free again when the lock is. */

enum { LOCKS = 1 << 14 };
typedef struct { const PyObject *lock; uint32_t generation, number; } LockKey;
static LockKey lock_keys[LOCKS];
static uint32_t free_numbers[LOCKS], n_free_numbers, n_lock_numbers;
static char freed_lock;           /* in place of a lock that is no more */

static void locks_clear(void) { n_free_numbers = n_lock_numbers = 0; }

/* The entry of a lock, or where it goes when it has none. */
static LockKey *lock_entry(const PyObject *lock)
{
    uint32_t at = (uint32_t)(((uintptr_t)lock >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 40) & (LOCKS - 1);
    while (lock_keys[at].generation == generation && lock_keys[at].lock != lock)
        at = (at + 1) & (LOCKS - 1);
    return &lock_keys[at];
}

/* The address that stands for the lock. */
static uintptr_t lock_key(const PyObject *lock)
{
    LockKey *entry = lock_entry(lock);
    if (entry->generation != generation) {
        if (n_lock_numbers == LOCKS - 2)
            pml_python_fail(PYTHON_UNCONTROLLED, "", "the execution makes more locks than can be followed");
        n_lock_numbers++;
        *entry = (LockKey){lock, generation, n_free_numbers ? free_numbers[--n_free_numbers] : n_lock_numbers};
    }
    return 8 * ((uintptr_t)LOCKS + entry->number);
}

/* The lock is about to be freed. */
static void forget_lock(const PyObject *lock)
{
    LockKey *entry = lock_entry(lock);
    if (entry->generation != generation)
        return;
    pml_python_forget(lock_key(lock));
    free_numbers[n_free_numbers++] = entry->number;
    entry->lock = (const PyObject *)&freed_lock;
}
