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
        add_meeting(&to, mixed(mix64(pair << 1 | (e->stale > 0)) ^ from->pc ^ mix64(e->pc)));
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
