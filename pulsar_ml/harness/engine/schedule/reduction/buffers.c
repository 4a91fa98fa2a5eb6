/* Mode tso in a search with reduction: each thread's buffer is a thread of the search beside it,
 * whose next transition is that the oldest store reaches memory. Every store enters the buffer. A
 * thread whose next step empties its buffer is not offered before the buffer is empty. */

enum { FIRST_BUFFER = 8, MOST_WITH_BUFFERS = FIRST_BUFFER };

static void flush_oldest(Thread *t);

static inline int is_buffer(int thread) { return E.config.mode == MODE_TSO && thread >= FIRST_BUFFER; }

static inline int most_reduced_threads(void)
{
    return E.config.mode == MODE_TSO ? MOST_WITH_BUFFERS : REDUCED_THREADS;
}

/* The buffers of these threads, as threads of the search. */
static inline uint64_t buffers_in(uint64_t threads) { return threads << FIRST_BUFFER; }

/* The node whose transition put the next store into this buffer. */
static int32_t oldest_stored(int buffer)
{
    const Thread *t = &E.threads[buffer - FIRST_BUFFER];
    return t->buffer[t->buffer_head].node;
}

static void note_touch(uintptr_t address, uint32_t bytes, int mode);

/* The oldest store of the buffer reaches memory, while `t` picks. */
static void leave_buffer(Thread *t, int buffer)
{
    Thread *u = &E.threads[buffer - FIRST_BUFFER];
    if (unlikely(E.recording))
        decision_made(t, CHOOSE_FLUSH, 1 + (uint32_t)__builtin_popcountll(E.buffered & (u->bit - 1)));
    note_touch(KEY_ENDS + (uintptr_t)u->number, 1, TOUCH_OBJECT | TOUCH_WRITES | TOUCH_TOGETHER);
    flush_oldest(u);
    t->idle_points++;
}
