/* Litmus programs. The outcome is what the registers held, as digits of a number in base 3 or 2. */

#define CELLS Cell x, y, z; long a, b, c, d;

#define SB(name, so, lo, f)                                                                     \
    JUDGED_PROGRAM(name, 2, CELLS)                                                              \
    {                                                                                           \
        if (t == 0) { st(s->x, 1, so); f; s->a = ld(s->y, lo); }                                \
        else { st(s->y, 1, so); f; s->b = ld(s->x, lo); }                                       \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        OUTCOME(name, s->a * 2 + s->b);                                                         \
    }
SB(sb_relaxed, RLX, RLX, )
SB(sb_acq_rel, REL, ACQ, )
SB(sb_sc, SEQ, SEQ, )
SB(sb_sc_fence, RLX, RLX, fence(SEQ))
SB(sb_acq_rel_fence, RLX, RLX, fence(ACR))

#define MP(name, so, lo, f1, f2)                                                                \
    JUDGED_PROGRAM(name, 2, CELLS)                                                              \
    {                                                                                           \
        if (t == 0) { st(s->x, 1, RLX); f1; st(s->y, 1, so); }                                  \
        else { s->a = ld(s->y, lo); f2; s->b = ld(s->x, RLX); }                                 \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        OUTCOME(name, s->a * 2 + s->b);                                                         \
    }
MP(mp_relaxed, RLX, RLX, , )
MP(mp_acq_rel, REL, ACQ, , )
MP(mp_release_only, REL, RLX, , )
MP(mp_acquire_only, RLX, ACQ, , )
MP(mp_fences, RLX, RLX, fence(REL), fence(ACQ))
MP(mp_release_fence_acquire, RLX, ACQ, fence(REL), )

#define LB(name, so, lo)                                                                        \
    JUDGED_PROGRAM(name, 2, CELLS)                                                              \
    {                                                                                           \
        if (t == 0) { s->a = ld(s->x, lo); st(s->y, 1, so); }                                   \
        else { s->b = ld(s->y, lo); st(s->x, 1, so); }                                          \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        OUTCOME(name, s->a * 2 + s->b);                                                         \
    }
LB(lb_relaxed, RLX, RLX)

#define IRIW(name, so, lo, f)                                                                   \
    JUDGED_PROGRAM(name, 4, CELLS)                                                              \
    {                                                                                           \
        if (t == 0) st(s->x, 1, so);                                                            \
        else if (t == 1) st(s->y, 1, so);                                                       \
        else if (t == 2) { s->a = ld(s->x, lo); f; s->b = ld(s->y, lo); }                       \
        else { s->c = ld(s->y, lo); f; s->d = ld(s->x, lo); }                                   \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        OUTCOME(name, s->a * 8 + s->b * 4 + s->c * 2 + s->d);                                   \
    }
IRIW(iriw_relaxed, RLX, RLX, )
IRIW(iriw_acq_rel, REL, ACQ, )
IRIW(iriw_sc, SEQ, SEQ, )
IRIW(iriw_sc_fence, RLX, RLX, fence(SEQ))

#define WRC(name, so, lo)                                                                       \
    JUDGED_PROGRAM(name, 3, CELLS)                                                              \
    {                                                                                           \
        if (t == 0) st(s->x, 1, so);                                                            \
        else if (t == 1) { s->a = ld(s->x, lo); st(s->y, 1, so); }                              \
        else { s->b = ld(s->y, lo); s->c = ld(s->x, RLX); }                                     \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        OUTCOME(name, s->a * 4 + s->b * 2 + s->c);                                              \
    }
WRC(wrc_relaxed, RLX, RLX)
WRC(wrc_acq_rel, REL, ACQ)

#define W2(name, so)                                                                            \
    JUDGED_PROGRAM(name, 2, CELLS)                                                              \
    {                                                                                           \
        if (t == 0) { st(s->x, 1, so); st(s->y, 2, so); }                                       \
        else { st(s->y, 1, so); st(s->x, 2, so); }                                              \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        OUTCOME(name, (ld(s->x, RLX) == 1) * 2 + (ld(s->y, RLX) == 1));                         \
    }
W2(two_plus_two_w_relaxed, RLX)
W2(two_plus_two_w_release, REL)
W2(two_plus_two_w_sc, SEQ)

JUDGED_PROGRAM(corr, 2, CELLS)
{
    if (t == 0) { st(s->x, 1, RLX); }
    else { s->a = ld(s->x, RLX); s->b = ld(s->x, RLX); }
}
JUDGE(corr)
{
    OUTCOME(corr, s->a * 2 + s->b);
}

JUDGED_PROGRAM(coww, 1, CELLS)
{
    st(s->x, 1, RLX); st(s->x, 2, RLX);
}
JUDGE(coww)
{
    OUTCOME(coww, ld(s->x, RLX));
}

JUDGED_PROGRAM(cowr, 2, CELLS)
{
    if (t == 0) { st(s->x, 1, RLX); s->a = ld(s->x, RLX); }
    else st(s->x, 2, RLX);
}
JUDGE(cowr)
{
    OUTCOME(cowr, s->a);
}

/* Two readers must not see two stores in different orders. */
JUDGED_PROGRAM(corr2, 4, CELLS)
{
    if (t == 0) st(s->x, 1, RLX);
    else if (t == 1) st(s->x, 2, RLX);
    else if (t == 2) { s->a = ld(s->x, RLX); s->b = ld(s->x, RLX); }
    else { s->c = ld(s->x, RLX); s->d = ld(s->x, RLX); }
}
JUDGE(corr2)
{
    OUTCOME(corr2, (s->a == 1 && s->b == 2 && s->c == 2 && s->d == 1) ? 1 :
    (s->a == 2 && s->b == 1 && s->c == 1 && s->d == 2) ? 1 : 0);
}

/* A release sequence goes on through another thread's relaxed read-modify-write. */
#define RELEASE_SEQUENCE(name, second)                                                          \
    JUDGED_PROGRAM(name, 3, CELLS)                                                              \
    {                                                                                           \
        if (t == 0) { st(s->x, 1, RLX); st(s->y, 1, REL); }                                     \
        else if (t == 1) { second; }                                                            \
        else { s->a = ld(s->y, ACQ); s->b = ld(s->x, RLX); }                                    \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        OUTCOME(name, s->a * 2 + s->b);                                                         \
    }
RELEASE_SEQUENCE(release_sequence_rmw, add(s->y, 1, RLX))
RELEASE_SEQUENCE(release_sequence_store, st(s->y, 2, RLX))

JUDGED_PROGRAM(rmw_atomic, 3, CELLS)
{
    add(s->x, 1, RLX);
}
JUDGE(rmw_atomic)
{
    OUTCOME(rmw_atomic, ld(s->x, RLX));
}

JUDGED_PROGRAM(cas_atomic, 3, CELLS)
{
    long seen = 0;
    s->a += 0;
    if (cas(s->x, &seen, t + 1, RLX)) add(s->y, 1, RLX);
}
JUDGE(cas_atomic)
{
    OUTCOME(cas_atomic, ld(s->y, RLX));
}

/* Store to a seq_cst location seen through a fence, and the reverse: both must order. */
JUDGED_PROGRAM(sb_sc_and_fence, 2, CELLS)
{
    if (t == 0) { st(s->x, 1, SEQ); s->a = ld(s->y, SEQ); }
    else { st(s->y, 1, RLX); fence(SEQ); s->b = ld(s->x, RLX); }
}
JUDGE(sb_sc_and_fence)
{
    OUTCOME(sb_sc_and_fence, s->a * 2 + s->b);
}

/* Store buffering around a function with a store of its own variable. That store may still be in
 * the buffer when the function returned; the next function keeps its values in the same place. */
enum { KEPT = 24 };

static __attribute__((noinline)) void store_own(long value)
{
    Cell own[KEPT];
    st(own[KEPT / 2], value, RLX);
}

static __attribute__((noinline)) long keep_own(const Cell *other, const long *first, long *sum)
{
    long kept[KEPT], seen;
    for (int i = 0; i < KEPT; i++) kept[*first + i] = 3;
    seen = ld(*other, RLX);
    *sum = 0;
    for (int i = 0; i < KEPT; i++) *sum += kept[*first + i];
    return seen;
}

JUDGED_PROGRAM(sb_own, 2, CELLS)
{
    long sum;
    st(*(t ? &s->y : &s->x), 1, RLX);
    store_own(7);
    *(t ? &s->b : &s->a) = keep_own(t ? &s->x : &s->y, &s->c, &sum);
    if (sum != 3 * KEPT) BROKEN(v, "a store reached the memory of a function that returned");
}
JUDGE(sb_own)
{
    OUTCOME(sb_own, s->a * 2 + s->b);
}

/* A variable of its own in each of two calls, in one place of the stack, on which code that the
 * engine does not see leaves now the same value and now another one. */
__attribute__((no_sanitize_thread, noinline)) static void leave_on_stack(void)
{
    static long calls;
    volatile long left[KEPT];
    calls++;
    for (int i = 0; i < KEPT; i++) left[i] = calls / 3 % 2 ? 7 : 0;
}

PROGRAM(own_twice, 2, Cell x;)
{
    st(s->x, t, RLX);
    store_own(7);
    leave_on_stack();
    store_own(7);
}
