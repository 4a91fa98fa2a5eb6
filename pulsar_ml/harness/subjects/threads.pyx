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
from libc.stdint cimport int64_t
from posix.signal cimport sigdelset, sigfillset, sigset_t
from posix.time cimport CLOCK_MONOTONIC, timespec
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.subjects.drawing cimport (
    MOST_OPERATIONS, Drawing, draw_calls, draw_settings, program_seed,
)
from pulsar_ml.harness.subjects.lanes cimport (
    GATE_ABANDONED, MOST_STRIDE, Lane, Repeats, Run, Slot, body, program_of,
)
from pulsar_ml.harness.posix cimport (
    CPU_ISSET, CPU_SETSIZE, SIG_SETMASK, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, cpu_set_t,
    pthread_cond_destroy, pthread_cond_init, pthread_cond_timedwait, pthread_condattr_destroy,
    pthread_condattr_init, pthread_condattr_setclock, pthread_condattr_t, pthread_create, pthread_detach,
    pthread_join, pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
    pthread_sigmask, sched_getaffinity,
)
from pulsar_ml.harness.subjects.subject cimport Instance, PmlCall, PmlViolation, Subject
from pulsar_ml.sync.atomics cimport i32_load_relaxed, i64_load_relaxed, u32_store_relaxed, u32_store_release
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.memory cimport allocate_zeroed, release

import numpy as np

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import RECORD, check_records
from pulsar_ml.harness.subjects.program import (
    CALL, Program, check_fits, check_size, resolve_mix, setting_ranges,
)
from pulsar_ml.harness.subjects.result import CoreTime, RunResult, ThreadViolation


cdef enum:
    SPIN_YIELDS = 32      # a turn of sync's spin from which it yields instead of pausing
    LINE = 128            # two cache lines, because processors fetch them in pairs
    SLICE_NS = 50000000   # how long the caller waits before it looks for signals


cdef int[6] FAULTS = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP]


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
    check_fits(program, instance)
    if CALL.itemsize != sizeof(PmlCall):
        raise TypeError(f"program.CALL has {CALL.itemsize} bytes, PmlCall has {sizeof(PmlCall)}")
    if RECORD.itemsize != sizeof(Record):
        raise TypeError(f"history.RECORD has {RECORD.itemsize} bytes, Record has {sizeof(Record)}")
    if records is not None:
        check_records(records, program.threads)
    cdef int number
    cdef Run* shared = new_run(instance.subject, <int>len(program.threads), NULL)
    for number, calls in enumerate(program.threads):
        shared.lanes[number].instance = instance.native
        shared.lanes[number].calls = <const PmlCall*><size_t>calls.ctypes.data
        shared.lanes[number].n_calls = len(calls)
        if records is not None:
            shared.lanes[number].records = <Record*><size_t>records[number].ctypes.data
    return finished(shared, (instance, program, records), patience_ns)


def run_programs(
    Subject subject not None,
    seed,
    *,
    threads: int,
    operations: int,
    int64_t inside_ns,
    int64_t most_ns,
    int64_t most_runs=1_000_000_000,
    mix=None,
    settings=None,
    noise=True,
    patience_ns: int = 120_000_000_000,
) -> RunResult:
    """Run many programs, each twice, every time on a fresh instance; the threads stay.

    Program number N is ``Program.generate`` of :func:`further_seed` ``(seed, N)``, with the other
    arguments of that method. A thread that has made its calls makes them again until all have, at
    most four times. A few instances exist at once: the threads create, check and destroy them side
    by side. The last run begins before ``inside_ns`` nanoseconds of processor time inside runs,
    ``most_ns`` nanoseconds of the clock, and ``most_runs`` runs are over. The first violation ends
    the runs, too; the result names its program.

    Raises UsageError as ``Program.generate`` does, MemoryError, and OSError when the system refuses
    a thread.
    """
    cdef Drawing drawing
    cdef int i
    cdef Repeats* repeats
    check_size(subject, seed, threads, operations)
    prepare_drawing(&drawing, subject, operations, mix, settings, noise)
    repeats = <Repeats*>allocate_zeroed(1, sizeof(Repeats))
    if repeats is NULL:
        raise MemoryError("no memory for many runs")
    repeats.drawing = drawing
    repeats.seed = seed
    repeats.stride = min(<int>MOST_STRIDE, <int>threads)
    repeats.inside_ns, repeats.most_runs = inside_ns, most_runs
    repeats.until_ns = monotonic_ns() + most_ns
    cdef Run* shared = new_run(subject, threads, repeats)
    for i in range(threads):
        shared.lanes[i].drawn = <PmlCall*>allocate_zeroed(operations, sizeof(PmlCall))
        shared.lanes[i].calls = shared.lanes[i].drawn
        if shared.lanes[i].drawn is NULL:
            free_run(shared)
            raise MemoryError(f"no memory for {operations} operations of {threads} threads")
    return finished(shared, (subject,), patience_ns)


def draw_program(
    Subject subject not None, seed, *, threads: int, operations: int, mix=None, settings=None, noise=True
) -> Program:
    """Draw the program of ``seed``: that of ``Program.generate``, without Python."""
    cdef Drawing drawing
    cdef int64_t[16] drawn
    cdef int64_t count
    cdef int thread
    if len(subject.operations) > MOST_OPERATIONS:
        return Program.generate(
            subject, seed, threads=threads, operations=operations, mix=mix, settings=settings, noise=noise)
    check_size(subject, seed, threads, operations)
    prepare_drawing(&drawing, subject, operations, mix, settings, noise)
    draw_settings(subject.table, &drawing, seed, drawn)
    arrays = []
    for thread in range(threads):
        calls = np.empty(operations, CALL)
        count = draw_calls(
            subject.table, &drawing, seed, thread, threads, <PmlCall*><size_t>calls.ctypes.data)
        calls = calls[:count]
        calls.flags.writeable = False
        arrays.append(calls)
    return Program(
        subject=subject.name,
        seed=seed,
        settings={setting.name: drawn[i] for i, setting in enumerate(subject.settings)},
        operations=tuple([operation.name for operation in subject.operations]),
        threads=tuple(arrays),
    )


# Everything that programs have in common. UsageError for what does not fit the subject.
cdef int prepare_drawing(Drawing* drawing, Subject subject, operations, mix, settings, noise) except -1:
    if len(subject.operations) > MOST_OPERATIONS:
        raise UsageError(f"subject {subject.name!r} has more than {MOST_OPERATIONS} operations")
    for i, weight in enumerate(resolve_mix(subject, mix)):
        drawing.weights[i] = weight
    roles = sorted({operation.role for operation in subject.operations if operation.role})
    for i, role in enumerate(roles):
        drawing.roles[i] = role
    for i, (low, high) in enumerate(setting_ranges(subject, settings or {}).values()):
        drawing.lows[i], drawing.highs[i] = low, high
    drawing.n_roles, drawing.n_calls, drawing.noise = len(roles), operations, noise
    return 0


def further_seed(seed, int64_t number) -> int:
    """Return the seed of program ``number`` of :func:`run_programs`, 0 and up, below 2**63."""
    return program_seed(seed, number)


# Starts the threads of a run, waits for their end, and frees it. They use what `kept` holds.
cdef object finished(Run* shared, tuple kept, int64_t patience):
    cdef int error = 0
    cdef int number
    with nogil:
        number = start(shared, &error)
    if error:
        many = shared.n_threads
        free_run(shared)
        raise OSError(error, f"{os.strerror(error)}: the system refused thread {number + 1} of {many}")
    ended, interruption = wait_for_end(shared, patience)
    if not ended:
        # The threads still use the instance, the program and the native memory: none is freed.
        with nogil:
            detach(shared)
        _left_behind.append(kept)
        if interruption is not None:
            raise interruption
        return collect_stuck(shared, patience)
    with nogil:
        join(shared, shared.n_threads)
    try:
        if interruption is not None:
            raise interruption
        result = collect(shared)
        if shared.repeats is not NULL and shared.repeats.no_memory and result.program < 0:
            raise MemoryError("no memory for an instance")
        return result
    finally:
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


cdef object collect(Run* shared):
    cdef Lane* lanes = shared.lanes
    cdef int i, a, b
    cdef int n = shared.n_operations
    cdef int64_t last = 0
    cdef int64_t total
    violations = []
    for i in range(shared.n_threads):
        last = max(last, lanes[i].ended_ns)
        if lanes[i].violation.found:
            violations.append(violation_of(i, lanes[i].completed - 1, &lanes[i].violation))
    rows = []
    for a in range(n):
        row = []
        for b in range(n):
            total = 0
            for i in range(shared.n_threads):
                total += lanes[i].overlaps[a * n + b]
            row.append(total)
        rows.append(tuple(row))
    completed = tuple([lanes[i].total for i in range(shared.n_threads)])
    return RunResult(sum(completed), completed, last - i64_load_relaxed(&shared.opened_ns), tuple(rows),
                     tuple(violations), False, 1 if shared.repeats is NULL else shared.repeats.runs,
                     broken_behind(shared), number_of_violation(shared), CoreTime(*[
                         sum([lanes[i].inside_ns for i in range(shared.n_threads)]),
                         sum([lanes[i].draw_ns for i in range(shared.n_threads)]),
                         sum([lanes[i].create_ns for i in range(shared.n_threads)]),
                         sum([lanes[i].check_ns for i in range(shared.n_threads)])]))


# The violations at quiescence behind the runs of the last stride, and during its last run.
cdef tuple broken_behind(Run* shared):
    cdef Repeats* repeats = shared.repeats
    return () if repeats is NULL else tuple([
        violation_of(-1, -1, &repeats.found[i]) for i in range(repeats.ran) if repeats.found[i].found])


# The program of the violation that the result names first, by number; -1 without one.
cdef int64_t number_of_violation(Run* shared):
    cdef Repeats* repeats = shared.repeats
    cdef int64_t first
    cdef int i
    if repeats is NULL:
        return -1
    first = repeats.runs - repeats.ran
    for i in range(shared.n_threads):
        if shared.lanes[i].violation.found:
            return program_of(repeats.runs - 1)
    for i in range(repeats.ran):
        if repeats.found[i].found:
            return program_of(first + i)
    return -1


cdef object violation_of(int thread, int64_t call, const PmlViolation* seen):
    return ThreadViolation(thread, call, (<const char*>seen.invariant).decode(errors="replace"),
                           (<const char*>seen.message).decode(errors="replace"))


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


# Memory of a run with its lanes; owns `repeats`, also when it raises MemoryError.
cdef Run* new_run(Subject subject, int threads, Repeats* repeats) except NULL:
    cdef Run* shared = <Run*>allocate_zeroed(1, sizeof(Run))
    cdef pthread_condattr_t attributes
    cdef int cpu
    if shared is not NULL:
        shared.repeats = repeats
        shared.slots_memory = allocate_zeroed(threads + 1, LINE)
        shared.lanes = <Lane*>allocate_zeroed(threads, sizeof(Lane))
    if shared is NULL or shared.slots_memory is NULL or shared.lanes is NULL:
        if shared is NULL:
            release(repeats)
        else:
            free_memory(shared)
        raise MemoryError(f"no memory to run {threads} threads")
    shared.slots = <Slot*>((<size_t>shared.slots_memory + LINE - 1) // LINE * LINE)
    shared.table = subject.table
    shared.n_threads = threads
    shared.n_operations = subject.table.n_operations
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
    new_lanes(shared)
    return shared


cdef void free_run(Run* shared) noexcept:
    pthread_cond_destroy(&shared.ended)
    pthread_mutex_destroy(&shared.mutex)
    free_memory(shared)


cdef void free_memory(Run* shared) noexcept:
    cdef int i
    if shared.lanes is not NULL:
        for i in range(shared.n_threads):
            release(shared.lanes[i].overlaps)
            release(shared.lanes[i].drawn)
    release(shared.lanes)
    release(shared.slots_memory)
    release(shared.repeats)
    release(shared)


cdef int new_lanes(Run* shared) except -1:
    cdef Lane* lanes = shared.lanes
    cdef int n = shared.n_operations
    cdef int threads = shared.n_threads
    cdef int i
    for i in range(shared.n_threads):
        lanes[i].run = shared
        lanes[i].number = i
        # A line more than needed keeps the counts of two threads apart.
        lanes[i].overlaps = <int64_t*>allocate_zeroed(n * n * sizeof(int64_t) + LINE, 1)
        if lanes[i].overlaps is NULL:
            free_run(shared)
            raise MemoryError(f"no memory to run {threads} threads")
    return 0


# Functions of the calling thread.

# Starts all threads and returns their number. On an error it sets *error, and the threads started
# so far have ended.
cdef int start(Run* shared, int* error) noexcept nogil:
    cdef Lane* lanes = shared.lanes
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
        join(shared, i)
    return i


cdef void join(Run* shared, int started) noexcept nogil:
    cdef int i
    for i in range(started):
        pthread_join(shared.lanes[i].handle, NULL)


cdef void detach(Run* shared) noexcept nogil:
    cdef int i
    for i in range(shared.n_threads):
        pthread_detach(shared.lanes[i].handle)


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
