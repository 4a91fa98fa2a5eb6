/* Departs from an earlier execution, whose decisions are the tape. In one of two ways, drawn for
 * each execution: the tape is followed up to a step, mostly with departures on the way; or it is
 * followed until the reader or the writer of a pair comes to its step, or to one before it in the
 * same call, as what they share may lie within a section. That thread is held until the other one
 * has come as well. Then the writer goes on until it made its step, and the reader behind it. From
 * there on the execution is one of a sampler.
 *
 * A hold is bounded, and ends when no other thread can go on. All of it is choices of threads, so
 * that the decisions of such an execution repeat it without the tape. */

enum { HOLD_STEPS = 64, DEPARTS = 8 };   /* beside the steps of the program; of 256 choices */
enum { READER, WRITER };
enum { APART, HOLDS, HANDS_OVER, TAKES, PAST };

SHARED struct {
    const Strategy *then;
    const EnginePair *pair;
    uint32_t until;               /* the step up to which the tape is followed */
    uint32_t departs;             /* of 256 choices: those that leave the tape */
    uint32_t stage;               /* of the pair */
    uint32_t hold_at[2];          /* scheduling points of the reader and the writer */
    int held;                     /* the one that came first */
    uintptr_t address;            /* of its step, if it is the step of the pair; or 0 */
    uint32_t ends;                /* the step at which the meeting is given up */
} guided;

static int has_tape(void) { return E.config.n_decisions > 0 || E.config.n_pairs > 0; }

/* At the step itself, at the first one of its call, at any one between them, or before. */
static uint32_t draw_hold(uint32_t at, uint32_t call_at)
{
    uint32_t way = draw_below(4);
    return way == 0 ? at : way == 1 ? call_at : at - draw_below(way == 2 ? at - call_at + 1 : at);
}

/* `then` has started; the execution departs from the tape first. */
static void guided_start(const Strategy *then)
{
    uint32_t way = draw_below(4);
    const EnginePair *pair;
    guided.then = then;
    guided.stage = PAST;
    guided.departs = way == 1 ? 0 : DEPARTS;
    guided.until = draw_below(profile.steps + 1);
    E.guided = 1;
    if (E.config.n_pairs == 0 || (way < 2 && E.config.n_decisions))
        return;
    guided.pair = pair = &E.config.pairs[draw_below((uint32_t)E.config.n_pairs)];
    guided.stage = APART;
    guided.departs = 0;
    guided.until = NONE;
    guided.hold_at[READER] = draw_hold(pair->at[READER], pair->call_at[READER]);
    guided.hold_at[WRITER] = draw_hold(pair->at[WRITER], pair->call_at[WRITER]);
}

static void end_meeting(void)
{
    guided.stage = PAST;
    guided.until = 0;
}

/* The thread that the pair wants next; NULL: any of the mask, which leaves out one that is held. */
static Thread *pair_thread(uint64_t *mask)
{
    int turn = guided.stage == HOLDS ? 1 - guided.held : guided.stage == TAKES ? READER : WRITER;
    Thread *next = &E.threads[guided.pair->thread[turn]], *other = &E.threads[guided.pair->thread[1 - turn]];
    if (guided.stage == APART)
        return NULL;
    if (next->done && guided.stage == HANDS_OVER) {
        guided.stage = TAKES;     /* the writer's step was its last one */
        return pair_thread(mask);
    }
    if (E.step >= guided.ends || next->done || ((*mask & ~other->bit) == 0 && guided.stage != TAKES)) {
        end_meeting();
        return NULL;
    }
    if (guided.stage != HOLDS && *mask & next->bit)
        return next;
    if (guided.stage != TAKES)
        *mask &= ~other->bit;
    return NULL;
}

/* The thread announced its next step. */
static void pair_on_step(Thread *t)
{
    const EnginePair *pair = guided.pair;
    int which = t->number == pair->thread[WRITER];
    uint32_t points = points_of(t);
    if (t->number != pair->thread[which])
        return;
    if (guided.stage == APART && points >= guided.hold_at[which]) {
        guided.stage = HOLDS;
        guided.held = which;
        guided.address = points == pair->at[which] ? t->op_address : 0;
        guided.ends = E.step + profile.steps + HOLD_STEPS;
    } else if (guided.stage == HOLDS && guided.held == which) {
        end_meeting();            /* it could not be held */
    } else if (guided.stage == HOLDS) {
        if (guided.address ? t->op_address == guided.address && (which == READER || t->op_writes)
                           : points >= guided.hold_at[which])
            guided.stage = HANDS_OVER;
    } else if (guided.stage == HANDS_OVER && which == WRITER && points > pair->at[WRITER]) {
        guided.stage = TAKES;
    } else if (guided.stage == TAKES && which == READER && points > pair->at[READER]) {
        end_meeting();
    }
}

static int departs(void)
{
    return guided.departs && draw_below(256) < guided.departs;
}

static Thread *guided_choose(Thread *t, uint64_t mask)
{
    uint32_t wanted;
    Thread *next;
    if (guided.stage != PAST && (next = pair_thread(&mask)) != NULL)
        return next;
    E.guided = E.step < guided.until;
    if (!E.guided || departs())
        return guided.then->choose(t, mask);
    wanted = replay_choose(t, CHOOSE_THREAD, ENGINE_MOST_THREADS + 1);
    return wanted && mask >> (wanted - 1) & 1 ? &E.threads[wanted - 1] : default_thread(t, mask);
}

/* A choice other than of a thread, while the tape is followed. The reader of the pair takes the
 * newest store. */
static int guided_value(const Thread *t, EngineChoice kind, uint32_t options, uint32_t *chosen)
{
    if (guided.stage == TAKES && t->number == guided.pair->thread[READER]) {
        *chosen = 0;
        return 1;
    }
    *chosen = replay_kind(t, kind, options);
    return !departs();
}

static void guided_on_step(Thread *t)
{
    if (guided.then->on_step)
        guided.then->on_step(t);
    if (guided.stage != PAST)
        pair_on_step(t);
}

static void guided_on_yield(Thread *t)
{
    if (guided.then->on_yield)
        guided.then->on_yield(t);
}
