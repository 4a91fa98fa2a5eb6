/* Data races by happens-before, with epochs as in FastTrack (Flanagan and Freund) and C11's edges,
 * and the checks of a heap address. Clocks are those of the memory model. */

static inline int is_global(uintptr_t address);
static inline void raw_read(uintptr_t address, uint32_t width, uint64_t *low, uint64_t *high);
static inline int looks_uninitialised(uintptr_t address, uint32_t width);
static inline uint32_t *last_access(const Variable *v);
static inline uint32_t *last_store(const Variable *v);
static int readable_before(const Variable *v, uint32_t place);

static int hold_plain(Thread *t);
static void explain_race(EngineFailure *f, uintptr_t address, uint32_t width);

static inline int is_ordered(uint32_t clock, int thread, const Thread *t)
{
    return clock <= t->clock[thread];
}

static __attribute__((noinline)) void race_fail(Thread *t, const Variable *v, EngineOp op, uint32_t width,
                                                uint64_t pc, int other, EngineOp other_op)
{
    EngineFailure *f;
    if (is_allowed(v->address) || is_known_race(v->address, v->width, pc, other, other_op)) {
        if (unlikely(E.reducing))
            give_up_reduction(UNREDUCED_RACES);
        return;
    }
    f = fail(FAIL_RACE, t, v->address, pc);
    if (f) {
        f->op = op;
        f->width = (int32_t)width;
        f->other_thread = other;
        f->other_op = other_op;
        f->other_width = v->width;
    }
    if (E.recording) {
        /* A plain access stands in the trace already. An atomic one is not made any more. */
        if (op <= OP_CAS || op == OP_FLUSH) {
            int32_t at = op == OP_FLUSH ? trace_flush(t) : trace_event(t, op, v->address, (int)width, 0, pc);
            if (at >= 0)
                events[at].order = ENGINE_NOT_MADE;
        }
        if (f)
            explain_race(f, v->address, v->width);
    }
    abandon();
}

/* Against the plain writes and, for a writing access, plain reads of v. */
static inline void check_plain(Thread *t, const Variable *v, EngineOp op, int writes, uint32_t width, uint64_t pc)
{
    if (unlikely(!is_ordered(v->write.clock, v->write.thread, t)) && v->write.clock)
        race_fail(t, v, op, width, pc, v->write.thread, OP_WRITE);
    if (!writes)
        return;
    if (v->readers != NONE) {
        const uint32_t *clocks = &E.readers[v->readers * ENGINE_MOST_THREADS];
        for (int u = 0; u < E.n; u++)
            if (unlikely(!is_ordered(clocks[u], u, t)))
                race_fail(t, v, op, width, pc, u, OP_READ);
    } else if (unlikely(v->read.clock && !is_ordered(v->read.clock, v->read.thread, t))) {
        race_fail(t, v, op, width, pc, v->read.thread, OP_READ);
    }
}

/* A plain access against the atomic ones of v. */
static inline void check_atomic(Thread *t, const Variable *v, EngineOp op, int writes, uint32_t width, uint64_t pc)
{
    const uint32_t *clocks = writes ? last_access(v) : last_store(v);
    if (likely(clock_within(clocks, t->clock)))
        return;
    for (int u = 0; u < E.n; u++)
        if (!is_ordered(clocks[u], u, t))
            race_fail(t, v, op, width, pc, u, writes ? OP_LOAD : OP_STORE);
}

/* The bytes get a value that is no message: older ones can be read no more. */
static inline void lose_history(const Variable *v)
{
    if (v->n > 1 && !E.mixed)
        E.mixed = (uint8_t)readable_before(v, v->n - 1u);
}

/* What an access means for the overlapping variables of other widths. */
static __attribute__((noinline)) void meet_siblings(Thread *t, const Variable *v, EngineOp op, int writes,
                                                    int plain, uint64_t pc)
{
    for (Variable *s = first_sibling(v); s; s = next_sibling(s)) {
        if (s == v || (s->mask & v->mask) == 0)
            continue;
        if (E.config.races) {
            check_plain(t, s, op, writes, v->width, pc);
            if (plain && s->is_atomic)
                check_atomic(t, s, op, writes, v->width, pc);
        }
        if (writes) {
            lose_history(s);
            s->n = 0;             /* its history no longer describes its bytes */
        }
    }
}

/* More than one unordered reader: from an epoch to a clock. */
static __attribute__((noinline)) void note_reader(Thread *t, Variable *v)
{
    uint32_t *clocks;
    if (v->readers == NONE) {
        if (E.n_readers == MOST_READERS) {
            v->read = (Access){t->clock[t->number], (uint8_t)t->number};
            return;
        }
        v->readers = E.n_readers++;
        clocks = &E.readers[v->readers * ENGINE_MOST_THREADS];
        clock_zero(clocks);
        clocks[v->read.thread] = v->read.clock;
    }
    clocks = &E.readers[v->readers * ENGINE_MOST_THREADS];
    clocks[t->number] = t->clock[t->number];
}

/* A test function alone, before it starts threads or after it joined them, at memory that is
 * neither allocated by the execution nor known to another thread: no other access can be unordered.
 * It may be the interpreter's, whose state differs from execution to execution. */
static inline int is_alone_with(const Thread *t, uintptr_t address)
{
    if (likely(E.config.n_threads > 1 || E.unjoined) || in_arena(address) ||
        address - (uintptr_t)t->stack < STACK_BYTES)
        return 0;
    return !has_variables(find_cell(address));
}

static inline int is_now(Access access, const Thread *t, uint32_t now)
{
    return access.clock == now && access.thread == t->number;
}

/* Of plain accesses in a row without a step between them, a trace has the first so many and the
 * last one: a thread that never comes to its next step would fill the memory. */
enum { PLAIN_EVENTS = 1 << 16 };

static void bound_plain_run(void)
{
    SHARED int64_t first; /* event of those in a row */
    const EngineEvent *last = &events[n_events - 1];
    if (n_events == 0 || last->step != E.step || (last->op != OP_READ && last->op != OP_WRITE))
        first = n_events;
    else if (n_events - first > PLAIN_EVENTS)
        n_events--;
}

/* A read's value is known where the address is certainly mapped; then `before` is 1. */
static __attribute__((noinline)) void trace_plain(Thread *t, EngineOp op, uintptr_t address, uint32_t width,
                                                  uint64_t pc)
{
    uint64_t value = 0, high;
    int known = op == OP_READ && width <= 8 && !(width & (width - 1)) && (in_arena(address) || is_global(address));
    int32_t at;
    if (known)
        raw_read(address, width, &value, &high);
    bound_plain_run();
    at = trace_event(t, op, address, (int)width, value, pc);
    if (at >= 0)
        events[at].before = (uint64_t)known;
}

static inline void plain_bytes(Thread *t, uintptr_t address, uint32_t width, EngineOp op, uint64_t pc)
{
    int writes = op != OP_READ;
    uint32_t now = t->clock[t->number];
    Variable *v;
    if (unlikely(is_alone_with(t, address)))
        return;
    v = find_variable(t, address, width, op, pc);
    /* The thread's last access to these bytes was of this kind, and it released nothing since: this
     * one adds nothing. */
    if (is_now(writes ? v->write : v->read, t, now) && v->special == HAS_PLAIN && (v->n | v->is_atomic) == 0 &&
        !(writes && (v->read.clock || v->readers != NONE)) && !E.recording)
        return;
    touch(v, t);
    v->special |= HAS_PLAIN;
    if (unlikely(E.recording)) {
        if (unlikely(hold_plain(t))) {
            v = find_variable(t, address, width, op, pc);
            now = t->clock[t->number];
        }
        trace_plain(t, op, address, width, pc);
    }
    if (E.config.races) {
        check_plain(t, v, op, writes, width, pc);
        if (unlikely(v->is_atomic))
            check_atomic(t, v, op, writes, width, pc);
    }
    if (unlikely(v->special & HAS_SIBLINGS))
        meet_siblings(t, v, op, writes, 1, pc);
    if (writes) {
        v->write = (Access){now, (uint8_t)t->number};
        v->read.clock = 0;
        v->readers = NONE;
        /* With the race detector on, nobody could have read the others without a race. */
        if (unlikely(v->n > 1 && !E.config.races))
            lose_history(v);
        v->n = 0;
        return;
    }
    if (unlikely(looks_uninitialised(address, width)) && v->write.clock == 0) {
        int written = 0;
        for (Variable *s = first_sibling(v); s; s = next_sibling(s))
            written |= (s->mask & v->mask) && (s->write.clock || s->version);
        if (!written && v->version == 0) {
            EngineFailure *f = fail(FAIL_UNINITIALISED, t, address, pc);
            if (f)
                f->width = (int32_t)width;
            abandon();
        }
    }
    if (v->readers == NONE && (v->read.clock == 0 || v->read.thread == t->number ||
                               is_ordered(v->read.clock, v->read.thread, t)))
        v->read = (Access){now, (uint8_t)t->number};
    else
        note_reader(t, v);
}

/* Writes to bytes of the arena that have no variable yet, eight at a time: there is nothing to
 * compare with. Returns how many bytes were written so. */
static size_t write_first(const Thread *t, uintptr_t address, size_t bytes)
{
    uintptr_t at = address, end = address + bytes;
    Cell *cell;
    Variable *v, fresh = {
        .address = address, .block = block_of(E.n_variables), .next = NO_VARIABLE, .mask = 0xFF, .width = 8,
        .special = HAS_PLAIN, .toucher = E.touched_twice ? -1 : (int8_t)t->number,
        .write = {t->clock[t->number], (uint8_t)t->number}, .readers = NONE, .index = (uint16_t)E.n_variables};
    if (address & 7 || !in_arena(address) || E.recording)
        return 0;
    cell = arena_cell(address);
    v = &E.variables[E.n_variables];
    for (; end - at >= 8 && !variables_are_full() && !has_variables(cell) && heap_ok(at); at += 8) {
        *cell++ = (Cell){E.generation, E.n_variables++};
        *v++ = fresh;
        fresh.address += 8;
        fresh.block += E.layout.block_bytes;
        fresh.index++;
    }
    return at - address;
}

/* A plain access of any size and alignment: eight aligned bytes at a time. */
static __attribute__((noinline)) void plain_range(Thread *t, uintptr_t address, size_t bytes, EngineOp op, uint64_t pc)
{
    while (bytes) {
        size_t part = op == OP_WRITE ? write_first(t, address, bytes) : 0;
        if (part == 0) {
            part = 8 - (uint32_t)(address & 7);
            if (part > bytes)
                part = bytes;
            plain_bytes(t, address, (uint32_t)part, op, pc);
        }
        address += part;
        bytes -= part;
    }
}
