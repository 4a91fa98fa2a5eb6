/* Where the operations of a recorded execution met, for guidance: each load of a value that another
 * thread stored, each lock that another thread held before, and how each operation ended. A meeting
 * is one number. Equal ones of two programs are of the same operations and places of code. */

typedef struct { uint64_t *found; int32_t room, n; } Meetings;

static void add_meeting(Meetings *to, uint64_t what)
{
    if (to->n < to->room)
        to->found[to->n++] = what;
}

/* A number above those of pairs of operations. */
static uint64_t mixed(uint64_t what) { return mix64(what) | UINT64_C(1) << 63; }

static uint64_t code_of_call(int thread, int32_t call)
{
    if (thread >= E.config.n_threads || call < 0 || call >= E.config.n_calls[thread])
        return 0;
    return (uint64_t)E.config.calls[thread][call].code + 1;
}

/* Stands for two operations and two places of code, which are counted from the code under test: its
 * address differs between processes. */
static uint64_t number_of_places(uint64_t pair, int stale, uint64_t from, uint64_t to)
{
    uint64_t base = (uint64_t)*(void *const *)&E.config.subject->apply;
    return mixed(mix64(pair << 1 | (uint64_t)stale) ^ (from - base) ^ mix64(to - base));
}

/* The event that handed over what event `at` takes: a store, or the end of a section; -1: none. */
static int64_t giver_of(int64_t at)
{
    const EngineEvent *e = &events[at];
    if (e->op != OP_LOCK)
        return e->from;
    for (int64_t i = at - 1; !e->failed && i >= 0; i--)
        if (events[i].op == OP_UNLOCK && events[i].address == e->address)
            return i;
    return -1;
}

/* Of the last execution made by engine_again(): two numbers a meeting, of which the first is of the
 * two operations alone, the giver's code and one in the upper of two 16-bit halves and the taker's
 * in the lower one. The second is of the places, too. Then two numbers for the answer of each
 * operation: of the answer alone, and with the one before it in the thread. */
int32_t engine_meetings(uint64_t *found, int32_t room)
{
    Meetings to = {found, room, 0};
    for (int64_t at = 0; at < n_events; at++) {
        const EngineEvent *e = &events[at], *from;
        int64_t giver = e->thread < 0 ? -1 : giver_of(at);
        uint64_t pair;
        if (giver < 0)
            continue;
        from = &events[giver];
        if (from->thread < 0 || from->thread == e->thread)
            continue;
        pair = code_of_call(from->thread, from->call) << 16 | code_of_call(e->thread, e->call);
        add_meeting(&to, pair);
        add_meeting(&to, number_of_places(pair, e->stale > 0, from->pc, e->pc));
    }
    for (int t = 0; t < E.config.n_threads && E.failure.kind == END_COMPLETE; t++) {
        uint64_t before = 0;
        for (int32_t call = 0; call < E.config.n_calls[t]; call++) {
            const PmlResult *result = &E.threads[t].calls[call].result;
            uint64_t answer = code_of_call(t, call) << 32 | (uint32_t)result->status;
            for (int word = 0; word < 4; word++)
                answer = answer * 4 + (result->words[word] > 1 ? 3 : (uint64_t)(result->words[word] + 1) & 3);
            add_meeting(&to, mixed(~answer));
            add_meeting(&to, mixed(mix64(before) ^ ~answer));
            before = answer;
        }
    }
    return to.n;
}

/* Steps of a trace among which pairs are looked for: of a longer trace the first ones. */
enum { MOST_PAIRED = 1024 };

/* The scheduling point of the first step of the call that made step `at`. */
static uint32_t call_begins_at(int64_t at)
{
    const EngineEvent *step = &events[at];
    uint32_t points = step->points;
    for (int64_t i = at - 1; i >= 0; i--) {
        const EngineEvent *e = &events[i];
        if (e->thread != step->thread)
            continue;
        if (e->call != step->call || e->op == OP_CALL)
            break;
        points = e->points;
    }
    return points;
}

/* Of the same execution: pairs of steps of two threads at one location, of which the second one
 * could take what the first one stores, and did not. A pair has two numbers, those that
 * engine_meetings() would give it: of a read of the newest store, and of an older one. */
int32_t engine_apart(EnginePair *pairs, uint64_t *numbers, int32_t room)
{
    int32_t at[MOST_PAIRED], n = 0, found = 0;
    for (int32_t i = 0; i < n_events && n < MOST_PAIRED; i++) {
        int op = events[i].op;
        if (events[i].thread >= 0 && !events[i].failed &&
            (op == OP_LOAD || op == OP_STORE || op == OP_RMW || op == OP_CAS || op == OP_LOCK || op == OP_UNLOCK))
            at[n++] = i;
    }
    for (int32_t i = 0; i < n; i++) {
        const EngineEvent *to = &events[at[i]];
        int64_t giver;
        if (to->op == OP_STORE || to->op == OP_UNLOCK)
            continue;
        giver = giver_of(at[i]);
        for (int32_t j = 0; j < n && found < room; j++) {
            const EngineEvent *from = &events[at[j]];
            uint64_t pair;
            if (from->address != to->address || from->thread == to->thread || at[j] == giver ||
                from->op == OP_LOAD || (from->op == OP_UNLOCK) != (to->op == OP_LOCK) || from->op == OP_LOCK)
                continue;
            pair = code_of_call(from->thread, from->call) << 16 | code_of_call(to->thread, to->call);
            pairs[found] = (EnginePair){
                {to->points, from->points}, {call_begins_at(at[i]), call_begins_at(at[j])},
                {(uint8_t)to->thread, (uint8_t)from->thread},
            };
            for (int stale = 0; stale < 2; stale++)
                numbers[2 * found + stale] = number_of_places(pair, stale, from->pc, to->pc);
            found++;
        }
    }
    return found;
}
