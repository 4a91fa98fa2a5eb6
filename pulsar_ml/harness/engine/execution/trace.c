/* The trace of one execution, kept only when an execution is made again to be looked at, and the
 * failure of the current one. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SHARED EngineEvent *events;
SHARED int64_t n_events, events_room;
SHARED EngineDecision *decisions_made;
SHARED int64_t n_decisions, decisions_room;
SHARED uint64_t n_notes;         /* of the trace, see check_calls.c */
SHARED uint32_t n_names;         /* of locations */
SHARED uint32_t n_preemptions;   /* of those decisions: away from a thread that could go on */

/* An attempt to make the accesses of a race in the other order, see reversal.c. */
enum { NOT_HELD, HELD, LET_GO };
SHARED struct {
    uint8_t on, held, eager;      /* eager: the second thread runs whenever it can */
    int32_t first, second;        /* threads */
    int32_t at;                   /* trace index of a plain first access, or -1 */
    uint32_t points;              /* scheduling point of an atomic one */
    uintptr_t address;            /* of the second access */
    uint64_t pc;
} reversal;

static void second_access(const Thread *t, uintptr_t address, uint64_t pc);
static Thread *reversal_thread(uint64_t mask);

/* The frames of functions that were entered while a trace is kept: the place of code behind the
 * entry, and the end of the frame. */
SHARED struct { uint64_t pc; uintptr_t end; } entered[ENGINE_MOST_THREADS][FRAMES];

static void note_frame(const Thread *t, uint32_t at, uintptr_t frame_pointer, uint64_t pc)
{
#if defined(__x86_64__)
    entered[t->number][at].end = frame_pointer + 16;
    entered[t->number][at].pc = pc;
#else
    (void)t, (void)at, (void)frame_pointer, (void)pc; /* a frame's end does not follow from it */
#endif
}

/* The innermost frame that holds an address on a thread's stack. */
static void find_frame(EngineEvent *event)
{
    event->frame_pc = 0;
    event->frame_at = 0;
    for (int i = 0; i < E.n; i++) {
        const Thread *t = &E.threads[i];
        if (event->address - (uintptr_t)t->stack >= STACK_BYTES || t->depth > FRAMES)
            continue;
        for (uint32_t at = t->depth; at > 0; at--) {
            if (entered[i][at - 1].end <= event->address)
                continue;
            event->frame_pc = entered[i][at - 1].pc;
            event->frame_at = (int64_t)(event->address - entered[i][at - 1].end);
            break;
        }
        return;
    }
}

static int copy_frames(const Thread *t, uint64_t pc, uint64_t *frames)
{
    int n = 0;
    frames[n++] = pc;
    for (uint32_t i = t->depth < FRAMES ? t->depth : FRAMES; i > 0 && n < ENGINE_MOST_FRAMES; i--)
        frames[n++] = t->frames[i - 1];
    return n;
}

/* The step of the execution that is made again at which a debugger stops: an index of the trace,
 * NO_STOP, or STOP_AT_FAILURE. */
enum { NO_STOP = -1, STOP_AT_FAILURE = -2 };
SHARED int64_t stop_at = NO_STOP;

/* Where in the trace the final check begins, -1: not yet. Of its reads this many are kept, or twice
 * as many. */
#define CHECK_READS 16
SHARED int64_t check_begins = -1;
SHARED const PmlViolation *check_found;

/* A breakpoint here stops in the fiber of the step's thread; the code under test called it, by way
 * of the frames between. */
EXPORT __attribute__((noinline)) void pml_step_reached(int32_t thread, int64_t step)
{
    __asm__ volatile("" : : "r"(thread), "r"(step) : "memory");
}

static __attribute__((noinline)) int32_t trace_event(Thread *t, EngineOp op, uintptr_t address, int width,
                                                     uint64_t value, uint64_t pc)
{
    if (n_events == events_room) {
        int64_t room = events_room ? 2 * events_room : 1024;
        EngineEvent *more = realloc(events, (size_t)room * sizeof *events);
        if (more == NULL)
            return -1;
        events = more;
        events_room = room;
    }
    EngineEvent *event = &events[n_events];
    memset(event, 0, offsetof(EngineEvent, frames));
    event->address = address;
    event->value = value;
    event->pc = pc;
    event->step = E.step;
    event->from = -1;
    event->thread = (int16_t)t->number;
    event->op = (uint8_t)op;
    event->width = (uint8_t)width;
    event->points = points_of(t);
    event->call = t->number < 0 ? -1 : (int32_t)t->call;
    clock_copy(event->clock, t->clock);
    find_frame(event);
    event->n_frames = (uint8_t)copy_frames(t, pc, event->frames);
    if (unlikely(reversal.held == HELD))
        second_access(t, address, pc);
    if (unlikely(n_events == stop_at))
        pml_step_reached(t->number, n_events);
    return (int32_t)n_events++;
}

/* The step just traced taught its thread something. */
static __attribute__((noinline)) void trace_known(const Thread *t)
{
    if (n_events)
        clock_copy(events[n_events - 1].clock, t->clock);
}

/* The store that was at the head of t's buffer reaches memory; it stands where it was made. */
static __attribute__((noinline)) int32_t trace_flush(Thread *t)
{
    const Buffered *b = &t->buffer[(t->buffer_head + ENGINE_BUFFER - 1) % ENGINE_BUFFER];
    int32_t at = trace_event(t, OP_FLUSH, b->address, b->width, b->low, b->pc);
    if (at >= 0 && b->event >= 0) {
        const EngineEvent *stored = &events[b->event];
        events[at].from = b->event;
        events[at].order = b->order;
        events[at].points = stored->points;
        events[at].call = stored->call;
        events[at].n_frames = stored->n_frames;
        memcpy(events[at].frames, stored->frames, sizeof stored->frames);
    }
    return at;
}

static void add_decision(EngineDecision decision)
{
    if (n_decisions == decisions_room) {
        int64_t room = decisions_room ? 2 * decisions_room : 256;
        EngineDecision *more = realloc(decisions_made, (size_t)room * sizeof *more);
        if (more == NULL)
            return;
        decisions_made = more;
        decisions_room = room;
    }
    decisions_made[n_decisions++] = decision;
}

static void decision_made(const Thread *t, EngineChoice kind, uint32_t value)
{
    add_decision((EngineDecision){points_of(t), (uint8_t)t->number, (uint8_t)kind, (uint16_t)value});
}

/* The first failure of an execution stays. */
static EngineFailure *fail(EngineEnd kind, const Thread *t, uintptr_t address, uint64_t pc)
{
    EngineFailure *f = &E.failure;
    if (f->kind >= FAIL_RACE)
        return NULL;
    memset(f, 0, sizeof *f);
    f->kind = kind;
    f->execution = E.execution;
    f->thread = t->number;
    f->call = t->number < 0 ? -1 : (int32_t)t->call;
    f->other_thread = -1;
    f->event = f->other_event = f->released = f->acquired = -1;
    f->address = address;
    f->pc = pc;
    f->n_frames = copy_frames(t, pc, f->frames);
    if (unlikely(stop_at == STOP_AT_FAILURE && E.recording))
        pml_step_reached(t->number, n_events);
    return f;
}

static void fail_with(EngineEnd kind, const Thread *t, const char *message)
{
    EngineFailure *f = fail(kind, t, 0, t->depth ? t->frames[(t->depth - 1) % FRAMES] : 0);
    if (f)
        snprintf(f->message, sizeof f->message, "%s", message);
}

/* The same, with the place where each thread waits. */
static void fail_waiting(EngineEnd kind, const Thread *t, const char *message)
{
    EngineFailure *f;
    fail_with(kind, t, message);
    f = &E.failure;
    if (f->kind != (int32_t)kind)
        return;
    for (int i = 0; i < E.n; i++) {
        const Thread *u = &E.threads[i];
        f->unfinished |= u->done ? 0 : u->bit;
        f->waits_at[i] = u->done || u->blocked_on == NONE ? 0 : u->blocked_at;
    }
}

static inline void hash_step(uint64_t x)
{
    E.hash = (E.hash ^ x) * UINT64_C(0x9FB21C651E98DF25);
    E.hash ^= E.hash >> 29;
}
