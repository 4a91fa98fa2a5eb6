# The acknowledgements of one cursor under concurrent use, and whether its dispatcher may go on.
#
# Origin       ManagedCursorImpl and PersistentDispatcherMultipleConsumers of Pulsar 4.1 (PIP-299).
#              There the number of ranges alone decides (#26499), and evaluation and flag may cross;
#              here every limit counts, and the thread that sets the flag looks again.
# Threads      Any thread between init and destroy.
# Invariants   AS-1 `open` is set exactly when all of the state may be stored or no caller requested
#              pauses, whenever the lock is free of a writer.
#              AS-2 (I99) while no call is under way, the state is not both open and paused.
#              AS-3 a bit of `paused` is set only by the dispatch of that kind, and is taken away
#              once: by an acknowledgement, whose caller must resume the dispatcher, or by the next
#              call of the dispatch itself.
#              AS-4 while dispatch is closed only replays are allowed.
# Ordering     The stamped lock's: acknowledgements are shared under it, the mark is read
#              optimistically. The two words: the dispatcher stores paused and then loads open, an
#              acknowledgement stores open and then loads paused, each with a sequentially
#              consistent fence between: one of the two sees the other's store.
# Reclamation  None of its own. destroy: nobody inside.
# Not promised That acknowledgements wait for nobody: encoding holds the lock shared while it
#              copies.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.ack_codec cimport (
    AckLimits, AckPlan, AckRestored, acks_fit, acks_plan, acks_read, acks_size, acks_write,
)
from pulsar_ml.structures.ack_ranges cimport (
    ACK_INVALID, ACK_NEW, ACK_NO_MEMORY, AckChange, AckRanges, acks_add, acks_add_index, acks_add_up_to,
    acks_contain, acks_contain_index, acks_destroy, acks_end_ledger, acks_init, acks_is_refused, acks_mark,
)
from pulsar_ml.structures.position cimport Position, position_less
from pulsar_ml.structures.stamped_lock cimport (
    stamped_lock_read, stamped_lock_write, stamped_optimistic, stamped_unlock_read, stamped_unlock_write,
    stamped_validate,
)
from pulsar_ml.structures.status cimport PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    fence_seq_cst, i64_load_relaxed, i64_store_relaxed, pml_i64, pml_u32, u32_cas_weak_acq_rel,
    u32_exchange_acq_rel, u32_load_acquire, u32_load_relaxed, u32_store_relaxed,
)
from pulsar_ml.sync.memory cimport allocate


# The kinds of reads of a dispatcher. Each kind is paused by itself: a dispatcher that goes on with
# one kind takes no wake-up from one that waits for another kind.
cdef enum DispatchKind:
    DISPATCH_NORMAL = 0
    # entries that were delivered before: they lie in the gaps, and close them
    DISPATCH_REPLAY = 1
    DISPATCH_DELAYED = 2    # entries that were held back until their time


# Which part is encoded.
cdef enum AckScope:
    ACK_IN_LEDGER = 0       # what the limits allow
    ACK_IN_STORE = 1        # likewise, in the metadata store
    ACK_EVERYTHING = 2


cdef struct AckState:
    pml_u32 lock
    pml_u32 open            # 1: dispatch may go on
    pml_u32 paused          # bits by kind: a dispatcher waits to be resumed
    pml_i64 size            # bytes, had all of it been stored
    # Under the lock.
    AckRanges acks
    AckLimits limits
    int64_t metadata_bytes  # of subscription properties and sequence ids
    bint pauses             # dispatcherPauseOnAckStatePersistentEnabled


cdef inline void ack_state_init(
    AckState* state, Position mark, AckLimits limits, bint pauses
) noexcept nogil:
    memset(state, 0, sizeof(AckState))
    acks_init(&state.acks, mark)
    state.limits = limits
    state.pauses = pauses
    ack_state_evaluate(state)


cdef inline void ack_state_destroy(AckState* state) noexcept nogil:
    acks_destroy(&state.acks)


# Pausing and going on ----------------------------------------------------------------------------

# Under the lock, or when new.
cdef inline void ack_state_evaluate(AckState* state) noexcept nogil:
    cdef bint fits = acks_fit(&state.acks, &state.limits, state.metadata_bytes)
    i64_store_relaxed(&state.size, acks_size(&state.acks, state.metadata_bytes))
    u32_store_relaxed(&state.open, fits or not state.pauses)


# Sets or clears the bit of a kind, in one step of an atomic that others change meanwhile.
cdef inline void ack_state_pause(AckState* state, uint32_t bit, bint waits) noexcept nogil:
    cdef uint32_t seen = u32_load_relaxed(&state.paused)
    while not u32_cas_weak_acq_rel(&state.paused, &seen, seen | bit if waits else seen & ~bit):
        pass


# Ends a write section. The kinds that were paused and are not any more, as bits: the caller has to
# make their dispatchers read on, outside every lock.
cdef inline uint32_t ack_state_leave(AckState* state) noexcept nogil:
    ack_state_evaluate(state)
    stamped_unlock_write(&state.lock)
    # Pairs with the fence in ack_state_may_dispatch.
    fence_seq_cst()
    if u32_load_relaxed(&state.open) and u32_load_relaxed(&state.paused):
        return u32_exchange_acq_rel(&state.paused, 0)
    return 0


# True if a dispatcher may read on. False: it is paused, and a later change answers its kind in
# `resumed`.
cdef inline bint ack_state_may_dispatch(AckState* state, DispatchKind kind) noexcept nogil:
    cdef uint32_t bit = <uint32_t>1 << kind
    if kind == DISPATCH_REPLAY:
        return True
    if not u32_load_acquire(&state.open):
        ack_state_pause(state, bit, True)
        # Pairs with the fence in ack_state_leave: what it opened before paused was set is seen
        # here.
        fence_seq_cst()
        if not u32_load_relaxed(&state.open):
            return False
    # It goes on by itself, even if another thread took the bit away meanwhile.
    if u32_load_relaxed(&state.paused) & bit:
        ack_state_pause(state, bit, False)
    return True


# Acknowledging -----------------------------------------------------------------------------------

# `resumed`: see ack_state_leave.
cdef inline AckChange ack_state_add(AckState* state, Position at, uint32_t* resumed) noexcept nogil:
    cdef AckChange change
    stamped_lock_write(&state.lock)
    change = acks_add(&state.acks, at)
    resumed[0] = ack_state_leave(state)
    return change


# Many entries in one section; `added` counts the new ones. ACK_INVALID: nothing changed.
# ACK_NO_MEMORY: those before are acknowledged. `done` is the index of the entry that failed, or the
# count.
cdef inline AckChange ack_state_add_all(
    AckState* state, const Position* at, int64_t count, int64_t* done, int64_t* added, uint32_t* resumed
) noexcept nogil:
    cdef AckChange change = ACK_NEW
    cdef int64_t i = 0
    added[0] = 0
    stamped_lock_write(&state.lock)
    while i < count and not acks_is_refused(&state.acks, at[i]):
        i += 1
    if i < count:
        change = ACK_INVALID
    else:
        i = 0
        while i < count:
            change = acks_add(&state.acks, at[i])
            if change == ACK_NO_MEMORY:
                break
            added[0] += change == ACK_NEW
            i += 1
    done[0] = i
    resumed[0] = ack_state_leave(state)
    return change


cdef inline AckChange ack_state_add_index(
    AckState* state, Position at, int32_t size, int32_t index, uint32_t* resumed
) noexcept nogil:
    cdef AckChange change
    stamped_lock_write(&state.lock)
    change = acks_add_index(&state.acks, at, size, index)
    resumed[0] = ack_state_leave(state)
    return change


# Everything up to an entry.
cdef inline AckChange ack_state_add_up_to(AckState* state, Position at, uint32_t* resumed) noexcept nogil:
    cdef AckChange change
    stamped_lock_write(&state.lock)
    change = acks_add_up_to(&state.acks, at)
    resumed[0] = ack_state_leave(state)
    return change


# See acks_end_ledger.
cdef inline AckChange ack_state_end_ledger(
    AckState* state, Position last, int64_t following, uint32_t* resumed
) noexcept nogil:
    cdef AckChange change
    stamped_lock_write(&state.lock)
    change = acks_end_ledger(&state.acks, last, following)
    resumed[0] = ack_state_leave(state)
    return change


# Other limits, or the switch.
cdef inline void ack_state_configure(
    AckState* state, AckLimits limits, bint pauses, uint32_t* resumed
) noexcept nogil:
    stamped_lock_write(&state.lock)
    state.limits = limits
    state.pauses = pauses
    resumed[0] = ack_state_leave(state)


# Sets the bytes that subscription properties and sequence ids take.
cdef inline void ack_state_set_metadata(
    AckState* state, int64_t metadata_bytes, uint32_t* resumed
) noexcept nogil:
    stamped_lock_write(&state.lock)
    state.metadata_bytes = metadata_bytes
    resumed[0] = ack_state_leave(state)


# Asking ------------------------------------------------------------------------------------------

cdef inline Position ack_state_mark(AckState* state) noexcept nogil:
    cdef uint32_t stamp = stamped_optimistic(&state.lock)
    cdef Position mark = acks_mark(&state.acks)
    if not stamped_validate(&state.lock, stamp):
        stamped_lock_read(&state.lock)
        mark = acks_mark(&state.acks)
        stamped_unlock_read(&state.lock)
    return mark


cdef inline bint ack_state_contains(AckState* state, Position at) noexcept nogil:
    cdef bint found
    # Most questions are about entries before the mark, which never goes back.
    if not position_less(ack_state_mark(state), at):
        return True
    stamped_lock_read(&state.lock)
    found = acks_contain(&state.acks, at)
    stamped_unlock_read(&state.lock)
    return found


cdef inline bint ack_state_contains_index(AckState* state, Position at, int32_t index) noexcept nogil:
    cdef bint found
    stamped_lock_read(&state.lock)
    found = acks_contain_index(&state.acks, at, index)
    stamped_unlock_read(&state.lock)
    return found


# Storing -----------------------------------------------------------------------------------------

# The bytes, the caller's to release; NULL when there are none.
cdef inline Status ack_state_encode(
    AckState* state, AckScope scope, AckPlan* plan, unsigned char** data
) noexcept nogil:
    cdef Status status = PML_OK
    cdef AckLimits all_of_it
    all_of_it.max_bytes = 0
    all_of_it.max_ranges = INT64_MAX
    all_of_it.max_batches = INT64_MAX
    data[0] = NULL
    stamped_lock_read(&state.lock)
    plan[0] = acks_plan(&state.acks, &all_of_it if scope == ACK_EVERYTHING else &state.limits,
                        state.metadata_bytes, scope == ACK_IN_STORE)
    if plan.bytes:
        data[0] = <unsigned char*>allocate(<size_t>plan.bytes)
        if data[0] is NULL:
            status = PML_NO_MEMORY
        else:
            acks_write(&state.acks, plan, data[0])
    stamped_unlock_read(&state.lock)
    return status


# Restores a stored state into one that is new but for its mark, and that no other thread knows yet.
cdef inline AckRestored ack_state_restore(
    AckState* state, const unsigned char* data, int64_t length, int64_t ranges, int64_t batches
) noexcept nogil:
    cdef AckRestored restored = acks_read(&state.acks, data, length, ranges, batches)
    ack_state_evaluate(state)
    return restored
