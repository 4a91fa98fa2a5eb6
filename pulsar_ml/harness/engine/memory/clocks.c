/* Vector clocks. They have E.width entries, the number of threads rounded up to four, and are
 * worked on four at a time; entries past the last thread are 0, or NEVER where a clock says "first
 * known". */

typedef uint32_t Four __attribute__((vector_size(16), may_alias));
typedef uint64_t Two __attribute__((vector_size(16)));

#define EACH_FOUR(i) EACH_FOUR_OF(E.width, i)
#define EACH_FOUR_OF(entries, i) for (int i = 0, go = 1; go; go = (i += 4) < (entries))

/* The entries of a clock: a constant where `common` is one. */
#define ENTRIES(common) ((common) ? 4 : E.width)
#define FOUR(clock, i) (*(Four *)((clock) + (i)))

static inline void entries_copy(int entries, uint32_t *into, const uint32_t *from)
{
    EACH_FOUR_OF(entries, i) FOUR(into, i) = FOUR(from, i);
}

static inline void clock_copy(uint32_t *into, const uint32_t *from)
{
    entries_copy(E.width, into, from);
}

/* The least result of four_reach() when some entry of the last of the four clocks is small enough.
 */
enum { NEWEST_REACHED = 1 << 12 };

#if defined(__SSE4_1__)
#include <smmintrin.h>

static inline Four greater_of(Four a, Four b)
{
    return (Four)_mm_max_epu32((__m128i)a, (__m128i)b);
}

static inline Four less_of(Four a, Four b)
{
    return (Four)_mm_min_epu32((__m128i)a, (__m128i)b);
}

/* Four bits for each of four clocks of four entries, not all 0 where some entry of the clock is at
 * most the one of `limit`. */
static inline uint32_t four_reach(const uint32_t *clocks, Four limit)
{
    __m128i at[4];
    for (int i = 0; i < 4; i++)
        at[i] = (__m128i)(greater_of(FOUR(clocks, 4 * i), limit) == limit);
    return (uint32_t)_mm_movemask_epi8(
        _mm_packs_epi16(_mm_packs_epi32(at[0], at[1]), _mm_packs_epi32(at[2], at[3])));
}

/* Is some entry of a at most the one of b? */
static inline int four_reaches(Four a, Four b)
{
    return _mm_movemask_ps((__m128)(greater_of(a, b) == b)) != 0;
}
#else
static inline Four greater_of(Four a, Four b)
{
    Four greater = (Four)(b > a);
    return (b & greater) | (a & ~greater);
}

static inline Four less_of(Four a, Four b)
{
    Four less = (Four)(b < a);
    return (b & less) | (a & ~less);
}

static inline uint32_t four_reach(const uint32_t *clocks, Four limit)
{
    uint32_t bits = 0;
    for (int i = 0; i < 4; i++) {
        Two any = (Two)(FOUR(clocks, 4 * i) <= limit);
        bits |= (uint32_t)((any[0] | any[1]) != 0) << 4 * i;
    }
    return bits;
}

static inline int four_reaches(Four a, Four b)
{
    Two any = (Two)(a <= b);
    return (any[0] | any[1]) != 0;
}
#endif

static inline void entries_join(int entries, uint32_t *into, const uint32_t *from)
{
    EACH_FOUR_OF(entries, i) FOUR(into, i) = greater_of(FOUR(into, i), FOUR(from, i));
}

static inline void clock_join(uint32_t *into, const uint32_t *from)
{
    entries_join(E.width, into, from);
}

/* All ones in the entry of the thread, when it is one of the four from i on. */
static inline Four entry_mask(int number, int i)
{
    const Four entries = {0, 1, 2, 3};
    uint32_t entry = (uint32_t)(number - i);
    return (Four)(entries == (Four){entry, entry, entry, entry});
}

static void own_entry(Thread *t)
{
    t->id = (uint32_t)t->number << 26;
    t->salt = (uint64_t)(t->number + 1) << 32;
    FOUR(t->own, 0) = entry_mask(t->number, 0);
    FOUR(t->others, 0) = ~FOUR(t->own, 0);
}

/* The same in clocks of so many entries. */
static inline Four mask_of(int entries, const Thread *t, int i)
{
    return entries == 4 ? FOUR(t->own, 0) : entry_mask(t->number, i);
}

/* Four entries of a clock that says: the thread knows since now, the others never. */
static inline Four known_since_now(int entries, const Thread *t, int i)
{
    return FOUR(t->clock, i) | (entries == 4 ? FOUR(t->others, 0) : ~entry_mask(t->number, i));
}

/* Entries are written four at a time also where one of them changes: a load of four that follows
 * soon would have to wait for a shorter store. */
static inline void first_known(int entries, uint32_t *clock, const Thread *t)
{
    EACH_FOUR_OF(entries, i) FOUR(clock, i) = known_since_now(entries, t, i);
}

/* The thread knows since now, unless it knew before. */
static inline void known(int entries, uint32_t *clock, const Thread *t)
{
    EACH_FOUR_OF(entries, i) FOUR(clock, i) = less_of(FOUR(clock, i), known_since_now(entries, t, i));
}

static inline void tick(int entries, Thread *t)
{
    EACH_FOUR_OF(entries, i) FOUR(t->clock, i) -= mask_of(entries, t, i);
}

static inline void clock_tick(Thread *t)
{
    tick(E.width, t);
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

/* Scheduling points of the thread so far. */
static inline uint32_t points_of(const Thread *t)
{
    return t->step - t->id + t->idle_points;
}

/* What another thread knew by seq_cst fences is known to this one behind an acquisition. */
static inline void learn_fences(Thread *t, const uint32_t *x_clock, uint32_t fence_at)
{
    clock_join(t->x_clock, x_clock);
    if (fence_at > t->fence_at)
        t->fence_at = fence_at;
}
