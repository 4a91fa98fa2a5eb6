/* Footprints of transitions. A transition is what a thread does from one scheduling point to its
 * next one; its footprint says what other threads could notice of it. Transitions of two threads
 * whose footprints do not clash can be made in either order: the same execution. */

enum { MOST_TOUCHES = 6, REDUCED_THREADS = 16 };

/* MAY_WRITE: a failed exchange, which writes where it comes at another time. OBJECT: no atomic, so
 * the order of any two touches of which one writes matters in each mode. TOGETHER: two of them
 * never clash. HARD: the thread could not have gone on before the other touch. */
enum { TOUCH_READS = 1, TOUCH_WRITES = 2, TOUCH_MAY_WRITE = 4, TOUCH_OBJECT = 8, TOUCH_TOGETHER = 16,
       TOUCH_HARD = 32 };

/* Touches that are no address of the code under test. KEY_ENDS: of each thread, its end and the
 * stores that leave its buffer. KEY_ONCE: initialisations that happen once. KEY_SIZES: the freed
 * blocks of each size. */
enum { KEY_HEAP = 1, KEY_CALLS, KEY_STARTS, KEY_FENCES, KEY_ONCE, KEY_ENDS = 64, KEY_SIZES = 256 };
#define KEY_CLOCK ((uintptr_t)&E.now_ns)
static const uintptr_t KEY_SEQ_CST = (uintptr_t)1 << 63;   /* and an address */
static const uintptr_t KEY_TIMES = (uintptr_t)1 << 62;     /* and a time */

/* shift: the length of times is `bytes` with so many more bits. own: mode tso, of an access, 1 +
 * its thread; 0: none. hides: mode tso, of a load, that it found a store of its own thread; of a
 * store that arrives in memory, the threads, as bits, whose buffers held stores of these bytes. */
typedef struct { uintptr_t address; uint32_t bytes; uint8_t mode, own, shift, hides; } Touch;
enum { FOUND_IN_MEMORY = 1, FOUND_IN_BUFFER = 2 };

/* all: clashes with everything. late: touches what a transition may touch behind its first access,
 * depending on what that access read. announced: the first touch is the announced one. units: of
 * its touches, and maybe others. */
typedef struct { uint8_t n, all, late, announced; uint64_t units; Touch touches[MOST_TOUCHES]; } Footprint;

/* A bit for each eight aligned bytes that the range meets, of which each 64th have the same. Ranges
 * that overlap have a bit in common. */
static inline uint64_t units_of(uintptr_t address, uint32_t bytes)
{
    uint64_t more = ((address + bytes - 1) >> 3) - (address >> 3), bits;
    if (unlikely(more >= 63))
        return ~UINT64_C(0);
    bits = (UINT64_C(2) << more) - 1;
    return bits << (address >> 3 & 63) | bits >> (-(address >> 3) & 63);
}

static void add_touch_of(Footprint *f, uintptr_t address, uint32_t bytes, uint8_t mode, uint8_t own)
{
    f->units |= units_of(address, bytes);
    f->late |= address == KEY_HEAP || address == KEY_CALLS || address == KEY_ONCE || address == KEY_CLOCK;
    if (f->announced && f->touches[0].address == address) {
        f->announced = 0;
        f->touches[0] = (Touch){address, bytes, mode, own, 0, 0};
        return;
    }
    for (int i = 0; i < f->n; i++)
        if (f->touches[i].address == address && f->touches[i].bytes == bytes) {
            uint8_t together = f->touches[i].mode & mode & TOUCH_TOGETHER;
            f->touches[i].own = f->touches[i].own == own ? own : 0;
            f->touches[i].hides = 0;
            f->touches[i].mode = (uint8_t)((f->touches[i].mode | mode) & ~TOUCH_TOGETHER) | together;
            return;
        }
    if (f->n == MOST_TOUCHES)
        f->all = 1;
    else
        f->touches[f->n++] = (Touch){address, bytes, mode, own, 0, 0};
}

static void add_touch(Footprint *f, uintptr_t address, uint32_t bytes, uint8_t mode)
{
    add_touch_of(f, address, bytes, mode, 0);
}

/* The clock moves from one time to a later one: what waits until a time between ends. */
static void add_times(Footprint *f, int64_t from, int64_t until, int together)
{
    uint64_t length = (uint64_t)(until - from);
    uint8_t shift = 0;
    while (length >> shift > UINT32_MAX - 1)
        shift++;
    add_touch(f, KEY_TIMES + (uintptr_t)from + 1, (uint32_t)(length >> shift) + (shift > 0),
              (uint8_t)(TOUCH_OBJECT | TOUCH_WRITES | together));
    if (!f->all)
        f->touches[f->n - 1].shift = shift;
}

/* How a step uses a lock, so that it may have to wait: a mutex, a read-write lock, or a unit of a
 * semaphore. Beside the address of a read-write lock, the byte behind it says that readers come and
 * go, which matters to writers alone. */
typedef enum { USE_NONE, USE_MUTEX, USE_READ, USE_WRITE, USE_UNIT } LockUse;

static void add_lock(Footprint *f, uintptr_t lock, LockUse use)
{
    uint8_t mode = TOUCH_OBJECT | TOUCH_READS | TOUCH_HARD;
    add_touch(f, lock, 1, use == USE_READ ? mode : mode | TOUCH_WRITES);
    if (use == USE_READ)
        add_touch(f, lock + 1, 1, TOUCH_OBJECT | TOUCH_WRITES | TOUCH_TOGETHER);
    else if (use == USE_WRITE)
        add_touch(f, lock + 1, 1, mode);
}

static void join_footprint(Footprint *into, const Footprint *from)
{
    into->all |= from->all;
    for (int i = 0; i < from->n; i++)
        if (from->touches[i].shift)
            into->all = 1;
        else
            add_touch_of(into, from->touches[i].address, from->touches[i].bytes, from->touches[i].mode,
                         from->touches[i].own);
    into->late |= from->late;
}

static inline int overlap(const Touch *a, const Touch *b)
{
    return a->address - b->address < (uintptr_t)b->bytes << b->shift ||
           b->address - a->address < (uintptr_t)a->bytes << a->shift;
}

/* READ_CLASH: mode c11 alone. There a load may come before or behind a store of its location, and a
 * store takes any place in modification order: only a load that comes first cannot read the
 * store. */
typedef enum { NO_CLASH, READ_CLASH, ORDER_CLASH } Clash;

/* Mode tso: a load and a store that arrives, of the same bytes. The load finds a store of its own
 * thread, in the buffer or in memory, as long as no other store arrived behind that. */
static inline int finds_own(const Touch *a, const Touch *b)
{
    if (a->address != b->address || a->bytes != b->bytes)
        return 0;
    if (a->own == b->own)
        return 1;
    if (b->mode & TOUCH_WRITES)
        return !(a->mode & TOUCH_WRITES) && a->hides == FOUND_IN_BUFFER && b->hides >> (a->own - 1) & 1;
    return b->hides == FOUND_IN_BUFFER;
}

/* Does it matter whether `a` comes before `b`? */
static inline Clash touches_clash(const Touch *a, const Touch *b, uint8_t writes)
{
    if (a->own && b->own && finds_own(a, b))
        return NO_CLASH;
    if (!overlap(a, b) || !((a->mode | b->mode) & writes) || a->mode & b->mode & TOUCH_TOGETHER)
        return NO_CLASH;
    if (E.config.mode != MODE_C11 || (a->mode | b->mode) & TOUCH_OBJECT || a->address != b->address ||
        a->bytes != b->bytes)
        return ORDER_CLASH;
    return a->mode & TOUCH_READS && b->mode & writes ? READ_CLASH : NO_CLASH;
}

/* Which of two transitions would be made at another time than it was, so that what it does behind
 * its first access is not known. */
enum { BOTH_KNOWN = 0, FIRST_UNSURE = 1, SECOND_UNSURE = 2 };

static Clash all_touches_clash(const Footprint *a, const Footprint *b, uint8_t writes)
{
    Clash most = NO_CLASH;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            Clash found = touches_clash(&a->touches[i], &b->touches[j], writes);
            most = found > most ? found : most;
        }
    return most;
}

/* Does it matter whether `a` comes before `b`? */
static inline Clash clash(const Footprint *a, const Footprint *b, int unsure)
{
    if (a->all | b->all)
        return ORDER_CLASH;
    if (unsure && ((b->late && unsure & FIRST_UNSURE) || (a->late && unsure & SECOND_UNSURE)))
        return ORDER_CLASH;
    if ((a->units & b->units) == 0)
        return NO_CLASH;
    return all_touches_clash(a, b, unsure ? TOUCH_WRITES | TOUCH_MAY_WRITE : TOUCH_WRITES);
}
