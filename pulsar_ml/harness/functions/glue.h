/* Makes test functions into subjects: a generated file includes a user's file, then this one, and
 * names each function in PML_TEST. Nothing here is instrumented: the engine sees the user's. */
#ifndef PULSAR_ML_FUNCTIONS_GLUE_H
#define PULSAR_ML_FUNCTIONS_GLUE_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <cxxabi.h>
#else
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#endif
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include "pulsar_ml/harness/subject.h"

#define PML_UNSEEN __attribute__((no_sanitize("thread"), unused))

/* Global variables: their values after the library was loaded, put back before each execution. */

#define PML_MOST_AREAS 8

typedef struct {
    volatile unsigned char *at, *kept;
    size_t bytes;
} PmlArea;

static PmlArea pml_areas[PML_MOST_AREAS];
static int pml_n_areas;
static char pml_instance; /* what create returns: the tests have no other state than globals */

PML_UNSEEN static void pml_copy_bytes(volatile unsigned char *to, const volatile unsigned char *from,
                                      size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[i];
}

PML_UNSEEN static int pml_find_areas(struct dl_phdr_info *info, size_t size, void *unused)
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
    for (int i = 0; i < info->dlpi_phnum && pml_n_areas < PML_MOST_AREAS; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        if (start <= constant && constant < end) /* relocated, then read-only, up to a page's end */
            start = (constant_end + 4095) & ~(uintptr_t)4095;
        if (start >= end)
            continue;
        void *kept = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (kept == MAP_FAILED)
            continue;
        PmlArea area = {(volatile unsigned char *)start, (volatile unsigned char *)kept, end - start};
        pml_areas[pml_n_areas++] = area;
    }
    return 1;
}

PML_UNSEEN static void *pml_create(const int64_t *settings, int32_t threads)
{
    (void)settings, (void)threads;
    for (int i = 0; i < pml_n_areas; i++)
        pml_copy_bytes(pml_areas[i].at, pml_areas[i].kept, pml_areas[i].bytes);
    return &pml_instance;
}

PML_UNSEEN static void pml_check(void *instance, PmlViolation *violation)
{
    (void)instance, (void)violation;
}

PML_UNSEEN static void pml_destroy(void *instance) { (void)instance; }

/* Calls a test; an exception that leaves it is the failure. */
PML_UNSEEN static void pml_call(void (*test)(void), PmlViolation *violation)
{
#ifdef __cplusplus
    try {
        test();
    } catch (abi::__forced_unwind &) {
        throw;
    } catch (const std::exception &error) {
        violation->found = 1;
        std::snprintf(violation->invariant, sizeof violation->invariant, "exception");
        std::snprintf(violation->message, sizeof violation->message, "%s", error.what());
    } catch (...) {
        violation->found = 1;
        std::snprintf(violation->invariant, sizeof violation->invariant, "exception");
        std::snprintf(violation->message, sizeof violation->message, "of a type without what()");
    }
#else
    (void)violation;
    test();
#endif
}

static const PmlOperation PML_RUN = {"test", 1, PML_ANY_THREAD, 0, 0, {{0, 0, 0}}};
static const PmlArgument PML_NO_SETTING = {0, 0, 0};

#define PML_TEST(test)                                                                                \
    PML_UNSEEN static void pml_apply_##test(void *instance, int32_t thread, const PmlCall *call,      \
                                            PmlResult *result, PmlViolation *violation)               \
    {                                                                                                 \
        (void)instance, (void)thread, (void)call, (void)result;                                       \
        pml_call(test, violation);                                                                    \
    }                                                                                                 \
    static const PmlSubject pml_subject_##test = {                                                    \
        PML_SUBJECT_ABI, 1, 0, 1, #test, #test, &PML_RUN, &PML_NO_SETTING, pml_create,                \
        pml_apply_##test, pml_check, pml_destroy};

#ifdef __cplusplus
extern "C" {
#endif
/* Keeps the values of global variables. Call once, after the library was loaded. */
__attribute__((visibility("default"))) PML_UNSEEN void pml_keep_globals(void)
{
    dl_iterate_phdr(pml_find_areas, NULL);
    for (int i = 0; i < pml_n_areas; i++) /* pml_areas itself is in an area: complete before this */
        pml_copy_bytes(pml_areas[i].kept, pml_areas[i].at, pml_areas[i].bytes);
}
#ifdef __cplusplus
}
#endif
#endif
