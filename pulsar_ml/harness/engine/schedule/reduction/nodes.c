/* The search of strategies "exhaust" and "reduce": the path through the tree of transitions that
 * the execution under way takes, and what is known at each node of that path. A node is the state
 * before a transition. Choices of values (which waiter a notification wakes, a fault) belong to the
 * transition that makes them.
 *
 * A thread that would wait for a lock, a semaphore, or the end of another thread is not offered;
 * other waits are transitions of their own, behind which the thread is not ready. */

/* Why a search goes on without the reduction, as bits. */
enum { UNREDUCED_BUFFERS = 1, UNREDUCED_LOOPS = 2, UNREDUCED_OBJECTS = 4, UNREDUCED_RACES = 8, UNREDUCED_HELD = 16,
       UNREDUCED_THREADS = 32, UNREDUCED_PYTHON = 64, UNREDUCED_LIBRARY = 128, UNREDUCED_MEMORY = 256 };

enum { MOST_CHANCES = 4, ANY_CHANCE = 255 };
enum { OPTION_NONE, OPTION_USUAL, OPTION_FAULT };

typedef struct {
    uint32_t own;                 /* transitions of its thread so far, this one included */
    uint8_t thread;
    uint8_t quiet;                /* no thread could go on since the one before of its thread */
    uint8_t turned;               /* a turn of a loop of its thread ended before it */
    Footprint footprint;          /* of the transition that is made from here */
    uint64_t sleep;  /* threads whose next transition was searched from here or before */
    uint64_t half;   /* threads that slept, and were woken to read from a new store alone */
    uint64_t parted; /* threads whose next transition begins with a fault or without it */
    uint64_t partly; /* of these, threads that slept, and were woken for one of the two alone */
    uint64_t faulty; /* of these, threads that still sleep with the fault */
    uint64_t enabled;
    uint64_t full;   /* threads whose next step waits until their buffers are empty */
    uintptr_t lock, acquired;     /* that the transition tries to get, and that it took; 0: none */
    uintptr_t had_units;          /* the semaphore that it changed and that had units; 0: none */
    uint8_t use, shares;          /* of the lock; and it took the lock for reading */
    uint8_t drains;               /* how it empties the buffer of its thread */
    int32_t enabler;              /* the node whose transition let the thread go on; -1: none */
    uint32_t behind;  /* all nodes below this one come first: no thread could go on there */
    uint32_t wakeups;             /* sequences with which the search has yet to begin here */
    uint32_t handed;              /* and behind this transition */
    uint32_t stored, read;        /* ids of the store that it made, and that it read; 0: none */
    uintptr_t entered;            /* mode tso: the address of the store that entered the buffer */
    /* Mode c11: ids of the stores with the value that a compare-exchange expects. */
    uint32_t chances[MOST_CHANCES];
    int64_t until;                /* it may give up waiting for the lock from this time on */
    int64_t began, now;           /* the clock before it, and if it set the clock, behind it */
    uint8_t n_chances;            /* ANY_CHANCE: it may store whatever it reads */
    uint8_t option;               /* of a fault with which it begins: OPTION_NONE, _USUAL, _FAULT */
    uint8_t kept;                 /* footprints of its thread that were made from here, as bits */
    /* transitions of each thread that must come before */
    uint32_t clock[REDUCED_THREADS] __attribute__((aligned(16)));
    uint32_t since[REDUCED_THREADS];       /* the node at which a thread fell asleep */
    Footprint asleep[REDUCED_THREADS];     /* of the threads in `sleep`, `half` and `partly` */
    Branches branches;
} ReducedNode;

/* Of a node, apart from it because few need them: the footprints, with the fault, of the threads in
 * `parted`. */
typedef struct { Footprint of[REDUCED_THREADS]; } FaultPrints;

/* A choice of a value; the node before it, NONE: it comes before the first. closed: the options
 * behind the one that is taken sleep. */
typedef struct { uint32_t node; uint16_t options, taken; uint8_t closed; Branches branches; } ReducedValue;

/* What a thread announced. */
typedef struct {
    uintptr_t address, lock;
    int64_t until;
    uint8_t use, all, writes, joins, drains;
} Announced;

SHARED struct {
    ReducedNode *nodes;
    FaultPrints *faults;          /* as many */
    ReducedValue *values;
    uint32_t n_nodes, nodes_room, n_values, values_room;
    uint64_t executions;          /* that ended */
    uint32_t node_at, value_at;   /* how far the execution under way came */
    uint32_t changed;  /* the first node whose transition may be another one than before */
    int32_t unreduced;            /* why the reduction was given up, 0: it was not */
    uint8_t ended;                /* and the search with it */
    uint32_t floor_nodes, floor_values;    /* those below are of other parts, see parts.c */
    uint32_t known;               /* the nodes below it were analysed where the part began */
    uint64_t ready;               /* when the last transition began */
    int32_t enablers[REDUCED_THREADS];
    uint32_t counts[REDUCED_THREADS];      /* transitions of each thread, in the analysis */
    uint8_t nothing_new;  /* the last transition could read no store that it was woken for */
    uint8_t stuck;                /* the threads that are left wait for each other */
    uint64_t waiting;             /* threads that wait since nobody could go on */
    uint64_t begun;               /* threads that made a transition */
    uint64_t turned;              /* threads whose last transition ended a turn of a loop */
    uint8_t left;                 /* the execution left the bound of preemptions */
    uint8_t analysed;             /* so were its races */
    Announced announced[REDUCED_THREADS];
    Announced next;               /* of the step about to be announced */
    uint32_t behind;              /* no thread could go on before this node, last */
    uint32_t passed[REDUCED_THREADS];      /* the same when the thread made its last transition */
    uint8_t hurries;              /* a thread that lets others go first went on at once */
    uint8_t expires;              /* the clock moves because a wait ends, as a fault */
    int64_t least[REDUCED_THREADS];        /* see expiry.c */
    uint64_t beside[REDUCED_THREADS];
    uint32_t latest[REDUCED_THREADS];
} reduction;

/* How an announced step empties the buffer of its thread. */
enum { DRAINS = 1, DRAINS_IF_FREE };

/* A wait for a lock can end without it: its time is over, or may be at once. */
static inline int can_give_up(int64_t until, int64_t now)
{
    return until < INT64_MAX && (until <= now || E.config.faults & FAULT_TIMEOUT);
}

static int would_wait_for_lock(const Announced *next, int thread);
static int is_taken(uintptr_t lock, LockUse use, int thread);

static __attribute__((noinline)) void give_up_reduction(int why)
{
    if (current && current->controlled)
        reduction.unreduced |= why;
}

/* The footprint that is being made; NULL while none is. */
static Footprint *footprint_now(void)
{
    uint32_t at = reduction.node_at;
    if (!E.reducing || at == 0 || at <= reduction.changed || reduction.stuck)
        return NULL;
    return &reduction.nodes[at - 1].footprint;
}

static __attribute__((noinline)) void note_touch(uintptr_t address, uint32_t bytes, int mode)
{
    Footprint *f = current && current->controlled ? footprint_now() : NULL;
    if (f)
        add_touch(f, address, bytes, (uint8_t)mode);
}

/* The step that was announced without an address touches this and nothing else. */
static __attribute__((noinline)) void note_only(uintptr_t address, int mode)
{
    Footprint *f = footprint_now();
    if (f) {
        f->all = 0;
        add_touch(f, address, 1, (uint8_t)mode);
    }
}

/* Mode tso: the threads whose buffers hold stores of these bytes, as bits. */
static uint8_t threads_holding(uintptr_t address, uint32_t bytes)
{
    uint8_t found = 0;
    for (uint64_t rest = E.buffered; rest; rest &= rest - 1) {
        const Thread *t = &E.threads[__builtin_ctzll(rest)];
        for (uint32_t i = 0; i < t->buffer_count; i++) {
            const Buffered *b = &t->buffer[(t->buffer_head + i) % ENGINE_BUFFER];
            if (b->address == address && b->width == bytes && !b->dead)
                found |= (uint8_t)t->bit;
        }
    }
    return found;
}

static void set_hides(Footprint *f, uintptr_t address, uint32_t bytes, uint8_t hides)
{
    for (int i = 0; i < f->n; i++)
        if (f->touches[i].address == address && f->touches[i].bytes == bytes)
            f->touches[i].hides = hides;
}

/* Mode tso: the load found a store of its own thread, in memory if it left the buffer. */
static __attribute__((noinline)) void note_found(uintptr_t address, uint32_t bytes, int in_buffer)
{
    Footprint *f = footprint_now();
    if (f)
        set_hides(f, address, bytes, in_buffer ? FOUND_IN_BUFFER : FOUND_IN_MEMORY);
}

static __attribute__((noinline)) void note_access(const Thread *t, uintptr_t address, uint32_t bytes, EngineOp op)
{
    int reads = op != OP_STORE && op != OP_FLUSH;
    uint8_t mode = (reads ? TOUCH_READS : 0) | (op == OP_LOAD ? 0 : TOUCH_WRITES);
    int owned = E.config.mode == MODE_TSO;
    Footprint *f = current->controlled ? footprint_now() : NULL;
    if (f) {
        add_touch_of(f, address, bytes, mode, owned ? (uint8_t)(t->number + 1) : 0);
        if (owned && op != OP_LOAD)
            set_hides(f, address, bytes, threads_holding(address, bytes));
    }
    if (op != OP_LOAD && footprint_now())
        reduction.nodes[reduction.node_at - 1].stored = current->step;
}

/* Mode c11: the order of seq_cst accesses matters to those of the same location and to seq_cst
 * fences; see memory.c. Two loads have no order unless one of them takes stores from the other. */
static __attribute__((noinline)) void note_order(int order, uintptr_t address, uint32_t bytes, int takes)
{
    if (order != __ATOMIC_SEQ_CST || E.config.mode != MODE_C11)
        return;
    note_touch(KEY_FENCES, 1, TOUCH_OBJECT | TOUCH_READS);
    note_touch(address | KEY_SEQ_CST, bytes,
               TOUCH_OBJECT | TOUCH_READS | (takes ? TOUCH_WRITES : TOUCH_MAY_WRITE));
}

/* The node whose transition made this store; NONE: it was there from the start. */
static uint32_t store_node(uint32_t id)
{
    for (uint32_t i = reduction.node_at; id && i-- > 0;)
        if (reduction.nodes[i].stored == id)
            return i;
    return NONE;
}

/* May the running thread read this store, or was that searched before? */
static int is_new_read(uint32_t id)
{
    const ReducedNode *node = &reduction.nodes[reduction.node_at - 1];
    uint32_t maker;
    if (reduction.stuck || reduction.node_at == 0 || !(node->half >> node->thread & 1))
        return 1;
    maker = store_node(id);
    return maker != NONE && maker >= node->since[node->thread];
}

static __attribute__((noinline, noreturn)) void leave_execution(void)
{
    E.failure.kind = END_BLOCKED;
    abandon();
}

/* The execution ends here: its loop would go on as long as the others do not. */
static __attribute__((noinline, noreturn)) void give_up_loops(void)
{
    give_up_reduction(UNREDUCED_LOOPS);
    leave_execution();
}

/* The thread stays asleep: it was woken for stores that it cannot read. */
static __attribute__((noinline, noreturn)) void leave_transition(void)
{
    reduction.nothing_new = 1;
    leave_execution();
}

/* The step reads this store. */
static __attribute__((noinline)) void note_read(uint32_t id)
{
    if (E.config.mode != MODE_C11 || !current->controlled)
        return;
    if (!is_new_read(id))
        leave_transition();
    if (footprint_now())
        reduction.nodes[reduction.node_at - 1].read = id;
}

/* An exchange or an attempt at a lock fails, or a notification wakes nobody: it only read. */
static __attribute__((noinline)) void note_failed(uintptr_t address, uint32_t bytes)
{
    Footprint *f = footprint_now();
    for (int i = 0; f && i < f->n; i++)
        if (f->touches[i].address == address && f->touches[i].bytes == bytes)
            f->touches[i] = (Touch){address, bytes, (uint8_t)((f->touches[i].mode & ~(TOUCH_WRITES | TOUCH_HARD)) |
                                                               TOUCH_MAY_WRITE), 0, 0, 0};
    if (f)
        reduction.nodes[reduction.node_at - 1].stored = 0;
}

/* A wait for a lock is over. If the thread did wait, that ended when the clock moved. */
static __attribute__((noinline)) void note_given_up(uintptr_t lock, int waited)
{
    Footprint *f = footprint_now();
    note_failed(lock, 1);
    note_failed(lock + 1, 1);
    for (int i = f && waited ? f->n : 0; i-- > 0;)
        if (f->touches[i].address - lock < 2 && f->touches[i].bytes == 1)
            f->touches[i] = f->touches[--f->n];
}

/* What the transition does depends on all others, and the other way round. */
static __attribute__((noinline)) void note_all(void)
{
    Footprint *f = current && current->controlled ? footprint_now() : NULL;
    if (f)
        f->all = 1;
}

/* Whether the clock is at this time matters to what the running thread does. */
static void depend_on_time(int64_t time)
{
    for (int i = 0; i < REDUCED_THREADS; i++)
        if (i != current->number && time < reduction.least[i])
            reduction.least[i] = time;
}

/* What the transition does depends on whether the clock is there yet. */
static __attribute__((noinline)) void note_deadline(int64_t until)
{
    if (until == INT64_MAX)
        return;
    note_touch(KEY_TIMES + (uintptr_t)until, 1, TOUCH_OBJECT | TOUCH_READS);
    depend_on_time(until);
}

/* The clock moves: deadlines between are over. Two faults that set the clock may come in either
 * order. */
static __attribute__((noinline)) void note_time(int64_t from, int64_t until)
{
    Footprint *f = current && current->controlled ? footprint_now() : NULL;
    int together = reduction.expires ? TOUCH_TOGETHER : 0;
    if (f == NULL)
        return;
    add_touch(f, KEY_CLOCK, 1, (uint8_t)(TOUCH_OBJECT | TOUCH_WRITES | (together ? together : TOUCH_READS)));
    if (until > from) {
        add_times(f, from, until, together);
        reduction.nodes[reduction.node_at - 1].now = until;
    }
}

/* A lock or the like is released, or ends. */
static __attribute__((noinline)) void note_object(uintptr_t address)
{
    note_touch(address, 1, TOUCH_OBJECT | TOUCH_READS | TOUCH_WRITES);
}

static __attribute__((noinline)) void note_acquired(uintptr_t lock, int shares)
{
    if (footprint_now()) {
        reduction.nodes[reduction.node_at - 1].acquired = lock;
        reduction.nodes[reduction.node_at - 1].shares = (uint8_t)shares;
    }
}

/* What was announced is not touched itself. */
static __attribute__((noinline)) void note_unannounced(void)
{
    Footprint *f = footprint_now();
    if (f && f->announced) {
        f->announced = 0;
        memmove(f->touches, f->touches + 1, --f->n * sizeof *f->touches);
    }
}

/* A read-write lock: readers come and go, or a writer did not get it for them. */
static void note_readers(uintptr_t lock, int mode)
{
    note_touch(lock + 1, 1, TOUCH_OBJECT | mode);
}

/* The semaphore is looked at, which lets nobody go on. */
static __attribute__((noinline)) void note_looked(uintptr_t semaphore)
{
    note_failed(semaphore, 1);
    if (footprint_now())
        reduction.nodes[reduction.node_at - 1].had_units = semaphore;
}

/* The semaphore changes: how many units there were. */
static void note_units(uintptr_t semaphore, uint32_t before)
{
    if (footprint_now() && before)
        reduction.nodes[reduction.node_at - 1].had_units = semaphore;
}

/* The freed blocks of a size: an allocation looks for one, unless all stay in quarantine. */
static __attribute__((noinline)) void note_sizes(size_t class, int mode)
{
    Footprint *f = current && current->controlled ? footprint_now() : NULL;
    if (f == NULL)
        return;
    f->late = 1;
    if (class < SMALL_CLASSES && E.reuse)
        add_touch(f, KEY_SIZES + class, 1, (uint8_t)(TOUCH_OBJECT | mode));
}

/* A block is handed out again, or freed: their order decides which allocation gets which block. */
static __attribute__((noinline)) void note_reused(size_t class, uintptr_t address, uint32_t bytes)
{
    note_sizes(class, TOUCH_READS | TOUCH_WRITES);
    note_touch(address, bytes, TOUCH_OBJECT | TOUCH_READS | TOUCH_WRITES);
}

/* Where histories are judged, the order matters in which one call returns and another one
 * begins. */
static __attribute__((noinline)) void note_call(void)
{
    if (E.config.judged)
        note_touch(KEY_CALLS, 1, TOUCH_OBJECT | TOUCH_READS);
}

static __attribute__((noinline)) void note_return(int also_begins)
{
    if (E.config.judged)
        note_touch(KEY_CALLS, 1, TOUCH_OBJECT | TOUCH_WRITES | TOUCH_TOGETHER);
    if (also_begins)
        note_call();
}

/* The step about to be announced tries to get a lock, until this time at most. */
static void will_lock(uintptr_t lock, LockUse use, int64_t until)
{
    reduction.next.lock = lock;
    reduction.next.use = (uint8_t)use;
    reduction.next.until = until;
    reduction.next.drains = until == INT64_MAX ? DRAINS : DRAINS_IF_FREE;
}

/* The step about to be announced waits for the end of a thread. */
static void will_join(uintptr_t handle)
{
    if (handle > (uintptr_t)E.config.n_threads && handle <= (uintptr_t)E.n && &E.threads[handle - 1] != current)
        reduction.next.joins = (uint8_t)handle;
}

/* The step about to be announced empties the thread's buffer first, whatever it finds. */
static inline void will_drain(void)
{
    if (unlikely(E.reducing))
        reduction.next.drains = DRAINS;
}

/* The same of an attempt, which does so when it gets the mutex. */
static inline void will_try(void)
{
    if (unlikely(E.reducing))
        reduction.next.drains = DRAINS_IF_FREE;
}

/* Mode tso: the step came when the thread's buffer was empty. */
static __attribute__((noinline)) void note_emptied(const Thread *t)
{
    if (E.config.mode == MODE_TSO)
        note_touch(KEY_ENDS + (uintptr_t)t->number, 1, TOUCH_OBJECT | TOUCH_READS | TOUCH_HARD);
}

/* A store enters the buffer: others notice it when it leaves. */
static void note_buffered(Buffered *b)
{
    b->node = (int32_t)reduction.node_at - 1;
    if (footprint_now())
        reduction.nodes[reduction.node_at - 1].entered = b->address;
    note_unannounced();
}

/* No thread can go on, so something happens by itself: a deadline passes, or those that wait look
 * again. What follows comes behind all that was before. */
static __attribute__((noinline)) void note_quiet(void)
{
    reduction.behind = reduction.node_at;
    reduction.stuck = 0;
    reduction.ready = 0;
}
