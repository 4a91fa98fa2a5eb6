/* The state of the running execution. Private to the engine's translation unit. */
#ifndef PULSAR_ML_ENGINE_STATE_H
#define PULSAR_ML_ENGINE_STATE_H

#include "pulsar_ml/harness/engine/engine.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define SHARED static __attribute__((used))  /* a variable that fibers change: see fiber_switch() */
#define INLINED static inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))
#define CLOCK(name) uint32_t name[ENGINE_MOST_THREADS] __attribute__((aligned(16)))
#define NEVER UINT32_MAX          /* a clock that no thread reaches */
#define NONE UINT32_MAX           /* no index */

enum { STACK_BYTES = 256 * 1024, FRAMES = 256 };
#define NOT_PRIVATE (-(uintptr_t)STACK_BYTES) /* no address is in the STACK_BYTES from here */

/* Reads without a write after which a loop may be waiting: of a sampler, and of a search. */
enum { IN_VAIN = 64, MANY_READS = 4 };


typedef struct {
    uintptr_t address;
    uint64_t low, high;
    uint32_t store;               /* the message's id */
    uint32_t now;                 /* the thread's clock when it was issued */
    uint8_t width, released, order, dead;  /* dead: of a variable whose function returned */
    int32_t event;                /* of the trace */
    int32_t node;                 /* of a search with reduction */
    uint64_t pc;
    CLOCK(clock);
} Buffered;

/* The words that the C and C++ libraries and the processor keep for the running thread of the
 * system. All fibers run on one such thread, so a switch exchanges these words. */
typedef struct {
    uint64_t exceptions[2];       /* __cxa_eh_globals: caught and uncaught exceptions */
    int32_t error;                /* errno */
    uint32_t float_control;       /* of SSE: rounding, masks and flags; of aarch64: FPCR */
    uint32_t float_status;        /* of x87: the control word; of aarch64: FPSR */
} LibraryState;

/* Where a fiber goes on that does not run. On aarch64 its stack holds the address of its code. */
typedef struct { void *sp, *code; } Fiber;

struct Owned;
struct Variable;

typedef struct Thread {
    Fiber fiber;
    uint64_t bit;
    int32_t number;               /* -1: the main thread */
    uint8_t controlled;  /* runs beside others: its accesses are steps; 0 or bits of Control */
    uint8_t fresh;                /* its current operation has not made a step yet */
    uint8_t done;
    uint8_t change_lock;          /* CHANGE_FREE and so on */
    uint8_t late;                 /* the deadline of its step was over when the step came */
    uint8_t came_late;            /* so it was before in this operation */
    uint8_t woken;                /* why a wait ended, see locks.c */
    uint8_t joined;               /* or detached */
    uint8_t op_writes;            /* of its next step */
    uintptr_t op_address;
    struct Variable *variable;    /* of its next step, when it was there at its announcement */
    /* Names its last step in classes and in the ids of stores: bits of the thread, and the number
     * of the step. Waiting before a step changes nothing. */
    uint32_t step;
    uint32_t values;              /* choices of values so far, see check_calls.c */
    /* The allocation that may fail, by its number among those of its scheduling point; and that. */
    uint32_t allocation, allocation_at;
    uint32_t idle_points;         /* scheduling points that are no step: the thread waits */
    uint32_t call;                /* index of the current operation */
    uint32_t priority;            /* PCT, POS */
    uint32_t weight;              /* SURW: events left on the chosen location */
    /* Happens-before. clock: the thread's own; pending: what relaxed loads read, for an acquire
     * fence; fenced: at the last release fence. The x-versions hold what SC fences order in
     * addition: it restricts the values read and is not happens-before. */
    uint32_t id;                  /* of its step 0 */
    uint64_t salt;                /* in hashes */
    uint32_t own[4] __attribute__((aligned(16)));  /* all ones in its entry of a clock of four */
    uint32_t others[4] __attribute__((aligned(16)));    /* and in the other entries */
    CLOCK(clock);
    CLOCK(pending);
    CLOCK(fenced);
    CLOCK(x_clock);
    CLOCK(x_pending);
    CLOCK(x_fenced);
    uint32_t fence_at, fence_pending, fence_fenced;   /* the last SC fence known */
    uint8_t any_pending, any_fenced;
    /* Spin loops: what was read since the last pause. */
    uint32_t watched[ENGINE_MOST_WATCHED];
    uint32_t watched_version[ENGINE_MOST_WATCHED];
    uint32_t n_watched;           /* reads since then; the array holds the last of them */
    uint8_t watch_lost;  /* it also wrote, so a turn of its loop may differ from the last */
    /* of its compare-exchanges that failed since then, mixed; and in the turn before */
    uint64_t operands;
    uint64_t turn_operands;
    uint32_t turn_step;           /* when its turn began */
    uint32_t turns;               /* of loops in this operation; looks at the clock count, too */
    uint32_t polls, idle_polls;   /* looks at the clock in this operation; since anything changed */
    uint32_t polled_changes;
    int64_t deadline;             /* while `timed` of the engine has its bit */
    uint64_t owed;                /* a yielding thread lets these run first */
    uint32_t blocked_on;          /* object, or NONE */
    uint64_t blocked_at;          /* place of code */
    /* Store buffer (TSO), a ring. */
    uint32_t buffer_head, buffer_count;
    Buffered *buffer;
    /* Call stack of the code under test, from function entry and exit. */
    uint32_t depth;
    uintptr_t frames[FRAMES];
    char *stack;
    uintptr_t locals_from;        /* the lowest atomic variable on its stack; UINTPTR_MAX: none */
    uintptr_t own_stack;          /* its accesses to these STACK_BYTES concern nobody else */
    EngineCall *calls;
    int32_t calls_room;
    void *(*body)(void *);        /* of a thread that the code under test started */
    void *argument;
    void *value;
    LibraryState library;
    struct Owned *owned;  /* thread-local variables and the like, see own.c; NULL: never any */
    /* Of a search with reduction: turns that went on at once, and looks at the clock. */
    uint32_t spun, looks;
} Thread;

/* Bits of Thread.controlled. A hook's short path is for CONTROLLED alone. */
enum { CONTROLLED = 1, IGNORES_READS = 2, IGNORES_WRITES = 4, VOLATILE_PENDING = 8, NOTES_PLACES = 16,
       HOLDS_STORES = 32, HOLDS_LOCK = 64, CHANGES_CODE = 128 };
/* A thread's part in the lock of changes; CHANGE_ENDS: its next step gives the lock back. */
enum { CHANGE_FREE, CHANGE_HELD, CHANGE_ENDS };

/* One store in a location's modification order. released: what an acquire of it learns, zeros when
 * that is nothing; x_released likewise for SC fences. */
typedef struct {
    uint64_t low, high;
    uint32_t id;
    uint32_t sc_at;               /* time of the first seq_cst access that touched it */
    uint32_t fence_at;
    int32_t event;                /* of the trace */
    uint8_t has_released, has_x;
    uint32_t words[] __attribute__((aligned(16)));  /* released, x_released: E.width each */
} Message;

/* Where it stands in the source is left to the trace: a failed execution is made again to be told
 * of. */
typedef struct { uint32_t clock; uint8_t thread; } Access;

/* An address range within eight aligned bytes as accessed by the code under test. Plain accesses
 * and atomic ones of the same bytes share it; overlapping ones of other widths are its siblings. */
typedef struct Variable {
    uintptr_t address;
    char *block;                  /* clocks and messages, see memory.c */
    uint32_t next;                /* sibling in the same eight bytes */
    uint8_t mask;
    uint8_t width;
    uint8_t is_atomic;
    uint8_t special;              /* bits of Special */
    int8_t toucher;
    uint8_t n, base;              /* messages; the first one's place in the block's lists */
    uint32_t version;             /* stores so far */
    Access write, read;
    uint32_t readers;             /* more than one unordered plain reader: index of their clocks */
    uint16_t newest;              /* where the last message in modification order is in the block */
    uint16_t index;               /* in E.variables */
    uint64_t chained;             /* messages that must stay directly behind the one before them */
} Variable;

/* Why an atomic access looks at more than the messages: plain accesses of the same bytes, or
 * overlapping variables. */
typedef enum { HAS_PLAIN = 1, HAS_SIBLINGS = 2 } Special;

/* Offsets in the block of a variable, and sizes. */
typedef struct { size_t order_at, messages_at, message_bytes, seen_at, block_bytes; } Layout;

/* The variables of eight aligned bytes, in the execution that has this generation. */
typedef struct { uint32_t generation, first; } Cell;

/* A cell outside of the arena; the key is an eighth of its address. */
typedef struct { uintptr_t key; Cell cell; } Slot;

enum { SLOTS = 1 << 16, MOST_VARIABLES = 1 << 16, MOST_READERS = 1 << 12 };
enum { NO_VARIABLE = MOST_VARIABLES };   /* an entry of the table that no address has */

/* A row of the table of strategies. Only `row` and `choose` are always there. */
typedef struct {
    EngineStrategy row;
    uint8_t profiled;             /* wants a few executions that show the program's shape */
    void (*start)(void);          /* of an execution */
    /* one of the threads in the mask; t is the running one */
    Thread *(*choose)(Thread *t, uint64_t mask);
    void (*on_step)(Thread *t);   /* t announced its next step */
    void (*on_yield)(Thread *t);  /* t gives way */
} Strategy;

/* Sees everything the scheduler, the memory model and the detectors share. */
/* Freed blocks of this many sizes are handed out again. E.reuse is UNDECIDED, in a search with
 * reduction, until an allocation finds one. */
enum { SMALL_CLASSES = 64, UNDECIDED = 2 };

typedef struct {
    EngineConfig config;
    EngineFailure failure;
    EngineStats *stats;
    int32_t n;                    /* threads of this execution, those that it started included */
    int32_t width;                /* entries of a clock: a multiple of four, n or more */
    int32_t live;
    int32_t unjoined;             /* threads that this execution started and did not join */
    int32_t starting;
    uint8_t running, at_start, recording, broken, ended, x_used, reuse, plain_walk, attentive, opened, held_once;
    uint8_t reducing;  /* the search with reduction, see schedule/reduction */
    uint8_t sampling;  /* choices are drawn, and not noted */
    uint8_t guided;  /* the execution follows a tape, see strategies/guided.c */
    uint8_t walks;     /* a plain walk past its start, and nothing else to attend to */
    /* C11, four entries a clock, ENGINE_STORES messages a variable, no seq_cst fence so far, all
     * orders as in the source, sampling */
    uint8_t common;
    uint8_t wider;  /* the execution ended because a thread more than E.width was started */
    const Strategy *strategy;     /* of this execution */
    uint32_t generation;
    uint32_t step, step_check;    /* the step at which to look whether it goes on */
    uint64_t execution;
    /* The next random number, and the one of the counter behind it. They are no neighbours, because
     * the compiler would put both into a vector before it writes them. */
    uint64_t drawn, key, counter;
    uint64_t ready;               /* threads that can make a step */
    uint64_t following;
    uint64_t waiting;             /* that wait for a change of what they read */
    uint64_t yielded;             /* that let others go first */
    uint64_t buffered;            /* that hold back stores */
    uint64_t timed;               /* that wait until a time, whatever else they wait for */
    uint64_t held;  /* the thread that is held back to see whether the others need it */
    /* makes turns in a row; that are ready and may not go on meanwhile */
    uint64_t spinner, held_back;
    uint32_t turns_left;          /* of the spinner */
    uint32_t many_reads;          /* without a write, after which a loop may be waiting */
    uint32_t spun;                /* turns that ended without a pause, by choice */
    uint32_t pauses, alone;       /* ends of turns; those at which no other thread was ready */
    uint32_t changes, stuck_changes, stuck_rounds;
    uint32_t main_turns;          /* of loops in which the main thread waits */
    uint64_t hash, class_hash;
    uint32_t messages;
    uint32_t sc_time;
    CLOCK(sc_clock);
    uint64_t hooks, switches, stale, crowded;
    uint8_t touched_twice;
    uint8_t forgot, mixed;        /* in this execution: stores that could still have been read */
    int64_t now_ns;
    uint64_t random_calls;        /* for random numbers of the system */
    /* Variables. */
    Cell *cells;
    Slot *slots;
    Variable *variables;
    uint32_t n_variables;
    char *blocks;                 /* of messages, one block a variable */
    size_t blocks_bytes;
    Layout layout;
    uint32_t *readers;
    uint32_t n_readers;
    /* Fibers. */
    Fiber host;
    LibraryState library_start;   /* of each thread */
    uint8_t control;              /* Thread.controlled at its start */
    Thread main;
    Thread *threads;
} Engine;

SHARED Engine E;

/* Threads of Python in this execution and the interpreter's lock, see hooks/interpreter_lock.c. */
enum { NOBODY = -1 };
SHARED struct {
    void (*after)(int ended);     /* called behind each execution; NULL: none is of Python */
    void (*enter)(int number);    /* the thread holds the lock again, in native code */
    void *(*state)(int number);   /* its thread state */
    int (*exhausted)(uintptr_t address);  /* is the address below a thread's stack? */
    uint8_t sections;             /* a thread was in one without the lock in this execution */
    uint8_t orders;               /* each holder knows what the one before it did */
    int32_t holder;               /* or NOBODY */
    int32_t last;  /* who offered the lock last and made no step since; NOBODY: `clock` is its */
    uint64_t waiting;
    uint64_t outside;             /* threads in sections of native code without the lock */
    CLOCK(clock);
} python;

/* The running fiber; NULL outside controlled runs, where every hook is the plain operation. */
static __thread Thread *current __attribute__((tls_model("initial-exec")));

#endif
