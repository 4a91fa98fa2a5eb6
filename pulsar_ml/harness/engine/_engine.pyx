"""The engine's face: an explorer over the executions of a program; batches run without the GIL."""

from __future__ import annotations

import os
import threading

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.pycapsule cimport PyCapsule_GetContext, PyCapsule_GetPointer
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset
from pulsar_ml.harness.engine.judged_calls cimport (
    EngineCall, JudgedCall, Legal, Question, engine_calls, known,
)
from pulsar_ml.harness.engine.engine cimport (
    ENGINE_BUFFER, ENGINE_CLASSES, ENGINE_LEAST_STORES, ENGINE_MOST_STORES, ENGINE_MOST_THREADS,
    ENGINE_STORES, FAIL_RACE, STRATEGY_FOLLOWS, STRATEGY_REDUCES, STRATEGY_SAMPLES, STRATEGY_SEARCHES,
    CHANGE_CALL, CHANGE_GIVES, CHANGE_TAKES, NO_FENCE, ORDER_KEPT, EngineChange, EngineConfig,
    EngineDecision, EngineEvent, EngineFailure, EnginePair, EngineStats, EngineStrategy, engine_accept,
    engine_again, engine_apart, engine_ask, engine_beat, engine_class, engine_classes, engine_decisions,
    engine_failure, engine_hash, engine_keep_blocks, engine_left, engine_meetings, engine_name, engine_next,
    engine_note, engine_open, engine_part, engine_path, engine_places_in, engine_preemptions,
    engine_reverse, engine_run, engine_steps, engine_steps_in, engine_stop_at,
    engine_strategy, engine_suppress, engine_trace, engine_unjudged,
    engine_used_depth, engine_used_reuse, engine_used_strategy,
)
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.subjects.subject cimport PmlCall, PmlResult, PmlSubject, Subject

import numpy as np

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import RECORD
from pulsar_ml.harness.subjects.program import CALL
from pulsar_ml.input_files import utf8_path

include "names.pxi"
include "code_places.pxi"
include "heart.pxi"
include "meetings.pxi"
include "parts.pxi"
include "changes.pxi"

# The engine has one state: whose explorer it holds, and who may touch it.
cdef object _owner = None
_lock = threading.RLock()


cdef class Explorer:
    """The executions of one program, numbered from 0, each decided by the seed and its number.

    ``mode`` is "sc", "tso" or "c11"; ``strategy`` one of STRATEGIES; ``faults`` names the FAULTS
    that may happen; ``reuse`` tells the allocator to keep freed blocks ("quarantine"), to hand them
    out at once ("reuse") or to let each execution decide ("mixed"). ``depth`` fixes PCT's depth (0:
    a mixture). Bounds of the exhaustive strategies are ``bound``: preemptions or delays, ``spins``:
    turns of waiting loops that go on at once, and ``turns``: turns of loops in one operation. A
    location remembers ``stores`` stores. With ``lock_free`` a thread of each execution may be held
    back at a step, and it is a failure when the others cannot end without that thread. "replay"
    follows ``decisions``: tuples (point, thread, kind, value); "portfolio" departs from them, or
    makes a pair of ``apart`` meet. ``path`` are the first choices of an exhaustive strategy;
    ``floor`` of them stay. ``begun`` is where a search with reduction begins, ``unreduced`` why it
    was given up before; with ``preemptions`` it makes the classes that so many preemptions reach,
    and with ``symmetry`` threads of equal calls begin in the order of their
    numbers in such a search. With ``judged`` a run stops at each execution whose answers were not
    accepted yet (:meth:`accept`). Without ``leaks`` blocks that are never freed are no failure.
    ``changes`` are tuples (place of code, order, fence, lock): the atomic operation there gets one
    of ORDERS ("none" leaves out a fence, "" keeps the order), a fence of an order is made before
    it, and one lock is taken before the access ("takes"), given back behind it ("gives"), or both
    ("takes, gives"); with "call" the place is the code of an operation, which has the lock as long
    as it runs. ``suppress`` names known races: "file:line", or a function of an access.

    Raises UsageError for what is out of range and MemoryError.
    """

    cdef readonly Subject subject
    cdef readonly object program, most_preemptions
    cdef readonly str mode, strategy
    cdef readonly object seed
    cdef readonly int bound, depth, spins, turns, stores
    cdef EngineConfig config
    cdef EngineStats stats
    cdef int64_t[16] settings
    cdef EngineDecision* decisions
    cdef EngineChange* changes
    cdef object path_kept, begun_kept, apart_kept, oracle_kept, arrays
    cdef JudgedCall* places
    cdef Question question
    cdef bint started
    cdef readonly tuple suppress, faults, reasons
    cdef readonly bint symmetry
    cdef list pairs

    def __cinit__(self, Subject subject not None, program, *, str mode="c11", str strategy="portfolio",
                  seed=0, faults=(), str reuse="quarantine", int depth=0, int bound=2,
                  int spins=SPINS, int turns=TURNS, int stores=STORES, bint lock_free=False,
                  uint32_t step_limit=STEP_LIMIT, bint races=True, bint leaks=True, bint judged=False,
                  decisions=(), apart=(), changes=(), path=(), int floor=0, suppress=(),
                  begun=(), int unreduced=0, bint symmetry=False, preemptions=None):
        cdef int i
        names = tuple([operation.name for operation in subject.operations])
        if program.subject != subject.name or program.operations != names:
            raise UsageError(f"the program is for subject {program.subject!r}, not for {subject.name!r}")
        for value, known, what in ((mode, MODES, "mode"), (strategy, tuple(STRATEGIES), "strategy"),
                                   (reuse, tuple(REUSE), "reuse")):
            if value not in known:
                raise UsageError(f"{what} {value!r} is not known; use one of: {', '.join(known)}")
        self.faults = tuple(faults)
        for fault in self.faults:
            if fault not in FAULTS:
                raise UsageError(f"fault {fault!r} is not known; use some of: {', '.join(FAULTS)}")
        if not 1 <= len(program.threads) <= ENGINE_MOST_THREADS - 1:
            raise UsageError(f"a controlled program has 1 to {ENGINE_MOST_THREADS - 1} threads, "
                             f"this one has {len(program.threads)}")
        if not 0 <= seed < 2**64:
            raise UsageError(f"the seed is {seed}; it should be between 0 and 2**64 - 1")
        if step_limit < 10 or bound < 0 or spins < 0 or turns < 1 or not 0 <= depth <= 8:
            raise UsageError("the step limit should be 10 or more, the turns 1 or more, the other "
                             "bounds 0 or more, the depth 0 to 8")
        if not LEAST_STORES <= stores <= MOST_STORES:
            raise UsageError(f"a location remembers {LEAST_STORES} to {MOST_STORES} stores, not {stores}")
        self.subject = subject
        self.program = program
        self.mode, self.strategy, self.seed = mode, strategy, seed
        self.bound, self.depth = bound, depth
        self.spins, self.turns, self.stores = spins, turns, stores
        memset(&self.config, 0, sizeof(self.config))
        memset(&self.stats, 0, sizeof(self.stats))
        self.config.subject = subject.table
        for i, setting in enumerate(subject.settings):
            self.settings[i] = program.settings.get(setting.name, setting.low)
        self.config.settings = self.settings
        self.arrays = list(program.threads)
        self.config.n_threads = <int>len(self.arrays)
        for i, calls in enumerate(self.arrays):
            if calls.dtype != CALL or not calls.flags.c_contiguous:
                raise TypeError(f"the calls of thread {i} should be a contiguous array of program.CALL")
            self.config.calls[i] = <const PmlCall*><size_t>calls.ctypes.data
            self.config.n_calls[i] = <int32_t>len(calls)
        self.config.mode = MODES.index(mode)
        self.config.strategy = <int32_t>tuple(STRATEGIES).index(strategy)
        self.config.races, self.config.leaks, self.config.judged = races, leaks, judged
        self.config.reuse = REUSE[reuse]
        for fault in self.faults:
            self.config.faults |= <int32_t>FAULTS[fault]
        self.config.depth = depth
        self.config.bound, self.config.spins, self.config.turns = bound, spins, turns
        self.config.stores = stores
        self.config.lock_free = lock_free
        self.config.step_limit = step_limit
        self.config.seed = seed
        self.suppress = tuple([str(place) for place in suppress])
        self.pairs = []
        self.reasons = ()
        self.set_decisions(decisions)
        make_meet(self, apart)
        change_code(self, changes)
        begin_at(self, path, floor)
        begin_search(self, begun, unreduced, symmetry, preemptions)

    def __dealloc__(self):
        free(self.decisions)
        free(self.changes)
        free(self.places)

    cdef int set_decisions(self, decisions) except -1:
        cdef int i
        free(self.decisions)
        self.decisions = <EngineDecision*>calloc(len(decisions) + 1, sizeof(EngineDecision))
        if self.decisions is NULL:
            raise MemoryError("no memory for the decisions of a replay")
        for i, (at, thread, kind, value) in enumerate(decisions):
            self.decisions[i] = EngineDecision(at=at, thread=thread, kind=kind, value=value)
        self.config.decisions = self.decisions
        self.config.n_decisions = <int32_t>len(decisions)
        return 0

    cdef int take(self) except -1:
        global _owner
        if _owner is not self:
            if self.started and self.strategy in SEARCHES:
                raise RuntimeError("an exhaustive search cannot go on after another explorer used the engine")
            opened = engine_open(&self.config)
            if opened == -2:
                raise UsageError("this part of a search is damaged, or of another program")
            if opened < 0:
                raise MemoryError("no memory for the engine, or its fixed addresses are taken")
            _owner = self
            for first, second in self.pairs:
                engine_suppress(first, second)
        self.started = True
        return 0

    cdef Reading mine(self):
        """Keeps other threads from the engine; refuses the executions of another explorer."""
        _lock.acquire()
        if _owner is self:
            return _reading
        _lock.release()
        raise RuntimeError("another explorer used the engine since; ask before the next one runs, or make "
                           "the execution again" if self.started else "the explorer made no execution yet")

    def run(self, uint64_t first, uint64_t count) -> int:
        """Make executions first..first+count-1, or fewer: the last one made may have failed.

        Returns how many were made; 0 when the search is exhausted.
        """
        with self.subject.session():
            return self.run_batch(first, count)

    cdef uint64_t run_batch(self, uint64_t first, uint64_t count) except? 0:
        cdef uint64_t done = 0
        while True:
            with _lock:
                self.take()
                if self.subject.needs_gil:
                    done += engine_run(first + done, count - done, &self.stats)
                else:
                    with nogil:
                        done += engine_run(first + done, count - done, &self.stats)
            PyErr_CheckSignals()
            if engine_failure().kind != FAIL_RACE:
                return done
            self.repeat(first + done - 1)
            if not self.pass_over():
                return done
            # The race ended its execution, which is done once more behind it.
            done -= 1
            self.stats.executions -= 1

    cdef int repeat(self, uint64_t number, bint reverse=False) except -1:
        with self.subject.session():
            if self.subject.needs_gil:
                return engine_reverse(number) if reverse else engine_again(number)
            with nogil:
                return engine_reverse(number) if reverse else engine_again(number)

    cdef bint pass_over(self) except -1:
        """True when the race of the last engine_again() is new and is to be passed over."""
        cdef const EngineFailure* f = engine_failure()
        if f.kind != FAIL_RACE or f.event < 0 or f.other_event < 0:
            return False
        cdef int64_t count
        cdef const EngineEvent* events = engine_trace(&count)
        pair = (events[f.other_event].pc, events[f.event].pc)
        reason = reason_to_pass(pair, self.suppress)
        if not reason or not engine_suppress(pair[0], pair[1]):
            return False
        self.reasons = tuple(dict.fromkeys((*self.reasons, reason)))
        self.stats.suppressed += 1
        self.pairs.append(pair)
        return True

    def again(self, uint64_t number) -> None:
        """Make one execution again and keep its trace and decisions."""
        with _lock:
            self.take()
            self.repeat(number)
            while self.pass_over():
                self.repeat(number)

    def stop_at(self, int64_t event) -> None:
        """Let :meth:`again` call ``pml_step_reached`` at an event; -1: never, -2: at a failure."""
        engine_stop_at(event)

    def reverse(self, uint64_t number) -> str:
        """After :meth:`again` of a race: try its accesses in the other order.

        Returns which of ENDS shows that the first access also happens right after the second one,
        "data race" or "use after free", or "". The execution is then made again as it was.
        """
        cdef int shown = 0
        with _lock:
            self.take()
            shown = self.repeat(number, True)
        return ENDS[shown] if shown >= FAIL_RACE else ""

    def skip(self) -> bool:
        """After a failure of an exhaustive search: go to the next path; False if there is none."""
        with self.mine():
            return bool(engine_next(&self.stats))

    def path(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Where an exhaustive search goes on: the choices of its next path, how many there are at
        each (0: it did not come by yet), and how many of them it leaves as they are.
        """
        cdef int32_t floor = 0
        cdef uint16_t[::1] taken, options
        if not self.started:
            return tuple(np.asarray(self.path_kept).tolist()), (0,) * self.config.n_path, self.config.floor
        with self.mine():
            taken = np.empty(max(engine_path(NULL, NULL, 0, &floor), 1), np.uint16)
            options = np.empty(len(taken), np.uint16)
            length = engine_path(&taken[0], &options[0], <int32_t>len(taken), &floor)
            kept, known = np.asarray(taken)[:length].tolist(), np.asarray(options)[:length].tolist()
            return tuple(kept), tuple(known), floor

    def unjudged(self) -> bool:
        """True when the last run stopped at answers that were not accepted yet.

        They are in :meth:`calls`.
        """
        if not self.started:
            return False
        with self.mine():
            return bool(engine_unjudged())

    def accept(self) -> None:
        """Take the answers of the last execution for right, there and wherever they come again."""
        with self.mine():
            engine_accept(&self.stats)

    def ask(
        self, checker, records, of, int64_t[::1] counts not None, *, bint foresees=False
    ) -> None:
        """Ask ``checker`` about new answers before a run stops at them; those that it knows are
        accepted.

        ``checker.oracle()`` is a capsule as of linearize.Checker; ``records`` the history that it
        is asked about, an array of history.RECORD, in which record i is to get the times and the
        answer of call ``of[i]``, numbered through all threads; of a call with two records the first
        is its beginning, without an answer unless it ``foresees``. ``counts[0]`` counts the
        histories that it knew, and ``counts[1]`` those that it accepted when it had asked its
        model.
        """
        cdef int64_t i, place, thread
        cdef int64_t[::1] calls = np.ascontiguousarray(of, np.int64)
        if records.dtype != RECORD or not records.flags.c_contiguous or len(records) != len(calls):
            raise TypeError("ask() takes a contiguous array of history.RECORD, and a call for each of them")
        if counts.shape[0] < 2:
            raise ValueError(f"ask() counts in two numbers, not in {counts.shape[0]}")
        starts = np.cumsum([0] + [len(its_calls) for its_calls in self.arrays])
        total = int(starts.max())
        for i in range(len(calls)):
            if not 0 <= calls[i] < total:
                raise ValueError(f"call {calls[i]} of record {i} is outside 0..{total - 1}")
        oracle = checker.oracle()
        self.question.n = 0
        free(self.places)
        self.places = <JudgedCall*>calloc(len(calls) + 1, sizeof(JudgedCall))
        if self.places is NULL:
            raise MemoryError("no memory to ask an oracle")
        seen = {}
        for i in range(len(calls)):
            place = calls[i]
            thread = np.searchsorted(starts, place, side="right") - 1
            self.places[i].thread = <int32_t>thread
            self.places[i].call = <int32_t>(place - starts[thread])
            if place in seen:
                self.places[seen[place]].blank = not foresees
                self.places[i].ends = True
            seen[place] = i
        self.oracle_kept = checker, oracle, records, counts
        self.question.legal = <Legal>PyCapsule_GetPointer(oracle, b"pulsar_ml.harness.legal")
        self.question.checker = PyCapsule_GetContext(oracle)
        self.question.records = <Record*><size_t>records.ctypes.data
        self.question.places = self.places
        self.question.counts = &counts[0]
        self.question.n = <int32_t>len(calls)
        self.config.known = &known
        self.config.oracle = &self.question
        if _owner is self:
            engine_ask(self.config.known, self.config.oracle)

    def statistics(self) -> dict[str, int]:
        """Counts of all executions so far."""
        return self.stats

    def end(self) -> str:
        """How the last execution ended: one of ENDS."""
        with self.mine():
            return ENDS[engine_failure().kind]

    def failed(self) -> bool:
        """True when the last execution of this explorer failed."""
        if not self.started:
            return False
        with self.mine():
            return engine_failure().kind >= FAIL_RACE

    def hashes(self) -> tuple[int, int]:
        """The hash of the last execution's steps in order, and the hash of its class."""
        with self.mine():
            return engine_hash(), engine_class()

    def classes(self):
        """The hashes of the classes seen so far, each once.

        Of more than 16,384 a uniform sample.
        """
        cdef uint64_t[::1] hashes = np.empty(ENGINE_CLASSES, np.uint64)
        if not self.started:
            return np.empty(0, np.uint64)
        with self.mine():
            return np.asarray(hashes)[:engine_classes(&hashes[0])].copy()

    def steps(self) -> int:
        with self.mine():
            return engine_steps()

    def used(self) -> tuple[str, int, str]:
        """The strategy, PCT's depth and the allocator's policy of the last execution."""
        with self.mine():
            return (engine_strategy(engine_used_strategy()).name.decode(), engine_used_depth(),
                    "reuse" if engine_used_reuse() else "quarantine")

    def failure(self) -> dict[str, object]:
        """The fields of EngineFailure of the last execution."""
        cdef const EngineFailure* f
        with self.mine():
            f = engine_failure()
            return {
                "kind": ENDS[f.kind], "thread": f.thread, "call": f.call, "other_thread": f.other_thread,
                "execution": f.execution, "address": f.address, "pc": f.pc, "acquired": f.acquired,
                "block_pc": f.block_pc, "free_pc": f.free_pc, "block_size": f.block_size, "offset": f.offset,
                "op": OPS[f.op], "other_op": OPS[f.other_op], "width": f.width, "other_width": f.other_width,
                "frames": tuple([f.frames[i] for i in range(f.n_frames)]),
                "waiting": {i: f.waits_at[i] for i in range(ENGINE_MOST_THREADS) if f.unfinished >> i & 1},
                "waits_for": {i: f.waits_for[i] for i in range(ENGINE_MOST_THREADS) if f.waits_for[i]},
                "event": f.event, "other_event": f.other_event, "released": f.released,
                "invariant": (<const char*>f.invariant).decode(errors="replace"),
                "message": (<const char*>f.message).decode(errors="replace"),
            }

    def trace(self) -> list[dict[str, object]]:
        """The events of the execution last made by :meth:`again`."""
        cdef int64_t count, i
        with self.mine():
            engine_trace(&count)
            return [self.event(i) for i in range(count)]

    def event(self, int64_t index) -> dict[str, object]:
        """One event. ``clock`` is what its thread knows of each, ``points`` counts its choices."""
        cdef int64_t count, j, known = ENGINE_MOST_THREADS
        cdef const EngineEvent* e
        with self.mine():
            e = engine_trace(&count)
            if not 0 <= index < count:
                raise IndexError(f"event {index} is outside 0..{count - 1}")
            e += index
            while known > 0 and e.clock[known - 1] == 0:
                known -= 1
            return {
                "step": e.step, "thread": e.thread, "call": e.call, "op": OPS[e.op], "address": e.address,
                "value": e.value, "before": e.before, "width": e.width, "order": e.order, "from": e.source,
                "stale": e.stale, "failed": bool(e.failed), "pc": e.pc, "points": e.points,
                "frames": tuple([e.frames[j] for j in range(e.n_frames)]),
                "clock": tuple([e.clock[j] for j in range(known)]),
                **names_of(e),
            }

    def decisions_made(self) -> tuple[tuple[int, int, int, int], ...]:
        """The choices of that execution that were not the default: (point, thread, kind, value)."""
        cdef int64_t count, i
        cdef const EngineDecision* rows
        with self.mine():
            rows = engine_decisions(&count)
            return tuple([(rows[i].at, rows[i].thread, rows[i].kind, rows[i].value) for i in range(count)])

    def preemptions(self) -> int:
        """How often that execution left a thread that could have gone on."""
        with self.mine():
            return engine_preemptions()

    def answers(self):
        """A row for each operation of the last execution, thread 0 first: invoked, returned,
        its first step that read and wrote an atomic (0: none), status and four words."""
        cdef const EngineCall* calls
        cdef int t, i, j
        cdef int64_t at = 0
        cdef int64_t[:, ::1] rows
        with self.mine():
            table = np.empty((sum([len(its_calls) for its_calls in self.arrays]), 8), np.int64)
            rows = table
            for t in range(self.config.n_threads):
                calls = engine_calls(t)
                for i in range(self.config.n_calls[t]):
                    rows[at, 0] = calls[i].invoked
                    rows[at, 1] = calls[i].returned
                    rows[at, 2] = calls[i].exchanged
                    rows[at, 3] = calls[i].result.status
                    for j in range(4):
                        rows[at, 4 + j] = calls[i].result.words[j]
                    at += 1
            return table

    def calls(self, int thread) -> list[tuple[int, int, int, tuple[int, ...]]]:
        """(invoked, returned, status, words) of each operation of a thread, last execution."""
        cdef const EngineCall* calls
        cdef int i, j
        with self.mine():
            calls = engine_calls(thread)
            if not 0 <= thread < self.config.n_threads:
                raise ValueError(f"thread {thread} is outside 0..{self.config.n_threads - 1}")
            return [(calls[i].invoked, calls[i].returned, calls[i].result.status,
                     tuple([calls[i].result.words[j] for j in range(4)]))
                    for i in range(self.config.n_calls[thread])]
