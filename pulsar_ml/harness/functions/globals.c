/* Global variables of a library of tests: each execution begins with them as a process does. Their
 * values as the file has them are put back, then the constructors of global objects run, under the
 * engine; it runs their destructors at the end. A file of its own, because the user's may fix which
 * parts of the system's headers can be seen. Not instrumented. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "pulsar_ml/harness/functions/areas.h"

static int pml_find_areas(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    uintptr_t mine = (uintptr_t)&pml_n_areas;
    uintptr_t constant = 0, constant_end = 0;
    int here = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_LOAD && start <= mine && mine < end)
            here = 1;
        if (part->p_type == PT_GNU_RELRO)
            constant = start, constant_end = end;
    }
    if (!here)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        if (start <= constant && constant < end) /* relocated, then read-only, up to a page's end */
            start = (constant_end + 4095) & ~(uintptr_t)4095;
        if (start >= end)
            continue;
        void *kept =
            mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (kept == MAP_FAILED || !pml_add_area((void *)start, kept, end - start))
            return -1;
    }
    return 1;
}

/* Keeps the values of global variables. Call once, after the library was loaded. Returns -1 when
 * there is no memory for them. */
__attribute__((visibility("default"))) int pml_keep_globals(void)
{
    if (dl_iterate_phdr(pml_find_areas, NULL) != 1)
        return -1;
    pml_keep_areas();
    return 0;
}

/* Constructors of the user's file, which globals.ld takes out of those that run at load. */
typedef void (*PmlConstructor)(int, char **, char **);
extern const PmlConstructor pml_first_constructor[], pml_last_constructor[];

__attribute__((visibility("hidden"))) void pml_begin_globals(void)
{
    pml_restore_areas();
    srand(1); /* as in a new process */
    for (const PmlConstructor *each = pml_first_constructor; each < pml_last_constructor; each++)
        (*each)(0, NULL, NULL);
}

__attribute__((visibility("hidden"))) void pml_end_globals(void) { pml_follow_areas(); }
