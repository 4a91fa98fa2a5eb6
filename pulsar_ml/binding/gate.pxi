# The gate of native calls: no native call is under way while the process forks, so a child inherits
# no native lock that another thread held.
#
# A native call enters the gate before it takes a lock, and leaves it afterwards. A fork shuts the
# gate, waits until no thread is inside, and opens it again in parent and child. Threads at the shut
# gate hold no lock of this module. fork.pxi shuts and opens it.
#
# A short call keeps the GIL, because giving it up takes longer, and needs no gate: no process forks
# while a thread holds the GIL. Without a GIL it passes the gate like others. It may wait for a
# native lock then, whose holder runs no Python code and so never waits for this thread.

cdef extern from *:
    """
    /* A thread's native calls that are under way, and its Python callbacks (callbacks.pxi). */
    typedef struct {
        int inside;                     /* native calls, one in another */
        int nested;                     /* callbacks, one in another */
        int triggers;                   /* triggers, one in another (delayed/triggers.pxi) */
        int forking;                    /* 1 while this thread forks (fork.pxi) */
        unsigned stripe;                /* 1 and up, once it has one */
        void *fresh_first, *fresh_last; /* callbacks to prepare */
        void *ready_first, *ready_last; /* callbacks to run */
    } pml_thread_calls;
    static _Thread_local pml_thread_calls pml_calls;

    #ifdef Py_GIL_DISABLED
    #define PML_FREE_THREADED 1
    #else
    #define PML_FREE_THREADED 0
    #endif
    """
    const bint FREE_THREADED "PML_FREE_THREADED"     # known to the C compiler
    ctypedef struct ThreadCalls "pml_thread_calls":
        int inside
        int nested
        int triggers
        int forking
        unsigned stripe
        void* fresh_first
        void* fresh_last
        void* ready_first
        void* ready_last
    ThreadCalls pml_calls


cdef enum:
    STRIPES = 16                # what threads write often is there so many times
    GATE_SHUT = 0x80000000      # of a stripe's word; the rest counts the threads inside


# A cache line each, so that threads rarely share one.
cdef struct GateStripe:
    pml_u32 word
    char[60] padding


cdef GateStripe[STRIPES] gate
cdef pml_u32 stripe_total      # stripes that threads got
cdef pml_u32 gate_shut          # 1 while a thread forks; the threads at the gate wait for it


# The number of the calling thread's stripe, below STRIPES. Threads get them in turn, so those of a
# pool have one each; a hash of the thread would give two of eight the same one most times.
cdef inline uint32_t own_stripe() noexcept nogil:
    if pml_calls.stripe == 0:
        pml_calls.stripe = u32_fetch_add_relaxed(&stripe_total, 1) % STRIPES + 1
    return pml_calls.stripe - 1


cdef inline pml_u32* gate_word() noexcept nogil:
    return &gate[own_stripe()].word


# Begins a native call that takes locks. A call inside a call passes at once.
cdef inline void native_enter() noexcept nogil:
    pml_calls.inside += 1
    if pml_calls.inside == 1:
        # Ends when no fork is under way.
        while u32_fetch_add_relaxed(gate_word(), 1) & GATE_SHUT:
            gate_leave()
            while u32_load_acquire(&gate_shut):
                wait_while_equal(&gate_shut, 1)
            # The thread that opened the gate woke one.
            wake_one(&gate_shut)


cdef inline void native_leave() noexcept nogil:
    pml_calls.inside -= 1
    if pml_calls.inside == 0:
        gate_leave()


# Begins a short native call that takes locks, see above.
cdef inline void short_enter() noexcept:
    if FREE_THREADED:
        pml_calls.inside += 1
        if pml_calls.inside == 1 and u32_fetch_add_relaxed(gate_word(), 1) & GATE_SHUT:
            gate_leave()
            pml_calls.inside = 0
            # A fork stops all threads that run Python code: this one waits as one that does not.
            with nogil:
                native_enter()


cdef inline void short_leave() noexcept:
    if FREE_THREADED:
        native_leave()


cdef inline void gate_leave() noexcept nogil:
    if u32_fetch_sub_release(gate_word(), 1) & GATE_SHUT:
        wake_one(gate_word())


# Waits until no other thread is inside. The thread that forks passes the gate meanwhile: hooks of
# others run, and without a GIL the child gives back objects of the threads that it does not have.
cdef void gate_close() noexcept nogil:
    cdef uint32_t seen
    cdef int i
    # A finalizer that forks inside a native call is no other thread.
    if pml_calls.inside:
        gate_leave()
    u32_store_release(&gate_shut, 1)
    for i in range(STRIPES):
        seen = u32_fetch_add_relaxed(&gate[i].word, GATE_SHUT) + GATE_SHUT
        while seen != GATE_SHUT:
            wait_while_equal(&gate[i].word, seen)
            # Pairs with the release in gate_leave.
            seen = u32_load_acquire(&gate[i].word)
    pml_calls.inside += 1
    pml_calls.forking = 1


cdef void gate_open(bint in_child) noexcept nogil:
    cdef int i
    pml_calls.inside -= 1
    pml_calls.forking = 0
    for i in range(STRIPES):
        if in_child:
            # Threads that were about to wait at the gate are counted, and do not exist here.
            u32_store_release(&gate[i].word, 0)
        else:
            u32_fetch_sub_release(&gate[i].word, GATE_SHUT)
    if pml_calls.inside:
        u32_fetch_add_relaxed(gate_word(), 1)
    u32_store_release(&gate_shut, 0)
    wake_one(&gate_shut)
