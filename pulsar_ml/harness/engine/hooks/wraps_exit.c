/* The end of a thread, for libstdc++: notify_all_at_thread_exit(), and promises that become ready
 * at thread exit. Both happen after the destructors of the thread's variables: endings that were
 * registered first run last. */

/* Puts these endings in front of all others. */
static void end_last(Thread *t, const Ending *endings, uint32_t count_of)
{
    Owned *o;
    for (uint32_t i = 0; i < count_of; i++)
        if (t == NULL || add_ending(t, NULL, NULL))
            abort();
    o = t->owned;
    memmove(o->endings + count_of, o->endings, (o->n_endings - count_of) * sizeof *endings);
    memcpy(o->endings, endings, count_of * sizeof *endings);
}

static void unlock_at_end(void *mutex) { __wrap_pthread_mutex_unlock(mutex); }
static void notify_at_end(void *condition) { __wrap_pthread_cond_broadcast(condition); }

EXPORT void __wrap__ZSt25notify_all_at_thread_exitRSt18condition_variableSt11unique_lockISt5mutexE(
    void *condition, pthread_mutex_t **lock)
{
    const Ending endings[] = {{notify_at_end, condition}, {unlock_at_end, lock[0]}};
    end_last(current, endings, 2);
    lock[0] = lock[1] = NULL;
}

/* The layouts of libstdc++: the counts of a shared_ptr, the state under a future, and the note that
 * a promise leaves for the end of its thread, which holds a weak_ptr to that state. */
typedef struct Counts {
    void (*const *methods)(struct Counts *counts);
    uint32_t uses, weak;
} Counts;
typedef struct { void *methods, *result; uint32_t status; } FutureState;
typedef struct { void *next; void (*run)(void *); FutureState *state; Counts *counts; } ReadyNote;
enum { DISPOSE = 2, DESTROY = 3 };                /* methods of Counts */
#define FUTURE_READY 1u
#define FUTURE_WAITED 0x80000000u

static void drop_weak(Counts *counts)
{
    if (__tsan_atomic32_fetch_sub(&counts->weak, 1, __ATOMIC_ACQ_REL) == 1)
        counts->methods[DESTROY](counts);
}

static void ready_at_end(void *of)
{
    ReadyNote *note = of;
    Counts *counts = note->counts;
    uint32_t uses = __tsan_atomic32_load(&counts->uses, __ATOMIC_RELAXED);
    while (uses) {
        uint32_t seen = __tsan_atomic32_compare_exchange_val(&counts->uses, uses, uses + 1, __ATOMIC_ACQ_REL,
                                                             __ATOMIC_RELAXED);
        if (seen == uses)
            break;
        uses = seen;
    }
    if (uses) {
        uint32_t *status = &note->state->status;
        if (__tsan_atomic32_exchange(status, FUTURE_READY, __ATOMIC_RELEASE) & FUTURE_WAITED)
            future_notify(status);
        if (__tsan_atomic32_fetch_sub(&counts->uses, 1, __ATOMIC_ACQ_REL) == 1) {
            counts->methods[DISPOSE](counts);
            drop_weak(counts);
        }
    }
    drop_weak(counts);
    free_memory(note, PC);
}

/* promise::set_value_at_thread_exit() and its kin stored the result and hand over this note. */
EXPORT void __wrap__ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv(ReadyNote *note)
{
    static void (*real)(void *);
    if (current) {
        const Ending ending = {ready_at_end, note};
        if (note->state == NULL || note->state->status & ~FUTURE_WAITED) {
            fail_with(FAIL_CAPACITY, current, "this version of libstdc++ keeps the state of a future in a way that the "
                                              "engine does not know; call set_value() instead of "
                                              "set_value_at_thread_exit()");
            abandon();
        }
        end_last(current, &ending, 1);
        return;
    }
    if (real || (*(void **)&real = cxx_symbol("_ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv")) != NULL)
        real(note);
}
