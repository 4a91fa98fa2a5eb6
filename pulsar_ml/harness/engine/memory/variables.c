/* Finds the variable at an address: an open-addressing table keyed by eight aligned bytes.
 * A slot of another generation is empty, so an execution begins with an empty table at no cost.
 * Nearby addresses share cache lines of the table. */

static inline uint8_t byte_mask(uintptr_t address, uint32_t width)
{
    return width >= 8 ? 0xFF : (uint8_t)(((1u << width) - 1) << (address & 7));
}

static inline Slot *find_slot(uintptr_t key)
{
    uint32_t at = (uint32_t)(key ^ (key >> 16)) & (SLOTS - 1);
    while (E.slots[at].generation == E.generation && E.slots[at].key != key)
        at = (at + 1) & (SLOTS - 1);
    return &E.slots[at];
}

static __attribute__((noinline)) Variable *new_variable(Slot *slot, uintptr_t key, uintptr_t address,
                                                        uint32_t width)
{
    if (unlikely(E.n_variables >= MOST_VARIABLES * 3 / 4)) {
        fail_with(FAIL_CAPACITY, current, "the execution touches more memory than the engine can follow; "
                                          "use a smaller program or smaller settings");
        abandon();
    }
    Variable *v = &E.variables[E.n_variables];
    v->address = address;
    v->block = E.blocks + (size_t)E.n_variables * E.block_bytes;
    v->mask = byte_mask(address, width);
    v->width = (uint8_t)width;
    v->shared = 0;
    v->is_atomic = 0;
    v->toucher = -1;
    v->n = 0;
    v->version = 0;
    v->write.clock = 0;
    v->read.clock = 0;
    v->readers = NONE;
    if (slot->generation != E.generation) {
        slot->generation = E.generation;
        slot->key = key;
        slot->first = NONE;
    }
    v->next = slot->first;
    v->has_siblings = slot->first != NONE;
    for (uint32_t i = slot->first; i != NONE; i = E.variables[i].next)
        E.variables[i].has_siblings = 1;
    slot->first = E.n_variables++;
    return v;
}

/* The variable of exactly these bytes, all within one group of eight. */
static inline Variable *find_variable(uintptr_t address, uint32_t width)
{
    uintptr_t key = address >> 3;
    Slot *slot = find_slot(key);
    if (likely(slot->generation == E.generation)) {
        for (uint32_t i = slot->first; i != NONE; i = E.variables[i].next)
            if (E.variables[i].address == address && E.variables[i].width == width)
                return &E.variables[i];
    }
    return new_variable(slot, key, address, width);
}

/* All variables in the same eight bytes, v included. */
static inline Variable *first_sibling(const Variable *v)
{
    return &E.variables[find_slot(v->address >> 3)->first];
}

static inline Variable *next_sibling(const Variable *v)
{
    return v->next == NONE ? NULL : &E.variables[v->next];
}

static inline void touch(Variable *v, const Thread *t)
{
    if (unlikely(v->toucher != t->number)) {
        if (v->toucher >= 0 && !v->shared) {
            v->shared = 1;
            E.touched_twice = 1;
        }
        v->toucher = (int8_t)t->number;
    }
}
