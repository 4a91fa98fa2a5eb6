# The threads of a run: each loops over its calls. In many runs the threads stay.
#
# Of the instances of a stride each thread creates, checks and destroys its share, and it draws its
# own calls of each program. Between two runs all threads meet, so that each run begins together. A
# thread that has made its calls makes them again until all have, so that none is alone in the
# instance.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from posix.time cimport CLOCK_THREAD_CPUTIME_ID, clock_gettime, timespec
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.subjects.drawing cimport (
    NOISE_MOVE, NOISE_YIELD, Drawing, draw_calls, draw_settings, program_seed,
)
from pulsar_ml.harness.posix cimport (
    CPU_SET, CPU_ZERO, cpu_set_t, pthread_cond_signal, pthread_cond_t, pthread_mutex_lock, pthread_mutex_t,
    pthread_mutex_unlock, pthread_t, sched_getcpu, sched_setaffinity,
)
from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlResult, PmlSubject, PmlViolation
from pulsar_ml.sync.atomics cimport pml_i32, pml_i64, pml_u32
from pulsar_ml.sync.atomics cimport fence_seq_cst, i32_load_relaxed, i32_store_release
from pulsar_ml.sync.atomics cimport i64_fetch_add_acq_rel, i64_store_relaxed
from pulsar_ml.sync.atomics cimport u32_fetch_add_relaxed, u32_load_acquire, u32_load_relaxed
from pulsar_ml.sync.atomics cimport u32_store_relaxed, u32_store_release
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.wait cimport pause, spin, wait_while_equal, wake_one, yield_cpu


cdef enum:
    GATE_CLOSED = 0
    GATE_ABANDONED = 0x7fffffff  # otherwise the gate counts how often all threads have met
    MOST_STRIDE = 8              # instances that exist at once in many runs
    MOST_PASSES = 4              # of a thread through its calls in one of many runs
    RUNS_OF_PROGRAM = 2          # of many runs, each on an instance of its own
    MOST_LOOKS = 64              # at the gate, before a thread that may sleep does


cdef enum Meeting:
    AWAKE
    ASLEEP
    DECIDING                     # asleep, and the last to arrive decides whether a stride follows


# State of one thread that the others read.
cdef struct Slot:
    pml_i32 running       # code + 1 of the operation under way, 0 between operations
    pml_i64 done          # operations finished
    char[112] padding     # rounds the slot up to LINE of threads.pyx


# What many runs share. The last to arrive at a meeting writes `halted` and `over`.
cdef struct Repeats:
    Drawing drawing
    uint64_t seed         # of which those of the programs are drawn
    void* instances[8]
    PmlViolation[8] found # at quiescence
    int32_t stride
    int32_t ran           # of the last stride
    int64_t most_runs
    int64_t inside_ns     # processor time inside runs after which no stride begins
    int64_t until_ns      # the moment after which none begins
    int64_t runs
    int32_t halted        # the stride ends early
    int32_t over          # it is the last one
    int32_t no_memory


cdef struct Lane


cdef struct Run:
    const PmlSubject* table
    Slot* slots           # one per thread, on line boundaries
    void* slots_memory
    Lane* lanes
    Repeats* repeats      # NULL: one run of one program
    int32_t n_threads
    int32_t n_operations
    uint32_t first_turn   # of a spin; skips the pauses when threads outnumber processors
    int32_t n_cpus
    int32_t[1024] cpus
    cpu_set_t allowed
    pml_i64 arrived
    pml_u32 gate
    pml_u32 stop
    pml_u32 passed        # threads that have made all their calls, summed over the runs
    pml_i64 opened_ns
    pthread_mutex_t mutex # guards finished, which counts threads
    pthread_cond_t ended
    int32_t finished


# State of one thread that nobody else reads before it has ended, or while it waits for others.
cdef struct Lane:
    Run* run
    void* instance
    int32_t number
    uint32_t met          # meetings so far
    uint32_t begun        # runs
    const PmlCall* calls
    Record* records       # one for each call, or NULL
    PmlCall* drawn        # room for the calls of many runs, or NULL
    int64_t programs      # that it drew
    int64_t n_calls
    int64_t completed     # calls of the last pass
    int64_t total         # operations of all runs
    int64_t ended_ns
    int64_t inside_ns     # processor time inside runs; the next three: around them
    int64_t draw_ns
    int64_t create_ns
    int64_t check_ns
    int64_t* overlaps     # n_operations * n_operations: [starting][seen running]
    pthread_t handle
    PmlViolation violation


cdef inline void* body(void* argument) noexcept nogil:
    cdef Lane* lane = <Lane*>argument
    cdef Run* shared = lane.run
    if meet(lane, AWAKE):
        if shared.repeats is NULL:
            work(lane)
        else:
            repeat(lane, shared.repeats)
    lane.ended_ns = monotonic_ns()
    pthread_mutex_lock(&shared.mutex)
    shared.finished += 1
    if shared.finished == shared.n_threads:
        pthread_cond_signal(&shared.ended)
    pthread_mutex_unlock(&shared.mutex)
    return NULL


# Waits until all threads have arrived; the last one decides how it goes on, and opens the gate.
# Threads go on together only from a meeting at which all stay awake. False for a run that the
# caller abandoned, because a thread did not start.
cdef inline bint meet(Lane* lane, Meeting how) noexcept nogil:
    cdef Run* shared = lane.run
    cdef uint32_t turn = shared.first_turn
    cdef uint32_t gate
    cdef int32_t looks = 0
    lane.met += 1
    # Pairs with the other arrivals: what threads wrote before is visible to the last one.
    if i64_fetch_add_acq_rel(&shared.arrived, 1) + 1 == <int64_t>lane.met * shared.n_threads:
        if lane.met == 1:
            i64_store_relaxed(&shared.opened_ns, monotonic_ns())
        if shared.repeats is not NULL:
            decide(shared, shared.repeats, how)
        u32_store_release(&shared.gate, lane.met)  # pairs with the acquire below
        if how != AWAKE:
            for looks in range(shared.n_threads - 1):
                wake_one(&shared.gate)
        return True
    while True:
        gate = u32_load_acquire(&shared.gate)
        if gate >= lane.met:
            return gate != GATE_ABANDONED
        turn = spin(turn)
        looks += 1
        if looks > MOST_LOOKS and how != AWAKE:
            wait_while_equal(&shared.gate, gate)


cdef inline void decide(Run* shared, Repeats* repeats, Meeting how) noexcept nogil:
    cdef int64_t inside = 0
    cdef int i
    for i in range(shared.n_threads):
        inside += shared.lanes[i].inside_ns
    repeats.halted = (u32_load_relaxed(&shared.stop) or shared.lanes[0].begun >= repeats.most_runs
                      or inside >= repeats.inside_ns or monotonic_ns() >= repeats.until_ns)
    if how == DECIDING:
        repeats.over = repeats.halted or repeats.no_memory
        for i in range(repeats.stride):
            if repeats.found[i].found:
                repeats.over = True


# Strides of runs, until one of them is the last.
cdef inline void repeat(Lane* lane, Repeats* repeats) noexcept nogil:
    cdef Run* shared = lane.run
    cdef int32_t i, ran
    cdef int64_t before, first
    cdef int64_t[16] settings
    while not repeats.over:
        before = thread_ns()
        first = repeats.runs
        i = lane.number
        while i < repeats.stride:
            draw_settings(
                shared.table, &repeats.drawing,
                program_seed(repeats.seed, program_of(first + i)), settings)
            repeats.instances[i] = shared.table.create(settings, shared.n_threads)
            i += shared.n_threads
        lane.create_ns += thread_ns() - before
        meet(lane, ASLEEP)
        ran = 0
        while ran < repeats.stride and repeats.instances[ran] is not NULL:
            lane.instance = repeats.instances[ran]
            if lane.programs == program_of(first + ran):
                draw(lane, repeats)
            meet(lane, AWAKE)
            work(lane)
            ran += 1
            meet(lane, ASLEEP)
            if repeats.halted:
                break
        before = thread_ns()
        i = lane.number
        while i < repeats.stride:
            if repeats.instances[i] is not NULL:
                if i < ran:
                    shared.table.check(repeats.instances[i], &repeats.found[i])
                shared.table.destroy(repeats.instances[i])
            i += shared.n_threads
        lane.check_ns += thread_ns() - before
        if lane.number == 0:
            repeats.runs += ran
            repeats.ran = ran
            repeats.no_memory = ran < repeats.stride and repeats.instances[ran] is NULL
        meet(lane, DECIDING)


# The number of the program that a run makes, by the number of the run.
cdef inline int64_t program_of(int64_t run) noexcept nogil:
    return run // RUNS_OF_PROGRAM


# Draws the thread's calls of the next program.
cdef inline void draw(Lane* lane, Repeats* repeats) noexcept nogil:
    cdef int64_t before = thread_ns()
    lane.n_calls = draw_calls(
        lane.run.table, &repeats.drawing, program_seed(repeats.seed, lane.programs), lane.number,
        lane.run.n_threads, lane.drawn)
    lane.programs += 1
    lane.draw_ns += thread_ns() - before


cdef inline void work(Lane* lane) noexcept nogil:
    cdef Run* shared = lane.run
    cdef const PmlSubject* table = shared.table
    cdef void* instance = lane.instance
    cdef Slot* mine = &shared.slots[lane.number]
    cdef const PmlCall* call
    cdef PmlResult result
    cdef int64_t done = 0
    cdef int64_t at = 0
    cdef int64_t before = thread_ns()
    cdef int64_t most = lane.n_calls
    cdef int32_t seen
    cdef int32_t other = lane.number
    cdef uint32_t all_passed
    lane.begun += 1
    all_passed = lane.begun * <uint32_t>shared.n_threads
    if shared.repeats is not NULL:
        most *= MOST_PASSES
        if most == 0:
            u32_fetch_add_relaxed(&shared.passed, 1)
    while done < most and not u32_load_relaxed(&shared.stop):
        if done >= lane.n_calls:
            if done == lane.n_calls:
                u32_fetch_add_relaxed(&shared.passed, 1)
            if u32_load_relaxed(&shared.passed) == all_passed:
                break
            if at == lane.n_calls:
                at = 0
        call = &lane.calls[at]
        if call.noise:
            disturb(shared, call.noise)
        # Release keeps the marks around the operation; no thread acquires them, on purpose.
        i32_store_release(&mine.running, call.code + 1)
        if shared.n_threads > 1:
            other = next_other(other, lane.number, shared.n_threads)
            seen = i32_load_relaxed(&shared.slots[other].running)
            if seen:
                lane.overlaps[call.code * shared.n_operations + seen - 1] += 1
        memset(&result, 0, sizeof(result))
        if lane.records is NULL:
            table.apply(instance, lane.number, call, &result, &lane.violation)
        else:
            # The fence waits for the store, which waits for the clock: no effect of the operation
            # comes before the stamp.
            lane.records[done].invoked = monotonic_ns()
            fence_seq_cst()
            table.apply(instance, lane.number, call, &result, &lane.violation)
            # Drains the operation's stores: later operations see the effects of returned ones.
            fence_seq_cst()
            lane.records[done].returned = monotonic_ns()
            memcpy(lane.records[done].result, &result, sizeof(lane.records[done].result))
            lane.records[done].ending = 0
        i32_store_release(&mine.running, 0)
        done += 1
        at += 1
        i64_store_relaxed(&mine.done, lane.total + done)
        if lane.violation.found:
            u32_store_relaxed(&shared.stop, 1)
    lane.completed = at  # once, at the end: lanes share cache lines
    lane.total += done
    lane.inside_ns += thread_ns() - before


# Nanoseconds of processor time of the calling thread.
cdef inline int64_t thread_ns() noexcept nogil:
    cdef timespec moment
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &moment)
    return <int64_t>moment.tv_sec * 1000000000 + moment.tv_nsec


cdef inline int32_t next_other(int32_t other, int32_t self, int32_t n) noexcept nogil:
    other = other + 1 if other + 1 < n else 0
    if other == self:
        other = other + 1 if other + 1 < n else 0
    return other


cdef inline void disturb(Run* shared, int32_t noise) noexcept nogil:
    cdef int32_t i
    if noise > 0:
        for i in range(noise):
            pause()
    elif noise == NOISE_YIELD or shared.n_cpus < 2:
        yield_cpu()
    else:
        move(shared, NOISE_MOVE - noise)


# Moves the thread to another allowed processor; then the system may move it again.
cdef inline void move(Run* shared, int32_t further) noexcept nogil:
    cdef int here = sched_getcpu()
    cdef int32_t at = 0
    cdef cpu_set_t target
    while at < shared.n_cpus - 1 and shared.cpus[at] != here:
        at += 1
    at = (at + 1 + further % (shared.n_cpus - 1)) % shared.n_cpus
    CPU_ZERO(&target)
    CPU_SET(shared.cpus[at], &target)
    sched_setaffinity(0, sizeof(cpu_set_t), &target)
    sched_setaffinity(0, sizeof(cpu_set_t), &shared.allowed)
