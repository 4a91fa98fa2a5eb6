/* Vector clocks. They have E.width entries, the number of threads rounded up to four, and are
 * worked on four at a time; entries past the last thread are 0, or NEVER where a clock says "first
 * known". */

typedef uint32_t Four __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t Two __attribute__((vector_size(16)));

#define EACH_FOUR(i) for (int i = 0; i < E.width; i += 4)
#define FOUR(clock, i) (*(Four *)((clock) + (i)))

static inline void clock_copy(uint32_t *into, const uint32_t *from)
{
    EACH_FOUR(i) FOUR(into, i) = FOUR(from, i);
}

static inline void clock_join(uint32_t *into, const uint32_t *from)
{
    EACH_FOUR(i) {
        Four a = FOUR(into, i), b = FOUR(from, i);
        Four greater = (Four)(b > a);
        FOUR(into, i) = (b & greater) | (a & ~greater);
    }
}

static inline void clock_fill(uint32_t *clock, uint32_t value)
{
    EACH_FOUR(i) FOUR(clock, i) = (Four){value, value, value, value};
}

static inline void clock_zero(uint32_t *clock)
{
    clock_fill(clock, 0);
}

/* Is some entry of a at most the one of b? */
static inline int clock_reaches(const uint32_t *a, const uint32_t *b)
{
    Two any = {0};
    EACH_FOUR(i) any |= (Two)(FOUR(a, i) <= FOUR(b, i));
    return (any[0] | any[1]) != 0;
}

/* Is every entry of a at most the one of b? */
static inline int clock_within(const uint32_t *a, const uint32_t *b)
{
    Two any = {0};
    EACH_FOUR(i) any |= (Two)(FOUR(a, i) > FOUR(b, i));
    return (any[0] | any[1]) == 0;
}

static inline void clock_tick(Thread *t)
{
    t->clock[t->number]++;
}

/* Names a step of a thread in classes and in the ids of stores. Waiting before the step changes
 * nothing. */
static inline uint32_t step_id(const Thread *t)
{
    return (uint32_t)t->number << 26 | (t->points - t->idle_points);
}
