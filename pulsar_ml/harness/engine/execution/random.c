/* The counter-based generator: draw number i of execution e of explorer seed s is a pure function
 * of the three, on any machine. */

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)   /* from one number of the generator to the next */

/* Both halves of a 128-bit product, as in wyhash: one multiplication mixes all bits. */
static inline uint64_t mix64(uint64_t x)
{
    unsigned __int128 product = (unsigned __int128)(x ^ UINT64_C(0xA0761D6478BD642F)) *
                                (x ^ UINT64_C(0xE7037ED1A0B428DB));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The next two numbers are always ready: nobody waits for a multiplication, not even where a choice
 * decides whether a number is taken. */
static inline uint64_t draw_if(uint64_t mask)
{
    uint64_t drawn = E.drawn, following = E.following;
    E.drawn = drawn ^ ((drawn ^ following) & mask);
    E.counter += GOLDEN & mask;
    E.following = mix64(E.counter);
    return drawn;
}

static inline uint64_t draw(void)
{
    return draw_if(~UINT64_C(0));
}

/* 0..n-1. */
static inline uint32_t draw_below(uint32_t n)
{
    return (uint32_t)(((draw() >> 32) * n) >> 32);
}

static void random_start(uint64_t seed, uint64_t execution)
{
    E.key = mix64(mix64(seed + UINT64_C(0x632BE59BD9B4E019)) + execution * UINT64_C(0xD1342543DE82EF95));
    E.drawn = mix64(E.key + GOLDEN);
    E.counter = E.key + 2 * GOLDEN;
    E.following = mix64(E.counter);
}
