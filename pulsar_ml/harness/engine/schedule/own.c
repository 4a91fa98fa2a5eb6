/* The data that belong to one thread: thread-local variables with their destructors, and
 * pthread_setspecific() values. Each fiber has its own. Variables with static storage that an
 * execution initialises (a static local, a once flag) belong to the execution, which destroys and
 * resets them at its end. */

#include <dlfcn.h>
#include <link.h>

enum { MOST_LOCALS = 32, MOST_KEYS = 128, MOST_VALUES = 128, REAL_KEYS = 1024, KEY_ROUNDS = 4 };

/* The block of one module's thread-local variables. It lies in the arena and ends with its thread,
 * so an access after that end is a use after free. */
typedef struct { uintptr_t module; char *memory, *variables; } Local;

typedef struct { void (*run)(void *); void *object; } Ending;

typedef struct { uint32_t key, serial; void *value; } Value;

typedef struct Owned {
    Local locals[MOST_LOCALS];
    Value values[MOST_VALUES];
    Ending *endings;              /* destructors, the first registered first */
    uint32_t n_locals, n_values, n_endings, endings_room;
    stack_t signal_stack;
} Owned;

/* A loaded module that has thread-local variables. */
typedef struct {
    uintptr_t id;
    const char *image;            /* the initial values; zeros follow up to `bytes` */
    size_t image_bytes, bytes, alignment;
    uintptr_t low, high;          /* of the module itself */
} TlsModule;

static TlsModule tls_modules[MOST_LOCALS];
static int n_tls_modules;

typedef struct { uintptr_t module, offset; } TlsIndex;
extern void *__tls_get_addr(TlsIndex *);

static int note_tls_module(struct dl_phdr_info *info, size_t bytes, void *wanted)
{
    TlsModule *m = wanted;
    (void)bytes;
    if (info->dlpi_tls_modid != m->id)
        return 0;
    m->low = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_TLS) {
            m->image = (const char *)at;
            m->image_bytes = part->p_filesz;
            m->bytes = part->p_memsz;
            m->alignment = part->p_align > 16 ? part->p_align : 16;
        } else if (part->p_type == PT_LOAD) {
            m->low = at < m->low ? at : m->low;
            m->high = at + part->p_memsz > m->high ? at + part->p_memsz : m->high;
        }
    }
    return 1;
}

static const TlsModule *tls_module(uintptr_t id)
{
    TlsModule *m;
    for (int i = 0; i < n_tls_modules; i++)
        if (tls_modules[i].id == id)
            return &tls_modules[i];
    if (n_tls_modules == MOST_LOCALS) {
        fail_with(FAIL_CAPACITY, current, "more modules have thread-local variables than the engine can follow");
        abandon();
    }
    m = &tls_modules[n_tls_modules++];
    *m = (TlsModule){.id = id};
    dl_iterate_phdr(note_tls_module, m);
    return m;
}

static Owned *owned(Thread *t)
{
    if (unlikely(t->owned == NULL) && (t->owned = calloc(1, sizeof *t->owned)) == NULL) {
        fail_with(FAIL_CAPACITY, t, "no memory for the thread's own variables");
        abandon();
    }
    return t->owned;
}

static inline int owns(const Thread *t)
{
    return t->owned && (t->owned->n_locals | t->owned->n_values | t->owned->n_endings);
}

static inline void start_owned(Thread *t)
{
    if (unlikely(t->owned != NULL)) {
        t->owned->n_locals = t->owned->n_values = t->owned->n_endings = 0;
        t->owned->signal_stack = (stack_t){.ss_flags = SS_DISABLE};
    }
}

static __attribute__((noinline)) char *new_locals(Thread *t, uintptr_t module, uint64_t pc)
{
    const TlsModule *m = tls_module(module);
    Owned *o = owned(t);
    Local *local;
    if (o->n_locals == MOST_LOCALS)
        return NULL;
    local = &o->locals[o->n_locals++];
    local->module = module;
    local->memory = heap_take(t, m->bytes + m->alignment, 0, pc);
    if (local->memory == NULL) {
        fail_with(FAIL_CAPACITY, t, "no memory for the thread-local variables of a module");
        abandon();
    }
    local->variables = (char *)(((uintptr_t)local->memory + m->alignment - 1) & ~(m->alignment - 1));
    memcpy(local->variables, m->image, m->image_bytes);
    memset(local->variables + m->image_bytes, 0, m->bytes - m->image_bytes);
    return local->variables;
}

/* Code of checked modules reaches their thread-local variables here. A module's own variables are
 * each fiber's own; those of other modules (libstdc++, libc) stay with the thread of the system. */
static void *local_at(Thread *t, TlsIndex *index, uint64_t pc)
{
    const Owned *o = t->owned;
    const TlsModule *m;
    char *variables;
    for (uint32_t i = 0; o && i < o->n_locals; i++)
        if (o->locals[i].module == index->module)
            return o->locals[i].variables + index->offset;
    m = tls_module(index->module);
    if ((uintptr_t)index - m->low >= m->high - m->low) {
        void *word = __tls_get_addr(index);
        note_library_word(word);
        return word;
    }
    variables = new_locals(t, index->module, pc);
    return variables + index->offset;
}

static int add_ending(Thread *t, void (*run)(void *), void *object)
{
    Owned *o = owned(t);
    if (o->n_endings == o->endings_room) {
        uint32_t room = o->endings_room ? 2 * o->endings_room : 16;
        Ending *more = realloc(o->endings, room * sizeof *more);
        if (more == NULL)
            return -1;
        o->endings = more;
        o->endings_room = room;
    }
    o->endings[o->n_endings++] = (Ending){run, object};
    return 0;
}

/* Keys. A key that an execution creates lives until its end and has a number above the real ones.
 */
typedef struct { void (*destroy)(void *); uint32_t serial; uint8_t live; } Key;
SHARED Key keys[MOST_KEYS];
SHARED uint32_t n_keys, key_serial;
static void (*real_destructors[REAL_KEYS])(void *);

static int new_key(uint32_t *key, void (*destroy)(void *))
{
    uint32_t at = 0;
    if (unlikely(E.reducing))
        give_up_reduction(UNREDUCED_LIBRARY);
    while (at < n_keys && keys[at].live)
        at++;
    if (at == MOST_KEYS)
        return EAGAIN;
    if (at == n_keys)
        n_keys++;
    keys[at] = (Key){destroy, ++key_serial, 1};
    *key = REAL_KEYS + at;
    return 0;
}

/* The value's place; NULL when there is none and none was wanted. */
static Value *find_value(Thread *t, uint32_t key, int wanted)
{
    uint32_t serial = key >= REAL_KEYS && key - REAL_KEYS < n_keys ? keys[key - REAL_KEYS].serial : 0;
    Owned *o = wanted ? owned(t) : t->owned;
    for (uint32_t i = 0; o && i < o->n_values; i++)
        if (o->values[i].key == key && o->values[i].serial == serial)
            return &o->values[i];
    if (!wanted)
        return NULL;
    if (o->n_values == MOST_VALUES) {
        fail_with(FAIL_CAPACITY, t, "a thread sets more values by pthread_setspecific() than the engine can follow");
        abandon();
    }
    o->values[o->n_values] = (Value){key, serial, NULL};
    return &o->values[o->n_values++];
}

static void destroy_values(Thread *t)
{
    int again = 1;
    for (int round = 0; again && round < KEY_ROUNDS; round++) {
        again = 0;
        for (uint32_t i = 0; i < t->owned->n_values; i++) {
            Value *v = &t->owned->values[i];
            void *value = v->value;
            void (*destroy)(void *) = NULL;
            if (v->key < REAL_KEYS)
                destroy = real_destructors[v->key];
            else if (keys[v->key - REAL_KEYS].live && keys[v->key - REAL_KEYS].serial == v->serial)
                destroy = keys[v->key - REAL_KEYS].destroy;
            if (value == NULL || destroy == NULL)
                continue;
            v->value = NULL;
            destroy(value);
            again = 1;
        }
    }
}

/* The thread ends: its variables are destroyed, the last one constructed first, then its values, as
 * libc does; then the memory of its variables is free. */
static void end_owned(Thread *t)
{
    Owned *o = t->owned;
    if (o == NULL)
        return;
    while (o->n_endings) {
        Ending ending = o->endings[--o->n_endings];
        ending.run(ending.object);
        t->depth = 0;
    }
    destroy_values(t);
    while (o->n_locals)
        heap_release(t, o->locals[--o->n_locals].memory, 0);
    o->n_values = 0;
}

/* Static storage that this execution initialised: destructors of static locals, and the words that
 * say that something is done, to be set back. Words in the arena go with it. */
typedef struct { void *word; uint8_t bytes; } Done;
static struct {
    Ending *endings;
    Done *done;
    uint32_t n_endings, endings_room, n_done, done_room;
} statics;

static int add_static_ending(void (*run)(void *), void *object)
{
    if (statics.n_endings == statics.endings_room) {
        uint32_t room = statics.endings_room ? 2 * statics.endings_room : 16;
        Ending *more = realloc(statics.endings, room * sizeof *more);
        if (more == NULL)
            return -1;
        statics.endings = more;
        statics.endings_room = room;
    }
    statics.endings[statics.n_endings++] = (Ending){run, object};
    return 0;
}

static void set_back_at_end(void *word, uint8_t bytes)
{
    if (in_arena((uintptr_t)word))
        return;
    if (statics.n_done == statics.done_room) {
        uint32_t room = statics.done_room ? 2 * statics.done_room : 16;
        Done *more = realloc(statics.done, room * sizeof *more);
        if (more == NULL) {
            fail_with(FAIL_CAPACITY, current, "no memory for the static variables that the execution initialises");
            abandon();
        }
        statics.done = more;
        statics.done_room = room;
    }
    statics.done[statics.n_done++] = (Done){word, bytes};
}

/* In the main thread, when all is destroyed. */
static void end_statics(void)
{
    while (unlikely(statics.n_endings)) {
        Ending ending = statics.endings[--statics.n_endings];
        ending.run(ending.object);
    }
}

/* After each execution, also one that ended early. */
static inline void reset_statics(void)
{
    while (unlikely(statics.n_done)) {
        Done done = statics.done[--statics.n_done];
        memset(done.word, 0, done.bytes);
    }
    statics.n_endings = 0;
    n_keys = 0;
}

/* libstdc++ of the process, which a C++ module brought with it; NULL when none did. */
static void *cxx_library(void)
{
    static void *handle;
    if (handle == NULL)
        handle = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    return handle;
}

static void *cxx_symbol(const char *name)
{
    return cxx_library() ? dlsym(cxx_library(), name) : NULL;
}

static LibraryState library_host;   /* of the thread of the system while executions run */

/* Finds the words of libc and libstdc++ for this thread of the system. */
static void library_begin(void)
{
    void *(*globals)(void) = NULL;
    *(void **)&globals = cxx_symbol("__cxa_get_globals");
    library.error = &errno;
    note_library_word(library.error);
    library.exceptions = globals ? globals() : no_exceptions;
    if (globals) {
        library.once_callable = cxx_symbol("_ZSt15__once_callable");
        library.once_call = cxx_symbol("_ZSt11__once_call");
    }
    if (library.once_callable == NULL || library.once_call == NULL) {
        library.once_callable = &no_once[0];
        library.once_call = &no_once[1];
    }
    library.floats = 0;           /* until code under test changes them in this run */
    get_floats(&library_host);
    get_library_state(&library_host);
    E.library_start = library_host;
    E.library_start.error = 0;
    E.library_start.exceptions[0] = E.library_start.exceptions[1] = 0;
    E.main.library = E.library_start;
}

static void library_end(void)
{
    set_library_state(&library_host);
}
