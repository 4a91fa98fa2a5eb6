/* The memory model. Each atomic location has its stores in modification order; a load may read any
 * store that the thread does not know to be overwritten, a store may enter the order anywhere
 * behind the last one the thread knows, a read-modify-write directly behind the one it read. What a
 * thread knows follows from happens-before and from the order of seq_cst operations. Covered:
 * relaxed, acquire, release, acq_rel, seq_cst, fences, release sequences, 2+2W. Not covered: loads
 * that read from stores later in program order (load buffering); consume is acquire.
 *
 * Under SC and TSO a location has one store, the last; TSO holds stores back in a buffer per
 * thread. Memory itself always holds the last store in modification order.
 *
 * Functions with a parameter `common` are inlined twice: with 1 where E.common says that the case
 * is the common one, and with 0 for every case. */

/* The block of a variable: clocks of the last accesses and of the last stores, two lists in
 * modification order, and the messages. The lists say where each message stands in the block, and
 * since when each thread knows of it (0 for what was there from the start). They have room for
 * HISTORIES times the history and slide through it, so that forgetting the oldest message moves
 * nothing, and moving them back is rare. */
enum { HISTORIES = 4 };

static inline uint32_t *last_access(const Variable *v)
{
    return (uint32_t *)v->block;
}

static inline uint32_t *last_store(const Variable *v)
{
    return last_access(v) + E.width;
}

INLINED Layout layout_for(size_t width, size_t stores)
{
    size_t clock = width * sizeof(uint32_t), message = offsetof(Message, words) + 2 * clock;
    size_t order_at = 2 * clock;
    size_t messages_at = (order_at + HISTORIES * stores * sizeof(uint16_t) + 15) / 16 * 16;
    size_t seen_at = messages_at + stores * message;
    return (Layout){order_at, messages_at, message, seen_at, (seen_at + HISTORIES * stores * clock + 63) / 64 * 64};
}

/* Constants in the common case. */
INLINED Layout layout_of(int common)
{
    return common ? layout_for(4, ENGINE_STORES) : E.layout;
}

/* What a step reads once of a variable: the compiler cannot know that it stays. */
typedef struct { char *block; int64_t n, base; } History;

INLINED History history_of(const Variable *v)
{
    return (History){v->block, v->n, v->base};
}

INLINED uint16_t *order_in(int common, History h)
{
    return (uint16_t *)(h.block + layout_of(common).order_at) + h.base;
}

INLINED Message *message_in(int common, History h, int64_t place)
{
    return (Message *)(h.block + order_in(common, h)[place]);
}

/* The place may be before the first one: see older_for(). */
INLINED uint32_t *seen_in(int common, History h, int64_t place)
{
    return (uint32_t *)(h.block + layout_of(common).seen_at) + (h.base + place) * ENTRIES(common);
}

static inline uint16_t *order_of(const Variable *v)
{
    return order_in(0, history_of(v));
}

static inline uint32_t *seen_of(const Variable *v, uint32_t place)
{
    return seen_in(0, history_of(v), place);
}

static inline Message *message_at(const Variable *v, uint32_t place)
{
    return message_in(0, history_of(v), place);
}

static inline const Message *newest_of(const Variable *v)
{
    return (const Message *)(v->block + v->newest);
}

static inline int is_chained(const Variable *v, uint32_t place)
{
    return v->chained >> place & 1;
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

static inline void note_local(Thread *t, uintptr_t address);

/* The first access of the execution, or one after bytes changed behind the model's back
 * (constructors, plain writes, code without hooks): what memory holds, known to everybody. */
INLINED void first_message(int entries, Variable *v, uint64_t low, uint64_t high)
{
    Message *m = (Message *)(v->block + E.layout.messages_at);
    if (!v->is_atomic) {
        v->is_atomic = 1;
        EACH_FOUR_OF(entries, i) FOUR(last_access(v), i) = FOUR(last_access(v), entries + i) = (Four){0};
        if (unlikely(is_global(v->address)))
            keep_global(v->address, v->width, low, high);
    }
    m->low = low;
    m->high = high;
    m->id = 0;
    m->sc_at = NEVER;
    m->fence_at = 0;
    m->event = -1;
    m->has_released = 0;
    m->has_x = 0;
    EACH_FOUR_OF(entries, i) FOUR(m->words, i) = (Four){0};
    v->n = 1;
    v->base = 0;
    v->chained = 0;
    v->newest = order_of(v)[0] = (uint16_t)E.layout.messages_at;
    EACH_FOUR_OF(entries, i) FOUR(seen_of(v, 0), i) = (Four){0};
}

static __attribute__((noinline)) void restart_history(Variable *v, uint64_t low, uint64_t high)
{
    note_local(current, v->address);
    if (likely(E.width == 4))
        first_message(4, v, low, high);
    else
        first_message(E.width, v, low, high);
}

static inline __attribute__((always_inline)) void refresh(Variable *v, uint32_t width)
{
    uint64_t low, high;
    const Message *newest;
    raw_read(v->address, width, &low, &high);
    if (unlikely(v->n == 0)) {
        restart_history(v, low, high);
        return;
    }
    newest = newest_of(v);
    if (unlikely(newest->low != low || (width > 8 && newest->high != high)))
        restart_history(v, low, high);
}

/* May t no longer read anything older than the message at this place? */
static int knows(const Thread *t, const Variable *v, uint32_t place, int sc)
{
    const uint32_t *seen = seen_of(v, place);
    const Message *m = message_at(v, place);
    if (clock_reaches(seen, t->clock))
        return 1;
    if (E.x_used && (clock_reaches(seen, t->x_clock) || (sc && clock_reaches(seen, E.sc_clock)) ||
                     m->sc_at < t->fence_at))
        return 1;
    return sc && m->sc_at != NEVER;
}

/* A seq_cst access reads no older message than one that a seq_cst access touched. */
static inline int only_newest(const Variable *v, int sc)
{
    return v->n == 1 || (sc && newest_of(v)->sc_at != NEVER);
}

/* Is there a thread that may still read what is before this place? */
static __attribute__((noinline)) int readable_before(const Variable *v, uint32_t place)
{
    for (int i = 0; i < E.n; i++)
        if (!E.threads[i].done && !knows(&E.threads[i], v, place, 0))
            return 1;
    return 0;
}

/* Do all threads know the message, of which this says since when? Which of them does is as random
 * as the execution, so nothing branches on it. */
INLINED int all_know(Four seen)
{
    const Thread *t = E.threads, *end = t + E.n;
    int all = 1;
    do
        all &= four_reaches(seen, FOUR(t->clock, 0));
    while (++t < end);
    return all;
}

/* How many messages before the newest one t may read. `several`: all ones if there are any. */
INLINED uint32_t older_for(int common, const Thread *t, const Variable *v, History h, int sc, uint64_t *several)
{
    int64_t most = h.n - 1;
    uint32_t older = 3, reached;
    if (!common && unlikely(E.x_used | (E.width != 4))) {
        uint32_t place = (uint32_t)h.n - 1;
        while (place > 0 && !knows(t, v, place, sc))
            place--;
        *several = -(uint64_t)(place + 1 < (uint32_t)h.n);
        return (uint32_t)h.n - 1 - place;
    }
    /* The same in the common case: the newest four at once, then those before them. What stands
     * before the first place does not matter, because no more than `most` are older. */
    if (sc) {
        int64_t oldest = h.n - 1;
        while (oldest > 0 && message_in(common, h, oldest)->sc_at == NEVER)
            oldest--;
        most -= oldest;
    }
    reached = four_reach(seen_in(common, h, h.n - 4), FOUR(t->clock, 0));
    *several = -(uint64_t)(reached < NEWEST_REACHED);
    if (sc)
        *several &= -(uint64_t)(most > 0);
    while (unlikely(reached == 0) && older < most) {
        older += 4;
        reached = four_reach(seen_in(common, h, h.n - 1 - older), FOUR(t->clock, 0));
    }
    older -= (uint32_t)(31 - __builtin_clz(reached | 1)) / 4;
    return older < most ? older : (uint32_t)most;
}

static uint32_t oldest_place(const Thread *t, const Variable *v, int sc)
{
    uint64_t several;
    return v->n - 1u - older_for(0, t, v, history_of(v), sc, &several);
}

/* t has seen the message at this place. */
INLINED void observe(int common, const Thread *t, History h, int64_t place, Message *m, int sc)
{
    known(ENTRIES(common), seen_in(common, h, place), t);
    if (sc && m->sc_at == NEVER)
        m->sc_at = E.sc_time;
}

static void observe_newest(Thread *t, Variable *v)
{
    if (v->n > 1)
        observe(0, t, history_of(v), v->n - 1u, message_at(v, v->n - 1u), 0);
}

static int may_read_older(const Thread *t, const Variable *v)
{
    return v->n > 1 && oldest_place(t, v, 0) < v->n - 1u;
}

static inline __attribute__((always_inline)) void acquire_from(int common, Thread *t, const Message *m, int order)
{
    const uint32_t *released = m->words;
    if (is_acquire(order)) {
        entries_join(ENTRIES(common), t->clock, released);
        if (!common && unlikely(E.x_used) && m->has_released) {
            if (m->has_x)
                clock_join(t->x_clock, released + E.width);
            if (m->fence_at > t->fence_at)
                t->fence_at = m->fence_at;
        }
        return;
    }
    if (!m->has_released)
        return;
    if (!t->any_pending) {
        clock_zero(t->pending);
        t->any_pending = 1;
        t->fence_pending = 0;
    }
    entries_join(ENTRIES(common), t->pending, released);
    if (!common && unlikely(E.x_used)) {
        if (m->has_x)
            clock_join(t->x_pending, released + E.width);
        if (m->fence_at > t->fence_pending)
            t->fence_pending = m->fence_at;
    }
}

static __attribute__((noinline)) void slide_back(Variable *v)
{
    memmove((uint16_t *)(v->block + E.layout.order_at), order_of(v), v->n * sizeof(uint16_t));
    memmove(v->block + E.layout.seen_at, seen_of(v, 0), v->n * (size_t)E.width * sizeof(uint32_t));
    v->base = 0;
}

/* Some stale reads are lost, nothing becomes possible. `before`: the next message enters behind
 * this place, whose message stays. Returns where the forgotten one stood in the block. */
INLINED uint16_t forget_oldest(int common, Variable *v, uint32_t before)
{
    uint16_t *order, slot;
    if (unlikely(v->base == (HISTORIES - 1) * (uint32_t)E.config.stores))
        slide_back(v);
    if (unlikely(!E.forgot))
        E.forgot = (uint8_t)readable_before(v, before == 0 ? 2 : 1);
    order = order_in(common, history_of(v));
    slot = order[0];
    if (unlikely(before == 0)) {
        slot = order[1];
        order[1] = order[0];
        entries_copy(ENTRIES(common), seen_in(common, history_of(v), 1), seen_in(common, history_of(v), 0));
    }
    v->base++;
    v->n--;
    v->chained >>= 1;
    return slot;
}

/* Messages from this place on move one place back, so that another one can enter. */
INLINED void make_place(int common, Variable *v, uint32_t place)
{
    History h = history_of(v);
    uint16_t *order = order_in(common, h);
    uint64_t behind = ~UINT64_C(0) << place;
    for (int64_t i = h.n; i > place; i--) {
        order[i] = order[i - 1];
        entries_copy(ENTRIES(common), seen_in(common, h, i), seen_in(common, h, i - 1));
    }
    v->chained = (v->chained & ~behind) | (v->chained & behind) << 1;
}

/* The rest of a new message: what the thread had done before. `read`: the message that a
 * read-modify-write continues, or NULL; `behind`: the id of the message before it. */
INLINED void fill_message(int common, Thread *t, Variable *v, History h, uint32_t place, Message *m, uint32_t behind,
                          int order, const Message *read)
{
    int32_t me = t->number;
    uint32_t now = t->clock[me], id = t->step;
    uint32_t *released = m->words;
    uint8_t has_released = 1, has_x = 0;
    E.class_hash += mix64((uint64_t)behind << 32 | id);
    first_known(ENTRIES(common), seen_in(common, h, place), t);
    m->id = id;
    m->sc_at = is_sc(order) ? E.sc_time : NEVER;
    m->fence_at = 0;
    m->event = -1;
    if (is_release(order)) {
        entries_copy(ENTRIES(common), released, t->clock);
        if (!common && unlikely(E.x_used)) {
            clock_copy(released + E.width, t->x_clock);
            m->fence_at = t->fence_at;
            has_x = 1;
        }
        tick(ENTRIES(common), t);
    } else if (t->any_fenced) {
        entries_copy(ENTRIES(common), released, t->fenced);
        if (!common && unlikely(E.x_used)) {
            clock_copy(released + E.width, t->x_fenced);
            m->fence_at = t->fence_fenced;
            has_x = 1;
        }
    } else {
        EACH_FOUR_OF(ENTRIES(common), i) FOUR(released, i) = (Four){0};
        has_released = 0;
    }
    if (read && read->has_released) {
        /* A release sequence goes on through read-modify-writes. */
        entries_join(ENTRIES(common), released, read->words);
        has_released = 1;
        if (!common && unlikely(E.x_used) && read->has_x) {
            if (!has_x)
                clock_zero(released + E.width);
            clock_join(released + E.width, read->words + E.width);
            has_x = 1;
            if (read->fence_at > m->fence_at)
                m->fence_at = read->fence_at;
        }
    }
    m->has_released = has_released;
    m->has_x = has_x;
    v->version++;
    ((uint32_t *)h.block)[me] = now;
    ((uint32_t *)h.block)[ENTRIES(common) + me] = now;
}

/* A new message at `place`. */
INLINED Message *place_anywhere(int common, Thread *t, Variable *v, uint32_t place, int order, const Message *read)
{
    uint32_t behind, id = t->step;
    uint16_t slot;
    Message *m;
    if (!common && E.config.mode != MODE_C11) {
        uint16_t *only = order_of(v);
        behind = message_at(v, 0)->id;
        *only = (uint16_t)(2 * E.layout.messages_at + E.layout.message_bytes - *only);
        v->newest = *only;
        m = message_at(v, 0);
        place = 0;
    } else {
        if (v->n == (common ? ENGINE_STORES : (uint32_t)E.config.stores)) {
            slot = forget_oldest(common, v, place - 1);
            place -= place > 1;
        } else {
            slot = (uint16_t)(layout_of(common).messages_at + v->n * layout_of(common).message_bytes);
        }
        behind = message_in(common, history_of(v), place - 1)->id;
        if (place < v->n) {
            uint32_t after = message_in(common, history_of(v), place)->id;
            E.class_hash += mix64((uint64_t)id << 32 | after) - mix64((uint64_t)behind << 32 | after);
            make_place(common, v, place);
        } else {
            v->newest = slot;
        }
        order_in(common, history_of(v))[place] = slot;
        v->n++;
        v->chained |= (uint64_t)(read != NULL) << place;
        m = (Message *)(v->block + slot);
    }
    fill_message(common, t, v, history_of(v), place, m, behind, order, read);
    return m;
}

static __attribute__((noinline)) Message *place_store(Thread *t, Variable *v, uint32_t place, int order,
                                                      const Message *read)
{
    return place_anywhere(0, t, v, place, order, read);
}

/* The same in the common case. */
static __attribute__((noinline)) Message *insert_store(Thread *t, Variable *v, uint32_t place, int order,
                                                       const Message *read)
{
    return place_anywhere(1, t, v, place, order, read);
}

/* And behind all other messages. */
INLINED Message *append_store(Thread *t, Variable *v, History h, int order, const Message *read)
{
    uint32_t behind = newest_of(v)->id;
    uint16_t slot;
    Message *m;
    if (h.n == ENGINE_STORES) {
        if (unlikely(h.base == (HISTORIES - 1) * ENGINE_STORES)) {
            slide_back(v);
            h.base = 0;
        }
        if (!E.forgot && unlikely(!all_know(FOUR(seen_in(1, h, 1), 0))))
            E.forgot = (uint8_t)readable_before(v, 1);
        slot = order_in(1, h)[0];
        v->base = (uint8_t)++h.base;
        v->chained >>= 1;
        h.n--;
    } else {
        slot = (uint16_t)(layout_of(1).messages_at + (size_t)h.n * layout_of(1).message_bytes);
        v->n = (uint8_t)(h.n + 1);
    }
    v->newest = slot;
    order_in(1, h)[h.n] = slot;
    if (read)
        v->chained |= UINT64_C(1) << h.n;
    m = (Message *)(h.block + slot);
    fill_message(1, t, v, h, (uint32_t)h.n, m, behind, order, read);
    return m;
}
