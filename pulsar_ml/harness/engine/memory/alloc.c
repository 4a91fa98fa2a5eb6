/* The allocator of the code under test: an arena at a fixed address that every execution fills from
 * its beginning, so that addresses are the same each time. Each controlled thread has a region of
 * its own, so that its addresses do not depend on when other threads allocate; what does not fit
 * there lies in the common one. A freed block is kept in quarantine, where every access to it is
 * seen, or handed out again at once, so that ABA can happen; which of the two may be decided by
 * each execution. Bytes never written hold a pattern. */

enum { HEAP_NONE = 0, HEAP_LIVE = 1, HEAP_FREED = 2 };
#define UNWRITTEN UINT64_C(0xD6E1C3A59B7F4D2D)

/* In front of each block, sixteen bytes that no access may touch. */
typedef struct { uint32_t block; uint32_t magic; uint64_t bytes; } Header;
enum { MAGIC = 0x424C4F43, MOST_BLOCKS = 1 << 16 };

typedef struct {
    uintptr_t address;
    size_t bytes;
    uint64_t allocated_pc, freed_pc;
    int16_t allocated_by, freed_by;
    uint32_t freed_step;
    uint8_t live;
} Block;

SHARED struct {
    uint8_t *state;               /* of each sixteen bytes */
    Block *blocks;
    size_t used;                  /* of the common region */
    uint32_t own_used[ENGINE_MOST_THREADS], n_own;   /* and of threads below this number */
    uint32_t n_blocks, n_live;
    int64_t countdown;            /* allocations until one fails; negative: none */
    uint32_t free_generation[SMALL_CLASSES];
    uintptr_t free_first[SMALL_CLASSES];
} heap = {.countdown = -1};

static int heap_open(void)
{
    if (heap.state)
        return 1;
    void *arena = mmap(ARENA, ARENA_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    void *state = mmap(NULL, ARENA_BYTES / 16, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    heap.blocks = calloc(MOST_BLOCKS, sizeof *heap.blocks);
    if (arena != ARENA || state == MAP_FAILED || heap.blocks == NULL)
        return 0;
    heap.state = state;
    return 1;
}

static inline void heap_reset(void)
{
    memset(heap.state, HEAP_NONE, heap.used / 16);
    heap.used = 0;
    for (; unlikely(heap.n_own); heap.own_used[heap.n_own] = 0) {
        size_t own = COMMON_BYTES + --heap.n_own * (size_t)OWN_BYTES;
        memset(heap.state + own / 16, HEAP_NONE, heap.own_used[heap.n_own] / 16);
    }
    heap.n_blocks = 0;
    heap.n_live = 0;
}

static inline int heap_ok(uintptr_t address)
{
    uintptr_t offset = address - (uintptr_t)ARENA;
    return offset >= ARENA_BYTES || heap.state[offset / 16] == HEAP_LIVE;
}

/* The block that holds an address, or the one in front of it. */
static Block *block_around(uintptr_t address)
{
    Block *best = NULL;
    for (uint32_t i = 0; i < heap.n_blocks; i++) {
        Block *b = &heap.blocks[i];
        if (b->address <= address && (best == NULL || b->address > best->address))
            best = b;
    }
    return best;
}

static void describe_block(EngineFailure *f, const Block *b, uintptr_t address)
{
    if (b == NULL || f == NULL)
        return;
    f->block_pc = b->allocated_pc;
    f->free_pc = b->live ? 0 : b->freed_pc;
    f->block_size = b->bytes;
    f->offset = address - b->address;
    if (!b->live)
        f->other_thread = b->freed_by;
}

static __attribute__((noinline)) void heap_fail(Thread *t, uintptr_t address, uint32_t width, EngineOp op, uint64_t pc)
{
    uint8_t state = heap.state[(address - (uintptr_t)ARENA) / 16];
    EngineFailure *f = fail(state == HEAP_FREED ? FAIL_USE_AFTER_FREE : FAIL_OUT_OF_BOUNDS, t, address, pc);
    if (f) {
        f->op = op;
        f->width = (int32_t)width;
        describe_block(f, block_around(address), address);
    }
    if (E.recording)
        trace_event(t, op, address, (int)width, 0, pc);
    abandon();
}

/* Also true, with a chance of 2**-32, for what was written so; one and two bytes count only within
 * eight that were never written. */
static inline int looks_uninitialised(uintptr_t address, uint32_t width)
{
    uint64_t mask = width < 4 || width >= 8 ? ~UINT64_C(0) : ((UINT64_C(1) << (8 * width)) - 1) << (8 * (address & 7));
    return in_arena(address) && ((*(uint64_t *)(address & ~(uintptr_t)7) ^ UNWRITTEN) & mask) == 0;
}

static void heap_fill(char *block, size_t bytes)
{
    uint64_t pattern = UNWRITTEN;
    for (size_t i = 0; i < (bytes + 7) / 8; i++)
        memcpy(block + 8 * i, &pattern, 8);
}

/* Large blocks get fresh pages, which cost only where they are touched. */
static void heap_zero(char *block, size_t bytes)
{
    enum { LARGE = 1 << 16 };
    size_t page = page_bytes();
    char *first = (char *)(((uintptr_t)block + page - 1) & ~(page - 1));
    char *end = (char *)((uintptr_t)(block + bytes) & ~(page - 1));
    if (bytes < LARGE || madvise(first, (size_t)(end - first), MADV_DONTNEED) != 0) {
        memset(block, 0, bytes);
        return;
    }
    memset(block, 0, (size_t)(first - block));
    memset(end, 0, (size_t)(block + bytes - end));
}

/* Where a block of this size would begin in a region that is filled so far. */
static inline size_t block_start(size_t used, size_t alignment)
{
    return alignment > 16 ? (used + sizeof(Header) + alignment - 1) / alignment * alignment - sizeof(Header) : used;
}

/* A header with room behind it, in the thread's own region or in the common one. NULL: both are
 * full. */
static Header *heap_extend(const Thread *t, size_t rounded, size_t alignment)
{
    size_t own, start;
    if (alignment > COMMON_BYTES / 2 || rounded > COMMON_BYTES / 2 || heap.n_blocks == MOST_BLOCKS)
        return NULL;
    if (t->controlled) {
        start = block_start(heap.own_used[t->number], alignment);
        own = COMMON_BYTES + (size_t)t->number * OWN_BYTES;
        if (start + rounded + 2 * sizeof(Header) <= OWN_BYTES) {
            heap.own_used[t->number] = (uint32_t)(start + rounded + sizeof(Header));
            if (heap.n_own <= (uint32_t)t->number)
                heap.n_own = (uint32_t)t->number + 1;
            return (Header *)(ARENA + own + start);
        }
        if (unlikely(E.reducing))
            note_object(KEY_HEAP);  /* the order of such allocations decides their addresses */
    }
    start = block_start(heap.used, alignment);
    if (start + rounded + 2 * sizeof(Header) > COMMON_BYTES)
        return NULL;
    heap.used = start + rounded + sizeof(Header);
    return (Header *)(ARENA + start);
}

/* Is there a freed block of this size, and does the execution hand it out again? */
static inline int takes_freed(size_t class, size_t alignment)
{
    if (class >= SMALL_CLASSES || heap.free_generation[class] != E.generation || !heap.free_first[class] ||
        (alignment > 16 && heap.free_first[class] % alignment))
        return 0;
    if (unlikely(E.reuse == UNDECIDED))
        E.reuse = (uint8_t)search_choose(2);
    return E.reuse;
}

/* A block with its header. Its bytes are what they were. NULL when the arena is full. */
static char *heap_take(Thread *t, size_t bytes, size_t alignment, uint64_t pc)
{
    size_t rounded = bytes ? (bytes + 15) / 16 * 16 : 16, class = rounded / 16;
    int freed;
    uintptr_t address;
    Header *header;
    Block *b;
    if (unlikely(E.reducing))
        note_sizes(class, TOUCH_READS);
    freed = takes_freed(class, alignment);
    if (freed) {
        address = heap.free_first[class];
        memcpy(&heap.free_first[class], (void *)address, sizeof(uintptr_t));
        header = (Header *)(address - sizeof(Header));
        b = &heap.blocks[header->block];
        if (unlikely(E.reducing))
            note_reused(class, address, (uint32_t)rounded);
        if (searching())
            E.class_hash += mix64(mix64((uint64_t)t->step << 32 | b->freed_step));
    } else {
        header = heap_extend(t, rounded, alignment);
        if (header == NULL)
            return NULL;
        address = (uintptr_t)(header + 1);
        header->block = heap.n_blocks++;
        header->magic = MAGIC;
        b = &heap.blocks[header->block];
    }
    header->bytes = bytes;
    *b = (Block){address, bytes, pc, 0, (int16_t)t->number, -1, 0, 1};
    heap.n_live++;
    memset(heap.state + (address - (uintptr_t)ARENA) / 16, HEAP_LIVE, rounded / 16);
    if (t->controlled && E.recording)
        trace_event(t, OP_ALLOCATE, address, 0, bytes, pc);
    return (char *)address;
}

/* An allocation fails as a fault. Classes show which one did. */
static int is_refused(Thread *t)
{
    uint32_t points = points_of(t);
    t->allocation = t->allocation_at == points ? t->allocation + 1 : 1;
    t->allocation_at = points;
    if (!choose(t, CHOOSE_NO_MEMORY, 2))
        return 0;
    E.class_hash += mix64(~mix64((uint64_t)t->step << 32 | t->allocation));
    return 1;
}

static void *heap_allocate(Thread *t, size_t bytes, size_t alignment, int zeroed, uint64_t pc)
{
    size_t rounded = bytes ? (bytes + 15) / 16 * 16 : 16;
    char *memory;
    if (unlikely(E.reducing) && heap.countdown >= 0)
        note_object(KEY_HEAP);        /* the order decides which one fails */
    if ((heap.countdown >= 0 && heap.countdown-- == 0) ||
        (t->controlled && E.config.faults & FAULT_NO_MEMORY && is_refused(t))) {
        if (t->controlled && E.recording)
            trace_event(t, OP_REFUSE, 0, 0, bytes, pc);
        return NULL;
    }
    memory = heap_take(t, bytes, alignment, pc);
    if (memory == NULL)
        return NULL;
    if (zeroed)
        heap_zero(memory, rounded);
    else
        heap_fill(memory, rounded);
    if (t->controlled && zeroed && bytes <= 4096)
        plain_range(t, (uintptr_t)memory, bytes, OP_WRITE, pc);
    return memory;
}

/* Freeing is a write to the whole block, and what earlier accesses said about its bytes ends with
 * it. */
static void end_variables(Thread *t, const Block *b, size_t rounded, uint64_t pc)
{
    Cell *cell = arena_cell(b->address), *end = cell + (rounded >> 3);
    for (; cell < end; cell++) {
        if (likely(!cell_used(cell)))
            continue;
        for (uint32_t i = cell->first; i != NO_VARIABLE; i = E.variables[i].next) {
            Variable *v = &E.variables[i];
            if (E.config.races) {
                check_plain(t, v, OP_FREE, 1, v->width, pc);
                if (v->is_atomic)
                    check_atomic(t, v, OP_FREE, 1, v->width, pc);
            }
            v->width = 0;
        }
        cell->first = NO_VARIABLE;
    }
}

/* Memory of the C library's heap, as that of an exception, goes to whoever allocates next: what
 * earlier accesses said about its bytes ends here, too. Its owners may agree in code that was not
 * recompiled, so this is no access that could race. */
static void forget_variables(uintptr_t address, size_t bytes)
{
    for (uintptr_t key = address >> 3; key < (address + bytes) >> 3; key++) {
        Cell *cell = find_cell(key << 3);
        if (!cell_used(cell))
            continue;
        for (uint32_t i = cell->first; i != NO_VARIABLE; i = E.variables[i].next)
            E.variables[i].width = 0;
        cell->first = NO_VARIABLE;
    }
}

static void drain(Thread *t);
static inline void settle(Thread *t);
static void forget_objects(Thread *t, uintptr_t address, size_t bytes, uint64_t pc);

static void heap_release(Thread *t, void *memory, uint64_t pc)
{
    uintptr_t address = (uintptr_t)memory;
    Header *header = (Header *)(address - sizeof(Header));
    Block *b;
    size_t rounded;
    settle(t);
    if (address % 16 || header->magic != MAGIC || header->block >= heap.n_blocks ||
        heap.blocks[header->block].address != address) {
        fail(FAIL_BAD_FREE, t, address, pc);
        abandon();
    }
    b = &heap.blocks[header->block];
    if (!b->live) {
        describe_block(fail(FAIL_DOUBLE_FREE, t, address, pc), b, address);
        abandon();
    }
    rounded = b->bytes ? (b->bytes + 15) / 16 * 16 : 16;
    if (unlikely(E.reducing))
        note_reused(rounded / 16, address, (uint32_t)rounded);
    if (t->controlled) {
        drain(t);
        if (E.recording)
            trace_event(t, OP_FREE, address, 0, b->bytes, pc);
        end_variables(t, b, rounded, pc);
    }
    forget_objects(t, address, b->bytes, pc);
    b->live = 0;
    b->freed_pc = pc;
    b->freed_by = (int16_t)t->number;
    b->freed_step = t->step;
    heap.n_live--;
    memset(heap.state + (address - (uintptr_t)ARENA) / 16, HEAP_FREED, rounded / 16);
    if (E.reuse && rounded / 16 < SMALL_CLASSES) {  /* or UNDECIDED */
        size_t class = rounded / 16;
        if (heap.free_generation[class] != E.generation) {
            heap.free_generation[class] = E.generation;
            heap.free_first[class] = 0;
        }
        memcpy(memory, &heap.free_first[class], sizeof(uintptr_t));
        heap.free_first[class] = address;
    }
}

/* Live blocks that a global variable leads to, directly or by other blocks, are no leak: a program
 * may end with them. */
enum { BLOCK_LIVE = 1, BLOCK_REACHED, BLOCK_FOLLOWED };

static void reach_from(uintptr_t from, size_t bytes)
{
    for (uintptr_t at = (from + 7) & ~(uintptr_t)7; at + 8 <= from + bytes; at += 8) {
        uintptr_t word = *(const uintptr_t *)at;
        if (!in_arena(word))
            continue;
        for (uint32_t i = 0; i < heap.n_blocks; i++) {
            Block *b = &heap.blocks[i];
            if (b->live == BLOCK_LIVE && word - b->address <= b->bytes)
                b->live = BLOCK_REACHED;
        }
    }
}

static void reach_from_kept(void);

/* Called by libraries of tests at the end of an execution, for each area of their variables. */
EXPORT void pml_engine_reachable(const void *from, size_t bytes)
{
    uint32_t found = 1;
    if (heap.n_live == 0)
        return;
    reach_from((uintptr_t)from, bytes);
    reach_from_kept();
    while (found) {
        found = 0;
        for (uint32_t i = 0; i < heap.n_blocks; i++) {
            Block *b = &heap.blocks[i];
            if (b->live != BLOCK_REACHED)
                continue;
            b->live = BLOCK_FOLLOWED;
            reach_from(b->address, b->bytes);
            found = 1;
        }
    }
}

/* After everything was destroyed: what is still allocated leaks. */
static void check_leaks(void)
{
    const Block *first = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; heap.n_live && i < heap.n_blocks; i++)
        if (heap.blocks[i].live == BLOCK_LIVE) {
            first = first ? first : &heap.blocks[i];
            count++;
        }
    if (first == NULL)
        return;
    EngineFailure *f = fail(FAIL_LEAK, &E.main, first->address, first->allocated_pc);
    describe_block(f, first, first->address);
    if (f) {
        f->other_thread = first->allocated_by;
        snprintf(f->message, sizeof f->message, "%u blocks are never freed", count);
    }
}
