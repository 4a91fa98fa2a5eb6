/* Finds the variable at an address: one of those in the cell of its eight aligned bytes. */

static inline uint8_t byte_mask(uintptr_t address, uint32_t width)
{
    return width >= 8 ? 0xFF : (uint8_t)(((1u << width) - 1) << (address & 7));
}

static inline int heap_ok(uintptr_t address);
static void heap_fail(Thread *t, uintptr_t address, uint32_t width, EngineOp op, uint64_t pc);

static inline int variables_are_full(void) { return E.n_variables >= MOST_VARIABLES * 3 / 4; }

/* Of messages, should the variable be an atomic one. */
static inline char *block_of(uint32_t variable)
{
    return E.blocks + (size_t)variable * E.layout.block_bytes;
}

static __attribute__((noinline)) Variable *new_variable(Thread *t, Cell *cell, uintptr_t address, uint32_t width,
                                                        EngineOp op, uint64_t pc)
{
    if (unlikely(!heap_ok(address)))
        heap_fail(t, address, width, op, pc);
    if (unlikely(variables_are_full())) {
        fail_with(FAIL_CAPACITY, current, "the execution touches more memory than the engine can follow; "
                                          "use a smaller program or smaller settings");
        abandon();
    }
    Variable *v = &E.variables[E.n_variables];
    v->address = address;
    v->index = (uint16_t)E.n_variables;
    v->block = block_of(E.n_variables);
    v->mask = byte_mask(address, width);
    v->width = (uint8_t)width;
    v->is_atomic = 0;
    v->special = 0;
    v->toucher = -1;
    v->n = 0;
    v->version = 0;
    v->write.clock = 0;
    v->read.clock = 0;
    v->readers = NONE;
    if (!cell_used(cell))
        *cell = (Cell){E.generation, NO_VARIABLE};
    v->next = cell->first;
    if (cell->first != NO_VARIABLE)
        v->special = HAS_SIBLINGS;
    for (uint32_t i = cell->first; i != NO_VARIABLE; i = E.variables[i].next)
        E.variables[i].special |= HAS_SIBLINGS;
    cell->first = E.n_variables++;
    return v;
}

static void forget_accesses(Variable *v)
{
    v->write.clock = v->read.clock = 0;
    v->readers = NONE;
    v->n = v->is_atomic = 0;
    v->special &= (uint8_t)~HAS_PLAIN;
}

static __attribute__((noinline)) Variable *search_variable(Thread *t, uintptr_t address, uint32_t width, EngineOp op,
                                                           uint64_t pc)
{
    Cell *cell = find_cell(address);
    if (cell_used(cell))
        for (uint32_t i = cell->first; i != NO_VARIABLE; i = E.variables[i].next)
            if (E.variables[i].address == address && E.variables[i].width == width)
                return &E.variables[i];
    return new_variable(t, cell, address, width, op, pc);
}

/* The variable of exactly these bytes, all within one group of eight. Bytes of a block that was
 * freed have none, so only a new variable's address is checked. */
static inline __attribute__((always_inline)) Variable *find_variable(Thread *t, uintptr_t address, uint32_t width,
                                                                     EngineOp op, uint64_t pc)
{
    Variable *v = &E.variables[quick_first(address)];
    if (likely(v->address == address && v->width == width))
        return v;
    return search_variable(t, address, width, op, pc);
}

/* Looks for the variable of the step that t announces, before the switch: behind it, everything
 * else waits for the variable. No access has the width of a variable that was freed meanwhile. */
static inline void expect_variable(Thread *t, uintptr_t address)
{
    t->variable = &E.variables[quick_first(address)];
}

/* The variable of the step that was announced. */
INLINED Variable *next_variable(Thread *t, uintptr_t address, uint32_t width, EngineOp op, uint64_t pc)
{
    Variable *v = t->variable;
    if (likely(v->address == address && v->width == width))
        return v;
    return search_variable(t, address, width, op, pc);
}

/* All variables in the same eight bytes, v included. */
static inline Variable *first_sibling(const Variable *v)
{
    return &E.variables[find_cell(v->address)->first];
}

static inline Variable *next_sibling(const Variable *v)
{
    return v->next == NO_VARIABLE ? NULL : &E.variables[v->next];
}

static inline void touch(Variable *v, const Thread *t)
{
    if (likely(E.touched_twice))
        return;
    E.touched_twice = v->toucher != t->number && v->toucher >= 0;
    v->toucher = (int8_t)t->number;
}
