/* Small concurrent structures, each with its bug and, as NAME_fixed, without it. Where only the
 * results are wrong, the program knows the results that some sequential order of its operations
 * allows. */

/* A ring of one place whose producers look at the consumer's index relaxed: a claim may be much
 * younger than the head it is compared with, and then the difference is not the capacity. */
#define RING(name, lo, so)                                                                      \
    PROGRAM(name, 3, Cell head; Cell tail; Cell held;)                                          \
    {                                                                                           \
        if (t == 2) {                                                                           \
            if (ld(s->tail, lo) > 0) { add(s->held, -1, RLX); st(s->head, 1, REL); }            \
            return;                                                                             \
        }                                                                                       \
        for (int i = t; i < 2; i++) {                                                           \
            long tail = ld(s->tail, lo), head = ld(s->head, lo);                                \
            if (tail - head == 1 || !cas(s->tail, &tail, tail + 1, so)) continue;               \
            if (add(s->held, 1, RLX) > 0) BROKEN(v, "an element was overwritten unread");       \
        }                                                                                       \
    }
RING(ring_stale_head, RLX, RLX)
RING(ring_stale_head_fixed, ACQ, ACR)

/* A lazy list with one element: a removal marks its node, then unlinks it. Thread 0 removes; thread
 * 1 removes, then asks. In each sequential order one removal succeeds and the element is gone
 * afterwards. */
#define LAZY_LIST(name, unmarked)                                                               \
    JUDGED_PROGRAM(name, 2, Cell marked; Cell unlinked; long removed[2]; long there;)           \
    {                                                                                           \
        long none = 0;                                                                          \
        if (ld(s->unlinked, SEQ) == 0 && cas(s->marked, &none, 1, SEQ)) {                       \
            st(s->unlinked, 1, SEQ);                                                            \
            s->removed[t] = 1;                                                                  \
        }                                                                                       \
        if (t == 1) s->there = ld(s->unlinked, SEQ) == 0 unmarked;                              \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        if (s->removed[0] + s->removed[1] != 1 || s->there)                                     \
            BROKEN(v, "no sequential order gives these results");                               \
    }
LAZY_LIST(lazy_list, )
LAZY_LIST(lazy_list_fixed, && ld(s->marked, SEQ) == 0)

/* Double-checked initialisation of what is itself atomic: no race, and still read before it was
 * written. */
#define CHECKED_TWICE(name, so, lo)                                                             \
    PROGRAM(name, 2, pthread_mutex_t lock; Cell ready; Cell content;)                           \
    {                                                                                           \
        if (!ld(s->ready, lo)) {                                                                \
            pthread_mutex_lock(&s->lock);                                                       \
            if (!ld(s->ready, RLX)) { st(s->content, 7, RLX); st(s->ready, 1, so); }            \
            pthread_mutex_unlock(&s->lock);                                                     \
        }                                                                                       \
        if (ld(s->content, RLX) != 7) BROKEN(v, "read before it was initialised");              \
    }
CHECKED_TWICE(checked_twice, RLX, RLX)
CHECKED_TWICE(checked_twice_fixed, REL, ACQ)

/* The queue lock of Mellor-Crummey and Scott. Who unlocks and sees no successor empties the queue
 * without looking whether one has come meanwhile. Nodes are 1 + the thread's number. */
#define MCS(name, n, leave)                                                                     \
    PROGRAM(name, n, Cell tail; Cell next[n]; Cell locked[n]; long x;)                          \
    {                                                                                           \
        long me = t + 1, before;                                                                \
        st(s->locked[t], 1, RLX);                                                               \
        before = swap(s->tail, me, ACR);                                                        \
        if (before) {                                                                           \
            st(s->next[before - 1], me, REL);                                                   \
            while (ld(s->locked[t], ACQ)) pml_pause();                                          \
        }                                                                                       \
        s->x++;                                                                                 \
        if (ld(s->next[t], ACQ) == 0) {                                                         \
            leave;                                                                              \
            while (ld(s->next[t], ACQ) == 0) pml_pause();                                       \
        }                                                                                       \
        st(s->locked[ld(s->next[t], ACQ) - 1], 0, REL);                                         \
    }
MCS(mcs_lock, 2, st(s->tail, 0, REL); return)
MCS(mcs_lock_fixed, 2, if (cas(s->tail, &me, 0, ACR)) return)
MCS(mcs_lock_of_three_fixed, 3, if (cas(s->tail, &me, 0, ACR)) return)

/* The queue lock of Craig, Landin and Hagersten with a try: thread 1 gives up when it would have to
 * wait. Its successor waits for its node, so that must say for which one to wait instead. Node 0 is
 * there at the beginning. */
#define CLH(name, give_up)                                                                      \
    PROGRAM(name, 2, Cell tail; Cell state[3]; long x;)                                         \
    {                                                                                           \
        long mine = t + 1, before, seen;                                                        \
        for (int i = t; i < 2; i++) {                                                           \
            st(s->state[mine], 1, RLX);                                                         \
            before = swap(s->tail, mine, ACR);                                                  \
            while ((seen = ld(s->state[before], ACQ)) != 0) {                                   \
                if (seen > 1) before = seen - 2;                                                \
                else if (t == 1) { give_up; return; }                                           \
                else pml_pause();                                                               \
            }                                                                                   \
            s->x++;                                                                             \
            st(s->state[mine], 0, REL);                                                         \
            mine = before;                                                                      \
        }                                                                                       \
    }
CLH(clh_lock, )
CLH(clh_lock_fixed, st(s->state[mine], 2 + before, REL))

/* Two readers want to become the writer; each waits for the other one to leave. */
#define UPGRADE(name, otherwise)                                                                \
    PROGRAM(name, 2, Cell readers; long x;)                                                     \
    {                                                                                           \
        long seen = ld(s->readers, RLX), alone = 1;                                             \
        while (seen < 0 || !cas(s->readers, &seen, seen + 1, ACQ)) {                            \
            pml_pause();                                                                        \
            seen = ld(s->readers, RLX);                                                         \
        }                                                                                       \
        while (!cas(s->readers, &alone, -1, ACQ)) { otherwise; alone = 1; }                     \
        s->x++;                                                                                 \
        st(s->readers, 0, REL);                                                                 \
    }
UPGRADE(upgrade_both, pml_pause())
UPGRADE(upgrade_both_fixed, add(s->readers, -1, REL); return)

/* A job is running and, once that is over, counted as finished: never both. One collect sees both.
 */
#define SNAPSHOT(name, again)                                                                   \
    PROGRAM(name, 3, Cell running; Cell over; Cell finished;)                                   \
    {                                                                                           \
        if (t == 0) { st(s->running, 1, SEQ); st(s->running, 0, SEQ); st(s->over, 1, SEQ); }    \
        else if (t == 1) { if (ld(s->over, SEQ)) st(s->finished, 1, SEQ); }                     \
        else {                                                                                  \
            long running = ld(s->running, SEQ), finished = ld(s->finished, SEQ);                \
            if (again running && finished) BROKEN(v, "a job that is both running and finished");\
        }                                                                                       \
    }
SNAPSHOT(single_collect, )
SNAPSHOT(single_collect_fixed, ld(s->running, SEQ) == running && ld(s->finished, SEQ) == finished &&)

/* A map that counts its keys beside them: after a key was found the map must not be empty. The
 * fixed one counts the keys themselves, all of them in one word. */
#define MAP_SIZE(name, put, size)                                                               \
    JUDGED_PROGRAM(name, 2, Cell keys; Cell count; long found; long seen;)                      \
    {                                                                                           \
        if (t == 0) { put; }                                                                    \
        else { s->found = ld(s->keys, SEQ); s->seen = size; }                                   \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        static const long ALLOWED[3][2] = {{0, 0}, {0, 1}, {1, 1}};                             \
        for (int i = 0; i < 3; i++)                                                             \
            if (s->found == ALLOWED[i][0] && s->seen == ALLOWED[i][1]) return;                  \
        BROKEN(v, "no sequential order gives these results");                                   \
    }
MAP_SIZE(map_size, add(s->keys, 1, SEQ); add(s->count, 1, SEQ), ld(s->count, SEQ))
MAP_SIZE(map_size_fixed, add(s->keys, 1, SEQ), __builtin_popcountl((unsigned long)ld(s->keys, SEQ)))
