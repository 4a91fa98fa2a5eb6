/* Atomic variables of functions that returned, and buffered stores to them: nobody can read them
 * any more, and their place on the stack serves other functions, the engine's own included. Plain
 * accesses of a thread to its own stack pass the buffer by, so such a store must not reach memory
 * behind them. */

static inline int owns(const Thread *t);

static inline int is_local(const Thread *t, uintptr_t address)
{
    return address - (uintptr_t)t->stack < STACK_BYTES || address - t->own_stack < STACK_BYTES;
}

static inline void note_local(Thread *t, uintptr_t address)
{
    if (unlikely(is_local(t, address)) && address < t->locals_from)
        t->locals_from = address;
}

/* The next atomic variable in a place below `end` is another one: its history begins anew, whatever
 * memory holds there. */
static void end_locals(Thread *t, uintptr_t end)
{
    if (t->locals_from >= end)
        return;
    t->locals_from = UINTPTR_MAX;
    for (uint32_t i = 0; i < E.n_variables; i++) {
        Variable *v = &E.variables[i];
        if (!v->is_atomic || !is_local(t, v->address))
            continue;
        if (v->address < end)
            forget_accesses(v);
        else
            note_local(t, v->address);
    }
}

/* Where the frame at `here` of the running function ends. GCC for aarch64 keeps the pair of frame
 * pointer and return address at the other end of a frame. */
#if defined(__aarch64__) && !defined(__clang__)
#define END_OF_OWN_FRAME(here) ((uintptr_t)__builtin_dwarf_cfa())
#else
#define END_OF_OWN_FRAME(here) ((uintptr_t)((here) + 2))
#endif

/* Where the frame of the function ends whose exit jumped to the function with the frame at `here`,
 * which ends at `own_end`; 0: unknown, and the frame is still there. */
static inline uintptr_t frame_end(const Thread *t, const uintptr_t *here, uintptr_t own_end, uintptr_t caller)
{
    if (here[1] == caller)        /* its own frame is gone already */
        return own_end;
#if defined(__x86_64__)
    const uintptr_t *frame = (const uintptr_t *)here[0];
    if (frame > here && is_local(t, (uintptr_t)(frame + 1)) && frame[1] == caller)
        return (uintptr_t)(frame + 2);
#else
    (void)t;
#endif
    return 0;
}

/* The hook of a function's exit jumps here, so that the frame pointer in front of this frame is the
 * function's. Where the frame's end is not known, all stores leave the buffer, which orders more
 * than the processor does. */
static __attribute__((noinline)) void end_frame(void)
{
    Thread *t = current;
    const uintptr_t *here = __builtin_frame_address(0);
#ifndef __OPTIMIZE__
    here = (const uintptr_t *)here[0];   /* without optimisation it is called, by the hook */
#endif
    uintptr_t end = frame_end(t, here, END_OF_OWN_FRAME(here), t->frames[--t->depth % FRAMES]);
    /* Nothing else runs on the stack of a started thread that ends here: the engine leaves it. */
    int ends = t->depth == 0 && t->number >= E.config.n_threads && !owns(t);
    if (end)
        end_locals(t, end);
    for (uint32_t i = 0; i < t->buffer_count; i++) {
        Buffered *b = &t->buffer[(t->buffer_head + i) % ENGINE_BUFFER];
        if (!is_local(t, b->address) || (ends && b->address - (uintptr_t)t->stack < STACK_BYTES))
            continue;
        if (end == 0) {
            drain(t);
            return;
        }
        b->dead |= b->address < end;
    }
}
