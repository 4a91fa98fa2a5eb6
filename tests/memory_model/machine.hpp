/* The calls of a litmus program, and the part of their meaning that no memory model decides: the
 * mutex, the condition, the clock, and the threads that a thread starts and joins. Every order of
 * the threads' steps is explored; a memory model (buffers.hpp, graphs.hpp) says what they read.
 *
 * A thread that did not get the mutex goes on without it: its accesses are made, its unlock and its
 * waits do nothing. A failed attempt orders nothing, as POSIX and C++ have it.
 *
 * Sources: the C++ standard, [thread.mutex], [thread.condition] and [thread.thread.class]; for the
 * clock, docs/engine.md, Time. Nothing here knows the engine. */
#ifndef MEMORY_MODEL_MACHINE_HPP
#define MEMORY_MODEL_MACHINE_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace model {

enum { CELLS = 3, THREADS = 4, CALLS = 16, FAILED_CAS = 8 };
enum Kind : uint8_t {
    LOAD, STORE, EXCHANGE, CAS, FENCE, LOCK, UNLOCK, WAIT, TIMED_WAIT, NOTIFY_ONE, NOTIFY_ALL, SPAWN, JOIN,
    TRY_LOCK, LOCK_UNTIL, LOCK_FOR
};
enum Order : uint8_t { RELAXED = 0, ACQUIRE = 2, RELEASE = 3, ACQ_REL = 4, SEQ_CST = 5 };

/* Microseconds: the clock's start, the distance of deadlines, and a look at the clock. */
constexpr int64_t START = 1'000'000, APART = 1000 * START, LOOK = 1;
enum { NO_WAIT = 2 };    /* the result of a wait without the mutex */

/* Faults that may happen: a timed wait or lock ends at once, a wait ends without a notification. */
enum { TIME_OUT = 1, SPURIOUS = 2 };

/* Seeded defects of the models: the comparison has to notice each of them. */
enum {
    NO_RELEASE = 1, NO_SEQ_CST = 2, NO_BUFFERS = 4, NO_JOIN_EDGE = 8, NO_SPAWN_EDGE = 16, DEAF_NOTIFY = 32,
    TIME_OUT_UNLOCKED = 64, NOTIFY_ONE_IS_ALL = 128, NO_MUTEX_EDGE = 256, LATEST_TIME_OUT = 512,
    WAIT_KEEPS_MUTEX = 1024, JOIN_DOES_NOT_WAIT = 2048, SPAWN_KEEPS_BUFFER = 4096, JOIN_LEAVES_BUFFER = 8192,
    TRY_WAITS = 1 << 14, FAILED_TRY_ACQUIRES = 1 << 15, LATE_LOCK_HOLDS = 1 << 16, UNLOCK_WAKES_NOBODY = 1 << 17,
    SPAN_IS_OVER = 1 << 18
};

/* `cell` of SPAWN and JOIN is the thread, `value` of a timed wait or lock its deadline or span. */
struct Call {
    uint8_t kind, cell, order, value, expected;
};

struct Program {
    int threads = 0, roots = 0;   /* the first `roots` threads run from the beginning */
    std::array<std::vector<Call>, THREADS> calls;
    unsigned faults = 0, defects = 0;
    bool buffered = false, strengthened = true;
    void add(int thread, Call call) { calls[thread].push_back(call); }
    bool has(unsigned defect) const { return defects & defect; }
};

/* The results of the calls, four bits each, and the final values; of a deadlock, the number of
 * calls of each thread that ended. */
struct Outcome {
    std::array<uint64_t, THREADS> results{};
    uint64_t finals = 0;
    bool operator<(const Outcome &other) const
    {
        return finals != other.finals ? finals < other.finals : results < other.results;
    }
};
constexpr uint64_t DEADLOCK = uint64_t(1) << 63;

/* BLOCKED, LATE: in a timed lock; WAITS, NOTIFIED, TIMED_OUT: in a wait. */
enum Status : uint8_t { UNBORN, RUNS, BLOCKED, LATE, WAITS, NOTIFIED, TIMED_OUT };

struct Sync {
    uint64_t results[THREADS], looks[THREADS];   /* see note() */
    int64_t now, deadline[THREADS];   /* 0: the thread has none yet */
    uint8_t position[THREADS], status[THREADS];
    int8_t owner;
    uint8_t taken, changed, unused[5];   /* how often the mutex was, and the condition */
};

template <class Memory> struct State {
    Sync sync;
    Memory memory;
    bool operator==(const State &other) const { return !std::memcmp(this, &other, sizeof *this); }
};

struct HashBytes {
    template <class T> size_t operator()(const T &value) const
    {
        static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0);
        const unsigned char *at = reinterpret_cast<const unsigned char *>(&value);
        uint64_t hash = 0x9E3779B97F4A7C15;
        for (size_t i = 0; i < sizeof(T); i += 8) {
            uint64_t word;
            std::memcpy(&word, at + i, 8);
            hash = (hash ^ word) * 0xD6E8FEB86659FD93;
            hash ^= hash >> 32;
        }
        return hash;
    }
};

template <class Memory> class Exploration {
  public:
    std::set<Outcome> outcomes;
    size_t states = 0, complete = 0;

    Exploration(const Program &program, size_t most) : p(program), shape(program), most_states(most) {}

    void run()
    {
        State<Memory> first;
        std::memset(static_cast<void *>(&first), 0, sizeof first);
        first.memory.begin(shape);
        first.sync.owner = -1;
        first.sync.now = START;
        for (int t = 0; t < p.roots; t++)
            first.sync.status[t] = RUNS;
        add(first);
        while (!waiting.empty()) {
            State<Memory> state = waiting.back();
            waiting.pop_back();
            followed = false;
            follow(state);
            if (!followed)
                end(state);
        }
        states = seen.size();
        complete = ended.size();
    }

  private:
    /* What tells one class of executions from others: the graph, how each wait and attempt to lock
     * ended, and the times that threads saw. */
    struct Bytes {
        Memory memory;
        uint64_t results[THREADS], looks[THREADS];
        bool operator==(const Bytes &other) const { return !std::memcmp(this, &other, sizeof *this); }
    };
    const Program &p;
    typename Memory::Shape shape;
    size_t most_states;
    std::unordered_set<State<Memory>, HashBytes> seen;
    std::unordered_set<Bytes, HashBytes> ended;
    std::vector<State<Memory>> waiting;
    bool followed = false;

    void add(const State<Memory> &state)
    {
        followed = true;
        if (!seen.insert(state).second)
            return;
        if (seen.size() > most_states)
            throw std::length_error("the model has too many states");
        if (state.memory.consistent(shape))
            waiting.push_back(state);
    }

    bool is_done(const State<Memory> &state, int t) const
    {
        return state.sync.status[t] == RUNS && state.sync.position[t] == p.calls[t].size();
    }

    /* All steps of all threads and buffers; the clock moves when there is none. */
    void follow(const State<Memory> &state)
    {
        for (int t = 0; t < p.threads && Memory::EAGER; t++)
            if (state.sync.status[t] == RUNS && !is_done(state, t)) {
                Kind kind = Kind(p.calls[t][state.sync.position[t]].kind);
                /* It is possible in any order and nothing keeps it from being first. */
                if (kind == STORE || kind == FENCE || kind == SPAWN)
                    return step(state, t);
            }
        state.memory.drains([&](const Memory &memory) {
            State<Memory> next = state;
            next.memory = memory;
            add(next);
        });
        for (int t = 0; t < p.threads; t++)
            step(state, t);
        if (!followed)
            time_passes(state);
    }

    void time_passes(const State<Memory> &state)
    {
        int64_t until = -1;
        for (int t = 0; t < p.threads; t++)
            if (is_timed(state, t)) {
                int64_t deadline = state.sync.deadline[t];
                if (until < 0 || (p.has(LATEST_TIME_OUT) ? deadline > until : deadline < until))
                    until = deadline;
            }
        if (until < 0)
            return;
        State<Memory> next = state;
        next.memory.time_passes(shape);
        set_clock(next, until);
        add(next);
    }

    const Call &call_of(const State<Memory> &state, int t) const { return p.calls[t][state.sync.position[t]]; }

    bool is_timed(const State<Memory> &state, int t) const
    {
        return state.sync.status[t] == BLOCKED ||
               (state.sync.status[t] == WAITS && call_of(state, t).kind == TIMED_WAIT);
    }

    /* The clock is at `until` or later, and all waits that are due end. */
    void set_clock(State<Memory> &state, int64_t until) const
    {
        if (until > state.sync.now)
            state.sync.now = until;
        for (int t = 0; t < p.threads; t++)
            if (is_timed(state, t) && state.sync.deadline[t] <= state.sync.now) {
                if (state.sync.status[t] == BLOCKED)
                    note_mutex(state, t);
                else
                    note(state, t, state.sync.changed++);
                state.sync.status[t] = state.sync.status[t] == BLOCKED ? LATE : TIMED_OUT;
            }
    }

    /* The mutex is free; those that are blocked in a timed lock try again. */
    void give_back(State<Memory> &state) const
    {
        state.sync.owner = -1;
        for (int t = 0; t < p.threads && !p.has(UNLOCK_WAKES_NOBODY); t++)
            if (state.sync.status[t] == BLOCKED)
                state.sync.status[t] = RUNS;
    }

    /* Keeps what a thread saw that is no event of a graph: the time, the mutex that it did not get,
     * or the notification that ended its wait. */
    void note(State<Memory> &state, int t, uint64_t seen) const
    {
        state.sync.looks[t] = state.sync.looks[t] * 0xD6E8FEB86659FD93 + seen + 1;
    }

    void note_mutex(State<Memory> &state, int t) const
    {
        note(state, t, 2 * state.sync.taken + (state.sync.owner >= 0));
    }

    void take(State<Memory> &state, int t) const
    {
        state.sync.owner = int8_t(t);
        state.sync.taken++;
    }

    void add_result(State<Memory> &state, int t, unsigned value) const
    {
        state.sync.results[t] |= uint64_t(value & 15) << 4 * state.sync.position[t]++;
        state.sync.deadline[t] = 0;
    }

    void step(const State<Memory> &state, int t)
    {
        if (state.sync.status[t] >= NOTIFIED)
            return relock(state, t);
        if (state.sync.status[t] == LATE)
            return end_lock(state, t, true);
        if (state.sync.status[t] != RUNS || is_done(state, t))
            return;
        const Call &call = call_of(state, t);
        State<Memory> next = state;
        int slot = shape.slots[t][state.sync.position[t]];
        switch (call.kind) {
        case LOAD: case STORE: case EXCHANGE: case CAS: case FENCE:
            state.memory.access(shape, t, slot, call, [&](const Memory &memory, unsigned value) {
                State<Memory> after = state;
                after.memory = memory;
                add_result(after, t, value);
                add(after);
            });
            return;
        case LOCK:
            if (state.sync.owner >= 0 || !next.memory.lock(shape, t, slot))
                return;
            take(next, t);
            next.memory.attempt(shape, slot);
            break;
        case TRY_LOCK:
            return try_lock(state, t, slot);
        case LOCK_UNTIL: case LOCK_FOR:
            return timed_lock(state, t, call, slot);
        case UNLOCK:
            if (state.sync.owner != t)
                break;
            if (!next.memory.unlock(shape, t, slot))
                return;
            next.memory.attempt(shape, slot);
            give_back(next);
            break;
        case WAIT: case TIMED_WAIT:
            if (state.sync.owner == t)
                return wait(state, t, call, slot);
            add_result(next, t, NO_WAIT);
            return add(next);
        case NOTIFY_ONE: case NOTIFY_ALL:
            return notify(state, t, call, slot);
        case SPAWN:
            if (!p.has(SPAWN_KEEPS_BUFFER) && !state.memory.is_quiet(t))
                return;
            next.sync.status[call.cell] = RUNS;
            break;
        case JOIN:
            if (!p.has(JOIN_DOES_NOT_WAIT) && !is_done(state, call.cell))
                return;
            if (!p.has(JOIN_LEAVES_BUFFER) && !state.memory.is_quiet(call.cell))
                return;
            break;
        }
        add_result(next, t, 0);
        add(next);
    }

    void try_lock(const State<Memory> &state, int t, int slot)
    {
        State<Memory> next = state;
        bool failed = state.sync.owner >= 0;
        if (failed && p.has(TRY_WAITS))
            return;
        if (failed && p.has(FAILED_TRY_ACQUIRES))
            next.memory.look_at_mutex(slot);
        if (!failed && !next.memory.lock(shape, t, slot))
            return;
        if (failed)
            note_mutex(next, t);
        else
            take(next, t);
        next.memory.attempt(shape, slot);
        add_result(next, t, failed);
        add(next);
    }

    /* A span begins with a look at the clock, which is a step of its own. */
    void timed_lock(const State<Memory> &state, int t, const Call &call, int slot)
    {
        State<Memory> next = state;
        int64_t &deadline = next.sync.deadline[t];
        bool spans = call.kind == LOCK_FOR;
        if (spans && !deadline) {
            deadline = state.sync.now + LOOK + (p.has(SPAN_IS_OVER) ? 0 : call.value * APART);
            note(next, t, uint64_t(state.sync.now + LOOK));
            next.memory.attempt(shape, slot);
            set_clock(next, state.sync.now + LOOK);
            return add(next);
        }
        if (!spans)
            deadline = call.value * APART;
        if (state.sync.owner < 0 || deadline <= state.sync.now) {
            if (state.sync.owner >= 0)
                note_mutex(next, t);
            return end_lock(next, t, state.sync.owner >= 0);
        }
        next.memory.attempt(shape, slot);
        if (p.faults & TIME_OUT) {
            State<Memory> late = next;
            set_clock(late, deadline);
            note_mutex(late, t);
            end_lock(late, t, true);
        }
        next.sync.status[t] = BLOCKED;
        add(next);
    }

    void end_lock(const State<Memory> &state, int t, bool late)
    {
        State<Memory> next = state;
        int slot = shape.slots[t][state.sync.position[t]] + 1;
        if (!late && !next.memory.lock(shape, t, slot))
            return;
        if (!late || p.has(LATE_LOCK_HOLDS))
            take(next, t);
        next.memory.attempt(shape, slot);
        next.sync.status[t] = RUNS;
        add_result(next, t, late);
        add(next);
    }

    /* Gives the mutex back and begins to wait, in one step. */
    void wait(const State<Memory> &state, int t, const Call &call, int slot)
    {
        State<Memory> next = state;
        bool timed = call.kind == TIMED_WAIT;
        if (!next.memory.unlock(shape, t, slot))
            return;
        next.memory.signal(shape, slot);
        if (!p.has(WAIT_KEEPS_MUTEX))
            give_back(next);
        if (timed)
            next.sync.deadline[t] = call.value * APART;
        note(next, t, next.sync.changed++);
        if (p.faults & SPURIOUS) {
            State<Memory> early = next;
            early.sync.status[t] = NOTIFIED;
            note(early, t, ~uint64_t(1));   /* nobody did */
            add(early);
        }
        if (timed && next.sync.deadline[t] <= next.sync.now) {
            next.sync.status[t] = TIMED_OUT;
            note(next, t, next.sync.changed++);
            return add(next);
        }
        if (timed && p.faults & TIME_OUT) {
            State<Memory> late = next;
            set_clock(late, late.sync.deadline[t]);
            late.sync.status[t] = TIMED_OUT;
            note(late, t, late.sync.changed++);
            add(late);
        }
        next.sync.status[t] = WAITS;
        add(next);
    }

    bool any_waits(const State<Memory> &state) const
    {
        bool any = false;
        for (int u = 0; u < p.threads; u++)
            any |= state.sync.status[u] == WAITS;
        return any;
    }

    void notify(const State<Memory> &state, int t, const Call &call, int slot)
    {
        bool all = call.kind == NOTIFY_ALL || p.has(NOTIFY_ONE_IS_ALL), any = false;
        State<Memory> next = state;
        next.memory.signal(shape, slot);
        note(next, t, state.sync.changed);
        add_result(next, t, 0);
        State<Memory> unheard = next;
        unheard.sync.changed = next.sync.changed += any_waits(state) && !p.has(DEAF_NOTIFY);
        for (int u = 0; u < p.threads && !p.has(DEAF_NOTIFY); u++)
            if (state.sync.status[u] == WAITS) {
                any = true;
                next.sync.status[u] = NOTIFIED;
                note(next, u, uint64_t(CALLS * t + state.sync.position[t]));
                if (!all) {
                    add(next);
                    next = unheard;
                }
            }
        if (all || !any)
            add(next);
    }

    /* A wait that is over takes the mutex again. */
    void relock(const State<Memory> &state, int t)
    {
        State<Memory> next = state;
        bool late = state.sync.status[t] == TIMED_OUT;
        int slot = shape.slots[t][state.sync.position[t]] + 1;
        next.memory.signal(shape, slot);
        if (!(late && p.has(TIME_OUT_UNLOCKED))) {
            if (state.sync.owner >= 0 && !p.has(WAIT_KEEPS_MUTEX))
                return;
            if (!next.memory.lock(shape, t, slot))
                return;
            take(next, t);
        }
        next.sync.status[t] = RUNS;
        add_result(next, t, late);
        add(next);
    }

    void end(const State<Memory> &state)
    {
        Outcome outcome;
        bool done = true;
        for (int t = 0; t < p.threads; t++) {
            outcome.results[t] = state.sync.results[t];
            if (state.sync.status[t] != UNBORN && !is_done(state, t))
                done = false;
        }
        if (done) {
            outcome.finals = state.memory.finals(shape);
        } else {
            outcome.finals = DEADLOCK;
            for (int t = 0; t < p.threads; t++)
                outcome.finals |= uint64_t(state.sync.position[t]) << 5 * t;
        }
        outcomes.insert(outcome);
        Bytes execution;
        std::memset(static_cast<void *>(&execution), 0, sizeof execution);
        execution.memory = state.memory.bare();
        std::memcpy(execution.results, state.sync.results, sizeof execution.results);
        std::memcpy(execution.looks, state.sync.looks, sizeof execution.looks);
        ended.insert(execution);
    }
};

}  // namespace model

#endif
