/* The interpreter's allocators while tests with checked modules run: the engine hears of memory
 * that objects get, because what another object did there before is no access to them. */

static PyMemAllocatorEx allocators[2];   /* as they were: of memory, and of objects */
static const PyMemAllocatorDomain DOMAINS[2] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
static int follows_memory;

static inline void *allocated(void *memory, size_t bytes)
{
    if (running() && memory)
        pml_python_allocated((uintptr_t)memory, bytes);
    return memory;
}

static void *followed_malloc(void *context, size_t bytes)
{
    const PyMemAllocatorEx *before = context;
    return allocated(before->malloc(before->ctx, bytes), bytes);
}

static void *followed_calloc(void *context, size_t n, size_t bytes)
{
    const PyMemAllocatorEx *before = context;
    return allocated(before->calloc(before->ctx, n, bytes), n * bytes);
}

static void *followed_realloc(void *context, void *memory, size_t bytes)
{
    const PyMemAllocatorEx *before = context;
    void *moved = before->realloc(before->ctx, memory, bytes);
    return moved == memory ? moved : allocated(moved, bytes);
}

static void followed_free(void *context, void *memory)
{
    const PyMemAllocatorEx *before = context;
    before->free(before->ctx, memory);
}

static void follow_memory(void)
{
    for (int i = 0; i < 2; i++) {
        PyMemAllocatorEx followed = {&allocators[i], followed_malloc, followed_calloc, followed_realloc,
                                     followed_free};
        PyMem_GetAllocator(DOMAINS[i], &allocators[i]);
        PyMem_SetAllocator(DOMAINS[i], &followed);
    }
    follows_memory = 1;
}

static void leave_memory(void)
{
    for (int i = 0; follows_memory && i < 2; i++)
        PyMem_SetAllocator(DOMAINS[i], &allocators[i]);
    follows_memory = 0;
}
