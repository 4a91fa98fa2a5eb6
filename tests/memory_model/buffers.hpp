/* Sequential consistency and TSO: one value a cell, and for TSO a first-in first-out buffer of each
 * thread's stores. Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, "x86-TSO", CACM 2010. A read
 * looks into its own buffer first. Read-modify-writes, seq_cst stores and fences, the mutex and the
 * start of a thread wait for an empty buffer, and a join waits for the buffer of the thread that
 * ended. */
#ifndef MEMORY_MODEL_BUFFERS_HPP
#define MEMORY_MODEL_BUFFERS_HPP

#include "machine.hpp"

namespace model {

struct Buffers {
    static constexpr bool EAGER = false;
    struct Shape {
        const Program &p;
        std::array<std::array<int, CALLS>, THREADS> slots{};
        explicit Shape(const Program &program) : p(program) {}
    };
    uint8_t memory[CELLS], count[THREADS];
    uint8_t cells[THREADS][CALLS], values[THREADS][CALLS];   /* oldest first, zeros behind */
    uint8_t unused;

    void begin(const Shape &) {}
    bool consistent(const Shape &) const { return true; }
    Buffers bare() const { return *this; }
    void signal(const Shape &, int) {}
    void attempt(const Shape &, int) {}
    void look_at_mutex(int) {}
    void time_passes(const Shape &) {}
    bool is_quiet(int t) const { return count[t] == 0; }
    bool lock(const Shape &, int t, int) { return is_quiet(t); }
    bool unlock(const Shape &, int t, int) { return is_quiet(t); }

    template <class Emit> void drains(Emit emit) const
    {
        for (int t = 0; t < THREADS; t++)
            if (count[t]) {
                Buffers after = *this;
                after.memory[cells[t][0]] = values[t][0];
                after.count[t]--;
                std::memmove(after.cells[t], after.cells[t] + 1, CALLS - 1);
                std::memmove(after.values[t], after.values[t] + 1, CALLS - 1);
                after.cells[t][CALLS - 1] = after.values[t][CALLS - 1] = 0;
                emit(after);
            }
    }

    template <class Emit> void access(const Shape &shape, int t, int, const Call &call, Emit emit) const
    {
        Buffers after = *this;
        unsigned seen = memory[call.cell];
        bool buffered = shape.p.buffered && !shape.p.has(NO_BUFFERS);
        if (call.kind == LOAD) {
            for (int i = 0; i < count[t]; i++)
                if (cells[t][i] == call.cell)
                    seen = values[t][i];
            return emit(after, seen);
        }
        if (call.kind == STORE && buffered && (call.order != SEQ_CST || shape.p.has(NO_SEQ_CST))) {
            after.cells[t][count[t]] = call.cell;
            after.values[t][after.count[t]++] = call.value;
            return emit(after, 0);
        }
        if (call.kind == FENCE && call.order != SEQ_CST)
            return emit(after, 0);
        if (!is_quiet(t))
            return;
        if (call.kind == CAS && seen != call.expected)
            return emit(after, seen | FAILED_CAS);
        if (call.kind != FENCE)
            after.memory[call.cell] = call.value;
        emit(after, call.kind == STORE || call.kind == FENCE ? 0 : seen);
    }

    uint64_t finals(const Shape &) const
    {
        uint64_t word = 0;
        for (int cell = 0; cell < CELLS; cell++)
            word |= uint64_t(memory[cell]) << 4 * cell;
        return word;
    }
};

}  // namespace model

#endif
