"""Explores the executions of one program: batches in native code, a self-check of each batch, and
the statements that the counts allow.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.errors import LimitsError, NondeterminismError, UsageError
from pulsar_ml.harness.budgets.passing import IsKnown, Met, Passing
from pulsar_ml.harness.engine import SAMPLERS, SEARCHES, STEP_LIMIT, Explorer
from pulsar_ml.harness.judges.oracle import Judge, run_judged
from pulsar_ml.harness.replays.repeats import recheck
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.failure import ENDLESS, Failure, capture
from pulsar_ml.harness.search.partition import (
    Left,
    Part,
    ReducedPart,
    bounds_hit,
    left_of,
    proved,
    remark_of,
    rest_of,
)
from pulsar_ml.harness.search.sandbox import LEARNING, lost_failure, watch
from pulsar_ml.harness.search.symbols import describe_pc
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

BATCH_SECONDS = 0.2
FIRST_BATCH = 256
LOOKED_AT = 32  # executions of the first batch that is looked at
FIRST_TIMED_BATCH = 16  # of an exploration that a time ends
MANY_OF_ONE_CLASS = 1_000
DISCARDED = "discarded"  # the end of an execution in which an assumption did not hold
# Ends of an execution that say nothing about the code under test, with the error that each raises.
NO_VERDICT = {
    "outside the engine's limits": LimitsError,
    "outside the engine's control": NondeterminismError,
}


class EngineOptions(TypedDict, total=False):
    """Options of the engine; :func:`interleave` and :func:`explore` take them as keywords.

    Attributes:
        depth: the depth of PCT; 0: each execution draws one of 1 to 3.
        bound: the most preemptions or delays of a search.
        spins, turns: of a search: turns of waiting loops without a pause, of loops in a call.
        stores: the number of stores that a location remembers, 3 to 64.
        lock_free: True holds back a thread of an execution, without which the others must end.
        symmetry: True lets threads of equal calls begin in the order of their numbers, in a search
            with reduction. It is for code that does not ask for its thread's number.
        preemptions: the most preemptions of a class, in a search with reduction. None: any number.
        step_limit: steps after which an execution is cut.
        races, leaks: False leaves out data races, or blocks that are never freed.
        suppress: known races to pass over and count: "file:line" or a function.
        decisions: (point, thread, kind, value): "replay" follows, "portfolio" departs from them.
        apart: pairs that "portfolio" makes meet: :func:`pulsar_ml.harness.engine.pairs_apart`.
        changes: changes at places of the code, see ``Explorer``.
    """

    depth: int
    bound: int
    spins: int
    turns: int
    stores: int
    lock_free: bool
    symmetry: bool
    preemptions: int | None
    step_limit: int
    races: bool
    leaks: bool
    suppress: Iterable[str]
    decisions: Iterable[tuple[int, int, int, int]]
    apart: Sequence[tuple[int, ...]]
    changes: Iterable[tuple[int, str, str, str]]


@cache
def known_options(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the options of ``function`` and those of the engine."""
    return (*inspect.getfullargspec(function).kwonlyargs, *EngineOptions.__annotations__)


def check_options(function: Callable[..., object], options: Mapping[str, object]) -> None:
    """Raise UsageError for an option that neither ``function`` nor the engine has."""
    known = known_options(function)
    for name in options:
        if name not in known:
            nearest = get_close_matches(name, known, 1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"it has: {', '.join(known)}"
            raise UsageError(f"{function.__name__}() has no option {name!r}; {hint}")


@dataclass(frozen=True, slots=True)
class Exploration:
    """The result of :func:`explore`: counts and the first failure of one program's executions.

    Attributes:
        subject, mode, strategy, seed, bound: the options of the exploration.
        executions: number of executions; ``seconds`` of processor time that they took.
        statistics: the engine's counts (see ``EngineStats`` in engine.h).
        failure: the first failure that is not known, else the first known one, or None.
        exhausted: the proof of a finished search: "completely", or "within the stated bounds: " and
            the bounds that cut something off. "" for anything else.
        rechecked: number of executions that were repeated and found equal.
        rest: the part of a search that was not reached; None when nothing is left, and after a
            failure.
        bounds: the bounds that left something out, each with the number of its executions (for the
            buffers of stores: of stores).
        classes: hashes of the classes seen, or a uniform sample of them where the engine has no
            room for all.
        passed_over: why races were passed over: "suppress", or the name of a library's own race.
        assumption: the place of the assumption that did not hold last, or "".
        one_step: the modules of native code that a test in Python called, each call one step.
        left: of a search with reduction that did not end, how much it has yet to do.
        met: the known failures behind which it went on, see ``is_known`` of :func:`explore`.
        locks: remarks about locks of a test in Python, such as one that stays locked.
    """

    subject: str
    mode: str
    strategy: str
    seed: int
    bound: int
    executions: int
    seconds: float
    statistics: Mapping[str, int]
    failure: Failure | None
    exhausted: str
    rechecked: int
    rest: Part | ReducedPart | None = None
    bounds: Mapping[str, int] = field(default_factory=dict)
    classes: NDArray[np.uint64] = field(
        default_factory=lambda: np.empty(0, np.uint64), repr=False, compare=False
    )
    assumption: str = ""
    passed_over: tuple[str, ...] = ("suppress",)
    one_step: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    left: Left | None = None
    met: tuple[Met, ...] = ()

    def missed(self, depth: int) -> float:
        """Bound the probability that PCT missed a bug of ``depth`` 1 to 3 which the program has.

        Each of the N executions of that depth finds it with probability 1 / (n * k**(depth - 1)) or
        more, for n threads and k steps (Burckhardt et al., ASPLOS 2010). The bound holds for bugs
        that the schedule alone decides, within k steps.
        """
        count, n, k = (self.statistics[name] for name in (f"pct_{depth}", "threads", "pct_steps"))
        # A program may have no step at all, if each operation was refused before its first step.
        return float((1 - 1 / (max(n, 1) * max(k, 1) ** (depth - 1))) ** count) if count else 1.0

    @property
    def verdict(self) -> str:
        """The verdict: "violation", "clean", or "nothing_exercised".

        Nothing was exercised when no two threads accessed one location, or when an assumption held
        in no execution.
        """
        if self.failure is not None:
            return "violation"
        return (
            "clean"
            if self.statistics["shared"] and self.statistics["hooks"]
            else "nothing_exercised"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences that a report should not leave out, beside the verdict."""
        said = []
        if (
            self.statistics["threads"] > 1
            and self.statistics["classes"] == 1
            and self.executions >= MANY_OF_ONE_CLASS
        ):
            said.append(
                f"all {self.executions:,} executions were of one class: the operations of these "
                "threads do not conflict, or they share what the engine does not see; choose other "
                "operations"
            )
        if why := remark_of(self.strategy, self.statistics):
            said.append(why)
        if self.left is not None:
            said.append(f"the search did not end: {self.left}")
        if passed := self.statistics["suppressed"]:
            reasons = "; ".join(self.passed_over)
            said.append(f"{passed:,} known races were passed over ({reasons})")
        if discarded := self.statistics["discarded"]:
            where = f" ({self.assumption})" if self.assumption else ""
            said.append(
                f"{discarded:,} of {self.executions:,} executions were discarded: an assumption "
                f"did not hold{where}"
            )
        if self.one_step:
            said.append(one_step_text(self.one_step))
        said += self.locks
        return tuple(said)

    @property
    def counting(self) -> int:
        """The executions that were not discarded."""
        return self.executions - self.statistics["discarded"]

    @property
    def residual_risk(self) -> float | None:
        """With 95 % confidence a failure is rarer than this per execution (the rule of three).

        None for a search: its executions are no sample.
        """
        return rule_of_three(self.strategy, self.counting)

    @property
    def unseen_mass(self) -> float | None:
        """Good-Turing: the probability that the next execution is of a class not seen yet.

        None for a search: its executions are no sample.
        """
        if self.strategy not in SAMPLERS:
            return None
        return min(1.0, self.statistics["once"] / self.counting) if self.counting else 1.0


def rule_of_three(strategy: str, executions: int) -> float | None:
    """The risk per execution that ``executions`` without a failure leave, with 95 % confidence.

    None unless the strategy is a sampler: the executions of a search are no sample.
    """
    if strategy not in SAMPLERS:
        return None
    return min(1.0, 3 / executions) if executions else 1.0


def explore(
    subject: Subject,
    program: Program,
    *,
    executions: int,
    seconds: float | None = None,
    seed: int = 0,
    mode: str = "c11",
    strategy: str = "portfolio",
    first: int = 0,
    judge: Judge | None = None,
    answers_only: bool = False,
    part: Part | ReducedPart | None = None,
    reuse: str = "quarantine",
    faults: Iterable[str] = (),
    on_batch: Callable[[int], object] = lambda executions: None,
    look: Callable[[Explorer], bool] | None = None,
    on_left: Callable[[Left], object] | None = None,
    isolated: bool = False,
    limits: Limits | None = None,
    is_known: IsKnown | None = None,
    **options: Unpack[EngineOptions],
) -> Exploration:
    """Run ``executions`` executions of ``program`` under the engine, or fewer up to a failure.

    ``seconds`` of wall time end the exploration, too, at the end of a batch. The executions follow
    from ``seed`` and their numbers, which begin at ``first``. ``mode`` is the
    memory model: "c11", "tso" or "sc". ``strategy`` is one of :data:`STRATEGIES`; ``part`` is the
    part of a search to explore, by default the whole. ``judge`` is called once for each history and
    returns why its answers are wrong, or "". With ``answers_only`` such answers are the only
    failure, and executions that fail otherwise are skipped, but one without end is the last.
    ``reuse`` decides whether the allocator hands freed memory out again at once ("reuse"), keeps it
    back to notice late accesses ("quarantine"), or lets the seed decide ("mixed"). ``faults`` are
    events that may happen besides: "timeout", "spurious", "no_memory" and others of FAULTS.
    ``on_batch`` gets the number of executions so far after each batch, about five times a second,
    and ``on_left`` an estimate how much a search with reduction has yet to do, unless it is
    ``isolated``. ``look`` is called behind 32, 64, 128, ... executions of a sample, the last of
    which was made again and has its trace; if it returns true, the exploration ends. ``is_known``
    says of a failure whether it is known: a sample goes on behind it, up to MOST_MET times; a
    search ends, for its proof would lack that execution.

    ``isolated`` runs the executions in a child process, where a crash is the failure of the
    execution under way. ``limits`` bounds the child's time and memory; by default an execution may
    take 30 s, or 10 s of processor time.

    ``subject`` belongs to a checked build. Only one thread of a process may use the engine at a
    time. Raises UsageError for an unknown option, LimitsError when the program is too large for the
    engine, and NondeterminismError when an execution differs when it is repeated: one of each batch
    is.
    """
    check_options(explore, options)
    if seconds is not None and not 0 < seconds < math.inf:
        raise UsageError(f"seconds is {seconds}; it should be a number above 0")
    judge = judge or subject.judge
    whole = part or Part()
    engine_options: dict[str, Any] = {
        "mode": mode,
        "strategy": strategy,
        "seed": seed,
        "reuse": reuse,
        "faults": tuple(faults),
        **whole.begin,
        **options,
    }

    def work(on_batch: Callable[[int], object]) -> Exploration:
        explorer = Explorer(subject, program, judged=judge is not None, **engine_options)
        return search(
            explorer,
            executions=executions,
            seconds=seconds,
            first=first,
            judge=judge,
            answers_only=answers_only,
            on_batch=on_batch,
            look=look,
            options=engine_options,
            on_left=on_left,
            is_known=None if strategy in SEARCHES else is_known,
        )

    if not isolated:
        return work(on_batch)
    try:
        return in_child(work, on_batch, limits)
    except LostError as error:
        known = {**engine_options, "first": first, "part": part or ""}
        return lost_exploration(error, subject, program, known)


def one_step_text(modules: tuple[str, ...]) -> str:
    """Name the native modules whose calls were atomic."""
    return f"each call of native code was one step: {', '.join(modules)} (no checked build)"


def in_child(
    work: Callable[[Callable[[int], object]], Exploration],
    on_batch: Callable[[int], object],
    limits: Limits | None,
) -> Exploration:
    """Run ``work(on_batch)`` in a child process and return its result; ``on_batch`` runs here.

    Raises the exceptions of ``work``, and LostError.
    """
    found: list[Exploration] = []

    def on_message(message: int | Exploration) -> None:
        if isinstance(message, int):
            on_batch(message)
        else:
            found.append(message)

    watch(lambda send: send(work(send)), on_message, limits=limits)
    return found[0]


def search(
    explorer: Explorer,
    *,
    executions: int,
    seconds: float | None,
    first: int,
    judge: Judge | None,
    answers_only: bool,
    on_batch: Callable[[int], object],
    look: Callable[[Explorer], bool] | None,
    options: Mapping[str, Any],
    on_left: Callable[[Left], object] | None = None,
    is_known: IsKnown | None = None,
) -> Exploration:
    """Run :func:`explore` in this process; ``options`` are those of ``explorer``."""
    done, rechecked = 0, 0
    batch = FIRST_BATCH if seconds is None else FIRST_TIMED_BATCH
    if look is not None:
        batch = LOOKED_AT
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    began = batch_began = time.thread_time()
    failure, assumption, known = None, "", Passing(is_known)
    while done < executions and (done == 0 or time.monotonic() < deadline):
        count, refused = run_judged(explorer, first + done, min(batch, executions - done), judge)
        done += count
        if count and explorer.end() == DISCARDED:
            assumption = describe_pc(cast("int", explorer.failure()["pc"]))
        if explorer.failed() and explorer.end() in NO_VERDICT:
            raise NO_VERDICT[explorer.end()](str(explorer.failure()["message"]))
        if refused or (explorer.failed() and not answers_only):
            failure = capture(explorer, first + done - 1, options, refused)
            if not known.passes(failure, done):
                break
            failure = None
            if known.is_full:
                break
            on_batch(done)
            continue
        endless = explorer.end() == ENDLESS  # of an execution that is passed over
        if explorer.statistics()["exhausted"] or count == 0 or endless:
            break
        if not explorer.failed():
            if explorer.strategy not in SEARCHES:
                recheck(explorer, first + done - 1)
                rechecked += 1
                if look is not None and look(explorer):
                    break
            batch_began, before = time.thread_time(), batch_began
            # A look does not depend on time.
            batch = done if look is not None else next_batch(batch, batch_began - before)
        on_batch(done)
        if on_left is not None and (estimate := left_of(explorer)):
            on_left(estimate)
    met = tuple(known.found.values())
    failure = failure or (met[0].failure if met else None)
    statistics = dict(explorer.statistics())
    exhausted = ""
    left: Left | None = None
    rest: Part | ReducedPart | None = None
    bounds = bounds_hit(
        statistics,
        explorer.strategy,
        explorer.bound if explorer.most_preemptions is None else explorer.most_preemptions,
        options.get("step_limit", STEP_LIMIT),
        spins=explorer.spins,
        turns=explorer.turns,
        stores=explorer.stores,
    )
    if explorer.strategy in SEARCHES:
        if statistics["exhausted"]:
            exhausted = proved(bounds, symmetry=explorer.symmetry and not statistics["unreduced"])
        elif failure is None:
            rest = rest_of(explorer)
            left = left_of(explorer)
    return Exploration(
        explorer.subject.name,
        explorer.mode,
        explorer.strategy,
        explorer.seed,
        explorer.bound,
        done,
        time.thread_time() - began,
        statistics,
        failure,
        exhausted,
        rechecked,
        rest,
        bounds,
        explorer.classes(),
        assumption,
        explorer.reasons or ("suppress",),
        left=left,
        met=met,
    )


def lost_exploration(
    error: LostError, subject: Subject, program: Program, options: Mapping[str, Any]
) -> Exploration:
    """Return the exploration of a child that ended: the execution under way is its failure."""
    failure = lost_failure(error, subject, program, options)
    first = int(options.get("first", 0))
    count = 0 if error.execution >= LEARNING else error.execution - first + 1
    # The engine's counts are gone with the process. The engine had begun an execution, so that
    # "nothing exercised" would be wrong.
    unused = dict(Explorer(subject, program).statistics())
    counts = unused | {"executions": count, "hooks": 1, "shared": 1}
    return Exploration(
        subject=failure.subject,
        mode=failure.mode,
        strategy=failure.strategy,
        seed=failure.seed,
        bound=failure.bound,
        executions=count,
        seconds=0.0,
        statistics=counts,
        failure=failure,
        exhausted="",
        rechecked=0,
    )


def next_batch(batch: int, spent: float) -> int:
    """Return the number of executions that take BATCH_SECONDS, at most four times the last."""
    if spent <= 0:
        return batch * 4
    return max(1, min(batch * 4, int(batch * BATCH_SECONDS / spent)))
