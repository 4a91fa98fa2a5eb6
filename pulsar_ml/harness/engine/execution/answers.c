/* The history of an execution (answers of its operations, and their order) as one hash: an oracle
 * outside the engine judges each history once. Accepted histories are kept here, so that a run does
 * not stop at them. */

static struct {
    uint64_t *hashes;         /* of accepted histories; 0: free */
    uint64_t room, used;
    uint64_t last;            /* of the last execution */
    int waits;                /* the last execution's history waits for its verdict */
} answers;

static inline uint64_t answers_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

/* The order of the calls, and what they answered. The calls of a thread follow each other, so which
 * calls came before a call is told by how many of each thread had returned when it was invoked. */
static uint64_t calls_hash(int with_answers)
{
    uint64_t hash = 1;
    int32_t before[ENGINE_MOST_THREADS];
    for (int t = 0; t < E.n; t++) {
        const EngineCall *calls = E.threads[t].calls;
        memset(before, 0, (size_t)E.n * sizeof *before);
        for (int32_t i = 0; i < E.config.n_calls[t]; i++) {
            if (with_answers) {
                hash = answers_mix(hash, (uint64_t)calls[i].result.status);
                for (int w = 0; w < PML_RESULT_WORDS; w++)
                    hash = answers_mix(hash, (uint64_t)calls[i].result.words[w]);
            }
            for (int u = 0; u < E.n; u++) {
                if (u == t)
                    continue;
                const EngineCall *others = E.threads[u].calls;
                while (before[u] < E.config.n_calls[u] && others[before[u]].returned < calls[i].invoked)
                    before[u]++;
                hash = answers_mix(hash, (uint64_t)before[u]);
            }
        }
    }
    hash = mix64(hash);
    return hash ? hash : 1;
}

static uint64_t answers_place(uint64_t hash)
{
    uint64_t at = hash & (answers.room - 1);
    while (answers.hashes[at] && answers.hashes[at] != hash)
        at = (at + 1) & (answers.room - 1);
    return at;
}

static void answers_reset(void)
{
    if (answers.hashes != NULL)
        memset(answers.hashes, 0, answers.room * sizeof *answers.hashes);
    answers.used = 0;
    answers.waits = 0;
}

/* Without memory nothing is kept, and the history is judged again when it comes again. */
static void answers_accept(void)
{
    if (answers.used * 2 >= answers.room) {
        uint64_t *old = answers.hashes, room = answers.room;
        uint64_t *hashes = calloc(room ? 2 * room : 1024, sizeof *hashes);
        if (hashes == NULL)
            return;
        answers.hashes = hashes;
        answers.room = room ? 2 * room : 1024;
        for (uint64_t i = 0; i < room; i++)
            if (old[i])
                hashes[answers_place(old[i])] = old[i];
        free(old);
    }
    uint64_t at = answers_place(answers.last);
    answers.used += answers.hashes[at] == 0;
    answers.hashes[at] = answers.last;
    answers.waits = 0;
}

/* Whether the last execution's history has to be judged from outside. */
static int answers_new(void)
{
    answers.last = calls_hash(1);
    answers.waits = answers.used == 0 || answers.hashes[answers_place(answers.last)] == 0;
    if (answers.waits && E.config.known != NULL && E.config.known(E.config.oracle))
        answers_accept();
    return answers.waits;
}
