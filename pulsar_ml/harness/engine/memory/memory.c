/* The memory model. Each atomic location has its stores in modification order; a load may read any
 * store that the thread does not know to be overwritten, a store may enter the order anywhere
 * behind the last one the thread knows, a read-modify-write directly behind the one it read. What a
 * thread knows follows from happens-before and from the order of seq_cst operations. Covered:
 * relaxed, acquire, release, acq_rel, seq_cst, fences, release sequences, 2+2W. Not covered: loads
 * that read from stores later in program order (load buffering); consume is acquire.
 *
 * Under SC and TSO a location has one store, the last; TSO holds stores back in a buffer per
 * thread. Memory itself always holds the last store in modification order. */

static inline uint32_t index_of(const Variable *v)
{
    return (uint32_t)(v - E.variables);
}

static inline Message *message_in(const Variable *v, uint32_t slot)
{
    return (Message *)(v->block + E.clocks_bytes + slot * E.message_bytes);
}

/* The slots of the messages in modification order. */
static inline uint8_t *order_of(const Variable *v)
{
    return likely(E.far_order == 0) ? (uint8_t *)v->order : (uint8_t *)v->block + E.far_order;
}

static inline Message *message_at(const Variable *v, uint32_t place)
{
    return message_in(v, order_of(v)[place]);
}

static inline uint32_t *last_access(const Variable *v)
{
    return (uint32_t *)v->block;
}

static inline uint32_t *last_store(const Variable *v)
{
    return last_access(v) + E.width;
}

static inline void raw_read(uintptr_t address, uint32_t width, uint64_t *low, uint64_t *high)
{
    *high = 0;
    switch (width) {
    case 1: *low = *(uint8_t *)address; break;
    case 2: *low = *(uint16_t *)address; break;
    case 4: *low = *(uint32_t *)address; break;
    case 8: *low = *(uint64_t *)address; break;
    default: memcpy(low, (void *)address, 8); memcpy(high, (char *)address + 8, 8);
    }
}

static inline void raw_write(uintptr_t address, uint32_t width, uint64_t low, uint64_t high)
{
    switch (width) {
    case 1: *(uint8_t *)address = (uint8_t)low; break;
    case 2: *(uint16_t *)address = (uint16_t)low; break;
    case 4: *(uint32_t *)address = (uint32_t)low; break;
    case 8: *(uint64_t *)address = low; break;
    default: memcpy((void *)address, &low, 8); memcpy((char *)address + 8, &high, 8);
    }
}

static inline int is_acquire(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order >= __ATOMIC_ACQ_REL;
}
static inline int is_release(int order) { return order >= __ATOMIC_RELEASE; }
static inline int is_sc(int order) { return order == __ATOMIC_SEQ_CST; }

/* The first access of the execution, or one after bytes changed behind the model's back
 * (constructors, plain writes, code without hooks): what memory holds, known to everybody. */
static __attribute__((noinline)) void restart_history(Variable *v, uint64_t low, uint64_t high)
{
    Message *m = message_in(v, 0);
    if (!v->is_atomic) {
        v->is_atomic = 1;
        clock_zero(last_access(v));
        clock_zero(last_store(v));
        if (unlikely(is_global(v->address)))
            keep_global(v->address, v->width, low, high);
    }
    m->low = low;
    m->high = high;
    m->id = 0;
    m->sc_at = NEVER;
    m->fence_at = 0;
    m->event = -1;
    m->rmw = 0;
    m->has_released = 0;
    m->has_x = 0;
    clock_zero(m->words);
    v->n = 1;
    order_of(v)[0] = 0;
}

static inline void refresh(Variable *v, uint32_t width)
{
    uint64_t low, high;
    const Message *newest;
    raw_read(v->address, width, &low, &high);
    if (unlikely(v->n == 0)) {
        restart_history(v, low, high);
        return;
    }
    newest = message_at(v, v->n - 1u);
    if (unlikely(newest->low != low || newest->high != high))
        restart_history(v, low, high);
}

/* May t no longer read anything older than m? */
static inline int knows(const Thread *t, const Message *m, int sc)
{
    if (clock_reaches(m->words, t->clock))
        return 1;
    if (unlikely(E.x_used) && (clock_reaches(m->words, t->x_clock) ||
                               (sc && clock_reaches(m->words, E.sc_clock)) || m->sc_at < t->fence_at))
        return 1;
    return sc && m->sc_at != NEVER;
}

/* The oldest place that t may read. */
static inline uint32_t oldest_place(const Thread *t, const Variable *v, int sc)
{
    uint32_t place = v->n - 1u;
    if (likely(E.width == 4 && !(E.x_used | sc))) {
        /* The same in the common case. */
        Four known = FOUR(t->clock, 0);
        for (; place > 0; place--) {
            Two any = (Two)(FOUR(message_at(v, place)->words, 0) <= known);
            if (any[0] | any[1])
                break;
        }
        return place;
    }
    while (place > 0 && !knows(t, message_at(v, place), sc))
        place--;
    return place;
}

/* Is there a thread that may still read what is before this place? */
static __attribute__((noinline)) int readable_before(const Variable *v, uint32_t place)
{
    for (int i = 0; i < E.n; i++)
        if (!E.threads[i].done && !knows(&E.threads[i], message_at(v, place), 0))
            return 1;
    return 0;
}

static inline void observe(const Thread *t, Message *m, int sc)
{
    if (m->words[t->number] == NEVER)
        m->words[t->number] = t->clock[t->number];
    if (sc && m->sc_at == NEVER)
        m->sc_at = E.sc_time;
}

static void observe_newest(Thread *t, Variable *v)
{
    if (v->n > 1)
        observe(t, message_at(v, v->n - 1u), 0);
}

static int may_read_older(const Thread *t, const Variable *v)
{
    return v->n > 1 && oldest_place(t, v, 0) < v->n - 1u;
}

static inline void acquire_from(Thread *t, const Message *m, int order)
{
    const uint32_t *released = m->words + E.width;
    if (!m->has_released)
        return;
    if (is_acquire(order)) {
        clock_join(t->clock, released);
        if (unlikely(E.x_used)) {
            if (m->has_x)
                clock_join(t->x_clock, released + E.width);
            if (m->fence_at > t->fence_at)
                t->fence_at = m->fence_at;
        }
        return;
    }
    if (!t->any_pending) {
        clock_zero(t->pending);
        t->any_pending = 1;
        t->fence_pending = 0;
    }
    clock_join(t->pending, released);
    if (unlikely(E.x_used)) {
        if (m->has_x)
            clock_join(t->x_pending, released + E.width);
        if (m->fence_at > t->fence_pending)
            t->fence_pending = m->fence_at;
    }
}

/* A new message at `place`, which says what the thread had done before. `read`: the message that a
 * read-modify-write continues, or NULL. */
static inline Message *place_store(Thread *t, Variable *v, uint32_t place, int order, const Message *read)
{
    uint32_t slot, n = v->n;
    uint8_t *in_order = order_of(v);
    uint64_t id = step_id(t);
    Message *m;
    const Message *before, *after;
    uint32_t *released;
    int x = 0;
    if (E.config.mode != MODE_C11) {
        before = message_at(v, 0);
        E.class_hash += mix64((uint64_t)before->id << 32 | id);
        /* In place: the other fields are read below before they are overwritten. */
        slot = in_order[0] ^ 1;
        in_order[0] = (uint8_t)slot;
        m = message_in(v, slot);
    } else {
        if (unlikely(n == (uint32_t)E.config.stores)) {
            /* Forget the oldest: some stale reads are lost, nothing becomes possible. */
            uint32_t forgotten = place == 1;      /* the one before the new store stays */
            if (!E.forgot)
                E.forgot = (uint8_t)readable_before(v, forgotten + 1);
            slot = in_order[forgotten];
            for (uint32_t i = forgotten + 1; i < n; i++)
                in_order[i - 1] = in_order[i];
            n--;
            place -= !forgotten;
        } else {
            slot = n;
        }
        before = message_at(v, place - 1);
        after = place < n ? message_at(v, place) : NULL;
        E.class_hash += mix64((uint64_t)before->id << 32 | id);
        if (after)
            E.class_hash += mix64(id << 32 | after->id) - mix64((uint64_t)before->id << 32 | after->id);
        for (uint32_t i = n; i > place; i--)
            in_order[i] = in_order[i - 1];
        in_order[place] = (uint8_t)slot;
        v->n = (uint8_t)(n + 1);
        m = message_in(v, slot);
    }
    m->id = (uint32_t)id;
    m->event = -1;
    m->rmw = read != NULL;
    m->sc_at = is_sc(order) ? E.sc_time : NEVER;
    clock_fill(m->words, NEVER);
    m->words[t->number] = t->clock[t->number];
    released = m->words + E.width;
    m->has_released = 1;
    m->fence_at = 0;
    if (is_release(order)) {
        clock_copy(released, t->clock);
        if (unlikely(E.x_used)) {
            clock_copy(released + E.width, t->x_clock);
            m->fence_at = t->fence_at;
            x = 1;
        }
    } else if (t->any_fenced) {
        clock_copy(released, t->fenced);
        if (unlikely(E.x_used)) {
            clock_copy(released + E.width, t->x_fenced);
            m->fence_at = t->fence_fenced;
            x = 1;
        }
    } else {
        m->has_released = 0;
    }
    if (read && read->has_released) {
        /* A release sequence goes on through read-modify-writes. */
        if (!m->has_released) {
            clock_copy(released, read->words + E.width);
            m->has_released = 1;
        } else {
            clock_join(released, read->words + E.width);
        }
        if (unlikely(E.x_used) && read->has_x) {
            if (!x)
                clock_zero(released + E.width);
            clock_join(released + E.width, read->words + 2 * E.width);
            x = 1;
            if (read->fence_at > m->fence_at)
                m->fence_at = read->fence_at;
        }
    }
    m->has_x = (uint8_t)x;
    v->version++;
    last_store(v)[t->number] = t->clock[t->number];
    last_access(v)[t->number] = t->clock[t->number];
    if (is_release(order))
        clock_tick(t);
    return m;
}
