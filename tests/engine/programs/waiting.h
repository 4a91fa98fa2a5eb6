/* Loops that wait, wrong and, as NAME_fixed, right. */

/* The failed exchange refreshes its operand, so the next turn may exchange although nothing
 * changed. */
#define RETRIED(name, gives_up)                                                                 \
    PROGRAM(name, 2, Cell x;)                                                                   \
    {                                                                                           \
        long seen = 0;                                                                          \
        if (t == 0) { while (!cas(s->x, &seen, seen + 10, SEQ)) { gives_up; pml_yield(); } }    \
        else { st(s->x, 1, SEQ); if (ld(s->x, SEQ) == 11) BROKEN(v, "the exchange was tried again"); } \
    }
RETRIED(retried, )
RETRIED(retried_fixed, if (seen) return)

/* Four turns, then a wait that nobody ends. */
#define FOUR_TURNS(name, wake)                                                                  \
    PROGRAM(name, 2, pthread_mutex_t lock; pthread_cond_t set; Cell flag;)                      \
    {                                                                                           \
        if (t == 0) {                                                                           \
            for (int i = 0; i < 4 && !ld(s->flag, SEQ); i++) pml_yield();                       \
            pthread_mutex_lock(&s->lock);                                                       \
            while (!ld(s->flag, SEQ)) pthread_cond_wait(&s->set, &s->lock);                     \
            pthread_mutex_unlock(&s->lock);                                                     \
        } else {                                                                                \
            pthread_mutex_lock(&s->lock);                                                       \
            st(s->flag, 1, SEQ);                                                                \
            wake;                                                                               \
            pthread_mutex_unlock(&s->lock);                                                     \
        }                                                                                       \
    }
FOUR_TURNS(four_turns, )
FOUR_TURNS(four_turns_fixed, pthread_cond_signal(&s->set))

/* Sixty-four turns without a pause, then a sleep in the kernel: the lock of monitor.pxd in C. */
#define SLEEPING_LOCK(name, turns, pause, wake)                                                 \
    JUDGED_PROGRAM(name, 2, pml_u32 word; long x;)                                              \
    {                                                                                           \
        int got = 0;                                                                            \
        for (int i = 0; i < turns && !got; i++) {                                               \
            uint32_t free_word = 0;                                                             \
            got = pml_u32_cas_weak_acquire(&s->word, &free_word, 1);                            \
            if (!got) pause;                                                                    \
        }                                                                                       \
        while (!got && pml_u32_exchange_acquire(&s->word, 2) != 0) pml_wait(&s->word, 2);       \
        s->x++;                                                                                 \
        if (pml_u32_exchange_release(&s->word, 0) == 2) { wake; }                               \
    }                                                                                           \
    JUDGE(name) { if (s->x != 2) BROKEN(v, "an update was lost"); }
SLEEPING_LOCK(sleeping_lock, 64, pml_pause(), )
SLEEPING_LOCK(sleeping_lock_fixed, 64, pml_pause(), pml_wake_one(&s->word))
SLEEPING_LOCK(sleeping_lock_silent, 64, (void)0, )
SLEEPING_LOCK(sleeping_lock_silent_fixed, 64, (void)0, pml_wake_one(&s->word))

/* A pause may be short: what was read before it may be read again although a newer store is known
 * to exist. */
#define BEHIND_A_PAUSE(name, store_order, load_order)                                           \
    PROGRAM(name, 2, Cell x; Cell y;)                                                           \
    {                                                                                           \
        if (t == 0) { st(s->x, 1, RLX); st(s->y, 1, store_order); }                             \
        else if (ld(s->x, RLX) == 0 && ld(s->y, load_order) == 1) {                             \
            pml_pause();                                                                        \
            if (ld(s->x, RLX) == 0) BROKEN(v, "the flag without the data");                     \
        }                                                                                       \
    }
BEHIND_A_PAUSE(behind_a_pause, RLX, RLX)
BEHIND_A_PAUSE(behind_a_pause_fixed, REL, ACQ)

/* Thread 0 pauses between two stores; the other may see neither, the first, or both. */
JUDGED_PROGRAM(pause_between, 2, Cell x; long seen;)
{
    if (t == 0) { st(s->x, 1, SEQ); pml_yield(); st(s->x, 2, SEQ); }
    else s->seen = ld(s->x, SEQ);
}
JUDGE(pause_between) { OUTCOME(pause_between, s->seen); }

/* Locks with a back-off that has no cap. */
#define BACKS_OFF(name, take, give_back)                                                        \
    PROGRAM(name, 2, Cell lock; long x;)                                                        \
    {                                                                                           \
        long delay = 1;                                                                         \
        while (!(take)) {                                                                       \
            for (long i = 0; i < delay; i++) pml_pause();                                       \
            delay *= 2;                                                                         \
        }                                                                                       \
        s->x++;                                                                                 \
        give_back;                                                                              \
    }
BACKS_OFF(backs_off_torn, ld(s->lock, ACQ) == 0 && (st(s->lock, 1, RLX), 1), st(s->lock, 0, REL))
BACKS_OFF(backs_off_kept, !swap(s->lock, 1, ACQ), if (t) st(s->lock, 0, REL))
BACKS_OFF(backs_off_fixed, !swap(s->lock, 1, ACQ), st(s->lock, 0, REL))

/* A ticket lock whose back-off is proportional to the distance; the wrong one takes its ticket in
 * two steps. */
#define TICKET_BACKOFF(name, take)                                                              \
    PROGRAM(name, 3, Cell ticket; Cell serving; long x;)                                        \
    {                                                                                           \
        long mine, at;                                                                          \
        take                                                                                    \
        while ((at = ld(s->serving, ACQ)) < mine)                                               \
            for (long i = 0; i < 4 * (mine - at); i++) pml_pause();                             \
        s->x++;                                                                                 \
        st(s->serving, mine + 1, REL);                                                          \
    }
TICKET_BACKOFF(ticket_backoff, mine = ld(s->ticket, RLX); st(s->ticket, mine + 1, RLX);)
TICKET_BACKOFF(ticket_backoff_fixed, mine = add(s->ticket, 1, RLX);)

/* The lock of Craig, Landin and Hagersten with a pause; the wrong one lets its successor in too
 * early. */
#define QUEUE_LOCK(name, early, late)                                                           \
    PROGRAM(name, 3, Cell tail; Cell held[4]; long x;)                                          \
    {                                                                                           \
        st(s->held[t + 1], 1, RLX);                                                             \
        long before = swap(s->tail, t + 1, ACR);                                                \
        while (ld(s->held[before], ACQ)) pml_pause();                                           \
        early;                                                                                  \
        s->x++;                                                                                 \
        late;                                                                                   \
    }
QUEUE_LOCK(queue_lock, st(s->held[t + 1], 0, REL), )
QUEUE_LOCK(queue_lock_fixed, , st(s->held[t + 1], 0, REL))

/* Threads that spin must not keep others from going on: one that sleeps, and one that waits in a
 * loop itself. */
PROGRAM(holder_sleeps_fixed, 2, pthread_mutex_t lock; long x;)
{
    if (t == 0) pthread_mutex_lock(&s->lock); else while (pthread_mutex_trylock(&s->lock)) pml_yield();
    s->x++;
    if (t == 0) usleep(1000);
    pthread_mutex_unlock(&s->lock);
}
PROGRAM(holder_spins_fixed, 3, Cell lock; Cell flag; long x;)
{
    while (swap(s->lock, 1, ACQ)) pml_pause();
    if (t == 0) for (int i = 0; i < 64 && !ld(s->flag, RLX); i++) pml_pause();
    s->x++;
    st(s->lock, 0, REL);
}
#define SPINS(name, take)                                                                       \
    PROGRAM(name, 3, Cell lock; long x;)                                                        \
    {                                                                                           \
        take;                                                                                   \
        s->x++;                                                                                 \
        st(s->lock, 0, REL);                                                                    \
    }
SPINS(spins_by_exchange, while (swap(s->lock, 1, RLX)))
SPINS(spins_by_exchange_fixed, while (swap(s->lock, 1, ACQ)))
SPINS(spins_by_load, while (swap(s->lock, 1, RLX)) while (ld(s->lock, RLX)))
SPINS(spins_by_load_fixed, while (swap(s->lock, 1, ACQ)) while (ld(s->lock, RLX)))
SPINS(spins_with_pause_fixed, while (swap(s->lock, 1, ACQ)) while (ld(s->lock, RLX)) pml_pause())
