/* Mode c11, with reduction: which store a step reads. A thread that was woken for certain stores
 * reads one of them: all others it read when it was searched before. */

static uint32_t choose_new_read(Thread *t, const uint32_t *ids, uint32_t n)
{
    uint32_t options[ENGINE_MOST_STORES], found = 0, chosen;
    for (uint32_t i = 0; i < n; i++)
        if (is_new_read(ids[i]))
            options[found++] = i;
    if (found == 0)
        leave_transition();
    chosen = options[found > 1 ? reduced_value(found, 0) : 0];
    if (unlikely(E.recording) && chosen)
        decision_made(t, CHOOSE_READ, chosen);
    return chosen;
}

/* How many newer stores there are than the one that is read; at most options - 1. */
static __attribute__((noinline)) uint32_t reduced_stale(Thread *t, History h, uint32_t options)
{
    uint32_t ids[ENGINE_MOST_STORES];
    for (uint32_t i = 0; i < options; i++)
        ids[i] = message_in(0, h, h.n - 1 - i)->id;
    return choose_new_read(t, ids, options);
}

/* Which of these places in modification order is read. */
static __attribute__((noinline)) uint32_t reduced_place(Thread *t, const Variable *v, const uint32_t *places,
                                                        uint32_t n)
{
    uint32_t ids[ENGINE_MOST_STORES];
    for (uint32_t i = 0; i < n; i++)
        ids[i] = message_at(v, places[i])->id;
    return choose_new_read(t, ids, n);
}

/* Mode c11: a compare-exchange is about to read the store at one of the places from this one on. */
static __attribute__((noinline)) void note_chances(const Variable *v, uint32_t oldest, uint64_t low, uint64_t high)
{
    ReducedNode *node = footprint_now() ? &reduction.nodes[reduction.node_at - 1] : NULL;
    if (node == NULL || E.config.mode != MODE_C11)
        return;
    node->n_chances = E.forgot ? ANY_CHANCE : 0;
    for (uint32_t p = oldest; p < v->n && node->n_chances != ANY_CHANCE; p++) {
        const Message *m = message_at(v, p);
        if (m->low != low || m->high != high)
            continue;
        if (node->n_chances == MOST_CHANCES)
            node->n_chances = ANY_CHANCE;
        else
            node->chances[node->n_chances++] = m->id;
    }
}
