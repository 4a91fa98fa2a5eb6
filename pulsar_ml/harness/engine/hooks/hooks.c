/* The entry points that GCC and Clang call under -fsanitize=thread. Outside a controlled run each
 * is the plain operation. A hook's return address is where in the code under test it was called. */

#define PC ((uint64_t)__builtin_return_address(0))

EXPORT void __tsan_init(void) {}

/* While a trace is kept: notes the end of the function's frame as well. The hook below jumps here,
 * so that the frame pointer in front of this frame is the function's. */
static __attribute__((noinline)) void enter_recorded(void *caller)
{
    Thread *t = current;
    uint32_t at = t->depth++ % FRAMES;
    t->frames[at] = (uintptr_t)caller;
    if (t->number >= 0)
        note_frame(t, at, *(uintptr_t *)__builtin_frame_address(0), PC);
}

EXPORT void __tsan_func_entry(void *caller)
{
    Thread *t = current;
    if (t == NULL)
        return;
    if (unlikely(E.recording)) {
        enter_recorded(caller);
        return;
    }
    t->frames[t->depth++ % FRAMES] = (uintptr_t)caller;
}

EXPORT void __tsan_func_exit(void)
{
    Thread *t = current;
    if (t == NULL || t->depth == 0)
        return;
    if (unlikely(t->controlled & HOLDS_STORES) || unlikely(t->locals_from != UINTPTR_MAX))
        end_frame();
    else
        t->depth--;
}

/* While a trace is kept: the last reads of the final check until it found a violation, with their
 * values. */
static __attribute__((noinline)) void trace_check(Thread *t, uintptr_t address, uint32_t width, EngineOp op,
                                                  uint64_t pc)
{
    uint64_t value, high;
    int32_t at;
    if (t != &E.main || check_begins < 0 || check_found->found ||
        address - (uintptr_t)t->stack < STACK_BYTES || width > 8 || (width & (width - 1)) ||
        (op != OP_READ && op != OP_LOAD))
        return;
    if (n_events - check_begins >= 2 * CHECK_READS) {
        memmove(&events[check_begins], &events[n_events - CHECK_READS], CHECK_READS * sizeof *events);
        n_events = check_begins + CHECK_READS;
    }
    raw_read(address, width, &value, &high);
    at = trace_event(t, op, address, (int)width, value, pc);
    if (at >= 0)
        events[at].before = 1;
}

/* The main thread runs alone: only the heap is checked. */
static inline void main_access(Thread *t, uintptr_t address, uint32_t width, EngineOp op, uint64_t pc)
{
    E.hooks++;
    if (unlikely(!heap_ok(address)))
        heap_fail(t, address, width, op, pc);
    if (unlikely(E.recording))
        trace_check(t, address, width, op, pc);
}

/* volatile ---------------------------------------------------------------------------------------
 *
 * With `volatile=relaxed` the compiler announces each volatile access here and then makes it
 * itself. A load that shall read an older store finds that store's value in memory; a store is
 * known once it was made. Both are settled at the thread's next call: the memory gets its value
 * back, and the store its place. No other fiber runs in between. */

SHARED struct { uintptr_t address; uint64_t pc, before, high; uint32_t width; uint8_t writes; } pending;

static __attribute__((noinline)) void settle_volatile(Thread *t)
{
    uint64_t value, high;
    t->controlled &= (uint8_t)~VOLATILE_PENDING;
    raw_read(pending.address, pending.width, &value, &high);
    raw_write(pending.address, pending.width, pending.before, pending.high);
    if (pending.writes)
        rare_store(t, pending.address, pending.width, __ATOMIC_RELAXED, pending.pc, value, high);
}

static inline void settle(Thread *t)
{
    if (unlikely(t->controlled & VOLATILE_PENDING))
        settle_volatile(t);
}

static __attribute__((noinline)) void rare_load(Thread *t, uintptr_t address, uint32_t width, int order, uint64_t pc,
                                                uint64_t *low, uint64_t *high)
{
    atomic_load(0, t, address, width, order, pc, low, high);
}

static __attribute__((noinline)) void volatile_access(Thread *t, uintptr_t address, uint32_t width, int writes,
                                                      uint64_t pc)
{
    uint64_t low = 0, high = 0;
    settle(t);
    E.hooks++;
    announce(t, address, writes);
    if (!heap_ok(address))
        heap_fail(t, address, width, writes ? OP_STORE : OP_LOAD, pc);
    if (t->controlled & NOTES_PLACES)
        note_places(t, address, width, writes ? OP_STORE : OP_LOAD, pc);
    pending.address = address;
    pending.pc = pc;
    pending.width = width;
    pending.writes = (uint8_t)writes;
    if (!writes)
        rare_load(t, address, width, __ATOMIC_RELAXED, pc, &low, &high);
    raw_read(address, width, &pending.before, &pending.high);
    if (!writes && low == pending.before && high == pending.high)
        return;
    if (!writes)
        raw_write(address, width, low, high);
    t->controlled |= VOLATILE_PENDING;
}

/* Native code that holds the interpreter's lock works on objects of Python as well, which the lock
 * guards: such an access is of interest only beside a section without the lock, or where one was.
 * Without an order by the lock, memory that the module allocated is its own business. */
static int beside_sections(uintptr_t address)
{
    return python.orders ? python.outside != 0 || cell_used(find_cell(address)) : in_arena(address);
}

/* The accesses of threads that are not just controlled: of the main thread, of sections that shall
 * be ignored, behind a volatile access, beside buffered stores, and where suppressed races need the
 * places of accesses. Returns 1 when nothing is left to do. */
static __attribute__((noinline)) int special_access(Thread *t, uintptr_t address, size_t bytes, EngineOp op,
                                                    uint64_t pc)
{
    if (t->controlled)
        settle(t);
    if (t->controlled & CHANGES_CODE && change_before(t, pc))
        t->change_lock = CHANGE_ENDS;
    if (t->controlled & HOLDS_STORES)
        arrive_before(t, address, bytes);
    if (!t->controlled || t->controlled & (op == OP_READ ? IGNORES_READS : IGNORES_WRITES) ||
        (t->controlled & HOLDS_LOCK && !beside_sections(address))) {
        main_access(t, address, (uint32_t)bytes, op, pc);
        return 1;
    }
    if (t->controlled & NOTES_PLACES && !on_stack(t, address))
        note_places(t, address, bytes, op, pc);
    return 0;
}

static inline void plain(void *at, uint32_t width, EngineOp op, uint64_t pc)
{
    Thread *t = current;
    uintptr_t address = (uintptr_t)at;
    if (t == NULL)
        return;
    if (unlikely(t->controlled != CONTROLLED)) {
        if (t->controlled == 0) {
            main_access(t, address, width, op, pc);
            return;
        }
        if (special_access(t, address, width, op, pc))
            return;
    }
    if (on_stack(t, address))
        return;
    E.hooks++;
    if (likely((address & 7) + width <= 8))
        plain_bytes(t, address, width, op, pc);
    else
        plain_range(t, address, width, op, pc);
}

static inline void plain_bulk(void *at, size_t bytes, EngineOp op, uint64_t pc)
{
    Thread *t = current;
    if (t == NULL || bytes == 0)
        return;
    if (t->controlled != CONTROLLED && special_access(t, (uintptr_t)at, bytes, op, pc))
        return;
    if (!on_stack(t, (uintptr_t)at))
        plain_range(t, (uintptr_t)at, bytes, op, pc);
}

static inline void volatile_plain(void *at, uint32_t width, EngineOp op, uint64_t pc)
{
    Thread *t = current;
    if (t && t->controlled && width <= 8 && (uintptr_t)at % 8 + width <= 8)
        volatile_access(t, (uintptr_t)at, width, op != OP_READ, pc);
    else
        plain(at, width, op, pc);
}

#define PLAIN(width)                                                                                \
    EXPORT void __tsan_read##width(void *p) { plain(p, width, OP_READ, PC); }                       \
    EXPORT void __tsan_write##width(void *p) { plain(p, width, OP_WRITE, PC); }                     \
    EXPORT void __tsan_read_write##width(void *p)                                                   \
    { plain(p, width, OP_READ, PC); plain(p, width, OP_WRITE, PC); }                                \
    EXPORT void __tsan_volatile_read##width(void *p) { volatile_plain(p, width, OP_READ, PC); }              \
    EXPORT void __tsan_volatile_write##width(void *p) { volatile_plain(p, width, OP_WRITE, PC); }            \
    EXPORT void __tsan_unaligned_read##width(void *p) { plain(p, width, OP_READ, PC); }             \
    EXPORT void __tsan_unaligned_write##width(void *p) { plain(p, width, OP_WRITE, PC); }           \
    EXPORT void __tsan_unaligned_read_write##width(void *p)                                         \
    { plain(p, width, OP_READ, PC); plain(p, width, OP_WRITE, PC); }                                \
    EXPORT void __tsan_unaligned_volatile_read##width(void *p) { volatile_plain(p, width, OP_READ, PC); }    \
    EXPORT void __tsan_unaligned_volatile_write##width(void *p) { volatile_plain(p, width, OP_WRITE, PC); }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

EXPORT void __tsan_read_range(void *p, size_t bytes) { plain_bulk(p, bytes, OP_READ, PC); }
EXPORT void __tsan_write_range(void *p, size_t bytes) { plain_bulk(p, bytes, OP_WRITE, PC); }
EXPORT void __tsan_vptr_read(void **p) { plain(p, sizeof *p, OP_READ, PC); }
EXPORT void __tsan_vptr_update(void **p, void *value)
{
    if (*p != value)  /* a constructor that sets what is there already changes nothing */
        plain(p, sizeof *p, OP_WRITE, PC);
}

static inline void *copy_bytes(void *into, const void *from, size_t bytes, uint64_t pc)
{
    plain_bulk((void *)(uintptr_t)from, bytes, OP_READ, pc);
    plain_bulk(into, bytes, OP_WRITE, pc);
    return memmove(into, from, bytes);
}

static inline void *set_bytes(void *into, int byte, size_t bytes, uint64_t pc)
{
    plain_bulk(into, bytes, OP_WRITE, pc);
    return memset(into, byte, bytes);
}

EXPORT void *__tsan_memcpy(void *into, const void *from, size_t bytes) { return copy_bytes(into, from, bytes, PC); }
EXPORT void *__tsan_memmove(void *into, const void *from, size_t bytes) { return copy_bytes(into, from, bytes, PC); }
EXPORT void *__tsan_memset(void *into, int byte, size_t bytes) { return set_bytes(into, byte, bytes, PC); }
EXPORT void *__wrap_memcpy(void *into, const void *from, size_t bytes) { return copy_bytes(into, from, bytes, PC); }
EXPORT void *__wrap_memmove(void *into, const void *from, size_t bytes) { return copy_bytes(into, from, bytes, PC); }
EXPORT void *__wrap_memset(void *into, int byte, size_t bytes) { return set_bytes(into, byte, bytes, PC); }

/* The step of a thread that is not just controlled, see special_access(). */
static __attribute__((noinline)) Thread *special_step(Thread *t, uintptr_t address, uint32_t width, EngineOp op,
                                                      int writes, int drains, uint64_t pc)
{
    int ends;
    settle(t);
    ends = t->controlled & CHANGES_CODE && change_before(t, pc);
    E.hooks++;
    if (drains)
        will_drain();
    announce(t, address, writes);
    if (ends)
        t->change_lock = CHANGE_ENDS;
    if (t->controlled & NOTES_PLACES)
        note_places(t, address, width, op, pc);
    expect_variable(t, address);
    return t;
}

/* The running thread when the access is a step of it; NULL: the access is made as it stands. An
 * access to the thread's own stack is a step too: a lock's node may lie there for others to see. */
INLINED Thread *steps(void *at, uint32_t width, EngineOp op, uint64_t pc)
{
    Thread *t = current;
    if (t && unlikely(!t->controlled))
        main_access(t, (uintptr_t)at, width, op, pc);
    return t && likely(t->controlled) ? t : NULL;
}

/* The thread makes a step. drains: mode tso, the step empties the thread's buffer first. */
INLINED Thread *step_of(Thread *t, uintptr_t address, uint32_t width, EngineOp op, int writes, int drains, uint64_t pc)
{
    if (unlikely(t->controlled != CONTROLLED))
        return special_step(t, address, width, op, writes, drains, pc);
    E.hooks++;
    expect_variable(t, address);
    return announce_quickly(t, address, writes);
}

/* The plain operations of each width. Read-modify-writes are loops of compare-exchange; speed
 * outside a run is no concern, and sixteen bytes have nothing else that needs no library. */
#define PLAIN_ATOMIC(bits, type)                                                                    \
    static inline type plain_load##bits(const volatile type *p)                                     \
    { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }                                                \
    static inline type plain_cas##bits(volatile type *p, type expected, type x)                     \
    {                                                                                               \
        __atomic_compare_exchange_n(p, &expected, x, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
        return expected;                                                                            \
    }                                                                                               \
    static inline void plain_store##bits(volatile type *p, type x, int order)                       \
    {                                                                                               \
        if (order == __ATOMIC_SEQ_CST)                                                              \
            __atomic_store_n(p, x, __ATOMIC_SEQ_CST);                                               \
        else                                                                                        \
            __atomic_store_n(p, x, __ATOMIC_RELEASE);                                               \
    }

PLAIN_ATOMIC(8, uint8_t)
PLAIN_ATOMIC(16, uint16_t)
PLAIN_ATOMIC(32, uint32_t)
PLAIN_ATOMIC(64, uint64_t)
#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
typedef unsigned __int128 wide;
static inline wide plain_cas128(volatile wide *p, wide expected, wide x)
{
    return __sync_val_compare_and_swap(p, expected, x);
}
static inline wide plain_load128(const volatile wide *p)
{
    return plain_cas128((volatile wide *)p, 0, 0);
}
static inline void plain_store128(volatile wide *p, wide x, int order)
{
    (void)order;
    for (wide seen = *p, before; (before = plain_cas128(p, seen, x)) != seen; seen = before)
        ;
}
#endif

#define SPLIT(type, x) (uint64_t)(x), (sizeof(type) > 8 ? (uint64_t)((x) >> (sizeof(type) > 8 ? 64 : 0)) : 0)
#define JOIN(type, low, high) ((type)(low) | (type)(sizeof(type) > 8 ? (type)(high) << (sizeof(type) > 8 ? 64 : 0) : 0))

#define PLAIN_RMW_EXCHANGE(old, x) (x)
#define PLAIN_RMW_ADD(old, x) ((old) + (x))
#define PLAIN_RMW_SUB(old, x) ((old) - (x))
#define PLAIN_RMW_AND(old, x) ((old) & (x))
#define PLAIN_RMW_OR(old, x) ((old) | (x))
#define PLAIN_RMW_XOR(old, x) ((old) ^ (x))
#define PLAIN_RMW_NAND(old, x) (~((old) & (x)))

/* The memory model's operations, each with the common case beside all others. */
#define MODEL(bits, type)                                                                           \
    static __attribute__((noinline)) type any_load##bits(Thread *t, uintptr_t p, int order, uint64_t pc) \
    {                                                                                               \
        uint64_t low, high;                                                                         \
        atomic_load(0, t, p, sizeof(type), order_at(order, pc), pc, &low, &high);                   \
        return JOIN(type, low, high);                                                               \
    }                                                                                               \
    static inline __attribute__((always_inline)) type model_load##bits(Thread *t, uintptr_t p, int order, uint64_t pc) \
    {                                                                                               \
        uint64_t low, high;                                                                         \
        if (unlikely(!E.common))                                                                    \
            return any_load##bits(t, p, order, pc);                                                 \
        atomic_load(1, t, p, sizeof(type), order, pc, &low, &high);                                 \
        return JOIN(type, low, high);                                                               \
    }                                                                                               \
    static __attribute__((noinline)) void any_store##bits(Thread *t, uintptr_t p, type x, int order, uint64_t pc) \
    { atomic_store(0, t, p, sizeof(type), order_at(order, pc), pc, SPLIT(type, x)); }               \
    static inline __attribute__((always_inline)) void model_store##bits(Thread *t, uintptr_t p, type x, int order, \
                                                                        uint64_t pc)                \
    {                                                                                               \
        if (likely(E.common))                                                                       \
            atomic_store(1, t, p, sizeof(type), order, pc, SPLIT(type, x));                         \
        else                                                                                        \
            any_store##bits(t, p, x, order, pc);                                                    \
    }                                                                                               \
    static __attribute__((noinline)) type step_rmw##bits(Thread *t, uintptr_t p, Rmw kind, type x, int order, \
                                                          uint64_t pc)                              \
    {                                                                                               \
        uint64_t low, high;                                                                         \
        t = step_of(t, p, sizeof(type), OP_RMW, 1, 1, pc);                                          \
        low = likely(E.common)                                                                      \
            ? atomic_rmw(1, t, p, sizeof(type), order, pc, kind, SPLIT(type, x), &high)             \
            : atomic_rmw(0, t, p, sizeof(type), order_at(order, pc), pc, kind, SPLIT(type, x), &high); \
        return JOIN(type, low, high);                                                               \
    }                                                                                               \
    static __attribute__((noinline)) int step_cas##bits(Thread *t, uintptr_t p, type *expected, type x, int order, \
                                                         int fail_order, int weak, uint64_t pc)     \
    {                                                                                               \
        uint64_t low, high;                                                                         \
        int done;                                                                                   \
        t = step_of(t, p, sizeof(type), OP_CAS, 1, 1, pc);                                          \
        low = (uint64_t)*expected;                                                                  \
        high = sizeof(type) > 8 ? (uint64_t)(*expected >> (sizeof(type) > 8 ? 64 : 0)) : 0;         \
        done = likely(E.common)                                                                     \
            ? atomic_cas(1, t, p, sizeof(type), order, failed_order(fail_order), weak, pc, &low, &high, \
                         SPLIT(type, x))                                                            \
            : atomic_cas(0, t, p, sizeof(type), order_at(order, pc), fail_order_at(fail_order, pc), weak, pc, \
                         &low, &high, SPLIT(type, x));                                              \
        if (!done)                                                                                  \
            *expected = JOIN(type, low, high);                                                      \
        return done;                                                                                \
    }

#define FETCH(bits, type, name, kind)                                                               \
    EXPORT type __tsan_atomic##bits##_##name(volatile type *p, type x, int order)                   \
    {                                                                                               \
        Thread *t = steps((void *)p, sizeof(type), OP_RMW, PC);                                      \
        if (t == NULL) {                                                                            \
            type seen = plain_load##bits(p), before;                                                \
            while ((before = plain_cas##bits(p, seen, PLAIN_##kind(seen, x))) != seen)              \
                seen = before;                                                                      \
            return seen;                                                                            \
        }                                                                                           \
        return step_rmw##bits(t, (uintptr_t)p, kind, x, order & 7, PC);                            \
    }

#define CAS(bits, type, name, weak)                                                                 \
    EXPORT int __tsan_atomic##bits##_compare_exchange_##name(volatile type *p, type *expected, type x, \
                                                             int order, int fail_order)             \
    {                                                                                               \
        Thread *t = steps((void *)p, sizeof(type), OP_CAS, PC);                                      \
        if (t == NULL) {                                                                            \
            type before = plain_cas##bits(p, *expected, x), wanted = *expected;                     \
            *expected = before;                                                                     \
            return before == wanted;                                                                \
        }                                                                                           \
        return step_cas##bits(t, (uintptr_t)p, expected, x, order & 7, fail_order & 7, weak, PC);  \
    }

#define ATOMIC(bits, type)                                                                          \
    MODEL(bits, type)                                                                               \
    static __attribute__((noinline)) type step_load##bits(Thread *t, const volatile type *p, int order, uint64_t pc) \
    {                                                                                               \
        t = step_of(t, (uintptr_t)p, sizeof(type), OP_LOAD, 0, 0, pc);                              \
        return model_load##bits(t, (uintptr_t)p, order & 7, pc);                                    \
    }                                                                                               \
    EXPORT type __tsan_atomic##bits##_load(const volatile type *p, int order)                       \
    {                                                                                               \
        Thread *t = steps((void *)(uintptr_t)p, sizeof(type), OP_LOAD, PC);                         \
        return t ? step_load##bits(t, p, order, PC) : plain_load##bits(p);                          \
    }                                                                                               \
    static __attribute__((noinline)) void step_store##bits(Thread *t, volatile type *p, type x, int order, \
                                                           uint64_t pc)                             \
    {                                                                                               \
        t = step_of(t, (uintptr_t)p, sizeof(type), OP_STORE, 1, is_sc(order & 7), pc);              \
        model_store##bits(t, (uintptr_t)p, x, order & 7, pc);                                       \
    }                                                                                               \
    EXPORT void __tsan_atomic##bits##_store(volatile type *p, type x, int order)                    \
    {                                                                                               \
        Thread *t = steps((void *)p, sizeof(type), OP_STORE, PC);                                   \
        if (t)                                                                                      \
            step_store##bits(t, p, x, order, PC);                                                   \
        else                                                                                        \
            plain_store##bits(p, x, (int)(order) & 7);                                              \
    }                                                                                               \
    FETCH(bits, type, exchange, RMW_EXCHANGE)                                                       \
    FETCH(bits, type, fetch_add, RMW_ADD)                                                           \
    FETCH(bits, type, fetch_sub, RMW_SUB)                                                           \
    FETCH(bits, type, fetch_and, RMW_AND)                                                           \
    FETCH(bits, type, fetch_or, RMW_OR)                                                             \
    FETCH(bits, type, fetch_xor, RMW_XOR)                                                           \
    FETCH(bits, type, fetch_nand, RMW_NAND)                                                         \
    CAS(bits, type, strong, 0)                                                                      \
    CAS(bits, type, weak, 1)                                                                        \
    EXPORT type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type expected, type x, \
                                                           int order, int fail_order)               \
    {                                                                                               \
        Thread *t = steps((void *)p, sizeof(type), OP_CAS, PC);                                     \
        if (t == NULL)                                                                              \
            return plain_cas##bits(p, expected, x);                                                 \
        step_cas##bits(t, (uintptr_t)p, &expected, x, order & 7, fail_order & 7, 0, PC);           \
        return expected;                                                                            \
    }

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
ATOMIC(128, wide)
#endif

EXPORT void __tsan_atomic_thread_fence(int order)
{
    Thread *t = current;
    if (t == NULL || !t->controlled) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        return;
    }
    settle(t);
    E.hooks++;
    order = order_at(order & 7, PC);
    if (order != NO_FENCE)
        make_fence(t, order, PC);
}

EXPORT void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
