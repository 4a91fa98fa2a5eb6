/* Calls that wait for something outside the program: an execution that comes to one of them ends
 * without a verdict, and names it.
 *
 * Such functions have several calling conventions. Each takes at most five words, all of them in
 * registers on the processors that the engine knows, so one signature passes them on. */

typedef PyObject *(*AnyFunction)(PyObject *, void *, void *, void *, void *);

static struct {
    const char *module, *type, *name;
    PyMethodDef *definition;
    PyCFunction before;
} unmodelled[] = {
    {"_socket", "socket", "_accept", NULL, NULL}, {"_socket", "socket", "connect", NULL, NULL},
    {"_socket", "socket", "connect_ex", NULL, NULL}, {"_socket", "socket", "recv", NULL, NULL},
    {"_socket", "socket", "recv_into", NULL, NULL}, {"_socket", "socket", "recvfrom", NULL, NULL},
    {"_socket", "socket", "send", NULL, NULL}, {"_socket", "socket", "sendall", NULL, NULL},
    {"select", NULL, "select", NULL, NULL}, {"select", NULL, "poll", NULL, NULL},
    {"select", "epoll", "poll", NULL, NULL}, {"posix", NULL, "waitpid", NULL, NULL},
    {"posix", NULL, "wait", NULL, NULL}, {"posix", NULL, "fork", NULL, NULL},
    {"posix", NULL, "system", NULL, NULL}, {"_posixsubprocess", NULL, "fork_exec", NULL, NULL},
    {"_multiprocessing", "SemLock", "acquire", NULL, NULL},
};
enum { N_UNMODELLED = sizeof unmodelled / sizeof *unmodelled };

static PyObject *not_modelled(int number, PyObject *self, void *a, void *b, void *c, void *d)
{
    PyFiber *f = running();
    char text[200];
    if (f == NULL)
        return ((AnyFunction)(void *)unmodelled[number].before)(self, a, b, c, d);
    if (f->unwinding) {
        PyErr_SetNone(Abandoned);
        return NULL;
    }
    snprintf(text, sizeof text, "thread %d calls %s%s%s.%s, which waits for something outside the test; give the "
             "test a stand-in for it", f->number, unmodelled[number].module, unmodelled[number].type ? "." : "",
             unmodelled[number].type ? unmodelled[number].type : "", unmodelled[number].name);
    note_stack();
    if (IN_ENGINE(f, pml_python_fail(PYTHON_UNCONTROLLED, "", text)) < 0)
        return NULL;
    return NULL;
}

#define UNMODELLED(n)                                                                              \
    static PyObject *unmodelled_##n(PyObject *self, void *a, void *b, void *c, void *d)           \
    {                                                                                              \
        return not_modelled(n, self, a, b, c, d);                                                  \
    }
UNMODELLED(0) UNMODELLED(1) UNMODELLED(2) UNMODELLED(3) UNMODELLED(4) UNMODELLED(5) UNMODELLED(6) UNMODELLED(7)
UNMODELLED(8) UNMODELLED(9) UNMODELLED(10) UNMODELLED(11) UNMODELLED(12) UNMODELLED(13) UNMODELLED(14)
UNMODELLED(15) UNMODELLED(16)

static const AnyFunction UNMODELLED_FUNCTIONS[] = {
    unmodelled_0, unmodelled_1, unmodelled_2, unmodelled_3, unmodelled_4, unmodelled_5, unmodelled_6,
    unmodelled_7, unmodelled_8, unmodelled_9, unmodelled_10, unmodelled_11, unmodelled_12, unmodelled_13,
    unmodelled_14, unmodelled_15, unmodelled_16,
};
_Static_assert(sizeof UNMODELLED_FUNCTIONS / sizeof *UNMODELLED_FUNCTIONS == N_UNMODELLED, "one function a row");

static PyMethodDef *table_entry(const char *module, const char *type, const char *name, PyTypeObject **found);

static int replace_unmodelled(void)
{
    PyTypeObject *unused;
    for (int i = 0; i < N_UNMODELLED; i++) {
        if (unmodelled[i].definition == NULL &&
            (unmodelled[i].definition = table_entry(unmodelled[i].module, unmodelled[i].type, unmodelled[i].name,
                                                    &unused)) == NULL)
            return -1;
        unmodelled[i].before = unmodelled[i].definition->ml_meth;
        unmodelled[i].definition->ml_meth = (PyCFunction)(void *)UNMODELLED_FUNCTIONS[i];
    }
    return 0;
}

static void put_back_unmodelled(void)
{
    for (int i = 0; i < N_UNMODELLED; i++)
        unmodelled[i].definition->ml_meth = unmodelled[i].before;
}
