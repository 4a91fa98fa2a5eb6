/* Areas of memory with global variables: their values when an area was added, which can be put
 * back. Not instrumented, so that the engine sees the user's code only. */
#ifndef PULSAR_ML_FUNCTIONS_AREAS_H
#define PULSAR_ML_FUNCTIONS_AREAS_H

#include <stddef.h>

#define PML_UNWATCHED static __attribute__((no_sanitize("thread"), unused))

#ifdef PML_PLAIN /* a build for real threads */
#define pml_engine_reachable(from, bytes) ((void)(from))
#define pml_engine_restore_blocks() ((void)0)
#else
#ifdef __cplusplus
extern "C" {
#endif
void pml_engine_reachable(const void *from, size_t bytes);
void pml_engine_restore_blocks(void);
#ifdef __cplusplus
}
#endif
#endif

enum { PML_MOST_AREAS = 256 };

typedef struct {
    volatile unsigned char *at, *kept;
    size_t bytes;
} PmlArea;

static PmlArea pml_areas[PML_MOST_AREAS];
static int pml_n_areas;

PML_UNWATCHED void pml_copy_bytes(volatile unsigned char *to, const volatile unsigned char *from,
                                  size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[i];
}

/* `kept` is memory for the values. Returns 0 when there are too many areas. */
PML_UNWATCHED int pml_add_area(void *at, void *kept, size_t bytes)
{
    PmlArea area = {(volatile unsigned char *)at, (volatile unsigned char *)kept, bytes};
    if (pml_n_areas == PML_MOST_AREAS)
        return 0;
    pml_areas[pml_n_areas++] = area;
    return 1;
}

/* An area may hold pml_areas, so this follows the last pml_add_area(). */
PML_UNWATCHED void pml_keep_areas(void)
{
    for (int i = 0; i < pml_n_areas; i++)
        pml_copy_bytes(pml_areas[i].kept, pml_areas[i].at, pml_areas[i].bytes);
}

PML_UNWATCHED void pml_restore_areas(void)
{
    for (int i = 0; i < pml_n_areas; i++)
        pml_copy_bytes(pml_areas[i].at, pml_areas[i].kept, pml_areas[i].bytes);
}

/* Memory that a global variable leads to is no leak. */
PML_UNWATCHED void pml_follow_areas(void)
{
    for (int i = 0; i < pml_n_areas; i++)
        pml_engine_reachable((const void *)pml_areas[i].at, pml_areas[i].bytes);
}

#endif
