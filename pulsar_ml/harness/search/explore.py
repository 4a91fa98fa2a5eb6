"""Campaigns over the executions of one program: batches in native code, a self-check, and what the
numbers allow to say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.errors import LimitsError, NondeterminismError
from pulsar_ml.harness.engine import SAMPLERS, SEARCHES, STEP_LIMIT, Campaign
from pulsar_ml.harness.judges.oracle import Judge, run_judged
from pulsar_ml.harness.search.failure import Failure, capture
from pulsar_ml.harness.search.partition import Part, bounds_hit, proved
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

BATCH_SECONDS = 0.2
FIRST_BATCH = 256
MANY_OF_ONE_CLASS = 1_000
NO_VERDICT = {  # of ENDS, those that say nothing of the code under test
    "outside the engine's limits": LimitsError,
    "outside the engine's control": NondeterminismError,
}


@dataclass(frozen=True, slots=True)
class Exploration:
    """What a campaign over one program did.

    Attributes:
        executions, seconds: made, and the processor time they took.
        statistics: the engine's counts (see ``EngineStats`` in engine.h).
        failure: the first failure, or None.
        exhausted: "" or what a search has proved: "completely", or "within the stated bounds: " and those
            that left something out.
        rechecked: executions made twice and found equal.
        rest: of an exhaustive strategy, what it did not come to; None when nothing is left, and after a
            failure.
        bounds: those that left something out of it.
        classes: hashes of the classes that were seen, or of so many a uniform sample that fits the engine.
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
    rest: Part | None = None
    bounds: tuple[str, ...] = ()
    classes: NDArray[np.uint64] = field(
        default_factory=lambda: np.empty(0, np.uint64), repr=False, compare=False
    )

    def missed(self, depth: int) -> float:
        """The probability that PCT's executions all missed a bug of this depth (1 to 3) that the program has.

        An upper bound: each of the N with that depth finds it with probability 1 / (n * k**(depth - 1)) or
        more, for n threads and k steps. It holds for what the schedule alone decides, within k steps.
        """
        made, n, k = (self.statistics[name] for name in (f"pct_{depth}", "threads", "pct_steps"))
        # A program may have no step at all: each operation was refused before one.
        return float((1 - 1 / (max(n, 1) * max(k, 1) ** (depth - 1))) ** made) if made else 1.0

    @property
    def verdict(self) -> str:
        """ "violation", "nothing_exercised" (no location was touched by two threads) or "clean"."""
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
        if passed := self.statistics["suppressed"]:
            said.append(f"{passed:,} known races were passed over (suppress)")
        return tuple(said)

    @property
    def cut_share(self) -> float:
        """The share of executions that a bound ended; it weakens every claim below."""
        return self.statistics["cut"] / self.executions if self.executions else 0.0

    @property
    def residual_risk(self) -> float | None:
        """With 95 % confidence a failure is rarer than this per execution (the rule of three).

        None for a search: its executions are no sample.
        """
        return rule_of_three(self.strategy, self.executions)

    @property
    def unseen_mass(self) -> float | None:
        """Good-Turing: the probability that the next execution is of a class not seen yet.

        None for a search: its executions are no sample.
        """
        if self.strategy not in SAMPLERS:
            return None
        return min(1.0, self.statistics["once"] / self.executions) if self.executions else 1.0


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
    seed: int = 0,
    mode: str = "c11",
    strategy: str = "portfolio",
    first: int = 0,
    judge: Judge | None = None,
    answers_only: bool = False,
    progress: Callable[[Campaign], object] | None = None,
    part: Part | None = None,
    **options: Any,
) -> Exploration:
    """Run up to ``executions`` executions of ``program``, numbered from ``first``; stop at a failure.

    ``judge`` is asked about the answers of each execution, once for each history. ``answers_only``: nothing
    but what it refuses is a failure; executions that fail otherwise are passed over. ``options`` are those of
    :class:`Campaign`. ``progress`` is called after each batch. ``part`` is what an exhaustive strategy
    searches instead of everything; that is exhausted when it is. One execution of each batch is made again
    and must be the same: NondeterminismError if not. LimitsError when the program is too large for the
    engine.
    """
    begin = {} if part is None else {"path": part.path, "floor": part.floor}
    campaign = Campaign(
        subject,
        program,
        mode=mode,
        strategy=strategy,
        seed=seed,
        judged=judge is not None,
        **begin,
        **options,
    )
    done, rechecked, batch = 0, 0, FIRST_BATCH
    seconds = 0.0
    failure = None
    while done < executions:
        started = time.thread_time()
        made, refused = run_judged(campaign, first + done, min(batch, executions - done), judge)
        spent = time.thread_time() - started
        done += made
        seconds += spent
        if campaign.failed() and campaign.end() in NO_VERDICT:
            raise NO_VERDICT[campaign.end()](str(campaign.failure()["message"]))
        if refused or (campaign.failed() and not answers_only):
            failure = capture(campaign, first + done - 1, options, refused)
            break
        if campaign.statistics()["exhausted"] or made == 0:
            break
        if not campaign.failed():
            if strategy not in SEARCHES:
                recheck(campaign, first + done - 1)
                rechecked += 1
            batch = next_batch(batch, spent)
        if progress is not None:
            progress(campaign)
    statistics = dict(campaign.statistics())
    exhausted, rest, bounds = "", None, ()
    if strategy in SEARCHES:
        bounds = bounds_hit(
            statistics,
            strategy,
            campaign.bound,
            options.get("step_limit", STEP_LIMIT),
            campaign.spins,
        )
        if statistics["exhausted"]:
            exhausted = proved(bounds)
        elif failure is None:
            rest = Part(*campaign.path())
    return Exploration(
        subject.name,
        mode,
        strategy,
        seed,
        campaign.bound,
        done,
        seconds,
        statistics,
        failure,
        exhausted,
        rechecked,
        rest,
        bounds,
        campaign.classes(),
    )


def next_batch(batch: int, spent: float) -> int:
    """As many executions as take BATCH_SECONDS, growing at most fourfold at a time."""
    if spent <= 0:
        return batch * 4
    return max(1, min(batch * 4, int(batch * BATCH_SECONDS / spent)))


def recheck(campaign: Campaign, number: int) -> None:
    """Make the last execution again; NondeterminismError with the first difference if it is another one."""
    before = campaign.hashes()
    campaign.again(number)
    if campaign.hashes() == before:
        return
    first = campaign.trace()
    campaign.again(number)
    raise NondeterminismError(
        f"execution {number} was not the same when made again: {divergence(first, campaign.trace())}"
    )


def divergence(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> str:
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        for key in ("thread", "op", "value", "order"):
            if a[key] != b[key]:
                return (
                    f"event {index} of thread {a['thread']}: {key} is {a[key]!r}, then {b[key]!r}"
                )
    if len(first) != len(second):
        return f"{len(first)} events, then {len(second)}"
    return "two recorded executions agree, so recording itself changes what the code does"
