/* Shared structures of the engine: the controlled world in which one integer decides everything.
 *
 * The engine is one translation unit, engine.c, that includes its parts in the order of their use;
 * each part has one purpose and keeps its functions static. All threads of an execution are fibers
 * of one OS thread, so nothing here is atomic. Whatever must be empty when an execution begins
 * carries the execution's generation instead of being cleared. */
#ifndef PULSAR_ML_ENGINE_H
#define PULSAR_ML_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "pulsar_ml/harness/subject.h"

/* of one execution, those that the code under test starts included */
#define ENGINE_MOST_THREADS 64
#define ENGINE_CLASSES (1 << 14)  /* classes that are told apart; of more, a uniform sample */
#define ENGINE_STORES 8           /* that a location remembers, unless set otherwise */
#define ENGINE_LEAST_STORES 3     /* that a location remembers; the oldest is forgotten first */
#define ENGINE_MOST_STORES 64
#define ENGINE_MOST_FRAMES 24     /* of a reported stack */
#define ENGINE_MOST_WATCHED 16    /* locations whose change ends a spin loop's wait */
#define ENGINE_BUFFER 8           /* stores that a thread may hold back under TSO */
#define ENGINE_MOST_OBJECTS 256    /* mutexes and the like alive in one execution */
#define ENGINE_NOT_MADE 6  /* in place of an order: an atomic access that ended the execution */

typedef enum { MODE_SC, MODE_TSO, MODE_C11 } EngineMode;

/* A sampler's executions are a sample of all; a search takes one path after the other; a replay
 * follows decisions; a search that reduces takes one path of each class. */
typedef enum { STRATEGY_SAMPLES, STRATEGY_SEARCHES, STRATEGY_FOLLOWS, STRATEGY_REDUCES } EngineStrategyKind;

/* What users see of a row of the table of strategies (schedule/strategies.c). */
typedef struct {
    const char *name;
    const char *help;         /* one sentence */
    int32_t kind;             /* EngineStrategyKind */
} EngineStrategy;

/* What ended an execution. Kinds from FAIL_RACE on are failures. */
typedef enum {
    END_COMPLETE, END_CUT, END_DISCARDED, END_BLOCKED,
    FAIL_RACE, FAIL_USE_AFTER_FREE, FAIL_DOUBLE_FREE, FAIL_BAD_FREE, FAIL_OUT_OF_BOUNDS, FAIL_LEAK,
    FAIL_UNINITIALISED, FAIL_DEADLOCK, FAIL_LIVELOCK, FAIL_INVARIANT, FAIL_ASSERTION, FAIL_CRASH,
    FAIL_STACK_OVERFLOW, FAIL_ENDLESS, FAIL_LOCK_MISUSE, FAIL_BLOCKED, FAIL_CAPACITY, FAIL_UNCONTROLLED,
    FAIL_HELD_BACK
} EngineEnd;

/* What a thread is about to do, and what a trace shows. Reads and writes are the plain ones. */
typedef enum {
    OP_NONE, OP_LOAD, OP_STORE, OP_RMW, OP_CAS, OP_FENCE, OP_YIELD, OP_READ, OP_WRITE, OP_ALLOCATE, OP_FREE,
    OP_LOCK, OP_UNLOCK, OP_WAIT, OP_WAKE, OP_SPAWN, OP_JOIN, OP_CALL, OP_RETURN, OP_END, OP_FLUSH, OP_SWITCH,
    OP_BUFFER, OP_CHOOSE, OP_NOTE, OP_LOOK, OP_REFUSE
} EngineOp;

/* A choice other than the default one. The default: stay on the running thread; when it cannot go
 * on, the lowest-numbered one that can; read the newest store; append a store; no fault. */
typedef enum {
    CHOOSE_THREAD, CHOOSE_READ, CHOOSE_INSERT, CHOOSE_WEAK_FAILURE, CHOOSE_SPURIOUS, CHOOSE_NO_MEMORY,
    CHOOSE_TIMEOUT, CHOOSE_REUSE, CHOOSE_DELAY, CHOOSE_FLUSH, CHOOSE_WAITER, CHOOSE_PAUSE, CHOOSE_HOLD,
    CHOOSE_TURN, CHOOSE_VALUE, CHOOSE_SLEEP,
    CHOICE_KINDS
} EngineChoice;

/* Faults that are choices, as bits. */
#define FAULT_WEAK_FAILURE 1
#define FAULT_SPURIOUS 2
#define FAULT_NO_MEMORY 4
#define FAULT_TIMEOUT 8

/* A change at a place of the code under test, see hooks/changes.c. Orders are those of C, with two
 * more: as it stands, and no fence at all. With CHANGE_CALL the place is the number of an
 * operation, which has the lock from its beginning to its end. */
enum { ORDER_KEPT = -2, NO_FENCE = -1 };
enum { CHANGE_TAKES = 1, CHANGE_GIVES = 2, CHANGE_CALL = 4 };
typedef struct {
    uint64_t pc;
    int32_t order;                /* of the atomic operation or fence there */
    int32_t fence;                /* of one more fence before it; ORDER_KEPT: none */
    int32_t lock;                 /* taken before the access, given back behind it */
    int32_t reserved;
} EngineChange;

/* Keyed by thread and by that thread's own count of scheduling points, so that leaving out an
 * earlier decision does not move the later ones. */
typedef struct {
    uint32_t at;
    uint8_t thread;
    uint8_t kind;
    uint16_t value;
} EngineDecision;

/* Two steps of two threads that are to follow one another at one location: a store or the end of a
 * section, and what takes it. By each thread's own count of scheduling points. */
typedef struct {
    uint32_t at[2];               /* of the reader's step, and of the writer's */
    uint32_t call_at[2];          /* of the first step of the call */
    uint8_t thread[2];
} EnginePair;

/* One line of a trace. */
typedef struct {
    uint64_t address;
    uint64_t value;           /* read, written, or the new one of a read-modify-write */
    /* what a read-modify-write found; a call's first word; 1: the value of a plain read is known */
    uint64_t before;
    uint64_t pc;
    uint32_t step;
    /* trace index of the store that a load read, or that left the buffer; -1: none */
    int32_t from;
    int16_t thread;
    uint8_t op;
    uint8_t order;
    uint8_t width;
    uint8_t stale;  /* how many newer stores there were; for a store, how many it went before */
    uint8_t failed;  /* a compare-exchange that did not exchange, a lock that was not taken */
    uint8_t n_frames;
    uint32_t points;          /* scheduling points of the thread so far */
    int32_t call;             /* index of its operation */
    /* what it knows of each thread, this step included */
    uint32_t clock[ENGINE_MOST_THREADS] __attribute__((aligned(16)));
    uint64_t frames[ENGINE_MOST_FRAMES];
    /* of an address on a thread's stack: the function whose frame holds it, or 0, and the distance
     * to the end of the frame (DWARF's canonical frame address) */
    uint64_t frame_pc;
    int64_t frame_at;
} EngineEvent;

/* One operation of a program as it went: closed interval of steps, and the result. */
typedef struct {
    uint32_t invoked;
    uint32_t returned;
    uint32_t exchanged;       /* its first step that read and wrote an atomic, 0: none */
    uint32_t exchanged_last;  /* its last such step */
    PmlResult result;
} EngineCall;

typedef struct {
    int32_t kind;             /* EngineEnd */
    int32_t thread;           /* -1: the main thread, before or after the others */
    int32_t call;             /* index of the thread's operation */
    int32_t other_thread;     /* of a race: who accessed before */
    uint64_t execution;
    uint64_t address;
    uint64_t pc;
    uint64_t block_pc;        /* where the block was allocated */
    uint64_t free_pc;         /* where it was freed */
    uint64_t block_size;
    uint64_t offset;          /* of the address in its block */
    int32_t op, other_op;     /* EngineOp of the two accesses */
    int32_t width, other_width;
    /* of a race, in the trace if one is kept: its accesses, the other one first */
    int32_t event, other_event;
    int32_t released, acquired;   /* and what ordered the two threads last before, or -1 */
    uint64_t unfinished;  /* of a deadlock or livelock: bits of the threads that have not ended */
    /* and where each of them is blocked, 0: it runs in a loop */
    uint64_t waits_at[ENGINE_MOST_THREADS];
    /* of a deadlock: the lock or condition that each waits for, 0: none with an address */
    uint64_t waits_for[ENGINE_MOST_THREADS];
    int32_t signal;
    int32_t n_frames;
    uint64_t frames[ENGINE_MOST_FRAMES];
    char invariant[28];
    char message[224];
} EngineFailure;

typedef struct {
    uint64_t executions;
    uint64_t steps;
    uint64_t complete;
    uint64_t cut;
    uint64_t discarded;       /* executions in which an assumption did not hold */
    uint64_t blocked;         /* executions that a reduced search left: like earlier ones */
    uint64_t switches;
    uint64_t hooks;           /* accesses of the code under test that reached the engine */
    uint64_t shared;          /* executions in which two threads touched one location */
    uint64_t classes;         /* distinct executions, by reads-from and modification order */
    uint64_t once;            /* classes seen once, and twice */
    uint64_t twice;
    uint64_t stale;           /* loads that did not read the newest store */
    /* executions in which a location forgot a store that a thread could still have read, because it
     * remembers only so many; and because of an access of another width or kind */
    uint64_t forgotten;
    uint64_t mixed;
    uint64_t crowded;         /* stores that left a full buffer unasked, under TSO */
    uint64_t pruned;          /* executions in which a search's bound left something out */
    uint64_t spun;            /* executions in which its bound of turns without a pause did */
    uint64_t looped;          /* executions in which its bound of turns within an operation did */
    uint64_t suppressed;      /* races that were passed over */
    uint64_t pct_1, pct_2, pct_3;   /* executions of PCT with that depth to their end */
    uint32_t pct_steps;       /* among which it drew its changes */
    uint32_t threads;         /* the most of an execution, those that it started included */
    uint32_t longest;         /* steps of the longest execution */
    int32_t exhausted;
    int32_t unreduced;        /* why a search goes on without its reduction, see nodes.c */
} EngineStats;

typedef struct {
    const PmlSubject *subject;
    const int64_t *settings;
    const PmlCall *calls[ENGINE_MOST_THREADS];
    int32_t n_calls[ENGINE_MOST_THREADS];
    int32_t n_threads;
    int32_t mode;
    int32_t strategy;         /* number of a row */
    int32_t races;            /* detect data races */
    int32_t leaks;            /* detect blocks that are never freed */
    int32_t judged;           /* stop at answers that were not accepted yet */
    int32_t faults;
    int32_t reuse;  /* allocator: 0 quarantine, 1 eager reuse, 2 decided by each execution */
    int32_t depth;            /* PCT: 0 a mixture */
    int32_t bound;            /* of exhaustive search */
    int32_t lock_free;        /* a thread that is held back must not stop the others */
    /* and its bound of turns of loops that go on without a pause, of an execution */
    int32_t spins;
    int32_t turns;            /* and of turns of loops within one operation */
    int32_t stores;           /* that a location remembers */
    uint32_t step_limit;
    uint64_t seed;
    const uint16_t *path;     /* where an exhaustive search begins: its choices so far */
    int32_t n_path;
    int32_t floor;            /* and how many of them it leaves as they are */
    /* of a search with reduction: equal threads begin in the order of their numbers, each behind
     * the one that is named here; -1: none */
    int32_t symmetric;
    int8_t equal_before[ENGINE_MOST_THREADS];
    int32_t preemptions;          /* and its bound of preemptions; -1: none */
    const uint64_t *begun;    /* where a search with reduction begins: words of engine_part() */
    int32_t n_begun;
    int32_t unreduced;        /* why such a search was given up before, see nodes.c */
    const EngineDecision *decisions;   /* to replay, or from which a sampler departs */
    const EnginePair *pairs;  /* that such executions of a sampler make meet, one each */
    int32_t n_decisions;
    int32_t n_pairs;
    int32_t n_changes;
    const EngineChange *changes;   /* ascending */
    /* whether the last execution's answers are known to be right; or NULL */
    int (*known)(void *oracle);
    void *oracle;
} EngineConfig;

/* The engine's face for _engine.pyx. One engine, one OS thread at a time. */
const EngineStrategy *engine_strategy(int32_t number);
int engine_open(const EngineConfig *config);
void engine_beat(uint64_t *where);
int engine_keep_blocks(int begins, int cxx);
uint64_t engine_steps_in(int32_t pid);
int32_t engine_places_in(int32_t pid, uint64_t sp, int32_t *numbers, uint64_t *places, int32_t room);
uint64_t engine_run(uint64_t first, uint64_t count, EngineStats *stats);
int engine_again(uint64_t number);
int engine_reverse(uint64_t number);
int engine_suppress(uint64_t first, uint64_t second);
int engine_next(EngineStats *stats);
int32_t engine_path(uint16_t *taken, uint16_t *options, int32_t room, int32_t *floor);
double engine_left(double *spread);
int32_t engine_part(const uint64_t **words);
int engine_unjudged(void);
void engine_accept(EngineStats *stats);
void engine_ask(int (*known)(void *oracle), void *oracle);
void engine_stop_at(int64_t at);
const EngineFailure *engine_failure(void);
const EngineEvent *engine_trace(int64_t *count);
const EngineDecision *engine_decisions(int64_t *count);
uint32_t engine_preemptions(void);
const char *engine_note(uint64_t number);
const char *engine_name(uint64_t address, uint64_t *offset, uint64_t *size);
const EngineCall *engine_calls(int thread);
uint64_t engine_hash(void);
uint64_t engine_class(void);
int engine_classes(uint64_t *hashes);
int32_t engine_meetings(uint64_t *found, int32_t room);
int32_t engine_apart(EnginePair *pairs, uint64_t *numbers, int32_t room);
uint32_t engine_steps(void);
int engine_used_strategy(void);
int engine_used_reuse(void);
int32_t engine_used_depth(void);

#endif
