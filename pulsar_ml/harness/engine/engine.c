/* The engine: one execution after another, each decided by the explorer's seed and its number. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "pulsar_ml/harness/engine/state.h"
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "pulsar_ml/harness/engine/execution/random.c"
#include "pulsar_ml/harness/engine/schedule/fiber.c"
#include "pulsar_ml/harness/engine/memory/clocks.c"
#include "pulsar_ml/harness/engine/execution/trace.c"
#include "pulsar_ml/harness/engine/memory/cells.c"
#include "pulsar_ml/harness/engine/memory/variables.c"
#include "pulsar_ml/harness/engine/schedule/choices.c"
#include "pulsar_ml/harness/engine/schedule/strategies.c"
#include "pulsar_ml/harness/engine/schedule/reversal.c"
#include "pulsar_ml/harness/engine/schedule/time.c"
#include "pulsar_ml/harness/engine/schedule/sched.c"
#include "pulsar_ml/harness/engine/schedule/unlocking.c"
#include "pulsar_ml/harness/engine/schedule/waiting.c"
#include "pulsar_ml/harness/engine/schedule/holding.c"
#include "pulsar_ml/harness/engine/memory/known_races.c"
#include "pulsar_ml/harness/engine/memory/race.c"
#include "pulsar_ml/harness/engine/memory/globals.c"
#include "pulsar_ml/harness/engine/memory/memory.c"
#include "pulsar_ml/harness/engine/schedule/reduction/reads.c"
#include "pulsar_ml/harness/engine/memory/atomics.c"
#include "pulsar_ml/harness/engine/memory/frames.c"
#include "pulsar_ml/harness/engine/memory/alloc.c"
#include "pulsar_ml/harness/engine/memory/kept_blocks.c"
#include "pulsar_ml/harness/engine/hooks/locks.c"
#include "pulsar_ml/harness/engine/schedule/reduction/expiry.c"
#include "pulsar_ml/harness/engine/schedule/reduction/held.c"
#include "pulsar_ml/harness/engine/schedule/reduction/parts.c"
#include "pulsar_ml/harness/engine/hooks/changes.c"
#include "pulsar_ml/harness/engine/hooks/hooks.c"
#include "pulsar_ml/harness/engine/hooks/wraps.c"
#include "pulsar_ml/harness/engine/hooks/wraps_time.c"
#include "pulsar_ml/harness/engine/hooks/wraps_locks.c"
#include "pulsar_ml/harness/engine/schedule/own.c"
#include "pulsar_ml/harness/engine/hooks/library.c"
#include "pulsar_ml/harness/engine/hooks/wraps_own.c"
#include "pulsar_ml/harness/engine/hooks/wraps_once.c"
#include "pulsar_ml/harness/engine/hooks/wraps_exit.c"
#include "pulsar_ml/harness/engine/hooks/annotations.c"
#include "pulsar_ml/harness/engine/hooks/wraps_random.c"
#include "pulsar_ml/harness/engine/hooks/check_calls.c"
static int grow_calls(Thread *t, int32_t room);
#include "pulsar_ml/harness/engine/schedule/spawn.c"
#include "pulsar_ml/harness/engine/hooks/wraps_c11.c"
#include "pulsar_ml/harness/engine/hooks/interpreter_lock.c"
#include "pulsar_ml/harness/engine/hooks/python.c"
#include "pulsar_ml/harness/engine/execution/crash.c"
#include "pulsar_ml/harness/engine/execution/classes.c"
#include "pulsar_ml/harness/engine/execution/answers.c"
#include "pulsar_ml/harness/engine/execution/stats.c"

#include "pulsar_ml/harness/engine/execution/run.c"
#include "pulsar_ml/harness/engine/execution/stuck.c"
#include "pulsar_ml/harness/engine/execution/meetings.c"

#define PROFILE_NUMBERS (UINT64_C(1) << 63)   /* execution numbers that no explorer uses */

/* Each table begins at another cache line of its page, or their first entries, which every
 * execution uses, would compete for the same cache sets. */
static void *reserve(size_t bytes, size_t line)
{
    char *memory = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory + 64 * line;
}

/* The sizes of what holds an entry for each thread. */
static void set_width(int32_t threads)
{
    E.width = (threads + 3) / 4 * 4;
    E.layout = layout_for((size_t)E.width, (size_t)E.config.stores);
}

/* Where a watchdog in another process sees how far this one has come: the number of the execution
 * under way, and how many were begun. */
static uint64_t nobody_watches[2], *heart = nobody_watches;

void engine_beat(uint64_t *where)
{
    heart = where ? where : nobody_watches;
}

static void run_once(uint64_t number)
{
    heart[0] = number;
    heart[1]++;
    E.n = E.config.n_threads;
    E.unjoined = 0;
    E.random_calls = 0;
    if (unlikely(++E.generation == 0)) {
        empty_cells();
        E.generation = 1;
    }
    random_start(E.config.seed, number);
    E.execution = number;
    E.failure.kind = END_COMPLETE;
    E.step = 0;
    E.step_check = E.config.step_limit / 2;
    waiting_reset();
    E.buffered = 0;
    E.main_turns = 0;
    E.hash = E.class_hash = 0;
    E.n_variables = E.n_readers = 0;
    E.sc_time = 1;
    E.forgot = E.mixed = 0;
    globals.n = 0;
    E.x_used = 0;
    E.ended = 0;
    E.now_ns = 1000000000;
    n_objects = 0;
    heap_reset();
    path_at = bound_used = n_unlocks = 0;
    reduction_begin(reduces());
    path_pruned = 0;
    E.strategy = configured_strategy();
    E.guided = 0;
    E.reuse = E.config.reuse == 1;
    if (E.config.reuse == 2)
        E.reuse = E.reducing   ? UNDECIDED
                  : searching() ? search_choose(2)
                                : mix64(E.key ^ 0x5EED) & 1;
    if (unlikely(E.broken)) {
        E.broken = 0;
        prepare_fibers();
    }
    E.main.depth = 0;
    E.main.locals_from = UINTPTR_MAX;
    E.main.values = 0;
    E.main.controlled = 0;
    start_owned(&E.main);
    set_library_state(&E.library_start);
    library.busy = library.floats;
    current = &E.main;
    fiber_switch(&E.host, &E.main.fiber);
    if (unlikely(E.failure.kind != END_COMPLETE))
        set_globals_back();
    reset_statics();
    if (unlikely(python.after != NULL))
        python.after(E.failure.kind);
}

static void run_one(uint64_t number)
{
    int64_t n_events_before = n_events, n_decisions_before = n_decisions;
    for (run_once(number); unlikely(E.wider); run_once(number)) {
        E.wider = 0;
        n_events = n_events_before;
        n_decisions = n_decisions_before;
        n_preemptions = 0;
        set_width(E.width + 4);
    }
}

static int grow_calls(Thread *t, int32_t room)
{
    EngineCall *calls;
    if (room <= t->calls_room)
        return 1;
    calls = realloc(t->calls, (size_t)room * sizeof *calls);
    if (calls == NULL)
        return 0;
    t->calls = calls;
    t->calls_room = room;
    return 1;
}

static int open_memory(void)
{
    if (E.opened)
        return 1;
    E.slots = reserve(SLOTS * sizeof *E.slots, 0);
    E.cells = reserve(ARENA_BYTES / 8 * sizeof *E.cells, 0);
    E.variables = reserve((MOST_VARIABLES + 1) * sizeof *E.variables, 21);
    E.blocks_bytes = (size_t)1 << 33;
    E.blocks = reserve(E.blocks_bytes, 37);
    E.readers = reserve(MOST_READERS * ENGINE_MOST_THREADS * sizeof *E.readers, 0);
    E.threads = reserve(ENGINE_MOST_THREADS * sizeof *E.threads, 10);
    E.main.stack = stack_new();
    E.main.number = -1;
    fill_nth_bit();
    E.opened = E.slots && E.cells && E.variables && E.blocks && E.readers && E.threads && E.main.stack &&
               heap_open();
    return E.opened;
}

/* Prepares for executions of one program. 0, -1 without memory, or -2 when the words of the part of
 * a search are damaged. */
int engine_open(const EngineConfig *config)
{
    if (!open_memory())
        return -1;
    if (!tape_load(config->decisions, config->n_decisions))
        return -1;
    E.config = *config;
    E.n = config->n_threads;
    E.wider = 0;
    set_width(E.n);
    for (int i = 0; i < E.n; i++) {
        Thread *t = &E.threads[i];
        t->number = i;
        t->bit = UINT64_C(1) << i;
        own_entry(t);
        if (t->stack == NULL)
            t->stack = stack_new();
        if (t->buffer == NULL)
            t->buffer = malloc(ENGINE_BUFFER * sizeof *t->buffer);
        if (t->stack == NULL || t->buffer == NULL || !grow_calls(t, config->n_calls[i]))
            return -1;
    }
    E.broken = 1;
    E.recording = 0;
    find_globals(*(void *const *)&config->subject->apply);
    E.control = CONTROLLED;
    for (int32_t i = 0; i < config->n_changes; i++)
        if (config->changes[i].lock || config->changes[i].fence != ORDER_KEPT)
            E.control |= CHANGES_CODE;
    known_races.n = 0;
    if (!path_load(config->path, (uint32_t)config->n_path, (uint32_t)config->floor))
        return -1;
    if (!reduction_open())
        return -2;
    memset(&profile, 0, sizeof profile);
    classes_reset();
    answers_reset();
    return 0;
}

/* Random executions that teach the strategies the program's shape. */
static void learn(void)
{
    int32_t faults = E.config.faults;
    if (profile.known || !configured_strategy()->profiled)
        return;
    E.config.faults = 0;
    profile.learning = 1;
    for (int i = 0; i < PROFILE_RUNS; i++) {
        run_one(PROFILE_NUMBERS + (uint64_t)i);
        if (E.step > profile.steps)
            profile.steps = E.step;
        /* the next one takes as long */
        if (E.failure.kind == FAIL_ENDLESS || E.failure.kind == FAIL_BLOCKED)
            break;
    }
    profile.learning = 0;
    E.config.faults = faults;
    profile_finish();
}

/* Executions first, first+1, ... until `count_of` were made or one failed. Returns how many.
 * Exhaustive strategies take the next path each time, whatever the number, and set stats->exhausted
 * when there is none left. */
uint64_t engine_run(uint64_t first, uint64_t count_of, EngineStats *stats)
{
    uint64_t done = 0;
    Counters before;
    int over = 0, search = is_search(configured_strategy());
    E.stats = stats;
    answers.waits = 0;
    library_begin();
    redirect_library();
    signals_start();
    learn();
    E.touched_twice = 0;
    before = counters();
    while (done < count_of && !stats->exhausted && !reduction.ended) {
        run_one(first + done);
        done++;
        if (search && unlikely(path_is_left()) && E.failure.kind < FAIL_RACE)
            fail_with(FAIL_UNCONTROLLED, &E.main, "the path of the search goes on where the execution has no choice: "
                                                  "it is of another program, or something outside the engine's "
                                                  "control decides what the code does");
        if (search && E.failure.kind < FAIL_RACE)
            search_look();
        count(stats);
        if (unlikely(E.failure.kind >= FAIL_RACE))
            break;
        if (E.config.judged && E.failure.kind == END_COMPLETE && !reduction.left && answers_new())
            break;
        if (search && !search_next()) {
            over = 1;
            break;
        }
    }
    signals_stop();
    library_end();
    collect(stats, before);
    stats->unreduced = reduction.unreduced;
    if (over && !reduction.ended)
        stats->exhausted = all_paths_taken(stats);
    return done;
}

/* Makes one execution again, with its trace and its decisions. */
int engine_again(uint64_t number)
{
    EngineStats stats = {0};
    E.stats = &stats;
    library_begin();
    redirect_library();
    signals_start();
    learn();
    n_events = n_decisions = 0;
    n_preemptions = 0;
    n_notes = n_names = 0;
    check_begins = -1;
    E.recording = 1;
    run_one(number);
    E.recording = 0;
    signals_stop();
    library_end();
    return E.failure.kind;
}

/* The next calls of engine_again() call pml_step_reached() at event `at` of the trace; -1 never, -2
 * when the execution fails. */
void engine_stop_at(int64_t at) { stop_at = at; }

/* After engine_again() of an execution that ended with a race: whether its accesses can be made in
 * the other order. Returns the EngineEnd that shows it, of the same access after the other one, or
 * END_COMPLETE. The execution is then made again as it was, so that its trace and all else stand.
 */
int engine_reverse(uint64_t number)
{
    EngineFailure race = E.failure;
    EngineConfig config = E.config;
    int shown = END_COMPLETE;
    if (race.kind != FAIL_RACE || race.other_event < 0 || !tape_load(decisions_made, (int32_t)n_decisions))
        return shown;
    E.config.strategy = strategy_number(&REPLAY);
    E.config.reuse = E.reuse == 1;
    reversal.first = race.other_thread;
    reversal.second = race.thread;
    reversal.at = events[race.other_event].op == OP_READ || events[race.other_event].op == OP_WRITE
                      ? race.other_event : -1;
    reversal.points = events[race.other_event].points;
    reversal.address = events[race.event].address;
    reversal.pc = events[race.event].pc;
    for (int eager = 0; eager < 2 && shown == END_COMPLETE; eager++) {
        reversal.on = 1;
        reversal.held = NOT_HELD;
        reversal.eager = (uint8_t)eager;
        engine_again(number);
        if (reversal.held == LET_GO && E.failure.thread == race.other_thread &&
            ((E.failure.kind == FAIL_RACE && E.failure.other_thread == race.thread) ||
             E.failure.kind == FAIL_USE_AFTER_FREE))
            shown = E.failure.kind;
    }
    reversal.on = 0;
    reversal.held = NOT_HELD;
    E.config = config;
    tape_load(config.decisions, config.n_decisions);   /* it had room before */
    engine_again(number);
    return shown;
}

/* Exhaustive strategies after a failure: goes to the next path. 0 when there is none. */
int engine_next(EngineStats *stats)
{
    int more = search_next();
    if (!more && !reduction.ended)
        stats->exhausted = all_paths_taken(stats);
    return more;
}

/* Where an exhaustive strategy goes on, and the options that it found there, 0 where it was not
 * yet. A choice that may still get its second option has it here: a part of the search that is cut
 * off takes it over. At most `room` of the path's choices. Returns how many there are, and how
 * many of them stay as they are. */
int32_t engine_path(uint16_t *taken, uint16_t *options, int32_t room, int32_t *floor)
{
    for (uint32_t i = 0; i < path_length && i < (uint32_t)room; i++) {
        taken[i] = path[i].taken;
        options[i] = path[i].options == ONE_OPTION ? 2 : path[i].options;
    }
    *floor = (int32_t)path_floor;
    return (int32_t)path_length;
}

/* After engine_run() with `judged`: whether it stopped at an execution whose answers nobody judged
 * yet. */
int engine_unjudged(void) { return answers.waits; }

/* The answers of that execution are right, and will be wherever they come again. An exhaustive
 * strategy goes to its next path. */
void engine_accept(EngineStats *stats)
{
    answers_accept();
    if (is_search(configured_strategy()))
        engine_next(stats);
}

/* From now on ask `known` about each new history before stopping at it. */
void engine_ask(int (*known)(void *oracle), void *oracle)
{
    E.config.known = known;
    E.config.oracle = oracle;
}

const EngineFailure *engine_failure(void) { return &E.failure; }
const EngineEvent *engine_trace(int64_t *count_of) { *count_of = n_events; return events; }
const EngineDecision *engine_decisions(int64_t *count_of) { *count_of = n_decisions; return decisions_made; }
uint32_t engine_preemptions(void) { return n_preemptions; }
const EngineCall *engine_calls(int thread) { return E.threads[thread].calls; }
uint64_t engine_hash(void) { return E.hash; }
uint64_t engine_class(void) { return E.class_hash; }
int engine_classes(uint64_t *hashes) { return classes_list(hashes); }
uint32_t engine_steps(void) { return E.step; }
int engine_used_reuse(void) { return E.reuse == 1; }
int engine_used_strategy(void) { return strategy_number(E.strategy); }
int32_t engine_used_depth(void) { return E.strategy == &PCT ? (int32_t)pct.depth : 0; }
