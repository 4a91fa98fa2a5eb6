/* A bound of preemptions in a search with reduction. The search leaves a path when no execution
 * that makes its transitions, in any order that keeps the class, has so few preemptions.
 *
 * A preemption leaves a thread in front of a transition that it could make. Orders that keep the
 * class are the linear extensions of the clocks of races.c. A thread that makes no transition any
 * more is left at no cost: in a longer execution it may go on there. In mode sc the address of its
 * next access is known, however, so that access comes behind the stores to that address that came
 * before. So the fewest preemptions of a path never decrease as it grows, and each class within the
 * bound lies behind paths within the bound. Where a path is left its races are not known: each
 * thread is tried at each of its nodes (try_all).
 *
 * Stores that leave a buffer cost nothing, as in the search without reduction. */

enum { MOST_PROGRESS = 1 << 12, PROGRESS_SLOTS = 4 * MOST_PROGRESS };

/* How many transitions each thread made, and the fewest preemptions until there. */
typedef struct { uint16_t done[REDUCED_THREADS]; uint32_t preemptions; } Progress;

/* States that wait for their turn. */
typedef struct { uint32_t n, states[2 * MOST_PROGRESS]; } ProgressQueue;

SHARED struct {
    uint32_t *nodes;              /* of the path, thread by thread */
    uint32_t room, begin[REDUCED_THREADS], round, n, slots[PROGRESS_SLOTS], rounds[PROGRESS_SLOTS];
    uint16_t goal[REDUCED_THREADS];
    uint32_t due[REDUCED_THREADS][REDUCED_THREADS];  /* clocks of accesses behind the path */
    uint32_t dues;                /* the threads that have one, as bits */
    Progress states[MOST_PROGRESS];
    ProgressQueue now, later;     /* at this number of preemptions, and at the next one */
} linear;

/* Is the thread left in front of this transition at no cost? It waited, perhaps for a mutex or for
 * the end of another thread, or a turn of a loop ended. To wait for its own buffer is no reason. */
static int resumes_freely(const ReducedNode *node)
{
    if (node->quiet || node->turned || node->enabler >= 0)
        return 1;
    for (int i = 0; i < node->footprint.n; i++) {
        const Touch *touch = &node->footprint.touches[i];
        if (touch->mode & TOUCH_HARD && touch->address != KEY_ENDS + (uintptr_t)node->thread)
            return 1;
    }
    return 0;
}

static inline int is_over(const Progress *at, int thread)
{
    return at->done[thread] == linear.goal[thread];
}

/* The thread's next transition, which is one of the path or due behind it. */
static inline int is_due(const Progress *at, int thread)
{
    return linear.dues >> thread & 1 && at->done[thread] + 1 == linear.goal[thread];
}

static inline const ReducedNode *next_of(const Progress *at, int thread)
{
    return &reduction.nodes[linear.nodes[linear.begin[thread] + at->done[thread]]];
}

static inline int is_free(const Progress *at, int thread)
{
    return is_over(at, thread) || (!is_due(at, thread) && resumes_freely(next_of(at, thread)));
}

static inline int can_follow(const Progress *at, int thread)
{
    const uint32_t *clock;
    if (is_over(at, thread))
        return 0;
    clock = is_due(at, thread) ? linear.due[thread] : next_of(at, thread)->clock;
    for (int i = 0; i < REDUCED_THREADS; i++)
        if (i != thread && clock[i] > at->done[i])
            return 0;
    return 1;
}

/* All stores that can leave their buffers do. */
static void empty_buffers(Progress *at)
{
    for (int again = E.config.mode == MODE_TSO; again;) {
        again = 0;
        for (int i = FIRST_BUFFER; i < REDUCED_THREADS; i++)
            for (; can_follow(at, i); again = 1)
                at->done[i]++;
    }
}

/* The state can be reached with so many preemptions. 0: there is no room for another state. */
static int reach_state(Progress at, uint32_t preemptions, ProgressQueue *queue)
{
    uint64_t hash = 0, words[sizeof at.done / (sizeof(uint64_t))];
    uint32_t slot, state;
    memcpy(words, at.done, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = mix64(hash + words[i]);
    slot = (uint32_t)hash % PROGRESS_SLOTS;
    while (linear.rounds[slot] == linear.round &&
           memcmp(linear.states[linear.slots[slot]].done, at.done, sizeof at.done) != 0)
        slot = (slot + 1) % PROGRESS_SLOTS;
    state = linear.slots[slot];
    if (linear.rounds[slot] != linear.round) {
        if (linear.n == MOST_PROGRESS)
            return 0;
        linear.rounds[slot] = linear.round;
        linear.slots[slot] = state = linear.n++;
    } else if (linear.states[state].preemptions <= preemptions) {
        return 1;
    }
    at.preemptions = preemptions;
    linear.states[state] = at;
    queue->states[queue->n++] = state;
    return 1;
}

/* The thread goes on from a state as far as it can, or until it may be left at no cost. */
static int run_on(Progress at, int thread)
{
    uint32_t preemptions = at.preemptions, steps = 0;
    while (can_follow(&at, thread)) {
        if (steps++ && is_free(&at, thread) && !reach_state(at, preemptions, &linear.now))
            return 0;
        at.done[thread]++;
        empty_buffers(&at);
    }
    if (!steps)
        return 1;
    if (is_free(&at, thread))
        return reach_state(at, preemptions, &linear.now);
    return reach_state(at, preemptions + 1, &linear.later);
}

/* The access that the transition announced, of an atomic; NULL: it announced none. */
static const Touch *access_of(const ReducedNode *node)
{
    for (int i = 0; i < node->footprint.n && !node->footprint.all; i++)
        if (!(node->footprint.touches[i].mode & TOUCH_OBJECT))
            return &node->footprint.touches[i];
    return NULL;
}

/* Mode sc: the thread of this node, which lies behind the first `n` transitions, is about to make
 * its access there whatever comes between. */
static void find_due(uint32_t n, const ReducedNode *node)
{
    const Touch *access = access_of(node);
    uint32_t *clock = linear.due[node->thread];
    if (access == NULL || resumes_freely(node))
        return;
    memset(clock, 0, sizeof linear.due[0]);
    for (uint32_t i = 0; i < n; i++) {
        const ReducedNode *other = &reduction.nodes[i];
        const Touch *store = access_of(other);
        if (store && store->mode & TOUCH_WRITES && overlap(store, access))
            for (int j = 0; j < REDUCED_THREADS; j++)
                clock[j] = other->clock[j] > clock[j] ? other->clock[j] : clock[j];
    }
    linear.dues |= UINT32_C(1) << node->thread;
    linear.goal[node->thread]++;
}

/* The nodes of the first `n` transitions, thread by thread. 0 without memory. */
static int sort_path(uint32_t n)
{
    uint32_t end = 0;
    if (n > linear.room) {
        uint32_t *more = realloc(linear.nodes, 2 * n * sizeof *more);
        if (more == NULL)
            return 0;
        linear.nodes = more;
        linear.room = 2 * n;
    }
    memset(linear.goal, 0, sizeof linear.goal);
    for (uint32_t i = 0; i < n; i++)
        linear.goal[reduction.nodes[i].thread]++;
    for (int i = 0; i < REDUCED_THREADS; end += linear.goal[i++])
        linear.begin[i] = end;
    memset(linear.goal, 0, sizeof linear.goal);
    for (uint32_t i = 0; i < n; i++) {
        int thread = reduction.nodes[i].thread;
        linear.nodes[linear.begin[thread] + linear.goal[thread]++] = i;
    }
    linear.dues = 0;
    for (uint32_t i = n, found = 0; i < reduction.n_nodes && E.config.mode == MODE_SC; i++) {
        const ReducedNode *node = &reduction.nodes[i];
        if (!(found >> node->thread & 1))
            find_due(n, node);
        found |= UINT32_C(1) << node->thread;
    }
    return 1;
}

/* The preemptions of the path's own order. */
static uint32_t own_preemptions(uint32_t n)
{
    uint32_t found = 0;
    int running = -1;
    uint64_t began = 0;
    for (uint32_t i = 0; i < n; i++) {
        const ReducedNode *node = &reduction.nodes[i];
        if (is_buffer(node->thread) || node->thread == running)
            continue;
        found += began >> node->thread & 1 && !resumes_freely(node);
        began |= UINT64_C(1) << node->thread;
        running = node->thread;
    }
    return found;
}

/* Can the first `n` transitions be made within the bound? Also where that is too much to find
 * out. */
static int within_bound(uint32_t n)
{
    uint32_t most = (uint32_t)E.config.preemptions;
    Progress first = {0};
    if ((n == reduction.n_nodes && own_preemptions(n) <= most) || n >= UINT16_MAX || !sort_path(n))
        return 1;
    linear.round++;
    linear.n = linear.now.n = linear.later.n = 0;
    empty_buffers(&first);
    if (!reach_state(first, 0, &linear.now))
        return 1;
    for (uint32_t level = 0; level <= most; level++) {
        while (linear.now.n) {
            const Progress *at = &linear.states[linear.now.states[--linear.now.n]];
            if (at->preemptions != level)
                continue;         /* it was reached with fewer */
            if (memcmp(at->done, linear.goal, sizeof linear.goal) == 0)
                return 1;
            for (int i = 0; i < (E.config.mode == MODE_TSO ? FIRST_BUFFER : REDUCED_THREADS); i++)
                if (!is_over(at, i) && !run_on(*at, i))
                    return 1;
        }
        linear.now = linear.later;
        linear.later.n = 0;
    }
    return 0;
}

/* The first transition with which the path leaves the bound, of those from node `from` on; NONE: it
 * does not. */
static uint32_t leaves_bound(uint32_t from)
{
    uint32_t low = from + 1, high = reduction.n_nodes;
    if (E.config.preemptions < 0 || low > high || within_bound(high))
        return NONE;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (within_bound(middle))
            low = middle + 1;
        else
            high = middle;
    }
    return high - 1;
}

/* The path ends behind this node's transition. */
static void end_path(uint32_t at)
{
    for (uint32_t i = at; i < reduction.n_nodes; i++) {
        ReducedNode *node = &reduction.nodes[i];
        if (i > at)
            free_wakeups(node->wakeups);
        free_wakeups(node->handed);
        node->handed = NONE;
    }
    reduction.n_nodes = at + 1;
    while (reduction.n_values && reduction.values[reduction.n_values - 1].node != NONE &&
           reduction.values[reduction.n_values - 1].node > at)
        reduction.n_values--;
}
