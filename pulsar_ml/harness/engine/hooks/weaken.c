/* A fault at one place of the source: its atomics get another order, or its fence is left out. What
 * nothing notices then is stronger than it has to be, or not tested. */

/* The order to use at `pc`; -1: no fence. The configured places are ascending. */
static __attribute__((noinline)) int weakened_order(int order, uint64_t pc)
{
    int32_t low = 0, high = E.config.n_weakened;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (E.config.weakened[middle] < pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low < E.config.n_weakened && E.config.weakened[low] == pc ? E.config.weakened_order : order;
}

static inline int order_at(int order, uint64_t pc)
{
    return unlikely(E.config.n_weakened) ? weakened_order(order, pc) : order;
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
