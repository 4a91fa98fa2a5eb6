/* Atomic variables of static storage in the module under test. They keep their values from one
 * execution to the next. An execution that is abandoned may leave one in a state in which no
 * execution ends, as a lock that is held; so each of them gets back its value from before that
 * execution. */

#include <link.h>

enum { MOST_GLOBALS = 1024 };
typedef struct { uintptr_t address; uint64_t low, high; uint32_t width; } Global;
SHARED struct { uintptr_t start; size_t bytes; uint32_t n; Global before[MOST_GLOBALS]; } globals;

static inline void raw_write(uintptr_t address, uint32_t width, uint64_t low, uint64_t high);

/* Finds the module's writable segments, which lie side by side, if the code at `within` is its. */
static int find_segments(struct dl_phdr_info *info, size_t size, void *within)
{
    uintptr_t start = UINTPTR_MAX, end = 0;
    int contains = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + segment->p_vaddr, to = from + segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        contains |= (uintptr_t)within >= from && (uintptr_t)within < to;
        if (segment->p_flags & PF_W) {
            start = from < start ? from : start;
            end = to > end ? to : end;
        }
    }
    if (!contains || end == 0)
        return 0;
    globals.start = start;
    globals.bytes = end - start;
    return 1;
}

static void find_globals(const void *code)
{
    globals.bytes = 0;
    dl_iterate_phdr(find_segments, (void *)(uintptr_t)code);
}

static inline int is_global(uintptr_t address) { return address - globals.start < globals.bytes; }

/* The first access of an execution found this value. */
static __attribute__((noinline)) void keep_global(uintptr_t address, uint32_t width, uint64_t low, uint64_t high)
{
    if (globals.n < MOST_GLOBALS)
        globals.before[globals.n++] = (Global){address, low, high, width};
}

static void set_globals_back(void)
{
    while (globals.n) {
        const Global *g = &globals.before[--globals.n];
        raw_write(g->address, g->width, g->low, g->high);
    }
}
