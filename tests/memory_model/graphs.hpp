/* RC11: execution graphs. Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing sequential consistency
 * in C/C++11", PLDI 2017, with the release sequences of C++20 (P0982: read-modify-writes only).
 *
 * A graph grows event by event in every order that program order and reads-from permit; an
 * inconsistent prefix is dropped, which loses nothing, because the model is closed under taking
 * away an event without successors. The mutex is one more location: locking is an acquiring
 * read-modify-write of 0 to 1, unlocking a releasing store of 0. */
#ifndef MEMORY_MODEL_GRAPHS_HPP
#define MEMORY_MODEL_GRAPHS_HPP

#include "machine.hpp"
#include "relations.hpp"

namespace model {

enum { MUTEX = CELLS, LOCATIONS, WRITES = 15, SIGNALS = 28, MOMENTS = 4, NOWHERE = 255 };

/* The facts about a program's events that hold in each of its graphs. Events are numbered: first
 * the initial writes, then each thread's in program order; a wait has two, unlock and lock, and so
 * has a timed lock, the beginning of its wait and lock. */
struct GraphShape {
    const Program &p;
    std::array<std::array<int, CALLS>, THREADS> slots{};
    uint8_t order[EVENTS] = {}, value[EVENTS] = {}, location[EVENTS] = {};
    uint32_t initial = (1u << LOCATIONS) - 1, fences = 0, swaps = 0;
    uint32_t at[LOCATIONS] = {}, mine[THREADS] = {};
    bool is_timed = false;        /* the order of waits and notifications matters to seq_cst */
    bool is_tried = false;        /* so does that of attempts to lock, and of unlocks */
    Relation sequenced{~0u};      /* of one thread, and initial writes before all */
    Relation before{~0u};         /* that, and what starting and joining threads orders */

    explicit GraphShape(const Program &program) : p(program)
    {
        int n = LOCATIONS;
        bool is_sc = false, is_waiting = false, is_trying = false;
        for (int i = 0; i < LOCATIONS; i++)
            add_event(i, i, RELAXED, 0);
        for (int t = 0; t < p.threads; t++)
            for (size_t i = 0; i < p.calls[t].size(); i++) {
                const Call &call = p.calls[t][i];
                bool waits = call.kind == WAIT || call.kind == TIMED_WAIT;
                bool timed_lock = call.kind == LOCK_UNTIL || call.kind == LOCK_FOR;
                if (n + 2 > EVENTS || i >= CALLS)
                    throw std::length_error("the program has too many calls");
                slots[t][i] = n;
                if (waits || call.kind == UNLOCK)
                    add_event(n, MUTEX, RELEASE, 0);
                else if (call.kind == LOCK || call.kind == TRY_LOCK)
                    add_event(n, MUTEX, ACQUIRE, 1);
                else if (call.kind == FENCE)
                    add_event(n, NOWHERE, call.order, 0);
                else if (call.kind <= CAS)
                    add_event(n, call.cell, call.order, call.value);
                else
                    add_event(n, NOWHERE, RELAXED, 0);
                is_sc |= call.kind <= FENCE && call.order == SEQ_CST;
                is_waiting |= waits;
                is_trying |= timed_lock || call.kind == TRY_LOCK;
                if (call.kind == FENCE)
                    fences |= 1u << n;
                if (call.kind == CAS)
                    swaps |= 1u << n;
                mine[t] |= 1u << n++;
                if (waits || timed_lock) {
                    add_event(n, MUTEX, ACQUIRE, 1);
                    mine[t] |= 1u << n++;
                }
            }
        for (int t = 0; t < p.threads; t++)
            each(mine[t], [&](int i) { sequenced[i] = mine[t] & (~0u << i) & ~(1u << i); });
        each(initial, [&](int i) { sequenced[i] = ~0u & ~initial; });
        before = sequenced;
        for (int t = 0; t < p.threads; t++)
            for (size_t i = 0; i < p.calls[t].size(); i++) {
                const Call &call = p.calls[t][i];
                if (call.kind == SPAWN && !p.has(NO_SPAWN_EDGE))
                    before[slots[t][i]] |= mine[call.cell];
                if (call.kind == JOIN && !p.has(NO_JOIN_EDGE))
                    each(mine[call.cell], [&](int j) { before[j] |= 1u << slots[t][i]; });
            }
        before = before.closure();
        is_tried = p.strengthened && is_sc && is_trying;
        is_timed = is_tried || (p.strengthened && is_sc && is_waiting);
    }

  private:
    void add_event(int event, int where, int ordered, int written)
    {
        order[event] = uint8_t(ordered);
        value[event] = uint8_t(written);
        location[event] = uint8_t(where);
        if (where != NOWHERE)
            at[where] |= 1u << event;
    }
};

struct Graph {
    static constexpr bool EAGER = true;
    using Shape = GraphShape;
    uint32_t present, reads, writes, unused;
    uint8_t source[EVENTS];                       /* the write that a read sees */
    uint8_t count[LOCATIONS], modification[LOCATIONS][WRITES];   /* writes in their order */
    /* Of the strengthened model: ends and beginnings of waits, notifications, and attempts to lock
     * and unlocks where an attempt can fail, in their order; and the events before each moment when
     * all threads waited and a time-out fired. */
    uint32_t signalled, past[MOMENTS];
    uint8_t n_signals, n_moments, unused_too[6], signals[SIGNALS];

    void begin(const Shape &shape)
    {
        present = writes = shape.initial;
        for (int i = 0; i < LOCATIONS; i++) {
            count[i] = 1;
            modification[i][0] = uint8_t(i);
        }
    }
    void signal(const Shape &shape, int slot)
    {
        if (!shape.is_timed)
            return;
        if (n_signals == SIGNALS)
            throw std::length_error("the program has too many waits");
        signals[n_signals++] = uint8_t(slot);
        signalled |= 1u << slot;
    }
    /* A thread that blocks again tells no more than that it blocked. */
    void attempt(const Shape &shape, int slot)
    {
        if (shape.is_tried && !(signalled >> slot & 1))
            signal(shape, slot);
    }
    /* Of a defect: a failed attempt to lock reads the mutex. */
    void look_at_mutex(int slot)
    {
        present |= 1u << slot;
        read(slot, modification[MUTEX][count[MUTEX] - 1]);
    }
    void time_passes(const Shape &shape)
    {
        if (!shape.is_timed)
            return;
        if (n_moments == MOMENTS)
            throw std::length_error("the program has too many time-outs");
        past[n_moments++] = present | signalled;
    }
    /* The graph alone. */
    Graph bare() const
    {
        Graph graph = *this;
        graph.signalled = graph.n_signals = graph.n_moments = 0;
        std::memset(graph.past, 0, sizeof graph.past);
        std::memset(graph.signals, 0, sizeof graph.signals);
        return graph;
    }
    bool is_quiet(int) const { return true; }
    template <class Emit> void drains(Emit) const {}

    void write(int slot, int where, int place)
    {
        if (count[where] == WRITES)
            throw std::length_error("a cell has too many writes");
        for (int i = count[where]++; i > place; i--)
            modification[where][i] = modification[where][i - 1];
        modification[where][place] = uint8_t(slot);
        writes |= 1u << slot;
    }
    void read(int slot, int from)
    {
        reads |= 1u << slot;
        source[slot] = uint8_t(from);
    }
    /* The machine gives the mutex to one thread at a time, so both come last in its order. */
    bool lock(const Shape &shape, int, int slot)
    {
        present |= 1u << slot;
        if (!shape.p.has(NO_MUTEX_EDGE))
            read(slot, modification[MUTEX][count[MUTEX] - 1]);
        write(slot, MUTEX, count[MUTEX]);
        return true;
    }
    bool unlock(const Shape &, int, int slot)
    {
        present |= 1u << slot;
        write(slot, MUTEX, count[MUTEX]);
        return true;
    }

    template <class Emit>
    void access(const Shape &shape, int, int slot, const Call &call, Emit emit) const
    {
        Graph base = *this;
        int where = call.cell;
        base.present |= 1u << slot;
        if (call.kind == FENCE)
            return emit(base, 0);
        for (int place = 0; place < count[where]; place++) {
            int from = modification[where][place];
            unsigned seen = shape.value[from];
            Graph after = base;
            if (call.kind == STORE) {
                after.write(slot, where, place + 1);
                emit(after, 0);
                continue;
            }
            after.read(slot, from);
            if (call.kind == CAS && seen != call.expected) {
                emit(after, seen | FAILED_CAS);
                continue;
            }
            if (call.kind != LOAD)
                after.write(slot, where, place + 1);
            emit(after, seen);
        }
    }

    uint64_t finals(const Shape &shape) const
    {
        uint64_t word = 0;
        for (int cell = 0; cell < CELLS; cell++)
            word |= uint64_t(shape.value[modification[cell][count[cell] - 1]]) << 4 * cell;
        return word;
    }

    bool consistent(const Shape &shape) const;
    void add_order(const Shape &shape, Relation &execution) const;
    Relation synchronises(const Shape &shape, const Relation &reads_from) const;
    Relation partial_sc(const Shape &shape, const Relation &happens, const Relation &coherence,
                        const Relation &at_location, uint32_t accesses, uint32_t sc_fences) const;

    Relation present_pairs(const Relation &all) const
    {
        Relation found(present);
        each(present, [&](int i) { found[i] = all[i] & present; });
        return found;
    }
    /* The order of an event; that of a compare-and-swap that failed is relaxed. */
    int order_of(const Shape &shape, int i) const
    {
        bool failed = reads >> i & 1 && !(writes >> i & 1) && shape.swaps >> i & 1;
        return failed ? int(RELAXED) : int(shape.order[i]);
    }
};

/* Coherence, atomicity, SC, and no cycle of program order and reads-from. `strengthened` asks more
 * than RC11, as docs/engine.md, Limits, says of the engine: psc, coherence order between seq_cst
 * accesses, program order, reads-from, and the order of waits, notifications and time-outs together
 * have no cycle. */
inline bool Graph::consistent(const Shape &shape) const
{
    Relation reads_from(present), order(present), from_reads(present);
    each(reads, [&](int i) { reads_from[source[i]] |= 1u << i; });
    for (int where = 0; where < LOCATIONS; where++) {
        uint32_t later = 0;
        for (int i = count[where]; i--;) {
            order[modification[where][i]] = later;
            later |= 1u << modification[where][i];
        }
    }
    /* A read-modify-write does not come before itself, and directly follows the write that it
     * reads. */
    bool atomic = true;
    each(reads, [&](int i) {
        from_reads[i] = order[source[i]] & ~(1u << i);
        if (writes >> i & 1)
            atomic &= order[source[i]] == (order[i] | 1u << i);
    });
    if (!atomic)
        return false;
    Relation at_location = order | from_reads;
    Relation coherence = (reads_from | at_location).closure();
    if (coherence.has_loop())
        return false;
    Relation program = present_pairs(shape.before);
    Relation happens = (program | synchronises(shape, reads_from)).closure();
    if (happens.has_loop() || happens.then(coherence).has_loop())
        return false;
    if ((program | reads_from).has_cycle())
        return false;
    uint32_t total = 0;
    each(present, [&](int i) {
        if (order_of(shape, i) == SEQ_CST && !shape.p.has(NO_SEQ_CST))
            total |= 1u << i;
    });
    if (!total)
        return true;
    uint32_t accesses = total & ~shape.fences;
    Relation psc = partial_sc(shape, happens, coherence, at_location, accesses, total & shape.fences);
    if (!shape.p.strengthened)
        return !psc.has_cycle();
    Relation execution(present | signalled);
    execution |= psc;
    execution |= coherence.between(accesses, accesses);
    execution |= reads_from;
    add_order(shape, execution);
    return !execution.has_cycle();
}

/* What the engine's order of steps keeps: program order, and the order of waits and time-outs. */
inline void Graph::add_order(const Shape &shape, Relation &execution) const
{
    uint32_t all = present | signalled;
    each(all, [&](int i) { execution[i] |= shape.before[i] & all; });
    for (int i = 0; i + 1 < n_signals; i++)
        execution[signals[i]] |= 1u << signals[i + 1];
    for (int k = 0; k < n_moments; k++)
        each(past[k], [&](int i) { execution[i] |= all & ~past[k]; });
}

/* sw = [release]; ([F]; sb)?; [W]; (rf; [RMW])*; rf; [R]; (sb; [F])?; [acquire] */
inline Relation Graph::synchronises(const Shape &shape, const Relation &reads_from) const
{
    uint32_t releases = 0, acquires = 0, fences = shape.fences & present, stores = writes & ~shape.initial;
    each(present & ~shape.initial, [&](int i) {
        int order = order_of(shape, i);
        bool fence = fences >> i & 1;
        if (order >= RELEASE && !shape.p.has(NO_RELEASE) && (fence || writes >> i & 1))
            releases |= 1u << i;
        if ((order == ACQUIRE || order >= ACQ_REL) && (fence || reads >> i & 1))
            acquires |= 1u << i;
    });
    Relation sequenced = present_pairs(shape.sequenced);
    Relation identity = Relation(present).reflexive();
    Relation chain = reads_from.between(present, reads & writes).closure().reflexive();
    Relation head = identity.between(releases, stores) | sequenced.between(releases & fences, stores);
    Relation tail = identity.between(present, acquires & ~fences) |
                    sequenced.between(present, acquires & fences);
    return head.then(chain).then(reads_from).then(tail);
}

/* psc = psc_base | psc_F */
inline Relation Graph::partial_sc(const Shape &shape, const Relation &happens, const Relation &coherence,
                                  const Relation &at_location, uint32_t accesses, uint32_t sc_fences) const
{
    Relation program = present_pairs(shape.before);
    Relation elsewhere = program, same = happens;
    each(present, [&](int i) {
        uint32_t here = shape.location[i] == NOWHERE ? 0 : shape.at[shape.location[i]];
        elsewhere[i] &= ~here;
        same[i] &= here;
    });
    Relation scb = program | elsewhere.then(happens).then(elsewhere) | same | at_location;
    Relation identity = Relation(present).reflexive();
    Relation at_once = happens.reflexive();
    Relation left = identity.between(accesses, accesses) | at_once.between(sc_fences, present);
    Relation right = identity.between(accesses, accesses) | at_once.between(present, sc_fences);
    Relation around = happens | happens.then(coherence).then(happens);
    return left.then(scb).then(right) | around.between(sc_fences, sc_fences);
}

}  // namespace model

#endif
