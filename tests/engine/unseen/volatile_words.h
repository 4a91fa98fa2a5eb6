/* Programs in the style of compilers without C11 atomics: volatile accesses and builtin fences.
 * Wrong and, as NAME_fixed, right where volatile means relaxed. */

#include <assert.h>

typedef volatile long Word;

#define HANDED(name, publish, take)                                                             \
    PROGRAM(name, 2, Word ready; long data;)                                                    \
    {                                                                                           \
        if (t == 0) { s->data = 7; publish; s->ready = 1; }                                     \
        else if (s->ready) { take; if (s->data != 7) BROKEN(v, "stale"); }                      \
    }
HANDED(word_unfenced, , )
HANDED(word_half, __atomic_thread_fence(__ATOMIC_RELEASE), )
HANDED(word_fixed, __atomic_thread_fence(__ATOMIC_RELEASE), __atomic_thread_fence(__ATOMIC_ACQUIRE))
HANDED(word_synchronised_fixed, __sync_synchronize(), __sync_synchronize())

/* Outcome 1: the second word is seen and the first one is not. */
#define TWO_WORDS(name, between)                                                                \
    JUDGED_PROGRAM(name, 2, Word x; Word y; long seen;)                                         \
    {                                                                                           \
        if (t == 0) { s->x = 1; between; s->y = 1; }                                            \
        else { long y = s->y; between; long x = s->x; s->seen = y && !x; }                      \
    }                                                                                           \
    JUDGE(name) { OUTCOME(name, s->seen); }
TWO_WORDS(words_apart, (void)0)
TWO_WORDS(words_fenced, __sync_synchronize())
JUDGED_PROGRAM(words_crossed, 2, Word x; Word y; long seen[2];)
{
    if (t == 0) { s->x = 1; s->seen[0] = s->y; } else { s->y = 1; s->seen[1] = s->x; }
}
JUDGE(words_crossed) { OUTCOME(words_crossed, s->seen[0] == 0 && s->seen[1] == 0); }

/* A store that was announced reaches memory once, and one's own is seen at once. */
JUDGED_PROGRAM(words_counted, 2, Word x[2]; Word flag;)
{
    for (int i = 0; i < 3; i++) {
        s->x[t] = s->x[t] + 1;
        if (s->x[t] != i + 1) BROKEN(v, "a thread does not see its own store");
        s->flag = i;
    }
}
JUDGE(words_counted) { OUTCOME(words_counted, s->x[0] == 3 && s->x[1] == 3); }

PROGRAM(asserts, 2, Word x; Cell y;)
{
    long before = add(s->y, 1, RLX);
    assert(before == 0 && "only one thread comes here");
}
