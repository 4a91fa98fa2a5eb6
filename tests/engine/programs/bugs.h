/* Small concurrent programs, each with its bug and, as NAME_fixed, without it. */

/* Two threads load, add and store. */
#define COUNTER(name, increment)                                                                \
    JUDGED_PROGRAM(name, 2, Cell x; long updates[2];)                                              \
    {                                                                                           \
        increment;                                                                              \
        s->updates[t] = 1;                                                                         \
    }                                                                                           \
    JUDGE(name) { if (ld(s->x, SEQ) != s->updates[0] + s->updates[1]) BROKEN(v, "an update was lost"); }
COUNTER(counter, long seen = ld(s->x, SEQ); st(s->x, seen + 1, SEQ))
COUNTER(counter_fixed, add(s->x, 1, SEQ))

/* Room for one; both look before they enter. */
JUDGED_PROGRAM(limit, 2, Cell inside; Cell most;)
{
    if (ld(s->inside, SEQ) < 1) {
        long now = add(s->inside, 1, SEQ) + 1;
        if (now > 1) st(s->most, now, SEQ);
    }
}
JUDGE(limit)
{
    if (ld(s->most, SEQ) > 1) BROKEN(v, "two are inside a room for one");
}
JUDGED_PROGRAM(limit_fixed, 2, Cell inside; Cell most;)
{
    long none = 0;
    if (cas(s->inside, &none, 1, SEQ) && ld(s->inside, SEQ) > 1) st(s->most, 2, SEQ);
}
JUDGE(limit_fixed)
{
    if (ld(s->most, SEQ) > 1) BROKEN(v, "two are inside a room for one");
}

/* The index is published before the slot is written. */
#define PUBLISH(name, first, second)                                                            \
    PROGRAM(name, 2, Cell index; Cell slot;)                                                    \
    {                                                                                           \
        if (t == 0) { first; second; }                                                          \
        else if (ld(s->index, SEQ) == 1 && ld(s->slot, SEQ) == 0) BROKEN(v, "a slot without a value");\
    }
PUBLISH(index_first, st(s->index, 1, SEQ), st(s->slot, 7, SEQ))
PUBLISH(index_first_fixed, st(s->slot, 7, SEQ), st(s->index, 1, SEQ))

/* A sum of two stripes reads -1, which the counter never was: +1 on one stripe, then -1 on the
 * other. */
PROGRAM(striped_counter, 2, Cell stripe[2];)
{
    if (t == 0) { add(s->stripe[0], 1, SEQ); add(s->stripe[1], -1, SEQ); }
    else { long sum = ld(s->stripe[0], SEQ); sum += ld(s->stripe[1], SEQ);
           if (sum < 0) BROKEN(v, "the sum was never -1"); }
}
PROGRAM(striped_counter_fixed, 2, Cell stripe[2];)
{
    if (t == 0) { add(s->stripe[0], 1, SEQ); add(s->stripe[1], -1, SEQ); }
    else { long sum = ld(s->stripe[1], SEQ); sum += ld(s->stripe[0], SEQ);
           if (sum < 0) BROKEN(v, "the sum was never -1"); }
}

/* Length and content are read under two sessions of the lock. */
#define STRING_BUFFER(name, between)                                                            \
    PROGRAM(name, 2, pthread_mutex_t lock; long taken;)                                         \
    {                                                                                           \
        if (t == 0) {                                                                           \
            pthread_mutex_lock(&s->lock); s->taken = 1; pthread_mutex_unlock(&s->lock);         \
        } else {                                                                                \
            pthread_mutex_lock(&s->lock);                                                       \
            long seen = s->taken;                                                               \
            between                                                                             \
            if (s->taken != seen) BROKEN(v, "the text became shorter between length and copy"); \
            pthread_mutex_unlock(&s->lock);                                                     \
        }                                                                                       \
    }
STRING_BUFFER(string_buffer, pthread_mutex_unlock(&s->lock); pthread_mutex_lock(&s->lock);)
STRING_BUFFER(string_buffer_fixed, )

#define TWO_LOCKS(name, first, second)                                                          \
    PROGRAM(name, 2, pthread_mutex_t lock[2];)                                                  \
    {                                                                                           \
        pthread_mutex_lock(&s->lock[t ? first : 0]);                                            \
        pthread_mutex_lock(&s->lock[t ? second : 1]);                                           \
        pthread_mutex_unlock(&s->lock[1]);                                                      \
        pthread_mutex_unlock(&s->lock[0]);                                                      \
    }
TWO_LOCKS(ab_ba, 1, 0)
TWO_LOCKS(ab_ba_fixed, 0, 1)

#define PHILOSOPHERS(name, n, ordered)                                                          \
    PROGRAM(name, n, pthread_mutex_t fork[n];)                                                  \
    {                                                                                           \
        int left = t, right = (t + 1) % n;                                                      \
        if (ordered && left > right) { left = right; right = t; }                               \
        pthread_mutex_lock(&s->fork[left]);                                                     \
        pthread_mutex_lock(&s->fork[right]);                                                    \
        pthread_mutex_unlock(&s->fork[right]);                                                  \
        pthread_mutex_unlock(&s->fork[left]);                                                   \
    }
PHILOSOPHERS(philosophers_3, 3, 0)
PHILOSOPHERS(philosophers_3_fixed, 3, 1)
PHILOSOPHERS(philosophers_5, 5, 0)
PHILOSOPHERS(philosophers_5_fixed, 5, 1)

/* A linked list whose nodes carry no mark: insert behind a node that is being removed. The list is
 * head -> 1 -> 2. Links are stored as their difference from that; 3 stands for the inserted node.
 */
#define UNMARKED_LIST(name, mark)                                                               \
    JUDGED_PROGRAM(name, 2, Cell head; Cell next_of_1;)                                         \
    {                                                                                           \
        long next = 0;                                                                          \
        if (t == 0) {                                                                           \
            mark                                                                                \
            next = ld(s->next_of_1, SEQ);                                                       \
            st(s->head, 10 + (next & 7), SEQ);                                                  \
        } else if (ld(s->head, SEQ) == 0) {                                                     \
            cas(s->next_of_1, &next, 3, SEQ);                                                   \
        }                                                                                       \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        if (ld(s->head, SEQ) == 10 && ld(s->next_of_1, SEQ) == 3) BROKEN(v, "an inserted node is lost"); \
    }
UNMARKED_LIST(unmarked_list, )
UNMARKED_LIST(unmarked_list_fixed, cas(s->next_of_1, &next, 8, SEQ);)

/* A reference count starts at 1; the retainer does not look for zero in the same step. */
PROGRAM(resurrected, 2, Cell minus_one; Cell freed;)
{
    if (t == 0) { if (add(s->minus_one, -1, SEQ) == 0) st(s->freed, 1, SEQ); }
    else if (ld(s->minus_one, SEQ) >= 0) {
        add(s->minus_one, 1, SEQ);
        if (ld(s->freed, SEQ)) BROKEN(v, "retained after the last release");
        if (add(s->minus_one, -1, SEQ) == 0) st(s->freed, 1, SEQ);
    }
}
PROGRAM(resurrected_fixed, 2, Cell minus_one; Cell freed;)
{
    if (t == 0) { if (add(s->minus_one, -1, SEQ) == 0) st(s->freed, 1, SEQ); }
    else {
        long seen = ld(s->minus_one, SEQ);
        while (seen >= 0 && !cas(s->minus_one, &seen, seen + 1, SEQ)) ;
        if (seen >= 0) {
            if (ld(s->freed, SEQ)) BROKEN(v, "retained after the last release");
            if (add(s->minus_one, -1, SEQ) == 0) st(s->freed, 1, SEQ);
        }
    }
}

/* The reader compares versions and forgets that an odd one means "being written". */
#define SEQLOCK_ODD(name, test)                                                                 \
    PROGRAM(name, 2, Cell version; Cell a; Cell b;)                                             \
    {                                                                                           \
        if (t == 0) {                                                                           \
            st(s->version, 1, SEQ); st(s->a, 1, SEQ); st(s->b, 1, SEQ); st(s->version, 2, SEQ); \
        } else {                                                                                \
            long before = ld(s->version, SEQ), a = ld(s->a, SEQ), b = ld(s->b, SEQ);            \
            if (test before == ld(s->version, SEQ) && a != b) BROKEN(v, "half of a write");     \
        }                                                                                       \
    }
SEQLOCK_ODD(seqlock_odd, )
SEQLOCK_ODD(seqlock_odd_fixed, !(before & 1) &&)

/* The flag is tested outside the lock: the signal comes between the test and the wait. */
PROGRAM(lost_wakeup, 2, pthread_mutex_t lock; pthread_cond_t changed; Cell flag;)
{
    if (t == 0) {
        if (!ld(s->flag, SEQ)) {
            pthread_mutex_lock(&s->lock);
            pthread_cond_wait(&s->changed, &s->lock);
            pthread_mutex_unlock(&s->lock);
        }
    } else {
        st(s->flag, 1, SEQ);
        pthread_mutex_lock(&s->lock);
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
}
PROGRAM(lost_wakeup_fixed, 2, pthread_mutex_t lock; pthread_cond_t changed; Cell flag;)
{
    if (t == 0) {
        pthread_mutex_lock(&s->lock);
        while (!ld(s->flag, SEQ))
            pthread_cond_wait(&s->changed, &s->lock);
        pthread_mutex_unlock(&s->lock);
    } else {
        pthread_mutex_lock(&s->lock);
        st(s->flag, 1, SEQ);
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
}

/* A ticket is taken by load and store, so two threads may hold the same one. */
#define TICKET(name, n, take)                                                                   \
    PROGRAM(name, n, Cell ticket; Cell serving; Cell inside;)                                   \
    {                                                                                           \
        long mine;                                                                              \
        take                                                                                    \
        while (ld(s->serving, SEQ) < mine) pml_pause();                                        \
        if (add(s->inside, 1, SEQ)) BROKEN(v, "two threads hold the lock");                     \
        add(s->inside, -1, SEQ);                                                                \
        st(s->serving, mine + 1, SEQ);                                                          \
    }
TICKET(ticket_2, 2, mine = ld(s->ticket, SEQ); st(s->ticket, mine + 1, SEQ);)
TICKET(ticket_2_fixed, 2, mine = add(s->ticket, 1, SEQ);)
TICKET(ticket_3, 3, mine = ld(s->ticket, SEQ); st(s->ticket, mine + 1, SEQ);)
TICKET(ticket_3_fixed, 3, mine = add(s->ticket, 1, SEQ);)

/* Treiber's stack on nodes that are used again: top goes A, B, A while a pop holds the old next.
 * Nodes are numbers, the stack starts 1 -> 2; the tagged one counts its changes. create() zeroes,
 * so values are stored as their difference from the first ones. */
#define ABA(name, TAG)                                                                          \
    JUDGED_PROGRAM(name, 2, Cell top; Cell link[3]; Cell out[3];)                               \
    {                                                                                           \
        /* top holds tag << 8 | node ^ 1, link[n] holds next ^ (n == 1 ? 2 : 0). */             \
        long seen, node, after, mine[2]; int n = 0;                                             \
        for (int i = 0; i < (t ? 2 : 1); i++) {                                                 \
            seen = ld(s->top, SEQ);                                                             \
            do {                                                                                \
                node = (seen & 255) ^ 1;                                                        \
                if (node == 0) break;                                                           \
                after = ld(s->link[node], SEQ) ^ (node == 1 ? 2 : 0);                           \
            } while (!cas(s->top, &seen, ((seen >> 8) + TAG) << 8 | (after ^ 1), SEQ));         \
            if (node == 0) break;                                                               \
            if (add(s->out[node], 1, SEQ)) BROKEN(v, "two threads popped one node");            \
            mine[n++] = node;                                                                   \
        }                                                                                       \
        if (t == 1 && n > 0) {                                                                  \
            node = mine[0];                                                                     \
            add(s->out[node], -1, SEQ);                                                         \
            seen = ld(s->top, SEQ);                                                             \
            do st(s->link[node], ((seen & 255) ^ 1) ^ (node == 1 ? 2 : 0), SEQ);                \
            while (!cas(s->top, &seen, ((seen >> 8) + TAG) << 8 | (node ^ 1), SEQ));            \
        }                                                                                       \
    }                                                                                           \
    JUDGE(name)                                                                                 \
    {                                                                                           \
        long at = (ld(s->top, SEQ) & 255) ^ 1;                                                  \
        for (int i = 0; at && i < 3; i++) {                                                     \
            if (ld(s->out[at], SEQ)) BROKEN(v, "a node is both on the stack and taken");        \
            at = ld(s->link[at], SEQ) ^ (at == 1 ? 2 : 0);                                      \
        }                                                                                       \
    }
ABA(aba, 0)
ABA(aba_fixed, 1)

/* A barrier used twice that counts down without a sense. */
PROGRAM(barrier, 2, Cell arrived; Cell phase[2];)
{
    for (int round = 1; round <= 2; round++) {
        st(s->phase[t], round, SEQ);
        if (add(s->arrived, 1, SEQ) + 1 == 2) st(s->arrived, 0, SEQ);
        else while (ld(s->arrived, SEQ) != 0) pml_pause();
        if (ld(s->phase[!t], SEQ) < round) BROKEN(v, "passed the barrier alone");
    }
}
PROGRAM(barrier_fixed, 2, Cell arrived; Cell sense; Cell phase[2];)
{
    for (int round = 1; round <= 2; round++) {
        st(s->phase[t], round, SEQ);
        if (add(s->arrived, 1, SEQ) + 1 == 2) { st(s->arrived, 0, SEQ); st(s->sense, round, SEQ); }
        else while (ld(s->sense, SEQ) < round) pml_pause();
        if (ld(s->phase[!t], SEQ) < round) BROKEN(v, "passed the barrier alone");
    }
}

/* n-1 writers set a then b; the checker sees one without the other. */
#define REORDER(name, n)                                                                        \
    PROGRAM(name, n, Cell a; Cell b;)                                                           \
    {                                                                                           \
        if (t < n - 1) { st(s->a, 1, SEQ); st(s->b, -1, SEQ); }                                 \
        else { long x = ld(s->a, SEQ), y = ld(s->b, SEQ);                                       \
               if (!((x == 0 && y == 0) || (x == 1 && y == -1)))                                \
                   BROKEN(v, "one was set and the other not"); }                                \
    }
REORDER(reorder_3, 3)
REORDER(reorder_5, 5)
REORDER(reorder_10, 10)
REORDER(reorder_20, 20)
#define REORDER_LOCKED(name, n)                                                                 \
    PROGRAM(name, n, pthread_mutex_t lock; Cell a; Cell b;)                                     \
    {                                                                                           \
        pthread_mutex_lock(&s->lock);                                                           \
        if (t < n - 1) { st(s->a, 1, SEQ); st(s->b, -1, SEQ); }                                 \
        else if (ld(s->a, SEQ) != -ld(s->b, SEQ)) BROKEN(v, "one was set and the other not");   \
        pthread_mutex_unlock(&s->lock);                                                         \
    }
REORDER_LOCKED(reorder_3_fixed, 3)
REORDER_LOCKED(reorder_5_fixed, 5)
REORDER_LOCKED(reorder_10_fixed, 10)
REORDER_LOCKED(reorder_20_fixed, 20)

/* Vyukov's lock-free stack of indices, wrong by one compare-exchange too few: three threads, five
 * preemptions. next is -1 for "taken". Thread-safe popping asks for two elements at least. A retry
 * that lets others go first gives exhaustive search an end. */
#define SAFESTACK(name, retry)                                                                  \
    PROGRAM(name, 3, Cell ready; Cell head; Cell count; Cell next[3]; Cell value[3];)           \
    {                                                                                           \
        /* head has index - 0, count the elements - 3, next[i] the successor - (i + 1, last -1). */\
        for (int i = 0; i < 2; i++) {                                                           \
            long element = -1;                                                                  \
            while (ld(s->count, SEQ) + 3 > 1) {                                                 \
                long top = ld(s->head, SEQ);                                                    \
                long initial = top == 2 ? -1 : top + 1;                                         \
                long after = swap(s->next[top], -1 - initial, SEQ) + initial;                   \
                if (after >= 0) {                                                               \
                    long seen = top;                                                            \
                    if (cas(s->head, &seen, after, SEQ)) { add(s->count, -1, SEQ); element = top; break; }\
                    swap(s->next[top], after - initial, SEQ);                                   \
                }                                                                               \
                retry;                                                                          \
            }                                                                                   \
            if (element < 0) break;                                                             \
            st(s->value[element], t + 1, SEQ);                                                  \
            if (ld(s->value[element], SEQ) != t + 1) BROKEN(v, "two threads own one element");  \
            long top = ld(s->head, SEQ), initial = element == 2 ? -1 : element + 1;             \
            do st(s->next[element], top - initial, SEQ);                                        \
            while (!cas(s->head, &top, element, SEQ));                                          \
            add(s->count, 1, SEQ);                                                              \
        }                                                                                       \
    }
SAFESTACK(safestack, )
SAFESTACK(safestack_yielding, pml_pause())

/* The same with a head that counts its changes in place of the exchange of the link. */
PROGRAM(safestack_fixed, 3, Cell ready; Cell head; Cell count; Cell next[3]; Cell value[3];)
{
    for (int i = 0; i < 2; i++) {
        long element = -1, seen, after;
        while (ld(s->count, SEQ) + 3 > 1) {
            seen = ld(s->head, SEQ);
            long top = seen & 255;
            after = ld(s->next[top], SEQ) + (top == 2 ? -1 : top + 1);
            if (after < 0) break;
            if (cas(s->head, &seen, ((seen >> 8) + 1) << 8 | after, SEQ)) {
                add(s->count, -1, SEQ);
                element = top;
                break;
            }
        }
        if (element < 0) break;
        st(s->value[element], t + 1, SEQ);
        if (ld(s->value[element], SEQ) != t + 1) BROKEN(v, "two threads own one element");
        seen = ld(s->head, SEQ);
        do st(s->next[element], (seen & 255) - (element == 2 ? -1 : element + 1), SEQ);
        while (!cas(s->head, &seen, ((seen >> 8) + 1) << 8 | element, SEQ));
        add(s->count, 1, SEQ);
    }
}

/* Weak memory ---------------------------------------------------------------------------------- */

#define MESSAGE(name, so, lo)                                                                   \
    PROGRAM(name, 2, Cell data; Cell flag;)                                                     \
    {                                                                                           \
        if (t == 0) { st(s->data, 1, RLX); st(s->flag, 1, so); }                                \
        else if (ld(s->flag, lo) && !ld(s->data, RLX)) BROKEN(v, "the flag without the data");  \
    }
MESSAGE(message_relaxed, RLX, RLX)
MESSAGE(message_relaxed_fixed, REL, ACQ)

#define DEKKER(name, so, lo)                                                                    \
    PROGRAM(name, 2, Cell wants[2]; Cell inside;)                                               \
    {                                                                                           \
        st(s->wants[t], 1, so);                                                                 \
        if (!ld(s->wants[!t], lo)) {                                                            \
            if (add(s->inside, 1, RLX)) BROKEN(v, "both are inside");                           \
        }                                                                                       \
    }
DEKKER(store_buffering, REL, ACQ)
DEKKER(store_buffering_fixed, SEQ, SEQ)

#define SEQLOCK_FENCES(name, write_fence, read_fence)                                           \
    PROGRAM(name, 2, Cell version; Cell a; Cell b;)                                             \
    {                                                                                           \
        if (t == 0) {                                                                           \
            st(s->version, 1, RLX); write_fence; st(s->a, 1, RLX); st(s->b, 1, RLX);            \
            st(s->version, 2, REL);                                                             \
        } else {                                                                                \
            long before = ld(s->version, ACQ), a = ld(s->a, RLX), b = ld(s->b, RLX);            \
            read_fence;                                                                         \
            if (!(before & 1) && before == ld(s->version, RLX) && a != b)                       \
                BROKEN(v, "half of a write");                                                   \
        }                                                                                       \
    }
SEQLOCK_FENCES(seqlock_fences, , )
SEQLOCK_FENCES(seqlock_fences_fixed, fence(REL), fence(ACQ))

/* Chase and Lev's deque with two items: take and steal without the fence between them. */
#define CHASE_LEV(name, between)                                                                \
    PROGRAM(name, 2, Cell top; Cell minus_bottom; Cell taken[2];)                               \
    {                                                                                           \
        if (t == 0) {                                                                           \
            for (int i = 0; i < 2; i++) {                                                       \
                long bottom = 2 - ld(s->minus_bottom, RLX) - 1, top, item = -1;                 \
                st(s->minus_bottom, 2 - bottom, RLX);                                           \
                between;                                                                        \
                top = ld(s->top, RLX);                                                          \
                if (top < bottom) item = bottom;                                                \
                else if (top == bottom) {                                                       \
                    if (cas(s->top, &top, top + 1, SEQ)) item = bottom;                         \
                    st(s->minus_bottom, 2 - (bottom + 1), RLX);                                 \
                } else st(s->minus_bottom, 2 - (bottom + 1), RLX);                              \
                if (item >= 0 && add(s->taken[item], 1, RLX)) BROKEN(v, "an item was taken twice");\
            }                                                                                   \
        } else {                                                                                \
            for (int i = 0; i < 2; i++) {                                                       \
                long top = ld(s->top, ACQ), bottom;                                             \
                between;                                                                        \
                bottom = 2 - ld(s->minus_bottom, ACQ);                                          \
                if (top < bottom && cas(s->top, &top, top + 1, SEQ) && add(s->taken[top], 1, RLX))\
                    BROKEN(v, "an item was taken twice");                                       \
            }                                                                                   \
        }                                                                                       \
    }
CHASE_LEV(chase_lev, )
CHASE_LEV(chase_lev_fixed, fence(SEQ))
/* With one item both sides exchange, and no fence is needed. */
PROGRAM(chase_lev_one_fixed, 2, Cell top; Cell bottom; Cell taken;)
{
    long top = ld(s->top, t ? ACQ : RLX), none = 0;
    if (t == 0) st(s->bottom, 1, RLX);
    if (top == 0 && cas(s->top, &none, 1, SEQ) && add(s->taken, 1, RLX)) BROKEN(v, "an item was taken twice");
}

/* Double-checked initialisation whose pointer is published relaxed: a race on the content. */
#define DOUBLE_CHECKED(name, so, lo)                                                            \
    PROGRAM(name, 2, pthread_mutex_t lock; Cell ready; long content;)                           \
    {                                                                                           \
        if (!ld(s->ready, lo)) {                                                                \
            pthread_mutex_lock(&s->lock);                                                       \
            if (!ld(s->ready, RLX)) { s->content = 7; st(s->ready, 1, so); }                    \
            pthread_mutex_unlock(&s->lock);                                                     \
        }                                                                                       \
        if (s->content != 7) BROKEN(v, "read before it was initialised");                       \
    }
DOUBLE_CHECKED(double_checked, RLX, RLX)
DOUBLE_CHECKED(double_checked_fixed, REL, ACQ)

/* Detectors ------------------------------------------------------------------------------------ */

PROGRAM(plain_race, 2, long x;)
{
    s->x = t;
}
PROGRAM(plain_race_fixed, 2, pthread_mutex_t lock; long x;)
{
    pthread_mutex_lock(&s->lock); s->x = t; pthread_mutex_unlock(&s->lock);
}
PROGRAM(neighbours_fixed, 2, int x[2];)
{
    s->x[t] = t;
}
PROGRAM(read_write_race, 2, Cell flag; long x;)
{
    if (t == 0) { s->x = 1; st(s->flag, 1, RLX); }
    else if (ld(s->flag, RLX) == 1 && s->x == 5) st(s->flag, 2, RLX);
}
PROGRAM(read_write_race_fixed, 2, Cell flag; long x;)
{
    if (t == 0) { s->x = 1; st(s->flag, 1, REL); }
    else if (ld(s->flag, ACQ) == 1 && s->x == 5) st(s->flag, 2, RLX);
}
PROGRAM(atomic_and_plain, 2, Cell x;)
{
    if (t == 0) st(s->x, 1, SEQ); else memset((void *)&s->x, 0, sizeof s->x);
}

typedef struct { long value; } Box;
#define BOXED(name, give_back)                                                                  \
    PROGRAM(name, 2, _Atomic(Box *) box; Cell users;)                                           \
    {                                                                                           \
        if (t == 0) {                                                                           \
            Box *box = malloc(sizeof *box);                                                     \
            box->value = 1;                                                                     \
            atomic_store_explicit(&s->box, box, SEQ);                                           \
            give_back                                                                           \
        } else {                                                                                \
            add(s->users, 1, SEQ);                                                              \
            Box *box = atomic_load_explicit(&s->box, SEQ);                                      \
            (void)ld(s->users, SEQ);                                                            \
            if (box && box->value != 1) BROKEN(v, "a box without its value");                   \
            add(s->users, -1, SEQ);                                                             \
        }                                                                                       \
    }
BOXED(use_after_free, atomic_store_explicit(&s->box, NULL, SEQ); free(box);)
BOXED(use_after_free_fixed,
    atomic_store_explicit(&s->box, NULL, SEQ); while (ld(s->users, SEQ)) pml_pause(); free(box);)
BOXED(leak, (void)box;)
PROGRAM(double_free, 2, _Atomic(Box *) box;)
{
    if (t == 0) atomic_store_explicit(&s->box, malloc(sizeof(Box)), SEQ);
    Box *box = atomic_load_explicit(&s->box, SEQ);
    if (box) { atomic_store_explicit(&s->box, NULL, SEQ); free(box); }
}
JUDGED_PROGRAM(double_free_fixed, 2, _Atomic(Box *) box;)
{
    if (t == 0) atomic_store_explicit(&s->box, malloc(sizeof(Box)), SEQ);
    free(atomic_exchange_explicit(&s->box, NULL, SEQ));
}
JUDGE(double_free_fixed)
{
    free(atomic_load(&s->box));
}
PROGRAM(uninitialised, 2, Cell x;)
{
    Box *box = malloc(sizeof *box);
    __asm__("" : "+r"(box));  /* Clang leaves out a block that nobody else can see */
    if (t == 0) box->value = 0;
    if (box->value) add(s->x, 1, SEQ);
    free(box);
}
PROGRAM(overflow, 2, Cell x;)
{
    volatile char *bytes = malloc(24);
    volatile int at = t == 0 ? 23 : 32;
    add(s->x, 1, SEQ);
    bytes[at] = 1;
    free((void *)bytes);
}
PROGRAM(crash, 2, Cell x;)
{
    volatile long *volatile nothing = NULL;
    if (add(s->x, 1, SEQ) == 1) *nothing = 1;
}
PROGRAM(endless, 2, Cell x;)
{
    volatile int going = 1;
    if (add(s->x, 1, SEQ) == 1 && t == 0) while (going) ;
}
PROGRAM(endless_behind_a_mask, 2, Cell x;)
{
    volatile int going = 1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (add(s->x, 1, SEQ) == 1 && t == 0) while (going) ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
PROGRAM(recursion, 2, Cell x;)
{
    volatile char *volatile bytes = NULL;
    if (add(s->x, 1, SEQ) == 1) for (int i = 0; i < 4000; i++) { bytes = __builtin_alloca(4096); bytes[0] = 1; }
}
PROGRAM(assertion, 2, Cell x;)
{
    if (add(s->x, 1, SEQ) == 1 && t == 0) abort();
}
PROGRAM(livelock, 2, Cell turn;)
{
    while (ld(s->turn, SEQ) != 1 + t) pml_pause();
}
PROGRAM(silent_spin, 2, Cell turn;)
{
    while (ld(s->turn, SEQ) != 1) ;
}
PROGRAM(spin_fixed, 2, Cell turn;)
{
    if (t == 0) st(s->turn, 1, REL);
    else while (ld(s->turn, ACQ) != 1) ;
}
PROGRAM(bounded_spin_fixed, 2, Cell turn;)
{
    for (int i = 0; i < 50 && ld(s->turn, ACQ) != 1; i++) pml_pause();
}
PROGRAM(foreign_unlock, 2, pthread_mutex_t lock;)
{
    if (t == 0) { pthread_mutex_lock(&s->lock); pthread_mutex_unlock(&s->lock); }
    else pthread_mutex_unlock(&s->lock);
}
PROGRAM(no_sharing, 2, long x; Cell y[2];)
{
    st(s->y[t], 1, SEQ);
}

/* Speed ---------------------------------------------------------------------------------------- */

PROGRAM(bench_store_load, 2, Cell x; Cell y;)
{
    if (t == 0) { st(s->x, 1, SEQ); (void)ld(s->y, SEQ); }
    else { st(s->y, 1, SEQ); (void)ld(s->x, SEQ); }
}

PROGRAM(bench_seqlock, 3, Cell sequence; Cell a; Cell b;)
{
    for (int i = 0; i < 3; i++) {
        if (t == 0) {
            long n = ld(s->sequence, RLX);
            st(s->sequence, n + 1, RLX);
            fence(REL);
            st(s->a, i + 1, RLX);
            st(s->b, i + 1, RLX);
            st(s->sequence, n + 2, REL);
        } else {
            long before = ld(s->sequence, ACQ);
            long a = ld(s->a, RLX);
            long b = ld(s->b, RLX);
            fence(ACQ);
            if (!(before & 1) && ld(s->sequence, RLX) == before && a != b)
                BROKEN(v, "a reader saw half of a write");
        }
    }
}

typedef struct TreiberNode { struct TreiberNode *next; long value; } TreiberNode;
JUDGED_PROGRAM(bench_treiber, 3, _Atomic(TreiberNode *) top; TreiberNode nodes[6];)
{
    for (int i = 0; i < 2; i++) {
        TreiberNode *node = &s->nodes[2 * t + i];
        TreiberNode *seen = atomic_load_explicit(&s->top, RLX);
        node->value = t;
        do node->next = seen;
        while (!atomic_compare_exchange_weak_explicit(&s->top, &seen, node, REL, RLX));
    }
    for (int i = 0; i < 2; i++) {
        TreiberNode *seen = atomic_load_explicit(&s->top, ACQ);
        while (seen && !atomic_compare_exchange_weak_explicit(&s->top, &seen, seen->next, ACR, ACQ))
            ;
    }
}
JUDGE(bench_treiber)
{
    if (atomic_load(&s->top)) BROKEN(v, "a node is left");
}

/* Steps per second as threads grow. */
#define MANY_THREADS(name, n)                                                                   \
    PROGRAM(name, n, Cell x[4];)                                                                \
    {                                                                                           \
        for (int i = 0; i < 4; i++) {                                                           \
            st(s->x[i], t, REL);                                                                \
            (void)ld(s->x[(i + 1) % 4], ACQ);                                                   \
        }                                                                                       \
    }
MANY_THREADS(bench_threads_2, 2)
MANY_THREADS(bench_threads_4, 4)
MANY_THREADS(bench_threads_8, 8)
MANY_THREADS(bench_threads_16, 16)

/* Long programs: two threads with so many operations each. */
#define MANY_OPERATIONS(name, n)                                                                \
    PROGRAM(name, 2, Cell x[4];)                                                                \
    {                                                                                           \
        for (int i = 0; i < (n) / 2; i++) {                                                     \
            st(s->x[i % 4], t, REL);                                                            \
            (void)ld(s->x[(i + 1) % 4], ACQ);                                                   \
        }                                                                                       \
    }
MANY_OPERATIONS(bench_operations_100, 100)
MANY_OPERATIONS(bench_operations_1000, 1000)
