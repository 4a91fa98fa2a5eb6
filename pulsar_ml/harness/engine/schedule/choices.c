/* Choices other than of a thread: which store a load reads, whether a fault happens. 0 is the
 * default. */

/* Exhaustive search: the path through the tree of choices, deepest last. The choices above the
 * floor stay as they are: the rest of the tree belongs to others. Of a path that was given the
 * options are not known until its first execution comes by: 0. ONE_OPTION: see unlocking.c. */
enum { ONE_OPTION = 1 };
typedef struct { uint16_t options, taken; } Node;
SHARED Node *path;
SHARED uint32_t path_length, path_room, path_at, path_floor, bound_used;
SHARED uint8_t path_pruned;       /* the bound left something out of this execution */
SHARED uint8_t path_spun;         /* so did the bound of turns without a pause, see waiting.c */
SHARED uint8_t path_looped;       /* so did the bound of turns within an operation */

static inline int is_search(const Strategy *strategy)
{
    return strategy->row.kind == STRATEGY_SEARCHES || strategy->row.kind == STRATEGY_REDUCES;
}

static inline int searching(void)
{
    return is_search(E.strategy);
}

static int path_reserve(uint32_t room)
{
    Node *more;
    if (room <= path_room)
        return 1;
    more = realloc(path, room * sizeof *more);
    if (more == NULL)
        return 0;
    path = more;
    path_room = room;
    return 1;
}

/* Begins at this path instead of the first one. 0 without memory. */
static int path_load(const uint16_t *taken, uint32_t length, uint32_t floor)
{
    if (!path_reserve(length))
        return 0;
    for (uint32_t i = 0; i < length; i++)
        path[i] = (Node){0, taken[i]};
    path_length = length;
    path_floor = floor;
    return 1;
}

static __attribute__((noinline, noreturn)) void fail_choices(void)
{
    fail_with(FAIL_UNCONTROLLED, current, "the same choices led to different ones: something outside the "
                                          "engine's control decides what the code does");
    abandon();
}

/* The first option of a choice at the end of the path. */
static uint32_t path_append(uint16_t options)
{
    if (path_length == path_room && !path_reserve(path_room ? 2 * path_room : 4096)) {
        fail_with(FAIL_CAPACITY, current, "no memory for the choices of the search");
        abandon();
    }
    path[path_length++] = (Node){options, 0};
    path_at++;
    return 0;
}

static uint32_t reduced_value(uint32_t options, int is_fault);

static uint32_t search_choose(uint32_t options)
{
    if (unlikely(E.reducing))
        return reduced_value(options, 0);
    if (path_at < path_length) {
        if (path[path_at].options == 0 && path[path_at].taken < options)
            path[path_at].options = (uint16_t)options;
        /* A program that behaves differently on the same path is not under control. */
        if (path[path_at].options != options)
            fail_choices();
        return path[path_at++].taken;
    }
    return path_append((uint16_t)options);
}

/* A choice that gets its second option when a later step asks for it. Of a path that was loaded
 * nobody knows which of them did, so there all have it. */
static uint32_t search_choose_late(void)
{
    if (path_at == path_length)
        return path_append(ONE_OPTION);
    if (path[path_at].options == 0)
        path[path_at].options = 2;
    if (path[path_at].options > 2 || path[path_at].taken >= path[path_at].options)
        fail_choices();
    return path[path_at++].taken;
}

/* The loops of this operation made as many turns as a search follows: from here on the thread takes
 * the default of each choice, and the search says so. */
static inline int past_turns(const Thread *t)
{
    if (likely(t->turns <= (uint32_t)E.config.turns))
        return 0;
    path_looped = 1;
    return 1;
}

/* Moves to the next path; 0 when every one below the floor was taken. */
static int search_advance(void)
{
    while (path_length > path_floor) {
        Node *node = &path[path_length - 1];
        if (++node->taken < node->options)
            return 1;
        path_length--;
    }
    return 0;
}

/* The decisions to follow, in the order of their keys. */
SHARED struct { EngineDecision *decisions; int32_t n, room; } tape;

static inline uint64_t tape_key(uint8_t thread, uint32_t at, uint8_t kind)
{
    return (uint64_t)thread << 40 | (uint64_t)at << 8 | kind;
}

static int tape_compare(const void *a, const void *b)
{
    const EngineDecision *x = a, *y = b;
    uint64_t first = tape_key(x->thread, x->at, x->kind), second = tape_key(y->thread, y->at, y->kind);
    return first < second ? -1 : first > second;
}

static int tape_load(const EngineDecision *decisions, int32_t n)
{
    if (n > tape.room) {
        EngineDecision *more = realloc(tape.decisions, (size_t)n * sizeof *more);
        if (more == NULL)
            return 0;
        tape.decisions = more;
        tape.room = n;
    }
    tape.n = n;
    if (n) {
        memcpy(tape.decisions, decisions, (size_t)n * sizeof *decisions);
        qsort(tape.decisions, (size_t)n, sizeof *decisions, tape_compare);
    }
    return 1;
}

/* The first decision of the tape that is not before this choice. */
static int32_t tape_find(uint64_t key)
{
    int32_t low = 0, high = tape.n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        const EngineDecision *d = &tape.decisions[middle];
        if (tape_key(d->thread, d->at, d->kind) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline int tape_is(int32_t index, uint64_t key)
{
    const EngineDecision *d = &tape.decisions[index];
    return index < tape.n && tape_key(d->thread, d->at, d->kind) == key;
}

/* The value that the tape has for a thread's choice number `at`, or 0, the default. */
static uint32_t replay_value(int32_t thread, uint32_t at, EngineChoice kind, uint32_t options)
{
    uint64_t key = tape_key((uint8_t)thread, at, (uint8_t)kind);
    int32_t index = tape_find(key);
    return tape_is(index, key) && tape.decisions[index].value < options ? tape.decisions[index].value : 0;
}

static inline uint32_t replay_choose(const Thread *t, EngineChoice kind, uint32_t options)
{
    return replay_value(t->number, points_of(t), kind, options);
}

/* Out of 256: how often a random strategy departs from the default. A stale store is read half of
 * the time, so that what depends on one is not rare; faults and insertions are rarer. */
static const uint8_t DEPARTURES[CHOICE_KINDS] = {
    [CHOOSE_READ] = 128, [CHOOSE_INSERT] = 40, [CHOOSE_WEAK_FAILURE] = 24, [CHOOSE_SPURIOUS] = 24,
    [CHOOSE_NO_MEMORY] = 16, [CHOOSE_TIMEOUT] = 24, [CHOOSE_REUSE] = 128, [CHOOSE_DELAY] = 160,
    [CHOOSE_FLUSH] = 64, [CHOOSE_WAITER] = 128, [CHOOSE_PAUSE] = 16, [CHOOSE_HOLD] = 8, [CHOOSE_TURN] = 0,
    [CHOOSE_SLEEP] = 96,
};

/* Does the tape let this allocation fail? Several may come at one scheduling point: the value of a
 * decision is the number of the one that fails. */
static uint32_t replay_refuses(const Thread *t)
{
    uint64_t key = tape_key((uint8_t)t->number, points_of(t), CHOOSE_NO_MEMORY);
    for (int32_t index = tape_find(key); tape_is(index, key); index++)
        if (tape.decisions[index].value == t->allocation)
            return 1;
    return 0;
}

static inline uint32_t replay_kind(const Thread *t, EngineChoice kind, uint32_t options)
{
    return kind == CHOOSE_NO_MEMORY ? replay_refuses(t) : replay_choose(t, kind, options);
}

static int guided_value(const Thread *t, EngineChoice kind, uint32_t options, uint32_t *chosen);

static inline int is_fault(EngineChoice kind)
{
    return kind == CHOOSE_WEAK_FAILURE || kind == CHOOSE_NO_MEMORY || kind == CHOOSE_TIMEOUT || kind == CHOOSE_SPURIOUS;
}

/* 0..options-1, options at least 2. */
static uint32_t choose(Thread *t, EngineChoice kind, uint32_t options)
{
    uint32_t chosen;
    if (E.strategy->row.kind == STRATEGY_FOLLOWS) {
        chosen = replay_kind(t, kind, options);
    } else if (searching()) {
        chosen = past_turns(t)          ? 0
                 : unlikely(E.reducing) ? reduced_value(options, is_fault(kind))
                                        : search_choose(options);
    } else if (!unlikely(E.guided) || !guided_value(t, kind, options, &chosen)) {
        uint64_t drawn = draw();
        chosen = (drawn & 255) >= DEPARTURES[kind] ? 0
                 : 1 + (uint32_t)(((drawn >> 32) * (options - 1)) >> 32);
    }
    if (unlikely(E.recording) && chosen)
        decision_made(t, kind, kind == CHOOSE_NO_MEMORY ? t->allocation : chosen);
    return chosen;
}

/* The same choice with any number of options; `several` is all ones for more than one, and may be
 * known before their number. Samplers come to it at nearly every step, and no processor predicts
 * its outcome or the number of options: so nothing here branches on them, and one option leaves the
 * generator as it was. */
INLINED uint32_t choose_freely(int common, Thread *t, EngineChoice kind, uint64_t several, uint32_t options)
{
    uint64_t drawn, departs;
    if (!common && unlikely(!E.sampling))
        return several ? choose(t, kind, options) : 0;
    drawn = draw_if(several);
    departs = -(uint64_t)((drawn & 255) < DEPARTURES[kind]) & several;
    return (uint32_t)((1 + (((drawn >> 32) * (options - 1)) >> 32)) & departs);
}
