/* Races that are passed over: of memory that annotations name, of words that belong to libraries,
 * and between two places of the code that the user suppresses. The execution goes on behind such a
 * race. */

/* Memory whose races an annotation allows. */
enum { MOST_ALLOWED = 64 };
SHARED struct { uint32_t generation, n; struct { uintptr_t address; size_t bytes; } ranges[MOST_ALLOWED]; } allowed;

static void allow_races(uintptr_t address, size_t bytes)
{
    if (allowed.generation != E.generation) {
        allowed.generation = E.generation;
        allowed.n = 0;
    }
    if (allowed.n == MOST_ALLOWED) {
        fail_with(FAIL_CAPACITY, current, "more memory with races that annotations allow than the engine can follow");
        abandon();
    }
    allowed.ranges[allowed.n].address = address;
    allowed.ranges[allowed.n++].bytes = bytes;
}

/* Words that libraries keep for the thread of the system: errno, and what std::call_once hands
 * over. */
enum { MOST_LIBRARY_WORDS = 64 };
static struct { uint32_t n; uintptr_t addresses[MOST_LIBRARY_WORDS]; } library_words;

static void note_library_word(const void *at)
{
    for (uint32_t i = 0; i < library_words.n; i++)
        if (library_words.addresses[i] == (uintptr_t)at)
            return;
    library_words.addresses[library_words.n++ % MOST_LIBRARY_WORDS] = (uintptr_t)at;
}

static int is_allowed(uintptr_t address)
{
    for (uint32_t i = 0; i < library_words.n && i < MOST_LIBRARY_WORDS; i++)
        if (address - library_words.addresses[i] < 8)
            return 1;
    for (uint32_t i = 0; allowed.generation == E.generation && i < allowed.n; i++)
        if (address - allowed.ranges[i].address < allowed.ranges[i].bytes)
            return 1;
    return 0;
}

/* Suppressed races, as pairs of places in the code. While there are any, each thread takes the
 * hooks' long path, which notes where each location was accessed last. */
enum { MOST_PAIRS = 256, NOTED_SLOTS = 1 << 16 };
typedef enum { NOTED_WRITE, NOTED_READ, NOTED_ATOMIC, NOTED_ATOMIC_STORE } NotedKind;
typedef struct { uint64_t key, pc; uint32_t generation; } NotedPlace;

SHARED struct {
    struct { uint64_t first, second; } pairs[MOST_PAIRS];
    uint32_t n, n_noted;
    uint32_t generation;
    uint64_t passed;              /* races passed over, in all campaigns */
    NotedPlace *noted;
} known_races;

static NotedPlace *noted_place(uintptr_t address, uint32_t width, int thread, NotedKind kind)
{
    uint64_t key = (uint64_t)address << 16 ^ (uint64_t)width << 10 ^ (uint64_t)thread << 2 ^ kind;
    uint32_t at = (uint32_t)(mix64(key) >> 20) & (NOTED_SLOTS - 1);
    while (known_races.noted[at].generation == E.generation && known_races.noted[at].key != key)
        at = (at + 1) & (NOTED_SLOTS - 1);
    if (known_races.noted[at].generation != E.generation)
        known_races.noted[at] = (NotedPlace){key, 0, 0};
    return &known_races.noted[at];
}

static void note_one(const Thread *t, uintptr_t address, uint32_t width, NotedKind kind, uint64_t pc)
{
    NotedPlace *place = noted_place(address, width, t->number, kind);
    if (place->generation != E.generation) {
        if (known_races.generation != E.generation) {
            known_races.generation = E.generation;
            known_races.n_noted = 0;
        }
        if (++known_races.n_noted > NOTED_SLOTS / 2) {
            fail_with(FAIL_CAPACITY, t, "the execution accesses more memory than the engine can follow while races "
                                        "are suppressed");
            abandon();
        }
        place->generation = E.generation;
    }
    place->pc = pc;
}

static __attribute__((noinline)) void note_places(const Thread *t, uintptr_t address, size_t bytes, EngineOp op,
                                                  uint64_t pc)
{
    if (op != OP_READ && op != OP_WRITE) {
        note_one(t, address, (uint32_t)bytes, NOTED_ATOMIC, pc);
        if (op != OP_LOAD)
            note_one(t, address, (uint32_t)bytes, NOTED_ATOMIC_STORE, pc);
        return;
    }
    while (bytes) {
        uint32_t part = 8 - (uint32_t)(address & 7);
        part = part > bytes ? (uint32_t)bytes : part;
        note_one(t, address, part, op == OP_READ ? NOTED_READ : NOTED_WRITE, pc);
        address += part;
        bytes -= part;
    }
}

static int is_known_race(uintptr_t address, uint32_t width, uint64_t pc, int other, EngineOp other_op)
{
    static const NotedKind KINDS[] = {[OP_READ] = NOTED_READ, [OP_WRITE] = NOTED_WRITE, [OP_LOAD] = NOTED_ATOMIC,
                                      [OP_STORE] = NOTED_ATOMIC_STORE};
    uint64_t other_pc;
    if (likely(known_races.n == 0))
        return 0;
    other_pc = noted_place(address, width, other, KINDS[other_op])->pc;
    for (uint32_t i = 0; i < known_races.n; i++)
        if ((known_races.pairs[i].first == pc && known_races.pairs[i].second == other_pc) ||
            (known_races.pairs[i].first == other_pc && known_races.pairs[i].second == pc)) {
            known_races.passed++;
            return 1;
        }
    return 0;
}

/* From now on, races between these places are passed over. 0 when they are already, or when there
 * is no room. */
int engine_suppress(uint64_t first, uint64_t second)
{
    for (uint32_t i = 0; i < known_races.n; i++)
        if (known_races.pairs[i].first == first && known_races.pairs[i].second == second)
            return 0;
    if (known_races.noted == NULL)
        known_races.noted = calloc(NOTED_SLOTS, sizeof *known_races.noted);
    if (known_races.noted == NULL || known_races.n == MOST_PAIRS)
        return 0;
    known_races.pairs[known_races.n].first = first;
    known_races.pairs[known_races.n++].second = second;
    E.control |= NOTES_PLACES;
    return 1;
}
