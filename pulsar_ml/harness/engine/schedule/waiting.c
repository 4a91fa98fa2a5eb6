/* Loops that wait. A turn of a loop ends with a pause, with a sleep, or after many reads without a
 * write.
 *
 * What the thread does then is a choice. By default a turn that only read and would find the same
 * again parks the thread until a location that it read changes; after any other turn the thread
 * lets the others go first; and every store has arrived when it goes on. Instead it may go on at
 * once, for one turn or for many in a row, because a loop may count its turns and a pause may be
 * short. Samplers do so now and then. A search does so within its bound of turns and reports when
 * that bound left something out.
 *
 * Also here: the verdict when no thread can go on. */

enum { STUCK_ROUNDS = 200, TRIES = 16, LOOK_AGAIN = 128, TIME_PASSES = 2048, ALONE = 64, MOST_PERIOD = 5 };

/* Values of CHOOSE_PAUSE. A search takes one of the first two. PAUSE_ARRIVED is for searches with
 * reduction alone: the thread goes on at once, and finds every store that there is. */
enum { PAUSE_LONG, PAUSE_NONE, PAUSE_SHORT = 6, PAUSES, PAUSE_ARRIVED = PAUSES };

/* Turns in a row that the thread makes without a pause. */
static const uint16_t TURNS[PAUSES + 1] = {0, 1, 4, 16, 64, 256, 0, 1};

static void observe_newest(Thread *t, Variable *v);
static int may_read_older(const Thread *t, const Variable *v);
static __attribute__((noinline)) void explain_deadlock(void);
static void end_hold(void);

static void waiting_reset(void)
{
    E.ready = E.waiting = E.yielded = E.timed = E.held_back = E.spinner = 0;
    E.changes = E.stuck_changes = E.stuck_rounds = 0;
    E.held = 0;
    E.held_once = 0;
    E.pauses = E.alone = E.spun = E.turns_left = 0;
    path_spun = path_looped = 0;
}

static void watch_reset(Thread *t)
{
    t->n_watched = 0;
    t->operands = 0;
    t->watch_lost = 0;
}

static void waiting_start(Thread *t)
{
    watch_reset(t);               /* of a thread that is started: run_calls() does it for others */
    t->owed = 0;
    t->turn_operands = 0;
    t->turn_step = 0;
    t->turns = 0;
    t->late = t->came_late = 0;
    t->polls = t->idle_polls = 0;
    t->polled_changes = NONE;
    t->spun = t->looks = 0;
}

static uint32_t n_watched(const Thread *t)
{
    return t->n_watched < ENGINE_MOST_WATCHED ? t->n_watched : ENGINE_MOST_WATCHED;
}

/* Those that were held back while a thread made turns in a row go on. */
static void end_spin(void)
{
    E.ready |= E.held_back;
    E.held_back = 0;
    E.spinner = 0;
    E.turns_left = 0;
}

/* The thread makes these turns before any other thread goes on. */
static void begin_spin(const Thread *t, uint32_t turns)
{
    E.spinner = t->bit;
    E.turns_left = turns;
    E.held_back |= E.ready & ~t->bit;  /* beside those whose turn to look again has not come */
    E.ready = t->bit;
}

static void look_again(void)
{
    E.ready |= E.waiting;
    E.waiting = 0;
}

/* Those that wait make one turn each, one after the other: nothing changed, so their order does not
 * matter. */
static void look_in_turn(void)
{
    E.held_back = E.waiting & (E.waiting - 1);
    E.ready = E.waiting & ~E.held_back;
    E.waiting = 0;
}

/* The next of those that are held back, all of them behind a thread that spun. */
static void next_held_back(void)
{
    if (E.spinner) {
        end_spin();
        return;
    }
    E.ready = E.held_back & -E.held_back;
    E.held_back &= E.held_back - 1;
}

/* A store of one of the buffers reaches memory, because nothing else can happen. The order matters
 * where two threads stored to one location. */
static void flush_one(Thread *t)
{
    uint32_t which = 0, n = (uint32_t)__builtin_popcountll(E.buffered);
    if (E.strategy->row.kind == STRATEGY_FOLLOWS) {
        which = choose(t, CHOOSE_FLUSH, 1 + n);
    } else if (searching() && n > 1) {
        which = 1 + search_choose(n);
        if (unlikely(E.recording) && which > 1)
            decision_made(t, CHOOSE_FLUSH, which);
    }
    flush_oldest(nth_thread(E.buffered, which ? which - 1 : 0));
    t->idle_points++;
}

/* The threads have ended, and their stores arrive. */
static __attribute__((noinline)) void flush_last(Thread *t)
{
    while (E.buffered)
        if (E.reducing && !reduction.stuck)
            reduced_pick(t, 0);
        else
            flush_one(t);
}

static int was_a_fault(void);

/* No thread is ready: buffered stores reach memory, spinning threads look once more, a time-out
 * fires, or the execution is stuck. */
static __attribute__((noinline)) void unstick(Thread *t)
{
    if (unlikely(E.reducing) && E.held_back | E.waiting | E.timed)
        note_quiet();
    if (E.held_back) {
        next_held_back();
        return;
    }
    if (E.buffered) {
        flush_one(t);
        return;
    }
    if (E.waiting) {
        /* A loop that gives up after some turns is not stuck: it ends within the rounds. */
        if (E.changes != E.stuck_changes) {
            E.stuck_changes = E.changes;
            E.stuck_rounds = 0;
        }
        if (++E.stuck_rounds <= STUCK_ROUNDS) {
            look_in_turn();
            return;
        }
    }
    if (E.timed) {
        if (unlikely(E.reducing) && was_a_fault())
            leave_execution();
        expire_earliest();
        return;
    }
    if (E.held) {
        end_hold();
        return;
    }
    if (reversal.held != HELD)    /* else it waits for the thread that is held: not in this order */
        explain_deadlock();
    abandon();
}

/* A thread that is about to let others go first finds no other thread ready: whatever else can
 * happen does. */
static __attribute__((noinline)) void let_time_pass(void)
{
    if (E.held_back)
        end_spin();
    else if (E.buffered)
        flush_oldest(&E.threads[__builtin_ctzll(E.buffered)]);
    else if (E.waiting)
        look_again();
    else if (E.timed && ++E.alone % ALONE == 0)
        expire_earliest();
}

/* The turn only read, nothing that it read changed since, and it failed to exchange as the turn
 * before it did: a turn that looks the same from here. */
static int turn_repeats(Thread *t)
{
    int same = !t->watch_lost && t->n_watched &&
               (t->n_watched <= ENGINE_MOST_WATCHED || t->n_watched > IN_VAIN) &&
               (t->operands == 0 || t->operands == t->turn_operands);
    for (uint32_t i = 0; same && i < n_watched(t); i++)
        same = E.variables[t->watched[i]].version == t->watched_version[i];
    t->turn_operands = t->operands;
    return same;
}

/* Something can happen between this turn and the next one, or the next one may read what is older.
 */
static int pause_matters(const Thread *t)
{
    if ((E.ready & ~t->bit) | E.held_back | E.buffered | E.timed | E.waiting)
        return 1;
    for (uint32_t i = 0; i < n_watched(t); i++)
        if (may_read_older(t, &E.variables[t->watched[i]]))
            return 1;
    return 0;
}

static uint32_t choose_pause(Thread *t)
{
    int in_vain = E.stuck_rounds && E.changes == E.stuck_changes;
    uint32_t pause;
    if (E.strategy->row.kind == STRATEGY_FOLLOWS) {
        pause = choose(t, CHOOSE_PAUSE, PAUSES + 1);
    } else if (profile.learning || !pause_matters(t)) {
        return PAUSE_LONG;
    } else if (searching()) {
        if (in_vain || E.spun == (uint32_t)E.config.spins) {
            path_spun = 1;
            return PAUSE_LONG;
        }
        pause = choose(t, CHOOSE_PAUSE, 2);
    } else {
        if (in_vain || E.step > E.config.step_limit / 4)
            return PAUSE_LONG;
        pause = choose(t, CHOOSE_PAUSE, PAUSES);
    }
    /* Turns that take many steps each are made fewer times. */
    while (pause > PAUSE_NONE && pause < PAUSE_SHORT &&
           TURNS[pause] * (E.step - t->turn_step + 1) > E.config.step_limit / 8)
        pause--;
    E.spun += pause != PAUSE_LONG;
    return pause;
}

/* What the thread read in its turn is looked at again, all at once. */
static __attribute__((noinline)) void note_watched(const Thread *t)
{
    for (uint32_t i = 0; i < n_watched(t); i++) {
        const Variable *v = &E.variables[t->watched[i]];
        note_touch(v->address, v->width, TOUCH_OBJECT | TOUCH_READS);
    }
}

/* In a search with reduction. A turn that would let the others go first goes on at once: that they
 * come first is one of the orders that follow, and in mode c11 one of two: it finds all that was
 * stored so far, or may still read what is older. Each thread has the bound of turns to itself. */
static __attribute__((noinline)) uint32_t choose_reduced_pause(Thread *t, int64_t until, int parks)
{
    int waits = until || parks, in_vain = E.stuck_rounds && E.changes == E.stuck_changes;
    uint32_t pause = waits ? PAUSE_LONG : PAUSE_ARRIVED;
    reduction.turned |= t->bit;
    if (t->late && !t->came_late) {   /* no loop yet, only an attempt that came too late */
        if (unlikely(E.recording))
            decision_made(t, CHOOSE_PAUSE, PAUSE_NONE);
        return PAUSE_NONE;
    }
    if (!until || E.config.mode != MODE_C11)
        note_watched(t);
    if (t->turns > (uint32_t)E.config.turns || E.pauses + 1 >= LOOK_AGAIN)
        give_up_loops();
    reduction.hurries |= !waits;
    if (E.strategy->row.kind != STRATEGY_REDUCES || (!waits && (E.config.mode != MODE_C11 || !t->n_watched))) {
        /* Older stores are read in no other mode. */
    } else if (E.live == 1 && !pause_matters(t)) {
        /* Nobody is left who could do something between the turns. */
    } else if (in_vain || t->spun == (uint32_t)E.config.spins) {
        path_spun = 1;
    } else if (search_choose(2)) {
        t->spun++;
        pause = PAUSE_NONE;
    }
    if (unlikely(E.recording) && pause != PAUSE_LONG)
        decision_made(t, CHOOSE_PAUSE, pause);
    return pause;
}

/* The thread stops being ready, or stays so and lets the others go first. */
static void give_way(Thread *t, int64_t until, int parks)
{
    if (until) {
        wait_until(t, until);
        E.ready &= ~t->bit;
    } else if (parks) {
        E.waiting |= t->bit;
        E.ready &= ~t->bit;
    } else {
        t->owed = E.ready & ~t->bit;
        if (t->owed)
            E.yielded |= t->bit;
        else
            let_time_pass();
    }
    /* Threads that let each other go first for ever do not keep the others from looking again. */
    if (++E.pauses % LOOK_AGAIN == 0) {
        E.ready |= E.waiting & ~t->bit;
        E.waiting &= t->bit;
        if (E.buffered)
            flush_oldest(&E.threads[__builtin_ctzll(E.buffered)]);
    }
    if (E.pauses % TIME_PASSES == 0 && E.timed)
        expire_earliest();
    if (E.strategy->on_yield)
        E.strategy->on_yield(t);
    if (unlikely(E.starting < E.n)) {
        switch_to(t, start_next());
    } else {
        Thread *next = pick(t);
        if (next != t)
            switch_to(t, next);
    }
}

/* A turn of a loop is over. `until`: the thread sleeps until then, 0: it does not. */
static __attribute__((noinline)) void turn_over(Thread *t, int64_t until)
{
    uint32_t pause = PAUSE_NONE;
    t->idle_points++;
    t->turns++;
    t->op_address = 0;
    if (E.spinner == t->bit && E.turns_left > 1) {
        E.turns_left--;
    } else {
        int parks = turn_repeats(t);
        if (E.spinner)
            end_spin();
        pause = unlikely(E.reducing) ? choose_reduced_pause(t, until, parks) : choose_pause(t);
        if (TURNS[pause] > 1)
            begin_spin(t, TURNS[pause]);
        if (TURNS[pause] == 0)
            give_way(t, until, parks);
    }
    if (TURNS[pause] && until)
        clock_to(until);
    if (unlikely(++E.step == E.step_check))
        step_limit(t);
    if (pause == PAUSE_LONG && unlikely(E.reducing))
        note_watched(t);
    if (pause == PAUSE_LONG || pause == PAUSE_ARRIVED)   /* long enough for every store to arrive */
        for (uint32_t i = 0; i < n_watched(t); i++)
            observe_newest(t, &E.variables[t->watched[i]]);
    t->turn_step = E.step;
    t->came_late |= t->late;
    t->late = 0;
    watch_reset(t);
}

static __attribute__((noinline)) void wake_watchers(uint32_t variable)
{
    if (E.held_back)
        end_spin();
    for (uint64_t rest = E.waiting; rest; rest &= rest - 1) {
        Thread *u = &E.threads[__builtin_ctzll(rest)];
        for (uint32_t i = 0; i < n_watched(u); i++)
            if (u->watched[i] == variable) {
                wake(u);
                break;
            }
    }
}

static inline void watch_write(Thread *t, uint32_t variable)
{
    t->watch_lost = 1;
    t->n_watched = 0;
    E.changes++;
    if (unlikely(E.waiting | E.held_back))
        wake_watchers(variable);
}

/* The last reads are of the same few locations, again and again; with `same_values`, they also
 * found nothing new: the thread goes round a loop that waits. */
static int goes_round(const Thread *t, int same_values)
{
    for (uint32_t period = 1; period <= MOST_PERIOD; period++) {
        uint32_t reads = 3 * period > MANY_READS ? 3 * period : MANY_READS + 1, same = period;
        while (same < reads && t->n_watched >= reads) {
            uint32_t at = (t->n_watched - 1 - same + period) % ENGINE_MOST_WATCHED;
            uint32_t before = (t->n_watched - 1 - same) % ENGINE_MOST_WATCHED;
            if (t->watched[at] != t->watched[before] ||
                (same_values && t->watched_version[at] != t->watched_version[before]))
                break;
            same++;
        }
        if (same == reads)
            return 1;
    }
    return 0;
}

/* A loop without a pause may be waiting. Samplers let it make many reads before they take it for
 * that. A search ends its turn as soon as it goes round, because each read of it is a scheduling
 * point; the decision that it did makes a replay do so. */
static __attribute__((noinline)) void many_reads(Thread *t)
{
    if (t->n_watched <= IN_VAIN) {
        /* In mode sc the stores that were read say whether they were new. */
        if (unlikely(E.reducing) && E.config.mode != MODE_SC && goes_round(t, 0))
            note_watched(t);
        if (E.strategy->row.kind == STRATEGY_FOLLOWS ? !choose(t, CHOOSE_TURN, 2) : !goes_round(t, 1))
            return;
        if (unlikely(E.recording) && searching())
            decision_made(t, CHOOSE_TURN, 1);
        t->n_watched = n_watched(t);
    }
    turn_over(t, 0);
}

/* The last reads since the last pause or write; duplicates do no harm. A loop without a pause is
 * recognised by many reads without a write. */
static inline void watch_read(Thread *t, uint32_t variable, uint32_t version)
{
    uint32_t at = t->n_watched++ % ENGINE_MOST_WATCHED;
    t->watched[at] = variable;
    t->watched_version[at] = version;
    if (unlikely(t->n_watched > E.many_reads))
        many_reads(t);
}

/* A read-modify-write that stores what it found, as a lock's taker does in vain, changes nothing. A
 * few of them in a row are a turn. */
static __attribute__((noinline)) void watch_try(Thread *t, Variable *v, uint32_t stale)
{
    uint32_t variable = v->index;
    v->version--;
    for (int i = 0; i < IN_VAIN / TRIES; i++) {
        watch_read(t, variable, v->version - stale);
        if (t->n_watched == 0)    /* its turn is over */
            return;
    }
}

static inline void watch_rmw(Thread *t, Variable *v, uint32_t stale, int changes)
{
    if (changes)
        watch_write(t, v->index);
    else
        watch_try(t, v, stale);
}
