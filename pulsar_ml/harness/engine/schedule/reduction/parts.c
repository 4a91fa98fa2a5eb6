/* The state of a search with reduction as words, from which another process goes on, and parts of
 * the search. Python cuts the words (pulsar_ml/harness/search/partition.py): the part with the
 * search's path gets a higher floor, below which it changes nothing; the other part takes every
 * thread that was left at the node of the cut, so that no part needs what another one finds.
 *
 * Words: a header, footprints, choices of values, and nodes, each of which begins with NODE_WORDS
 * words. Addresses are relative to what they lie in, because each process has it elsewhere. */

enum { PART_FORM = 0x52030000, PART_WORDS = 8, NODE_WORDS = 11, MOST_PART_WORDS = 1 << 24 };
enum { MOST_BRANCHES_DEEP = 1 << 14 };
enum { HEAD_FORM, HEAD_ADVANCE, HEAD_FLOOR_NODES, HEAD_FLOOR_VALUES, HEAD_FOOTPRINTS, HEAD_VALUES, HEAD_NODES,
       HEAD_TOTAL };
enum { NODE_THREAD, NODE_SLEEP, NODE_HALF, NODE_ENABLED, NODE_FULL, NODE_PARTED, NODE_PARTLY, NODE_FAULTY, NODE_ASLEEP,
       NODE_WAKEUPS, NODE_TOTAL };
/* In the first half of a choice's word, whose other bits are its node. */
static const uint32_t CHOICE_CLOSED = UINT32_C(1) << 31;
/* What an address is relative to. */
enum { PLACE_FIXED, PLACE_CLOCK, PLACE_GLOBAL, PLACE_STACK, PLACE_ELSEWHERE };

SHARED struct {
    uint64_t *words;
    uint32_t n, room;
    Footprint *footprints;
    uint32_t n_footprints, footprints_room;
    uint8_t full;                 /* no memory, or damaged */
} part;

static void put_word(uint64_t word)
{
    if (part.n == part.room) {
        uint64_t *more = part.n == MOST_PART_WORDS ? NULL : grown(part.words, &part.room, 1024, sizeof *more);
        if (more == NULL) {
            part.full = 1;
            return;
        }
        part.words = more;
    }
    part.words[part.n++] = word;
}

static Footprint *room_for_footprint(void)
{
    if (part.n_footprints == part.footprints_room) {
        Footprint *more = grown(part.footprints, &part.footprints_room, 64, sizeof *more);
        if (more == NULL) {
            part.full = 1;
            return NULL;
        }
        part.footprints = more;
    }
    return &part.footprints[part.n_footprints++];
}

static int same_footprint(const Footprint *a, const Footprint *b)
{
    if (a->n != b->n || a->all != b->all || a->late != b->late || a->announced != b->announced)
        return 0;
    for (int i = 0; i < a->n; i++)
        if (a->touches[i].address != b->touches[i].address || a->touches[i].bytes != b->touches[i].bytes ||
            a->touches[i].mode != b->touches[i].mode || a->touches[i].own != b->touches[i].own ||
            a->touches[i].shift != b->touches[i].shift || a->touches[i].hides != b->touches[i].hides)
            return 0;
    return 1;
}

/* The footprint's number among those of the part. */
static uint64_t footprint_number(const Footprint *f)
{
    Footprint *added;
    for (uint32_t i = part.n_footprints; i-- > 0;)
        if (same_footprint(&part.footprints[i], f))
            return i;
    added = room_for_footprint();
    if (added)
        *added = *f;
    return part.n_footprints - 1;
}

static char *stack_of(uint32_t number)
{
    Thread *t = number == ENGINE_MOST_THREADS ? &E.main : &E.threads[number];
    if (t->stack == NULL)
        t->stack = stack_new();
    return t->stack;
}

/* Splits an address into its place and the rest. */
static uint64_t place_of(uintptr_t address, uintptr_t *rest)
{
    *rest = address;
    if (address < 4096 || address >= KEY_TIMES || in_arena(address))
        return PLACE_FIXED;
    if (address == KEY_CLOCK)
        return PLACE_CLOCK;
    *rest = address - globals.start;
    if (is_global(address))
        return PLACE_GLOBAL;
    for (uint32_t i = 0; i <= ENGINE_MOST_THREADS; i++) {
        const Thread *t = i == ENGINE_MOST_THREADS ? &E.main : &E.threads[i];
        *rest = address - (uintptr_t)t->stack;
        if (t->stack && *rest < STACK_BYTES)
            return PLACE_STACK | (uint64_t)i << 8;
    }
    return PLACE_ELSEWHERE;
}

/* The address at a place; 0: it is nowhere. */
static uintptr_t address_at(uint64_t place, uintptr_t rest)
{
    char *stack;
    switch (place & 255) {
    case PLACE_FIXED: return rest < 4096 || (rest >= KEY_TIMES && rest < KEY_SEQ_CST) || in_arena(rest) ? rest : 0;
    case PLACE_CLOCK: return KEY_CLOCK;
    case PLACE_GLOBAL: return rest < globals.bytes ? globals.start + rest : 0;
    case PLACE_STACK:
        stack = place >> 8 <= ENGINE_MOST_THREADS && rest < STACK_BYTES ? stack_of((uint32_t)(place >> 8)) : NULL;
        return stack ? (uintptr_t)stack + rest : 0;
    default: return 0;
    }
}

static void put_footprint(const Footprint *f)
{
    put_word((uint64_t)f->n | (uint64_t)f->all << 8 | (uint64_t)f->late << 16 | (uint64_t)f->announced << 24);
    for (int i = 0; i < f->n; i++) {
        const Touch *touch = &f->touches[i];
        uintptr_t rest;
        uint64_t place = place_of(touch->address & ~KEY_SEQ_CST, &rest);
        put_word(rest);
        put_word(place | (uint64_t)touch->mode << 16 | (uint64_t)touch->own << 24 | (uint64_t)touch->bytes << 32);
        put_word(touch->address >> 63 | (uint64_t)touch->shift << 1 | (uint64_t)touch->hides << 8);
    }
}

/* One word a branch: its footprint, thread, and whether branches are below and behind it. */
static void put_wakeups(uint32_t at)
{
    for (; at != NONE; at = wakeups.all[at].next) {
        const Wakeup *w = &wakeups.all[at];
        put_word(footprint_number(&w->footprint) << 16 | (uint64_t)w->thread << 8 | (uint64_t)w->last |
                 (uint64_t)(w->child != NONE) << 1 | (uint64_t)(w->next != NONE) << 2);
        put_wakeups(w->child);
    }
}

static void put_node(const ReducedNode *node)
{
    uint64_t kept = node->kept ? UINT64_C(1) << node->thread : 0, slept = node->sleep | node->half | node->partly;
    uint64_t asleep = slept | kept;
    uint32_t start = part.n;
    put_word((uint64_t)node->thread | (uint64_t)node->kept << 8 | (uint64_t)(node->wakeups != NONE) << 10 |
             (uint64_t)(node->handed != NONE) << 11);
    put_word(node->sleep);
    put_word(node->half);
    put_word(node->enabled);
    put_word(node->full);
    put_word(node->parted & asleep);
    put_word(node->partly);
    put_word(node->faulty & node->partly);
    put_word(asleep);
    put_word(0);
    put_word(0);
    for (uint64_t rest = asleep; rest; rest &= rest - 1) {
        int u = __builtin_ctzll(rest);
        put_word(footprint_number(&node->asleep[u]) << 32 | (slept >> u & 1 ? node->since[u] : 0));
        if (node->parted >> u & 1)
            put_word(footprint_number(with_fault(node, u)));
    }
    if (!part.full)
        part.words[start + NODE_WAKEUPS] = part.n - start;
    put_wakeups(node->wakeups);
    put_wakeups(node->handed);
    if (!part.full)
        part.words[start + NODE_TOTAL] = part.n - start;
}

/* Where the search goes on, as words in *words; how many, 0: no memory. */
int32_t engine_part(const uint64_t **words)
{
    uint32_t nodes, n_nodes_words;
    uint64_t *moved;
    part.n = part.n_footprints = 0;
    part.full = 0;
    for (uint32_t i = 0; i < reduction.n_nodes; i++)
        put_node(&reduction.nodes[i]);
    n_nodes_words = part.n;
    for (int i = 0; i < PART_WORDS; i++)
        put_word(0);
    for (uint32_t i = 0; i < part.n_footprints; i++)
        put_footprint(&part.footprints[i]);
    for (uint32_t i = 0; i < reduction.n_values; i++) {
        const ReducedValue *value = &reduction.values[i];
        uint64_t about = (value->node & ~CHOICE_CLOSED) | (value->closed ? CHOICE_CLOSED : 0);
        put_word(about << 32 | (uint64_t)value->options << 16 | value->taken);
    }
    nodes = part.n - n_nodes_words;
    moved = part.full ? NULL : malloc((part.n + 1) * sizeof *moved);
    if (moved == NULL)
        return 0;
    memcpy(moved, part.words + n_nodes_words, nodes * sizeof *moved);
    memcpy(moved + nodes, part.words, n_nodes_words * sizeof *moved);
    moved[HEAD_FORM] = PART_FORM | (uint64_t)E.config.mode;
    moved[HEAD_ADVANCE] = 0;
    moved[HEAD_FLOOR_NODES] = reduction.floor_nodes;
    moved[HEAD_FLOOR_VALUES] = reduction.floor_values;
    moved[HEAD_FOOTPRINTS] = part.n_footprints;
    moved[HEAD_VALUES] = reduction.n_values;
    moved[HEAD_NODES] = reduction.n_nodes;
    moved[HEAD_TOTAL] = part.n;
    free(part.words);
    part.words = moved;
    part.room = part.n + 1;
    *words = moved;
    return (int32_t)part.n;
}

/* Reading, where anything may be damaged. */

typedef struct { const uint64_t *words; uint32_t at, end; uint8_t wrong; } PartReader;

static uint64_t take_word(PartReader *r)
{
    if (r->at >= r->end) {
        r->wrong = 1;
        return 0;
    }
    return r->words[r->at++];
}

static void take_footprint(PartReader *r, Footprint *f)
{
    uint64_t word = take_word(r);
    int n = (int)(word & 255);
    *f = (Footprint){.all = word >> 8 & 1, .late = word >> 16 & 1, .announced = word >> 24 & 1};
    if (n > MOST_TOUCHES) {
        r->wrong = 1;
        return;
    }
    for (int i = 0; i < n; i++) {
        uintptr_t rest = take_word(r);
        uint64_t about = take_word(r);
        uintptr_t address = address_at(about & 0xffff, rest);
        uint64_t more = take_word(r);
        f->all |= address == 0;   /* nobody knows what it clashes with */
        if (more & 1)
            address |= KEY_SEQ_CST;
        f->touches[i] = (Touch){address, (uint32_t)(about >> 32), (uint8_t)(about >> 16), (uint8_t)(about >> 24),
                                (uint8_t)(more >> 1 & 31), (uint8_t)(more >> 8)};
        f->units |= units_of(address, (uint32_t)(about >> 32));
    }
    f->n = (uint8_t)n;
}

static const Footprint *numbered_footprint(PartReader *r, uint64_t number)
{
    static const Footprint none = {.all = 1};
    if (number < part.n_footprints)
        return &part.footprints[number];
    r->wrong = 1;
    return &none;
}

static uint32_t take_wakeups(PartReader *r, int depth)
{
    uint32_t first = NONE, before = NONE;
    for (uint64_t word = 4; word & 4 && !r->wrong;) {
        uint32_t at = new_wakeup();
        word = take_word(r);
        if (at == NONE || depth == 0 || (word >> 8 & 255) >= REDUCED_THREADS) {
            r->wrong = 1;
            return first;
        }
        wakeups.all[at] = (Wakeup){*numbered_footprint(r, word >> 16), NONE, NONE, (uint8_t)(word >> 8), word & 1};
        if (before == NONE)
            first = at;
        else
            wakeups.all[before].next = at;
        before = at;
        if (word & 2) {
            uint32_t child = take_wakeups(r, depth - 1);
            wakeups.all[at].child = child;
        }
    }
    return first;
}

static void take_node(PartReader *r, ReducedNode *node, uint32_t number)
{
    uint64_t head = take_word(r), asleep;
    *node = (ReducedNode){.wakeups = NONE, .handed = NONE, .enabler = -1};
    node->thread = head & 255;
    node->kept = head >> 8 & 3;
    node->sleep = take_word(r);
    node->half = take_word(r);
    node->enabled = take_word(r);
    node->full = take_word(r);
    node->parted = take_word(r);
    node->partly = take_word(r);
    node->faulty = take_word(r);
    asleep = take_word(r);
    take_word(r);
    take_word(r);
    if (node->thread >= REDUCED_THREADS || (node->sleep | node->half | asleep | node->enabled) >> REDUCED_THREADS ||
        (node->sleep | node->half | node->parted) & ~asleep || (node->kept && !(asleep >> node->thread & 1)) ||
        node->partly & ~node->parted || node->faulty & ~node->partly)
        r->wrong = 1;
    for (uint64_t rest = asleep; rest && !r->wrong; rest &= rest - 1) {
        int u = __builtin_ctzll(rest);
        uint64_t word = take_word(r);
        node->asleep[u] = *numbered_footprint(r, word >> 32);
        node->since[u] = (uint32_t)word;
        r->wrong |= node->since[u] > number;
        if (node->parted >> u & 1)
            *with_fault(node, u) = *numbered_footprint(r, take_word(r));
    }
    if (head >> 10 & 1)
        node->wakeups = take_wakeups(r, MOST_BRANCHES_DEEP);
    if (head >> 11 & 1)
        node->handed = take_wakeups(r, MOST_BRANCHES_DEEP);
}

/* Begins where these words say. 0: they are damaged, or no memory is left. */
static int part_load(const uint64_t *words, uint32_t n)
{
    PartReader r = {words, PART_WORDS, n, 0};
    uint64_t n_footprints, n_values, n_nodes;
    reduction_reset();
    if (n < PART_WORDS || words[HEAD_FORM] != (PART_FORM | (uint64_t)E.config.mode) || words[HEAD_TOTAL] != n)
        return 0;
    n_footprints = words[HEAD_FOOTPRINTS];
    n_values = words[HEAD_VALUES];
    n_nodes = words[HEAD_NODES];
    if (n_footprints > n || n_values > n || n_nodes > n || words[HEAD_FLOOR_NODES] > n_nodes ||
        words[HEAD_FLOOR_VALUES] > n_values || words[HEAD_ADVANCE] > 1)
        return 0;
    part.n_footprints = 0;
    part.full = 0;
    for (uint64_t i = 0; i < n_footprints && !r.wrong; i++) {
        Footprint *f = room_for_footprint();
        if (f == NULL)
            return 0;
        take_footprint(&r, f);
    }
    for (uint64_t i = 0; i < n_values && !r.wrong; i++) {
        uint64_t word = take_word(&r);
        uint32_t about = (uint32_t)(word >> 32), node = about & ~CHOICE_CLOSED;
        if ((word & 0xffff) >= (word >> 16 & 0xffff) || (node >= n_nodes && node != (NONE & ~CHOICE_CLOSED)))
            return 0;
        node = node < n_nodes ? node : NONE;
        if (!keep_value(node, (uint16_t)(word >> 16), (uint16_t)word, (about & CHOICE_CLOSED) != 0))
            return 0;
    }
    for (uint64_t i = 0; i < n_nodes && !r.wrong; i++) {
        if (!reduction_reserve())
            return 0;
        take_node(&r, &reduction.nodes[reduction.n_nodes++], (uint32_t)i);
    }
    if (r.wrong || r.at != n)
        return 0;
    reduction.floor_nodes = (uint32_t)words[HEAD_FLOOR_NODES];
    reduction.floor_values = (uint32_t)words[HEAD_FLOOR_VALUES];
    for (uint32_t i = 0; i < reduction.floor_nodes; i++) {   /* those are of other parts */
        free_wakeups(reduction.nodes[i].wakeups);
        reduction.nodes[i].wakeups = NONE;
    }
    reduction.known = reduction.n_nodes ? reduction.n_nodes - 1 : 0;
    if (words[HEAD_ADVANCE]) {
        if (reduction.n_nodes && !try_threads(&reduction.nodes[reduction.n_nodes - 1]))
            return 0;
        if (!next_reduced_path())
            return 0;
        reduction.known = reduction.n_nodes ? reduction.n_nodes - 1 : 0;
    }
    reduction.changed = 0;
    return 1;
}
