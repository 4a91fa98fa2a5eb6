/* Memory that a module allocated while it was imported: a C++ container that was filled there, for
 * one. It lies outside the arena. Each execution begins with its content as the import left it, and
 * no execution frees it. */

#include <dlfcn.h>
#include <malloc.h>

typedef struct { char *at, *copy; size_t bytes; uint32_t freed; } KeptBlock;
SHARED struct { KeptBlock *blocks; uint32_t n, n_before, room; uint8_t records; } kept_blocks;

static __attribute__((noinline)) void record_block(void *memory)
{
    if (kept_blocks.n == kept_blocks.room) {
        uint32_t room = kept_blocks.room ? 2 * kept_blocks.room : 256;
        KeptBlock *more = realloc(kept_blocks.blocks, room * sizeof *more);
        if (more == NULL)
            return;
        kept_blocks.blocks = more;
        kept_blocks.room = room;
    }
    kept_blocks.blocks[kept_blocks.n++] = (KeptBlock){memory, NULL, 0, 0};
}

/* Memory from libc, outside of executions. */
static inline void *from_libc(void *memory)
{
    if (unlikely(kept_blocks.records) && memory)
        record_block(memory);
    return memory;
}

static __attribute__((noinline)) void unrecord_block(const void *memory)
{
    for (uint32_t i = kept_blocks.n; i > kept_blocks.n_before; i--)
        if (kept_blocks.blocks[i - 1].at == memory) {
            kept_blocks.blocks[i - 1] = kept_blocks.blocks[--kept_blocks.n];
            return;
        }
}

static KeptBlock *kept_block(const void *memory)
{
    for (uint32_t i = 0; i < kept_blocks.n; i++)
        if (kept_blocks.blocks[i].at == memory)
            return &kept_blocks.blocks[i];
    return NULL;
}

/* Frees memory outside the arena. In an execution a kept block stays, and is not freed twice. */
static void free_outside(Thread *t, void *memory, uint64_t pc)
{
    KeptBlock *block = t ? kept_block(memory) : NULL;
    if (unlikely(kept_blocks.records))
        unrecord_block(memory);
    if (block == NULL) {
        if (t && t->controlled)
            forget_variables((uintptr_t)memory, malloc_usable_size(memory));
        free(memory);
        return;
    }
    if (block->freed == E.generation) {
        fail(FAIL_DOUBLE_FREE, t, (uintptr_t)memory, pc);
        abandon();
    }
    block->freed = E.generation;
}

static void redirect_library(void);
static void *cxx_symbol(const char *name);

/* Begins or ends the import of a module, of C++ or not, whose memory is to be kept. -1 without
 * memory. */
int engine_keep_blocks(int begins, int cxx)
{
    if (begins) {
        if (cxx && cxx_symbol("__cxa_get_globals") == NULL)
            dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_GLOBAL);
        redirect_library();
        kept_blocks.n_before = kept_blocks.n;
        kept_blocks.records = 1;
        return 0;
    }
    kept_blocks.records = 0;
    for (uint32_t i = kept_blocks.n_before; i < kept_blocks.n; i++) {
        KeptBlock *block = &kept_blocks.blocks[i];
        block->bytes = malloc_usable_size(block->at);
        block->copy = malloc(block->bytes);
        if (block->copy == NULL) {
            kept_blocks.n = i;
            return -1;
        }
        memcpy(block->copy, block->at, block->bytes);
    }
    return 0;
}

static void reach_from_kept(void)
{
    for (uint32_t i = 0; i < kept_blocks.n; i++)
        reach_from((uintptr_t)kept_blocks.blocks[i].at, kept_blocks.blocks[i].bytes);
}

/* Called at the beginning of an execution by modules of tests. */
EXPORT void pml_engine_restore_blocks(void)
{
    for (uint32_t i = 0; i < kept_blocks.n; i++)
        memcpy(kept_blocks.blocks[i].at, kept_blocks.blocks[i].copy, kept_blocks.blocks[i].bytes);
}
