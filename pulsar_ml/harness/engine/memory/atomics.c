/* The atomic operations of a controlled thread on the memory model: load, store, TSO's store
 * buffer, read-modify-write, compare-exchange, fence. */

static __attribute__((noinline)) void meet_special(Thread *t, const Variable *v, EngineOp op, int writes,
                                                   uint32_t width, uint64_t pc)
{
    if (E.config.races && (v->write.clock | v->read.clock || v->readers != NONE))
        check_plain(t, v, op, writes, width, pc);
    if (unlikely(v->special & HAS_SIBLINGS))
        meet_siblings(t, v, op, writes, 0, pc);
}

INLINED Variable *atomic_variable(int common, Thread *t, uintptr_t address, uint32_t width, EngineOp op, int writes,
                                  uint64_t pc)
{
    Variable *v = common ? next_variable(t, address, width, op, pc) : find_variable(t, address, width, op, pc);
    touch(v, t);
    refresh(v, width);
    if (!common && unlikely(E.reducing))
        note_access(t, address, width, op);
    if (v->special)
        meet_special(t, v, op, writes, width, pc);
    return v;
}

/* acquires: not when the load found a store of its own thread in the buffer. */
INLINED void note_load(int common, Thread *t, Variable *v, History h, Message *m, uint32_t stale, int order,
                       int acquires)
{
    uint32_t now = t->clock[t->number];
    if (!common && unlikely(E.reducing)) {
        /* The first seq_cst access of a store forbids later ones to read what is older, if there
         * is anything. */
        note_order(order, v->address, v->width, m->sc_at == NEVER && stale + 1 < (uint64_t)h.n);
        note_read(m->id);
    }
    observe(common, t, h, h.n - 1 - stale, m, is_sc(order));
    if (acquires)
        acquire_from(common, t, m, order);
    if (!common && unlikely(E.recording))
        trace_known(t);
    ((uint32_t *)h.block)[t->number] = now;
    E.class_hash += mix64((uint64_t)t->step << 32 | m->id);
    hash_step((uint64_t)v->index << 40 ^ t->salt ^ m->id);
    E.stale += stale;
    watch_read(t, v->index, v->version - stale);
}

static __attribute__((noinline)) int32_t trace_atomic(Thread *t, EngineOp op, const Variable *v, uint64_t value,
                                                      uint64_t before, int order, int32_t from, uint32_t stale,
                                                      int failed, uint64_t pc)
{
    int32_t at = trace_event(t, op, v->address, v->width, value, pc);
    if (at >= 0) {
        events[at].order = (uint8_t)order;
        events[at].before = before;
        events[at].from = from;
        events[at].stale = (uint8_t)stale;
        events[at].failed = (uint8_t)failed;
    }
    return at;
}

/* TSO: the load reads from the thread's own store, which is not in memory yet. */
static __attribute__((noinline)) void note_own(const Thread *t, uint32_t in_memory, uint32_t own)
{
    E.class_hash += mix64((uint64_t)t->step << 32 | own) - mix64((uint64_t)t->step << 32 | in_memory);
}

/* Inlined for each width: most of the engine's time is spent here. */
INLINED void atomic_load(int common, Thread *t, uintptr_t address, uint32_t width, int order,
                                                              uint64_t pc, uint64_t *low, uint64_t *high)
{
    Variable *v = atomic_variable(common, t, address, width, OP_LOAD, 0, pc);
    History h = history_of(v);
    uint32_t stale = 0, own = 0;
    int32_t from;
    Message *m;
    if (!only_newest(v, is_sc(order))) {
        uint64_t several;
        uint32_t older = older_for(common, t, v, h, is_sc(order), &several);
        stale = !common && unlikely(E.reducing) ? reduced_stale(t, h, older + 1)
                                                : choose_freely(common, t, CHOOSE_READ, several, older + 1);
    }
    m = message_in(common, h, h.n - 1 - stale);
    *low = m->low;
    *high = m->high;
    from = m->event;
    if (!common && unlikely(t->buffer_count)) {
        /* Own stores are seen before the others see them. */
        for (uint32_t i = 0; i < t->buffer_count; i++) {
            const Buffered *b = &t->buffer[(t->buffer_head + i) % ENGINE_BUFFER];
            if (b->address == address && b->width == width && !b->dead) {
                *low = b->low;
                *high = b->high;
                from = b->event;
                own = b->store;
            }
        }
        if (own)
            note_own(t, m->id, own);
    }
    if (!common && unlikely(E.reducing) && (own || (m->id && m->id >> 26 == (uint32_t)t->number)))
        note_found(address, width, own != 0);
    if (!common && unlikely(E.recording))
        trace_atomic(t, OP_LOAD, v, *low, 0, order, from, stale, 0, pc);
    note_load(common, t, v, h, m, stale, order, !own);
}

static inline __attribute__((always_inline)) void store_now(int common, Thread *t, uintptr_t address, uint32_t width,
                                                             int order, uint64_t pc, uint64_t low,
                             uint64_t high)
{
    Variable *v = atomic_variable(common, t, address, width, OP_STORE, 1, pc);
    History h = history_of(v);
    uint32_t place = (uint32_t)h.n, back = 0;
    Message *m;
    if (!common && unlikely(E.reducing))
        note_order(order, address, width, 1);
    if (only_newest(v, is_sc(order))) {
        /* It enters behind all others. */
    } else if (likely(v->chained == 0)) {
        uint64_t several;
        uint32_t older = older_for(common, t, v, h, is_sc(order), &several);
        back = choose_freely(common, t, CHOOSE_INSERT, several, older + 1);
        place -= back;
    } else {
        uint64_t several, between;
        uint32_t older = older_for(common, t, v, h, is_sc(order), &several), open;
        uint32_t oldest = (uint32_t)h.n - 1 - older;
        between = (UINT64_C(1) << older) - 1;
        open = (uint32_t)__builtin_popcountll(~(v->chained >> 1 >> oldest) & between);
        back = choose_freely(common, t, CHOOSE_INSERT, -(uint64_t)(open > 0), 1 + open);
        for (uint32_t left = back; left; place--)
            left -= !is_chained(v, place - 1);
    }
    m = common && likely(back == 0) ? append_store(t, v, h, order, NULL)
        : common                    ? insert_store(t, v, place, order, NULL)
                                    : place_store(t, v, place, order, NULL);
    m->low = low;
    m->high = high;
    if (back == 0)
        raw_write(address, width, low, high);
    if (!common && unlikely(E.recording))
        m->event = trace_atomic(t, OP_STORE, v, low, 0, order, -1, back, 0, pc);
    hash_step((uint64_t)v->index << 40 ^ t->salt ^ back ^ 0x5000);
    watch_write(t, v->index);
}

/* TSO: the oldest store of t's buffer reaches memory, with what t had done when it was issued. */
static void flush_oldest(Thread *t)
{
    Buffered *b = &t->buffer[t->buffer_head];
    Variable *v;
    Message *m;
    uint32_t step = t->step;
    t->buffer_head = (t->buffer_head + 1) % ENGINE_BUFFER;
    if (--t->buffer_count == 0) {
        E.buffered &= ~t->bit;
        t->controlled &= (uint8_t)~HOLDS_STORES;
    }
    if (unlikely(b->dead)) {
        if (unlikely(E.reducing))
            note_access(t, b->address, b->width, OP_FLUSH);
        return;
    }
    v = atomic_variable(0, t, b->address, b->width, OP_FLUSH, 1, b->pc);
    t->step = b->store;           /* its name in classes is that of the step that made it */
    m = place_store(t, v, v->n, __ATOMIC_RELAXED, NULL);
    t->step = step;
    m->low = b->low;
    m->high = b->high;
    last_store(v)[t->number] = b->now;
    last_access(v)[t->number] = b->now;
    m->has_released = b->released;
    if (b->released)
        clock_copy(m->words, b->clock);
    else
        clock_zero(m->words);
    raw_write(b->address, b->width, b->low, b->high);
    if (unlikely(E.recording))
        m->event = trace_flush(t);
    hash_step((uint64_t)v->index << 40 ^ t->salt ^ 0x6000);
    E.changes++;
    if (E.waiting)
        wake_watchers(v->index);
}

static void drain(Thread *t)
{
    /* The stores could have arrived before, by transitions that this execution does not have. */
    if (unlikely(t->buffer_count) && E.reducing)
        give_up_reduction(UNREDUCED_BUFFERS);
    while (t->buffer_count)
        flush_oldest(t);
}

/* TSO: a plain access finds a store of the same thread in memory, not in the buffer. */
static void arrive_before(Thread *t, uintptr_t address, size_t bytes)
{
    for (uint32_t i = 0; i < t->buffer_count; i++) {
        const Buffered *b = &t->buffer[(t->buffer_head + i) % ENGINE_BUFFER];
        if (b->address < address + bytes && address < b->address + b->width && !b->dead) {
            drain(t);
            return;
        }
    }
}

static __attribute__((noinline)) void buffer_store(Thread *t, uintptr_t address, uint32_t width, int order,
                                                   uint64_t pc, uint64_t low, uint64_t high)
{
    Buffered *b;
    if (t->buffer_count == ENGINE_BUFFER) {
        if (unlikely(E.reducing))
            give_up_reduction(UNREDUCED_BUFFERS);
        flush_oldest(t);
        E.crowded++;
    }
    b = &t->buffer[(t->buffer_head + t->buffer_count++) % ENGINE_BUFFER];
    *b = (Buffered){.address = address, .low = low, .high = high, .pc = pc, .width = (uint8_t)width,
                    .order = (uint8_t)order, .store = t->step};
    b->now = t->clock[t->number];
    b->released = is_release(order) || t->any_fenced;
    if (b->released)
        clock_copy(b->clock, is_release(order) ? t->clock : t->fenced);
    if (is_release(order))
        clock_tick(t);
    E.buffered |= t->bit;
    t->controlled |= HOLDS_STORES;
    t->watch_lost = 1;
    if (unlikely(E.reducing))
        note_buffered(b);
    b->event = -1;
    if (unlikely(E.recording)) {
        b->event = trace_event(t, OP_BUFFER, address, (int)width, low, pc);
        if (b->event >= 0)
            events[b->event].order = (uint8_t)order;
    }
}

/* In a search with reduction every store does, and may leave at once. */
static uint32_t enters_buffer(const Thread *t)
{
    if (unlikely(E.recording))
        decision_made(t, CHOOSE_DELAY, 1);
    return 1;
}

static inline __attribute__((always_inline)) void atomic_store(int common, Thread *t, uintptr_t address, uint32_t width,
                                                               int order, uint64_t pc, uint64_t low,
                                                               uint64_t high)
{
    if (!common && E.config.mode == MODE_TSO) {
        if (is_sc(order)) {
            drain(t);
            if (unlikely(E.reducing))
                note_emptied(t);
        } else if (t->buffer_count || (E.reducing ? enters_buffer(t) : choose(t, CHOOSE_DELAY, 2))) {
            buffer_store(t, address, width, order, pc, low, high);
            return;
        }
    }
    store_now(common, t, address, width, order, pc, low, high);
}

/* Where it is rare: not inlined. */
static __attribute__((noinline)) void rare_store(Thread *t, uintptr_t address, uint32_t width, int order, uint64_t pc,
                                                 uint64_t low, uint64_t high)
{
    atomic_store(0, t, address, width, order, pc, low, high);
}

/* A read-modify-write may go directly behind any message it may read, unless another one did. */
static inline uint32_t rmw_place(int common, Thread *t, const Variable *v, int sc)
{
    uint32_t places[ENGINE_MOST_STORES], n = 0, oldest;
    uint64_t several;
    if (only_newest(v, sc))
        return v->n - 1u;
    oldest = v->n - 1u - older_for(common, t, v, history_of(v), sc, &several);
    for (uint32_t p = v->n; p-- > oldest;)
        if (p + 1 == v->n || !is_chained(v, p + 1))
            places[n++] = p;
    if (!common && unlikely(E.reducing))
        return places[reduced_place(t, v, places, n)];
    return places[choose_freely(common, t, CHOOSE_READ, -(uint64_t)(n > 1), n)];
}

typedef enum { RMW_EXCHANGE, RMW_ADD, RMW_SUB, RMW_AND, RMW_OR, RMW_XOR, RMW_NAND } Rmw;

static inline uint64_t rmw_value(Rmw kind, uint64_t old, uint64_t operand)
{
    switch (kind) {
    case RMW_EXCHANGE: return operand;
    case RMW_ADD: return old + operand;
    case RMW_SUB: return old - operand;
    case RMW_AND: return old & operand;
    case RMW_OR: return old | operand;
    case RMW_XOR: return old ^ operand;
    default: return ~(old & operand);
    }
}

INLINED void write_rmw(int common, Thread *t, Variable *v, uint32_t place, Message *read, int order, EngineOp op,
                             uint64_t pc, uint64_t low, uint64_t high)
{
    uint64_t before = read->low;
    int changes = low != before || (v->width > 8 && high != read->high);
    int32_t from = read->event;
    uint32_t stale = v->n - 1u - place;
    Message *m;
    observe(common, t, history_of(v), place, read, is_sc(order));
    acquire_from(common, t, read, order);
    if (!common && unlikely(E.reducing)) {
        note_order(order, v->address, v->width, 1);
        note_read(read->id);
    }
    E.class_hash += mix64((uint64_t)t->step << 32 | read->id);
    m = common && likely(stale == 0) ? append_store(t, v, history_of(v), order, read)
        : common                         ? insert_store(t, v, place + 1, order, read)
                                         : place_store(t, v, place + 1, order, read);
    m->low = low;
    m->high = high;
    if (stale == 0)
        raw_write(v->address, v->width, low, high);
    if (!common && unlikely(E.recording))
        m->event = trace_atomic(t, op, v, low, before, order, from, stale, 0, pc);
    hash_step((uint64_t)v->index << 40 ^ t->salt ^ stale ^ 0x7000);
    E.stale += stale;
    watch_rmw(t, v, stale, changes);
    if (t->number >= 0) {
        EngineCall *call = &t->calls[t->call];
        if (call->exchanged == 0)
            call->exchanged = E.step;
        call->exchanged_last = E.step;
    }
}

/* The value before, in the low bits. */
INLINED uint64_t atomic_rmw(int common, Thread *t, uintptr_t address, uint32_t width, int order, uint64_t pc, Rmw kind,
                                  uint64_t operand, uint64_t operand_high, uint64_t *high)
{
    Variable *v;
    Message *m;
    uint64_t old, value, old_high;
    uint32_t place;
    if (!common && t->buffer_count)
        drain(t);
    if (!common && unlikely(E.reducing))
        note_emptied(t);
    v = atomic_variable(common, t, address, width, OP_RMW, 1, pc);
    place = rmw_place(common, t, v, is_sc(order));
    m = message_in(common, history_of(v), place);
    old = m->low;
    old_high = m->high;
    value = rmw_value(kind, old, operand);
    if (width < 8)
        value &= (UINT64_C(1) << (8 * width)) - 1;
    write_rmw(common, t, v, place, m, order, OP_RMW, pc, value,
              kind == RMW_EXCHANGE ? operand_high : width > 8 ? rmw_value(kind, old_high, operand_high) : 0);
    *high = old_high;
    return old;
}

/* Whether it exchanged; *low and *high become what was read. */
INLINED int atomic_cas(int common, Thread *t, uintptr_t address, uint32_t width, int order, int fail_order, int weak,
                             uint64_t pc, uint64_t *low, uint64_t *high, uint64_t desired, uint64_t desired_high)
{
    Variable *v;
    Message *m;
    uint32_t place, stale = 0;
    int may_fail = weak && E.config.faults & FAULT_WEAK_FAILURE, fits = 1;
    if (!common && t->buffer_count)
        drain(t);
    if (!common && unlikely(E.reducing))
        note_emptied(t);
    v = atomic_variable(common, t, address, width, OP_CAS, 1, pc);
    if (!common && unlikely(E.reducing))
        note_order(order, address, width, 1);
    if (v->n > 1) {
        /* A failed exchange is a load of its own order, which may see older stores than an
         * exchange. */
        History h = history_of(v);
        uint64_t several;
        uint32_t places[ENGINE_MOST_STORES], n = 0, newest = v->n - 1u;
        uint32_t oldest = newest - older_for(common, t, v, h, is_sc(order), &several);
        uint32_t oldest_failed = is_sc(fail_order) ? oldest : newest - older_for(common, t, v, h, 0, &several);
        if (!common && unlikely(E.reducing))
            note_chances(v, oldest, *low, *high);
        for (uint32_t p = v->n; p-- > oldest_failed;) {
            m = message_in(common, history_of(v), p);
            if (may_fail || m->low != *low || m->high != *high ||
                (p >= oldest && (p + 1 == v->n || !is_chained(v, p + 1))))
                places[n++] = p;
        }
        place = places[!common && unlikely(E.reducing) ? reduced_place(t, v, places, n)
                                                       : choose_freely(common, t, CHOOSE_READ, -(uint64_t)(n > 1), n)];
        stale = v->n - 1u - place;
        fits = !may_fail || (place >= oldest && (stale == 0 || !is_chained(v, place + 1)));
    } else {
        place = 0;
        if (!common && unlikely(E.reducing))
            note_chances(v, 0, *low, *high);
    }
    m = message_in(common, history_of(v), place);
    if (m->low == *low && m->high == *high && fits && !(may_fail && choose(t, CHOOSE_WEAK_FAILURE, 2))) {
        write_rmw(common, t, v, place, m, order, OP_CAS, pc, desired, desired_high);
        return 1;
    }
    t->operands = mix64(t->operands ^ *low ^ (uint64_t)v->index << 40 ^ v->version) | 1;
    *low = m->low;
    *high = m->high;
    if (!common && unlikely(E.reducing))
        note_failed(address, width);
    if (!common && unlikely(E.recording))
        trace_atomic(t, OP_CAS, v, desired, m->low, fail_order, m->event, stale, 1, pc);
    note_load(common, t, v, history_of(v), m, stale, fail_order, 1);
    return 0;
}

static __attribute__((noinline)) void first_sc_fence(void)
{
    E.x_used = 1;
    E.common = 0;
    clock_zero(E.sc_clock);
    for (int i = 0; i < E.n; i++) {
        Thread *t = &E.threads[i];
        clock_zero(t->x_clock);
        clock_zero(t->x_pending);
        clock_zero(t->x_fenced);
    }
}

static inline void fence(Thread *t, int order)
{
    if (is_sc(order)) {
        if (!E.x_used)
            first_sc_fence();
        drain(t);
    }
    if (is_acquire(order) && t->any_pending) {
        clock_join(t->clock, t->pending);
        if (unlikely(E.x_used)) {
            clock_join(t->x_clock, t->x_pending);
            if (t->fence_pending > t->fence_at)
                t->fence_at = t->fence_pending;
        }
    }
    if (is_sc(order)) {
        t->fence_at = ++E.sc_time;
        clock_join(t->x_clock, E.sc_clock);
        clock_join(E.sc_clock, t->clock);
    }
    if (is_release(order)) {
        clock_copy(t->fenced, t->clock);
        t->any_fenced = 1;
        if (unlikely(E.x_used)) {
            clock_copy(t->x_fenced, t->x_clock);
            t->fence_fenced = t->fence_at;
        }
        clock_tick(t);
    }
}

/* The step of a fence. Only a seq_cst one is felt by others before the thread's next access. */
static __attribute__((noinline)) void make_fence(Thread *t, int order, uint64_t pc)
{
    if (is_sc(order)) {
        will_drain();
        announce(t, 0, 1);
    }
    if (unlikely(E.reducing) && is_sc(order))
        note_only(KEY_FENCES, TOUCH_OBJECT | TOUCH_READS | (E.config.mode == MODE_C11 ? TOUCH_WRITES : 0));
    fence(t, order);
    if (unlikely(E.recording)) {
        int32_t at = trace_event(t, OP_FENCE, 0, 0, 0, pc);
        if (at >= 0)
            events[at].order = (uint8_t)order;
    }
}
