/* Changes at places of the code under test, made while it runs: an atomic operation with another
 * order, a fence that is left out or added, and a lock that is held from one place to another. A
 * weaker order that nothing notices is not tested; a change under which a failure is gone is a hint
 * at its cause. */

static char change_lock;   /* the one lock of all changes */

static __attribute__((noinline)) const EngineChange *find_change(uint64_t pc)
{
    int32_t low = 0, high = E.config.n_changes;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (E.config.changes[middle].pc < pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low < E.config.n_changes && E.config.changes[low].pc == pc ? &E.config.changes[low] : NULL;
}

/* The order to use at `pc`; NO_FENCE: no fence. */
static inline int order_at(int order, uint64_t pc)
{
    const EngineChange *change = unlikely(E.config.n_changes) ? find_change(pc) : NULL;
    return change && change->order != ORDER_KEPT ? change->order : order;
}

/* A compare-exchange that failed does not acquire more than one that did not. */
static inline int failed_order(int now)
{
    return now == __ATOMIC_RELEASE ? __ATOMIC_RELAXED : now == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE : now;
}

static inline int fail_order_at(int order, uint64_t pc)
{
    return failed_order(order_at(order, pc));
}

/* Behind the access of the stretch's end. The thread may be about to announce another step. */
static __attribute__((noinline)) void let_go(Thread *t)
{
    Announced next = reduction.next;
    t->change_lock = CHANGE_FREE;
    reduction.next = (Announced){0};
    mutex_unlock(t, &change_lock, MUTEX_PLAIN, 0);
    reduction.next = next;
}

static void take_change(Thread *t, uint64_t pc)
{
    mutex_lock(t, &change_lock, MUTEX_PLAIN, FOREVER, pc);
    t->change_lock = CHANGE_HELD;
}

static __attribute__((noinline)) void begin_change(Thread *t, uint64_t operation)
{
    const EngineChange *change = find_change(operation);
    if (change && change->lock & CHANGE_CALL)
        take_change(t, 0);
}

/* Before the step of an access at `pc`. Returns 1 if the access ends what is locked. */
static __attribute__((noinline)) int change_before(Thread *t, uint64_t pc)
{
    const EngineChange *change = find_change(pc);
    if (t->change_lock == CHANGE_ENDS)
        let_go(t);
    if (change == NULL)
        return 0;
    if (change->lock & CHANGE_TAKES && t->change_lock == CHANGE_FREE)
        take_change(t, pc);
    if (change->fence != ORDER_KEPT)
        make_fence(t, change->fence, pc);
    return change->lock & CHANGE_GIVES && t->change_lock == CHANGE_HELD;
}

/* Before a lock at `pc`: around a stretch that begins with it, the lock of changes comes first. */
static void change_lock_before(Thread *t, const void *lock, uint64_t pc)
{
    if (unlikely(t->controlled & CHANGES_CODE) && lock != &change_lock)
        change_before(t, pc);
}

/* The end of a call, or of a thread. */
static inline void end_change(Thread *t)
{
    if (unlikely(t->change_lock != CHANGE_FREE))
        let_go(t);
}
