/* The search with reduction during an execution: nodes and choices of values of the path,
 * which threads may make the next transition, and which one does. */

static int reduction_reserve(void)
{
    if (reduction.n_nodes == reduction.nodes_room) {
        uint32_t room = reduction.nodes_room;
        FaultPrints *faults = grown(reduction.faults, &room, 256, sizeof *faults);
        ReducedNode *more = faults ? grown(reduction.nodes, &reduction.nodes_room, 256, sizeof *more) : NULL;
        if (faults)
            reduction.faults = faults;
        if (more == NULL)
            return 0;
        reduction.nodes = more;
    }
    return 1;
}

/* The footprint of the thread's next transition with the fault. */
static inline Footprint *with_fault(const ReducedNode *node, int thread)
{
    return &reduction.faults[node - reduction.nodes].of[thread];
}

/* A choice of a value at the end of the path. 0 without memory. */
static int keep_value(uint32_t node, uint16_t options, uint16_t taken, int closed)
{
    if (reduction.n_values == reduction.values_room) {
        ReducedValue *more = grown(reduction.values, &reduction.values_room, 256, sizeof *more);
        if (more == NULL)
            return 0;
        reduction.values = more;
    }
    reduction.values[reduction.n_values++] = (ReducedValue){
        node, options, taken, (uint8_t)closed, {.start = reduction.executions}};
    return 1;
}

static uint32_t reduced_value(uint32_t options, int is_fault)
{
    uint32_t at = reduction.value_at++, number = reduction.node_at - 1, taken = 0;
    ReducedNode *node = number == NONE ? NULL : &reduction.nodes[number];
    int begins = is_fault && node && node->thread == current->number && !reduction.stuck &&
                 (at == 0 || reduction.values[at - 1].node != number);
    int partly = begins && node->partly >> node->thread & 1, faulty = partly && node->faulty >> node->thread & 1;
    if (at < reduction.n_values) {
        if (reduction.values[at].options != options || reduction.values[at].node != number)
            fail_choices();
        taken = reduction.values[at].taken;
    } else {
        taken = partly && !faulty;
        if (!keep_value(number, (uint16_t)options, (uint16_t)taken, faulty)) {
            fail_with(FAIL_CAPACITY, current, "no memory for the choices of the search");
            abandon();
        }
    }
    if (begins)
        node->option = taken ? OPTION_FAULT : OPTION_USUAL;
    return taken;
}

static void reduction_reset(void)
{
    for (uint32_t i = 0; i < reduction.n_nodes; i++) {
        free_wakeups(reduction.nodes[i].wakeups);
        free_wakeups(reduction.nodes[i].handed);
    }
    reduction.n_nodes = reduction.n_values = reduction.changed = 0;
    reduction.floor_nodes = reduction.floor_values = reduction.known = 0;
    reduction.executions = 0;
}

/* An execution begins. */
static void reduction_begin(int reducing)
{
    E.reducing = (uint8_t)reducing;
    reduction.left = reduction.analysed = 0;
    if (!reducing)
        return;
    reduction.node_at = reduction.value_at = 0;
    reduction.stuck = reduction.nothing_new = 0;
    reduction.waiting = reduction.begun = reduction.turned = 0;
    reduction.ready = ~UINT64_C(0);
    reduction.next = (Announced){0};
    reduction.behind = reduction.hurries = 0;
    memset(reduction.passed, 0, sizeof reduction.passed);
    memset(reduction.least, 0, sizeof reduction.least);
    memset(reduction.announced, 0, sizeof reduction.announced);
    for (int i = 0; i < REDUCED_THREADS; i++)
        reduction.enablers[i] = -1;
}

/* The thread's next step empties its buffer, which still holds stores. */
static int waits_for_buffer(int thread)
{
    const Announced *next = &reduction.announced[thread];
    if (!next->drains || E.config.mode != MODE_TSO || is_buffer(thread) || !E.threads[thread].buffer_count)
        return 0;
    if (next->drains == DRAINS)
        return 1;
    return next->lock ? !is_taken(next->lock, next->use, thread) : !is_taken(next->address, USE_MUTEX, NOBODY);
}

/* Those of the threads in the mask that wait for nothing else. */
static uint64_t threads_before_buffers(uint64_t mask)
{
    uint64_t found = 0;
    for (uint64_t rest = mask; rest && unlikely(E.buffered); rest &= rest - 1)
        if (waits_for_buffer(__builtin_ctzll(rest)))
            found |= rest & -rest;
    return found;
}

/* The threads in the mask whose announced step would wait. */
static uint64_t would_wait(uint64_t mask)
{
    uint64_t waits = 0;
    for (uint64_t rest = mask; rest; rest &= rest - 1) {
        int u = __builtin_ctzll(rest);
        const Announced *next = &reduction.announced[u];
        if (would_wait_for_lock(next, u) ||
            (next->joins && (!E.threads[next->joins - 1].done || E.threads[next->joins - 1].buffer_count)) ||
            (next->drains && waits_for_buffer(u)))
            waits |= E.threads[u].bit;
    }
    return waits;
}

/* With symmetry, the threads in the mask that begin behind an equal one that did not begin. Each
 * execution is one of these when equal threads change their names. */
static uint64_t begin_later(uint64_t mask)
{
    uint64_t later = 0;
    for (uint64_t rest = E.config.symmetric ? mask & ~reduction.begun : 0; rest; rest &= rest - 1) {
        int before = E.config.equal_before[__builtin_ctzll(rest)];
        if (before >= 0 && !(reduction.begun >> before & 1))
            later |= rest & -rest;
    }
    return later;
}

/* The thread begins, and an equal one may begin behind it. */
static void note_begun(int thread)
{
    reduction.begun |= UINT64_C(1) << thread;
    for (int u = thread + 1; u < E.config.n_threads; u++)
        if (E.config.equal_before[u] == thread)
            reduction.enablers[u] = (int32_t)reduction.node_at;
}

static void join_footprint(Footprint *into, const Footprint *from);

/* A thread sleeps with a fault, or without it, and its other transition was made from the node
 * before, or clashes with what was. */
static void pass_part(ReducedNode *node, const ReducedNode *before, int thread, int faulty)
{
    const Footprint *kept = faulty ? with_fault(before, thread) : &before->asleep[thread];
    uint64_t bit = UINT64_C(1) << thread;
    if (clash(kept, &before->footprint, BOTH_KNOWN))
        return;
    node->parted |= bit;
    node->partly |= bit;
    node->faulty |= faulty ? bit : 0;
    node->asleep[thread] = *with_fault(node, thread) = *kept;
    node->since[thread] = before->since[thread];
}

/* The sleeping threads whose next transitions do not clash with the one made from the node before.
 * One that it could only have read from is woken for that; one that clashes only with a fault or
 * only without it, for that. */
static void pass_sleep(ReducedNode *node, const ReducedNode *before)
{
    uint64_t asleep = before->sleep | before->half | before->partly;
    for (uint64_t rest = asleep & ~(UINT64_C(1) << before->thread); rest; rest &= rest - 1) {
        int u = __builtin_ctzll(rest), parted = before->parted >> u & 1;
        Clash usual, fault;
        if (before->partly >> u & 1) {
            pass_part(node, before, u, before->faulty >> u & 1);
            continue;
        }
        usual = clash(&before->asleep[u], &before->footprint, BOTH_KNOWN);
        fault = parted ? clash(with_fault(before, u), &before->footprint, BOTH_KNOWN) : usual;
        if (usual == ORDER_CLASH || fault == ORDER_CLASH) {
            if (parted && (usual == NO_CLASH || fault == NO_CLASH))
                pass_part(node, before, u, fault == NO_CLASH);
            continue;
        }
        node->asleep[u] = before->asleep[u];
        node->since[u] = before->since[u];
        if (usual == NO_CLASH && fault == NO_CLASH && before->sleep >> u & 1) {
            node->sleep |= UINT64_C(1) << u;
            node->parted |= (uint64_t)parted << u;
            if (parted)
                *with_fault(node, u) = *with_fault(before, u);
            continue;
        }
        node->half |= UINT64_C(1) << u;
        if (parted)
            join_footprint(&node->asleep[u], with_fault(before, u));
    }
}

/* Takes the thread that begins the next sequence of a node; 0: there is none. */
static int next_sequence(ReducedNode *node)
{
    uint64_t awake = node->enabled & ~node->sleep;
    while (node->wakeups != NONE) {
        uint32_t at = node->wakeups;
        int thread = wakeups.all[at].thread;
        node->wakeups = wakeups.all[at].next;
        wakeups.all[at].next = NONE;
        if (node->full >> thread & 1 && awake >> (thread + FIRST_BUFFER) & 1) {
            wakeups.all[at].next = NONE;   /* the sequence follows when the buffer is empty */
            node->handed = at;
            node->thread = (uint8_t)(thread + FIRST_BUFFER);
            node->kept = 0;
            return 1;
        }
        if (awake >> thread & 1) {
            node->handed = wakeups.all[at].child;
            wakeups.all[at].child = NONE;
            free_wakeups(at);
            node->thread = (uint8_t)thread;
            node->kept = 0;
            return 1;
        }
        free_wakeups(at);
    }
    return 0;
}

/* The first thread of a new node: of a sequence, or the running one where it can go on. 0: each
 * that could go on is asleep, and what would follow was searched before. */
static int first_thread(ReducedNode *node, const Thread *t)
{
    uint64_t awake = node->enabled & ~node->sleep;
    if (next_sequence(node))
        return 1;
    if (awake & ~node->half)      /* what the others would read may not be there yet */
        awake &= ~node->half;
    node->thread = (uint8_t)(awake & t->bit ? t->number : awake ? __builtin_ctzll(awake) : 0);
    node->kept = 0;
    return awake != 0;
}

/* A node at the end of the path, and its first transition. */
static __attribute__((noinline)) ReducedNode *new_node(const Thread *t, uint64_t enabled, uint64_t full)
{
    ReducedNode *node, *before;
    if (!reduction_reserve()) {
        fail_with(FAIL_CAPACITY, current, "no memory for the choices of the search");
        abandon();
    }
    node = &reduction.nodes[reduction.n_nodes];
    before = reduction.n_nodes ? node - 1 : NULL;
    node->sleep = node->half = node->parted = node->partly = node->faulty = 0;
    node->enabled = enabled;
    node->full = full;
    node->wakeups = node->handed = NONE;
    node->branches = (Branches){.start = reduction.executions};
    if (before) {
        pass_sleep(node, before);
        node->wakeups = before->handed;
        before->handed = NONE;
    }
    if (!first_thread(node, t))
        leave_execution();
    reduction.n_nodes++;
    return node;
}

static void begin_transition(ReducedNode *node)
{
    Announced *next = &reduction.announced[node->thread];
    int thread = node->thread;
    if (reduction.node_at >= reduction.changed) {
        Footprint *f = &node->footprint;
        f->n = f->late = f->announced = 0;
        f->units = 0;
        f->all = next->all;
        node->quiet = reduction.behind != reduction.passed[thread];
        node->behind = reduction.behind;
        node->turned = reduction.turned >> thread & 1;
        node->acquired = 0;
        node->option = OPTION_NONE;
        node->stored = node->read = 0;
        node->entered = 0;
        node->n_chances = ANY_CHANCE;
        node->lock = next->lock;
        node->use = next->use;
        node->drains = next->drains;
        node->had_units = node->shares = 0;
        node->until = next->until;
        node->began = E.now_ns;
        node->now = 0;
        node->enabler = reduction.enablers[node->thread];
        if (next->address) {
            if (next->lock)
                add_lock(f, next->lock, next->use);
            else
                add_touch(f, next->address, 1, TOUCH_OBJECT | TOUCH_READS | TOUCH_WRITES);
            f->announced = next->lock == 0;
            /* Where it may end as a fault, the clock decides nothing. */
            if (next->lock && next->until < INT64_MAX && !(E.config.faults & FAULT_TIMEOUT))
                add_touch(f, KEY_TIMES + (uintptr_t)next->until, 1, TOUCH_OBJECT | TOUCH_READS);
        }
        if (next->drains == DRAINS && E.config.mode == MODE_TSO)
            add_touch(f, KEY_ENDS + (uintptr_t)thread, 1, TOUCH_OBJECT | TOUCH_READS | TOUCH_HARD);
        if (is_buffer(thread))
            node->enabler = oldest_stored(thread);
    }
    reduction.enablers[node->thread] = -1;
    if (unlikely(E.config.symmetric) && !(reduction.begun >> thread & 1) && !is_buffer(thread))
        note_begun(thread);
    *next = (Announced){0};
    reduction.turned &= ~(UINT64_C(1) << thread);
    reduction.passed[thread] = reduction.behind;
    reduction.waiting &= ~(UINT64_C(1) << thread);
    reduction.node_at++;
}

/* The thread waits for a lock since nobody could go on: it could have come earlier. */
static int still_attempts(int thread)
{
    return reduction.waiting >> thread & 1 && reduction.announced[thread].lock && E.threads[thread].woken != 2;
}

/* The transition of a thread ends here; which of the threads in the mask makes the next one? NULL:
 * a store left a buffer instead. */
static __attribute__((noinline)) Thread *reduced_pick(Thread *t, uint64_t mask)
{
    ReducedNode *node;
    Thread *chosen;
    uint64_t enabled, woken = mask & ~reduction.ready;
    if (reduction.stuck)
        return default_thread(t, mask);
    if (E.n > most_reduced_threads()) {
        reduction.unreduced |= UNREDUCED_THREADS;
        reduction.stuck = 1;
        return default_thread(t, mask);
    }
    reduction.ready = mask;
    for (; woken; woken &= woken - 1)
        if (!still_attempts(__builtin_ctzll(woken)))
            reduction.enablers[__builtin_ctzll(woken)] = (int32_t)reduction.node_at - 1;
    enabled = (mask & ~would_wait(mask) & ~begin_later(mask)) | buffers_in(E.buffered);
    if (enabled == 0) {
        reduction.stuck = 1;
        reduction.waiting |= mask;
        return default_thread(t, mask);
    }
    if (reduction.node_at < reduction.n_nodes) {
        node = &reduction.nodes[reduction.node_at];
        if (!(enabled >> node->thread & 1))
            fail_choices();
        node->enabled = enabled;
    } else {
        node = new_node(t, enabled, threads_before_buffers(mask & ~enabled));
    }
    begin_transition(node);
    if (is_buffer(node->thread)) {
        leave_buffer(t, node->thread);
        return NULL;
    }
    chosen = &E.threads[node->thread];
    if (unlikely(E.recording) && mask & (mask - 1) && chosen != default_thread(t, mask)) {
        decision_made(t, CHOOSE_THREAD, (uint32_t)chosen->number + 1);
        n_preemptions += (mask & t->bit) != 0;
    }
    return chosen;
}

/* A thread announced its next step. With no other thread ready there is no pick. */
static void reduced_on_step(Thread *t)
{
    reduction.next.address = t->op_address;
    reduction.next.all = t->op_address == 0;
    reduction.next.writes = t->op_writes;
    if (t->number < REDUCED_THREADS)
        reduction.announced[t->number] = reduction.next;
    reduction.next = (Announced){0};
    if (E.starting >= E.n && E.ready == t->bit && !E.buffered && !E.yielded)
        reduced_pick(t, t->bit);
}
