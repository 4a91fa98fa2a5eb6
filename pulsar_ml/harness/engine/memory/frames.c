/* Buffered stores to variables of functions that returned: nobody can read them any more, and their
 * place on the stack serves other functions. Plain accesses of a thread to its own stack pass the
 * buffer by, so such a store must not reach memory behind them. */

static inline int owns(const Thread *t);

static inline int is_local(const Thread *t, uintptr_t address)
{
    return address - (uintptr_t)t->stack < STACK_BYTES || address - t->own_stack < STACK_BYTES;
}

/* Where the frame of the function ends whose exit jumped to the function with the frame at `here`;
 * 0: unknown. */
static inline uintptr_t frame_end(const Thread *t, const uintptr_t *here, uintptr_t caller)
{
#if defined(__x86_64__)
    const uintptr_t *frame = (const uintptr_t *)here[0];
    if (here[1] == caller)        /* its own frame is gone already */
        return (uintptr_t)(here + 2);
    if (frame > here && is_local(t, (uintptr_t)(frame + 1)) && frame[1] == caller)
        return (uintptr_t)(frame + 2);
#else
    (void)t, (void)here, (void)caller;
#endif
    return 0;
}

/* The hook of a function's exit jumps here, so that the frame pointer in front of this frame is the
 * function's. Where the frame's end is not known, all stores leave the buffer, which orders more
 * than the processor does. */
static __attribute__((noinline)) void end_frame(void)
{
    Thread *t = current;
    uintptr_t end = frame_end(t, __builtin_frame_address(0), t->frames[--t->depth % FRAMES]);
    /* Nothing else runs on the stack of a started thread that ends here: the engine leaves it. */
    int ends = t->depth == 0 && t->number >= E.config.n_threads && !owns(t);
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
