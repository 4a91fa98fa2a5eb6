# The part of engine.h that _engine.pyx uses.

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlSubject

cdef extern from "pulsar_ml/harness/engine/engine.h" nogil:
    enum:
        ENGINE_MOST_THREADS
        ENGINE_STORES
        ENGINE_LEAST_STORES
        ENGINE_MOST_STORES
        ENGINE_CLASSES
        ENGINE_BUFFER
        STRATEGY_SAMPLES
        STRATEGY_SEARCHES
        STRATEGY_FOLLOWS
        STRATEGY_REDUCES
        FAIL_RACE

    ctypedef struct EngineStrategy:
        const char* name
        const char* help
        int32_t kind

    enum: ORDER_KEPT, NO_FENCE, CHANGE_TAKES, CHANGE_GIVES, CHANGE_CALL

    ctypedef struct EngineChange:
        uint64_t pc
        int32_t order, fence, lock

    ctypedef struct EngineDecision:
        uint32_t at
        uint8_t thread
        uint8_t kind
        uint16_t value

    ctypedef struct EnginePair:
        uint32_t[2] at, call_at
        uint8_t[2] thread

    ctypedef struct EngineEvent:
        uint64_t address, value, before, pc
        uint32_t step, points
        int32_t source "from"
        int16_t thread
        uint8_t op, order, width, stale, failed, n_frames
        int32_t call
        uint32_t[64] clock
        uint64_t[24] frames
        uint64_t frame_pc
        int64_t frame_at

    ctypedef struct EngineFailure:
        int32_t kind, thread, call, other_thread
        uint64_t execution, address, pc, block_pc, free_pc, block_size, offset
        int32_t op, other_op, width, other_width, event, other_event, released, acquired, signal, n_frames
        uint64_t unfinished
        uint64_t[64] waits_at
        uint64_t[64] waits_for
        uint64_t[24] frames
        char[28] invariant
        char[224] message

    ctypedef struct EngineStats:
        uint64_t executions, steps, complete, cut, discarded, blocked, switches, hooks, shared
        uint64_t classes, once, twice
        uint64_t stale, forgotten, mixed, crowded, pruned, spun, looped, suppressed, pct_1, pct_2, pct_3
        uint32_t pct_steps, threads, longest
        int32_t exhausted, unreduced

    ctypedef struct EngineConfig:
        const PmlSubject* subject
        const int64_t* settings
        const PmlCall** calls
        int32_t* n_calls
        int32_t n_threads, mode, strategy, races, leaks, judged, faults, reuse, depth, bound, lock_free, spins
        int32_t turns, stores
        uint32_t step_limit
        uint64_t seed
        const EngineDecision* decisions
        const EnginePair* pairs
        int32_t n_decisions, n_pairs, n_changes
        const EngineChange* changes
        int (*known)(void* oracle) noexcept nogil
        void* oracle
        const uint16_t* path
        int32_t n_path, floor
        int32_t symmetric
        int32_t preemptions
        int8_t[64] equal_before
        const uint64_t* begun
        int32_t n_begun, unreduced

    const EngineStrategy* engine_strategy(int32_t number) noexcept
    void engine_beat(uint64_t* where) noexcept
    int engine_keep_blocks(int begins, int cxx) noexcept
    uint64_t engine_steps_in(int32_t pid) noexcept
    int32_t engine_places_in(
        int32_t pid, uint64_t sp, int32_t* numbers, uint64_t* places, int32_t room) noexcept
    int engine_open(const EngineConfig* config) noexcept
    uint64_t engine_run(uint64_t first, uint64_t count, EngineStats* stats) noexcept
    int engine_again(uint64_t number) noexcept
    int engine_reverse(uint64_t number) noexcept
    int engine_suppress(uint64_t first, uint64_t second) noexcept
    int engine_next(EngineStats* stats) noexcept
    int32_t engine_path(uint16_t* taken, uint16_t* options, int32_t room, int32_t* floor) noexcept
    int engine_unjudged() noexcept
    void engine_accept(EngineStats* stats) noexcept
    void engine_ask(int (*known)(void* oracle) noexcept nogil, void* oracle) noexcept
    void engine_stop_at(int64_t at) noexcept
    const EngineFailure* engine_failure() noexcept
    const EngineEvent* engine_trace(int64_t* count) noexcept
    const EngineDecision* engine_decisions(int64_t* count) noexcept
    uint32_t engine_preemptions() noexcept
    const char* engine_note(uint64_t number) noexcept
    const char* engine_name(uint64_t address, uint64_t* offset, uint64_t* size) noexcept
    uint64_t engine_hash() noexcept
    uint64_t engine_class() noexcept
    double engine_left(double* spread) noexcept
    int32_t engine_part(const uint64_t** words) noexcept
    int engine_classes(uint64_t* hashes) noexcept
    int32_t engine_meetings(uint64_t* found, int32_t room) noexcept
    int32_t engine_apart(EnginePair* pairs, uint64_t* numbers, int32_t room) noexcept
    uint32_t engine_steps() noexcept
    int engine_used_strategy() noexcept
    int engine_used_reuse() noexcept
    int32_t engine_used_depth() noexcept
