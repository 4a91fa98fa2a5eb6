"""Runs programs on real threads: POSIX threads that never enter the interpreter.

Each thread loops natively over its calls: the call's noise, then the operation. Around the
operation it publishes the operation's code in its own cache line. When it starts an operation it
reads the line of one other thread, in turn: a code found there is an operation under way at that
moment. These counts show which pairs of operations overlapped.

On request the runner records the history: each thread stamps its own operations in its own memory.
The effects of an operation lie between its two stamps, for all processors.

The runner must not order accesses that the subject leaves unordered, or races would hide from a
thread sanitizer: between barrier and end, threads read each other's cells with relaxed loads only.
A recording run does order them, because it drains a processor's stores before each stamp; record
only to check the history.
"""

from __future__ import annotations

import os

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy, memset
from posix.signal cimport sigdelset, sigfillset, sigset_t
from posix.time cimport CLOCK_MONOTONIC, timespec
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.subjects.posix cimport (
    CPU_ISSET, CPU_SET, CPU_SETSIZE, CPU_ZERO, SIG_SETMASK, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP,
    cpu_set_t, pthread_cond_destroy, pthread_cond_init, pthread_cond_signal, pthread_cond_t,
    pthread_cond_timedwait, pthread_condattr_destroy, pthread_condattr_init, pthread_condattr_setclock,
    pthread_condattr_t, pthread_create, pthread_detach, pthread_join, pthread_mutex_destroy,
    pthread_mutex_init, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock, pthread_sigmask, pthread_t,
    sched_getaffinity, sched_getcpu, sched_setaffinity,
)
from pulsar_ml.harness.subjects.subject cimport Instance, PmlCall, PmlResult, PmlSubject, PmlViolation
from pulsar_ml.sync.atomics cimport pml_i32, pml_i64, pml_u32
from pulsar_ml.sync.atomics cimport i32_load_relaxed, i32_store_release, i64_load_relaxed, i64_store_relaxed
from pulsar_ml.sync.atomics cimport u32_fetch_add_relaxed, u32_load_acquire, u32_load_relaxed
from pulsar_ml.sync.atomics cimport fence_seq_cst, u32_store_relaxed, u32_store_release
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.memory cimport allocate_zeroed, release
from pulsar_ml.sync.wait cimport pause, spin, yield_cpu

from pulsar_ml.harness.histories.history import RECORD, check_records
from pulsar_ml.harness.subjects.program import CALL, check_fits
from pulsar_ml.harness.subjects.result import RunResult, ThreadViolation


# Values of PmlCall.noise: above 0 that many pauses, 0 nothing, -1 give the processor away, -2 - k
# move to another of the allowed processors, k further than the next one.
cdef enum:
    NOISE_YIELD = -1
    NOISE_MOVE = -2

cdef enum:
    GATE_CLOSED = 0
    GATE_OPEN = 1
    GATE_ABANDONED = 2

cdef enum:
    SPIN_YIELDS = 32      # a turn of sync's spin from which it yields instead of pausing
    LINE = 128            # two cache lines, because processors fetch them in pairs
    SLICE_NS = 50000000   # how long the caller waits before it looks for signals


cdef int[6] FAULTS = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP]


# State of one thread that the others read.
cdef struct Slot:
    pml_i32 running       # code + 1 of the operation under way, 0 between operations
    pml_i64 done          # operations finished
    char[112] padding     # rounds the slot up to LINE


cdef struct Run:
    const PmlSubject* table
    void* instance
    Slot* slots           # one per thread, on line boundaries
    void* slots_memory
    int32_t n_threads
    int32_t n_operations
    uint32_t first_turn   # of a spin; skips the pauses when threads outnumber processors
    int32_t n_cpus
    int32_t[1024] cpus
    cpu_set_t allowed
    pml_u32 arrived
    pml_u32 gate
    pml_u32 stop
    pml_i64 opened_ns
    pthread_mutex_t mutex # guards finished, which counts threads
    pthread_cond_t ended
    int32_t finished


# State of one thread that nobody else reads before it has ended.
cdef struct Lane:
    Run* run
    int32_t number
    const PmlCall* calls
    Record* records       # one for each call, or NULL
    int64_t n_calls
    int64_t completed
    int64_t ended_ns
    int64_t* overlaps     # n_operations * n_operations: [starting][seen running]
    pthread_t handle
    PmlViolation violation


# Instances and programs of stuck runs: their threads still use them.
_left_behind = []

assert sizeof(Slot) == LINE, "a slot must fill its line"


def run_program(
    Instance instance not None, program, *, patience_ns: int = 120_000_000_000, records=None
) -> RunResult:
    """Run the calls of ``program`` on ``instance``, each thread on its own POSIX thread, 1 to 64.

    Returns when all threads have ended. The first violation that a thread finds stops all threads
    after their current operations; afterwards the caller checks the invariants at quiescence, by
    ``instance.check()``. If no operation finishes for ``patience_ns`` nanoseconds, the threads are
    left behind and the result says ``stuck``. An exception of a signal handler, such as
    KeyboardInterrupt, stops the threads and is raised when they have ended; a second one leaves the
    threads behind.

    ``records`` are arrays of history.RECORD, one for each thread and as long as its calls, which
    receive each operation's stamps and result; :func:`record_run` creates them.

    Raises ValueError when the program does not fit the instance, TypeError when its arrays do not
    have the layout of PmlCall, MemoryError, and OSError when the system refuses a thread.
    """
    cdef Run* shared
    cdef Lane* lanes
    cdef int error = 0
    cdef int number
    cdef int64_t patience = patience_ns
    check_fits(program, instance)
    if CALL.itemsize != sizeof(PmlCall):
        raise TypeError(f"program.CALL has {CALL.itemsize} bytes, PmlCall has {sizeof(PmlCall)}")
    if RECORD.itemsize != sizeof(Record):
        raise TypeError(f"history.RECORD has {RECORD.itemsize} bytes, Record has {sizeof(Record)}")
    if records is not None:
        check_records(records, program.threads)
    shared = new_run(instance, <int>len(program.threads))
    lanes = new_lanes(shared)
    if lanes is NULL:
        free_run(shared)
        raise MemoryError(f"no memory to run {len(program.threads)} threads")
    for number, calls in enumerate(program.threads):
        lanes[number].calls = <const PmlCall*><size_t>calls.ctypes.data
        lanes[number].n_calls = len(calls)
        if records is not None:
            lanes[number].records = <Record*><size_t>records[number].ctypes.data
    with nogil:
        number = start(shared, lanes, &error)
    if error:
        free_lanes(shared, lanes)
        free_run(shared)
        raise OSError(error, f"{os.strerror(error)}: the system refused thread {number + 1} of "
                      f"{len(program.threads)}")
    ended, interruption = wait_for_end(shared, patience)
    if not ended:
        # The threads still use the instance, the program and the native memory: none is freed.
        with nogil:
            detach(lanes, shared.n_threads)
        _left_behind.append((instance, program, records))
        if interruption is not None:
            raise interruption
        return collect_stuck(shared, patience)
    with nogil:
        join(lanes, shared.n_threads)
    try:
        if interruption is not None:
            raise interruption
        return collect(shared, lanes)
    finally:
        free_lanes(shared, lanes)
        free_run(shared)


# Returns (True when all threads ended, the exception of a signal handler or None). Waits with the
# GIL released, in slices. Gives up when no operation finished for patience_ns, and at a second
# exception.
cdef tuple wait_for_end(Run* shared, int64_t patience_ns):
    cdef int64_t done, last_done = -1
    cdef int64_t moved_ns = monotonic_ns()
    cdef bint ended
    interruption = None
    while True:
        with nogil:
            ended = wait_slice(shared)
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            u32_store_relaxed(&shared.stop, 1)
            if interruption is not None and not ended:
                return False, interruption
            interruption = error
        if ended:
            return True, interruption
        done = count_done(shared)
        if done != last_done:
            last_done = done
            moved_ns = monotonic_ns()
        elif monotonic_ns() - moved_ns > patience_ns:
            u32_store_relaxed(&shared.stop, 1)
            return False, interruption


cdef object collect(Run* shared, Lane* lanes):
    cdef int i, a, b
    cdef int n = shared.n_operations
    cdef int64_t last = 0
    cdef int64_t total
    violations = []
    for i in range(shared.n_threads):
        last = max(last, lanes[i].ended_ns)
        if lanes[i].violation.found:
            violations.append(ThreadViolation(
                i, lanes[i].completed - 1,
                (<const char*>lanes[i].violation.invariant).decode(errors="replace"),
                (<const char*>lanes[i].violation.message).decode(errors="replace")))
    rows = []
    for a in range(n):
        row = []
        for b in range(n):
            total = 0
            for i in range(shared.n_threads):
                total += lanes[i].overlaps[a * n + b]
            row.append(total)
        rows.append(tuple(row))
    completed = tuple([lanes[i].completed for i in range(shared.n_threads)])
    return RunResult(sum(completed), completed, last - i64_load_relaxed(&shared.opened_ns), tuple(rows),
                     tuple(violations), False)


cdef object collect_stuck(Run* shared, int64_t patience_ns):
    cdef int i, code
    cdef int n = shared.n_operations
    inside = []
    for i in range(shared.n_threads):
        code = i32_load_relaxed(&shared.slots[i].running)
        if code:
            inside.append(f"thread {i} in {shared.table.operations[code - 1].name.decode()}")
    where = ", ".join(inside) or "no thread is inside one"
    violation = ThreadViolation(-1, -1, "stuck",
                                f"no operation finished for {patience_ns / 1e9:g} s: {where}")
    completed = tuple([i64_load_relaxed(&shared.slots[i].done) for i in range(shared.n_threads)])
    return RunResult(sum(completed), completed, monotonic_ns() - i64_load_relaxed(&shared.opened_ns),
                     ((0,) * n,) * n, (violation,), True)


# Memory of a run; NULL when memory ran out.

cdef Run* new_run(Instance instance, int threads) noexcept:
    cdef Run* shared = <Run*>allocate_zeroed(1, sizeof(Run))
    cdef pthread_condattr_t attributes
    cdef int cpu
    if shared is NULL:
        return NULL
    shared.slots_memory = allocate_zeroed(threads + 1, LINE)
    if shared.slots_memory is NULL:
        release(shared)
        return NULL
    shared.slots = <Slot*>((<size_t>shared.slots_memory + LINE - 1) // LINE * LINE)
    shared.table = instance.subject.table
    shared.instance = instance.native
    shared.n_threads = threads
    shared.n_operations = instance.subject.table.n_operations
    sched_getaffinity(0, sizeof(cpu_set_t), &shared.allowed)
    for cpu in range(min(<int>CPU_SETSIZE, 1024)):
        if CPU_ISSET(cpu, &shared.allowed):
            shared.cpus[shared.n_cpus] = cpu
            shared.n_cpus += 1
    if threads > shared.n_cpus:
        shared.first_turn = SPIN_YIELDS
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(&shared.ended, &attributes)
    pthread_condattr_destroy(&attributes)
    pthread_mutex_init(&shared.mutex, NULL)
    return shared


cdef void free_run(Run* shared) noexcept:
    if shared is not NULL:
        pthread_cond_destroy(&shared.ended)
        pthread_mutex_destroy(&shared.mutex)
        release(shared.slots_memory)
        release(shared)


cdef Lane* new_lanes(Run* shared) noexcept:
    cdef Lane* lanes
    cdef int i, n
    if shared is NULL:
        return NULL
    lanes = <Lane*>allocate_zeroed(shared.n_threads, sizeof(Lane))
    if lanes is NULL:
        return NULL
    n = shared.n_operations
    for i in range(shared.n_threads):
        lanes[i].run = shared
        lanes[i].number = i
        # A line more than needed keeps the counts of two threads apart.
        lanes[i].overlaps = <int64_t*>allocate_zeroed(n * n * sizeof(int64_t) + LINE, 1)
        if lanes[i].overlaps is NULL:
            free_lanes(shared, lanes)
            return NULL
    return lanes


cdef void free_lanes(Run* shared, Lane* lanes) noexcept:
    cdef int i
    for i in range(shared.n_threads):
        release(lanes[i].overlaps)
    release(lanes)


# Functions of the calling thread.

# Starts all threads and returns their number. On an error it sets *error, and the threads started
# so far have ended.
cdef int start(Run* shared, Lane* lanes, int* error) noexcept nogil:
    cdef sigset_t blocked, before
    cdef int i
    # The calling thread handles signals, so threads of the run block them. Faults are not blocked,
    # so that the process dies with a message.
    sigfillset(&blocked)
    for i in range(6):
        sigdelset(&blocked, FAULTS[i])
    pthread_sigmask(SIG_SETMASK, &blocked, &before)
    for i in range(shared.n_threads):
        error[0] = pthread_create(&lanes[i].handle, NULL, &body, &lanes[i])
        if error[0]:
            break
    else:
        i = shared.n_threads
    pthread_sigmask(SIG_SETMASK, &before, NULL)
    if error[0]:
        u32_store_release(&shared.gate, GATE_ABANDONED)
        join(lanes, i)
    return i


cdef void join(Lane* lanes, int started) noexcept nogil:
    cdef int i
    for i in range(started):
        pthread_join(lanes[i].handle, NULL)


cdef void detach(Lane* lanes, int started) noexcept nogil:
    cdef int i
    for i in range(started):
        pthread_detach(lanes[i].handle)


# Waits for one slice of time; true when all threads have finished.
cdef bint wait_slice(Run* shared) noexcept nogil:
    cdef int64_t until = monotonic_ns() + SLICE_NS
    cdef timespec deadline
    cdef bint ended
    deadline.tv_sec = until // 1000000000
    deadline.tv_nsec = until % 1000000000
    pthread_mutex_lock(&shared.mutex)
    while shared.finished < shared.n_threads:
        if pthread_cond_timedwait(&shared.ended, &shared.mutex, &deadline):
            break
    ended = shared.finished == shared.n_threads
    pthread_mutex_unlock(&shared.mutex)
    return ended


cdef int64_t count_done(Run* shared) noexcept nogil:
    cdef int64_t done = 0
    cdef int i
    for i in range(shared.n_threads):
        done += i64_load_relaxed(&shared.slots[i].done)
    return done


# The threads.

cdef void* body(void* argument) noexcept nogil:
    cdef Lane* lane = <Lane*>argument
    cdef Run* shared = lane.run
    if pass_barrier(shared):
        work(lane)
    lane.ended_ns = monotonic_ns()
    pthread_mutex_lock(&shared.mutex)
    shared.finished += 1
    if shared.finished == shared.n_threads:
        pthread_cond_signal(&shared.ended)
    pthread_mutex_unlock(&shared.mutex)
    return NULL


# Waits until all threads have arrived; the last one opens the gate. False for an abandoned run.
cdef bint pass_barrier(Run* shared) noexcept nogil:
    cdef uint32_t turn = shared.first_turn
    cdef uint32_t gate
    if u32_fetch_add_relaxed(&shared.arrived, 1) + 1 == <uint32_t>shared.n_threads:
        i64_store_relaxed(&shared.opened_ns, monotonic_ns())
        u32_store_release(&shared.gate, GATE_OPEN)  # pairs with the acquire below
        return True
    # Ends when the last thread arrives, or the caller gives up because a thread did not start.
    while True:
        gate = u32_load_acquire(&shared.gate)
        if gate != GATE_CLOSED:
            return gate == GATE_OPEN
        turn = spin(turn)


cdef void work(Lane* lane) noexcept nogil:
    cdef Run* shared = lane.run
    cdef const PmlSubject* table = shared.table
    cdef Slot* mine = &shared.slots[lane.number]
    cdef const PmlCall* call
    cdef PmlResult result
    cdef int64_t done = 0
    cdef int32_t seen
    cdef int32_t other = lane.number
    while done < lane.n_calls and not u32_load_relaxed(&shared.stop):
        call = &lane.calls[done]
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
            table.apply(shared.instance, lane.number, call, &result, &lane.violation)
        else:
            # The fence waits for the store, which waits for the clock: no effect of the operation
            # comes before the stamp.
            lane.records[done].invoked = monotonic_ns()
            fence_seq_cst()
            table.apply(shared.instance, lane.number, call, &result, &lane.violation)
            # Drains the operation's stores: later operations see the effects of returned ones.
            fence_seq_cst()
            lane.records[done].returned = monotonic_ns()
            memcpy(lane.records[done].result, &result, sizeof(lane.records[done].result))
            lane.records[done].ending = 0
        i32_store_release(&mine.running, 0)
        done += 1
        i64_store_relaxed(&mine.done, done)
        if lane.violation.found:
            u32_store_relaxed(&shared.stop, 1)
    lane.completed = done  # once, at the end: lanes share cache lines


cdef inline int32_t next_other(int32_t other, int32_t self, int32_t n) noexcept nogil:
    other = other + 1 if other + 1 < n else 0
    if other == self:
        other = other + 1 if other + 1 < n else 0
    return other


cdef void disturb(Run* shared, int32_t noise) noexcept nogil:
    cdef int32_t i
    if noise > 0:
        for i in range(noise):
            pause()
    elif noise == NOISE_YIELD or shared.n_cpus < 2:
        yield_cpu()
    else:
        move(shared, NOISE_MOVE - noise)


# Moves the thread to another allowed processor; then the system may move it again.
cdef void move(Run* shared, int32_t further) noexcept nogil:
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
