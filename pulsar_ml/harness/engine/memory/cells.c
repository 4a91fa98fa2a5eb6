/* Finds the cell of eight aligned bytes, which leads to their variables. The arena, from which the
 * code under test allocates, has a table with a cell for each eight bytes; all other addresses
 * share an open-addressing table. A cell of another generation is empty, so an execution begins
 * with empty tables at no cost. */

static char *const ARENA = (char *)UINT64_C(0x5A0000000000);
enum { COMMON_BYTES = 1 << 28, OWN_BYTES = 1 << 20 };
enum { ARENA_BYTES = COMMON_BYTES + ENGINE_MOST_THREADS * OWN_BYTES };

static inline int in_arena(uintptr_t address) { return address - (uintptr_t)ARENA < ARENA_BYTES; }

/* Cells of earlier executions are empty. */
static inline int cell_used(const Cell *cell)
{
    return cell->generation == E.generation;
}

static inline int has_variables(const Cell *cell) { return cell_used(cell) && cell->first != NO_VARIABLE; }

static inline Cell *arena_cell(uintptr_t address)
{
    return &E.cells[(address - (uintptr_t)ARENA) >> 3];
}

/* Where the search for the cell begins outside of the arena. Nearby addresses share cache lines. */
static inline uint32_t first_slot(uintptr_t key)
{
    return (uint32_t)(key ^ (key >> 16)) & (SLOTS - 1);
}

static __attribute__((noinline)) Cell *outside_cell(uintptr_t key)
{
    uint32_t at = first_slot(key);
    while (E.slots[at].key != key && cell_used(&E.slots[at].cell))
        at = (at + 1) & (SLOTS - 1);
    E.slots[at].key = key;
    return &E.slots[at].cell;
}

/* The cell of the eight bytes that hold this address. It may be empty. */
static inline Cell *find_cell(uintptr_t address)
{
    return likely(in_arena(address)) ? arena_cell(address) : outside_cell(address >> 3);
}

/* The first variable of these eight bytes where one look finds it, or NO_VARIABLE. */
INLINED uint32_t quick_first(uintptr_t address)
{
    const Cell *cell;
    if (likely(in_arena(address))) {
        cell = arena_cell(address);
    } else {
        const Slot *slot = &E.slots[first_slot(address >> 3)];
        if (unlikely(slot->key != address >> 3))
            return NO_VARIABLE;
        cell = &slot->cell;
    }
    return likely(cell_used(cell)) ? cell->first : NO_VARIABLE;
}

/* Empties all cells, before a generation comes again and would fill them. */
static __attribute__((noinline)) void empty_cells(void)
{
    memset(E.slots, 0, SLOTS * sizeof *E.slots);
    madvise(E.cells, ARENA_BYTES / 8 * sizeof *E.cells, MADV_DONTNEED);
}
