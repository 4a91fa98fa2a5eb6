"""Explores the programs of a suite under the engine, and writes the failures."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulsar_ml.campaign.local.failures import checked_subject, shrink_failure
from pulsar_ml.campaign.store.counts import ProofCounts
from pulsar_ml.campaign.trial.controlled import as_violation, program_of, steps_of, to_result
from pulsar_ml.campaign.trial.guidance import Guide, Guided, Memory, unsteered
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.signature import signature
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import MIXTURE, TrialOptions, TrialResult
from pulsar_ml.campaign.trial.trial import NOTHING_EXERCISED as IDLE
from pulsar_ml.campaign.trial.trial import VIOLATION as VIOLATING
from pulsar_ml.errors import naming
from pulsar_ml.exit_codes import CLEAN, NOTHING_EXERCISED, VIOLATION, ExitCode
from pulsar_ml.harness.engine import REDUCING, SAMPLERS
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.explore import Exploration, explore, lost_exploration
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.partition import Left, bounds_met, summary_of
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.harness.testing.known import Baseline
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.wording import counted

MOST_REMARKS = 5

Message = Exploration | Guided | Left | Memory | int  # from the child process of an exploration


@dataclass(slots=True)
class SuiteExploration:
    """The counts of all programs of one suite, and its first failure."""

    suite: str
    strategy: str
    programs: int = 0
    executions: int = 0
    idle: int = 0  # programs in which no two threads touched one location
    under_way: int = 0  # executions of the program that an interrupt ended
    seconds: float = 0.0
    rechecked: int = 0
    exhausted: Counter[str] = field(default_factory=Counter)  # programs by the proof
    bounds: Counter[str] = field(default_factory=Counter)  # that left something out
    missed: tuple[float, float, float] = (0.0, 0.0, 0.0)  # depth 1 to 3, the worst program's
    counts: Counter[str] = field(default_factory=Counter)
    reduced: Counter[str] = field(default_factory=Counter)  # counts of programs with reduction
    failure: Failure | None = None
    failed: TrialResult | None = None  # the trial of its program, without the failure
    remarks: list[str] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)  # failed programs by known signature
    found: str = ""  # the place of the failure, which a shrunk failure no longer knows
    memory: Memory | None = None  # of the guide, for the next slice of a budget

    def add(self, done: Exploration, baseline: Baseline | None = None) -> None:
        """Add a program; a failure that the baseline knows is counted and is not the suite's."""
        self.programs += 1
        self.idle += done.verdict == IDLE
        self.executions += done.executions
        self.seconds += done.seconds
        self.rechecked += done.rechecked
        if done.exhausted:
            self.exhausted[done.exhausted] += 1
        self.bounds.update(done.bounds)
        first, second, third = (
            max(self.missed[depth - 1], done.missed(depth)) for depth in (1, 2, 3)
        )
        self.missed = (first, second, third)
        self.counts.update(done.statistics)
        if done.strategy in REDUCING and not done.statistics["unreduced"]:
            self.reduced.update(done.statistics)
        self.remarks += [f"  program {self.programs}: {remark}" for remark in done.remarks]
        if (found := done.failure) is None:
            return
        if self.is_known(found, baseline):
            self.known[self.signature(found)] += 1
        else:
            self.failure = found
            self.found = (
                f"execution {found.execution} of program {self.programs} "
                f"(strategy {found.strategy})"
            )

    def signature(self, failure: Failure) -> str:
        """The signature of a failure of this suite, which rows of a run have, too."""
        found = as_violation(failure)
        return signature(self.suite, found.invariant, found.message, found.places)

    def is_known(self, failure: Failure, baseline: Baseline | None) -> bool:
        return baseline is not None and baseline.is_known(self.signature(failure))

    def settle(self, baseline: Baseline | None) -> None:
        """Count the suite's failure as known when shrinking made a known one."""
        if self.failure is not None and self.is_known(self.failure, baseline):
            self.known[self.signature(self.failure)] += 1
            self.failure = None

    def signatures(self) -> set[str]:
        """The signatures of all failures."""
        return {*self.known, *([self.signature(self.failure)] if self.failure else [])}

    def exit_code(self) -> ExitCode:
        if self.failure is not None:
            return VIOLATION
        return CLEAN if self.counts["shared"] else NOTHING_EXERCISED

    def lines(self) -> list[str]:
        if not self.executions:
            return [f"{self.suite}: no program was complete; {self.under_way:,} executions, silent"]
        rate = self.executions / self.seconds if self.seconds else 0.0
        steps = self.counts["steps"] / self.seconds if self.seconds else 0.0
        total = max(self.executions, 1)
        return [
            f"{self.suite}: {self.executions:,} executions of {self.programs} programs in "
            f"{self.seconds:.1f} s ({rate:,.0f} executions/s, {steps:,.0f} steps/s)",
            f"  classes seen: {self.counts['classes']:,}; "
            + (f"unseen mass about {self.counts['once'] / total:.2%}; " if self.sampled else "")
            + "cut by the step limit: "
            f"{self.counts['cut'] / total:.2%}; made twice and equal: {self.rechecked}",
            *(
                f"  exhausted {what}: {programs} programs"
                for what, programs in self.exhausted.items()
            ),
            *self.reductions(),
            *self.bounds_met(),
            *self.answers(),
            *self.remarks[:MOST_REMARKS],
            *more_than(self.remarks),
            *self.known_failures(),
            *([f"  failed in {self.found}"] if self.failure else self.risks()),
        ]

    @property
    def sampled(self) -> bool:
        """The executions are a sample of all; those of a search are none."""
        return self.strategy in SAMPLERS

    def bounds_met(self) -> list[str]:
        """The bounds that left something out, unless each program's proof names them."""
        proved = self.exhausted.total() == self.programs
        return [f"  {bounds_met(self.bounds)}"] if self.bounds and not proved else []

    def reductions(self) -> list[str]:
        """The counts of searches that were reduced."""
        count = self.reduced
        if not count["executions"]:
            return []
        whole = count["executions"] - count["blocked"] - count["pruned"]
        return [f"  {summary_of(whole, count['classes'], count['blocked'], count['pruned'])}"]

    def answers(self) -> list[str]:
        """The number of histories that were compared with the suite's model."""
        if not self.counts["judged"]:
            return ["  answers: not compared with a model"]
        unknown = self.counts["unknown"]
        return [
            f"  answers: {self.counts['judged']:,} histories compared with the model"
            + (f", {unknown:,} of them too long to tell" if unknown else "")
        ]

    def known_failures(self) -> list[str]:
        """A line for each known signature."""
        return [
            f"  known failure {name}: {counted(programs, 'program')}"
            for name, programs in sorted(self.known.items())
        ]

    def risks(self) -> list[str]:
        """Bounds on the failures that the executions may have missed; a search has none."""
        if self.known:
            return ["  a failure is known, so the executions bound no risk"]
        if not self.sampled:
            left = self.programs - self.exhausted.total()
            if not left:
                return ["  load buffering is outside the memory model"]
            return [
                f"  the search of {counted(left, 'program')} did not end; its executions are no "
                "sample and bound no risk"
            ]
        lines = [
            f"  with 95 % confidence a failure of these programs is rarer than 1 in "
            f"{max(self.executions, 1) / 3:,.0f} executions; load buffering is outside the memory "
            "model"
        ]
        outcome = [self.counts[f"pct_{depth}"] for depth in (1, 2, 3)]
        if any(outcome):
            bounds = "; ".join(
                f"depth {depth}: {missed:.2g} ({executions:,} executions)"
                for depth, missed, executions in zip((1, 2, 3), self.missed, outcome, strict=True)
            )
            lines.append(
                f"  PCT missed a bug of the schedule with probability at most, by program: {bounds}"
            )
        return lines

    def as_data(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "programs": self.programs,
            "idle": self.idle,
            "executions": self.executions,
            "seconds": self.seconds,
            "rechecked": self.rechecked,
            "exhausted": dict(self.exhausted),
            "bounds": dict(self.bounds),
            "remarks": self.remarks,
            "known": dict(self.known),
            "pct_missed": self.missed,
            "counts": dict(self.counts),
            "failure": None if self.failure is None else json.loads(self.failure.to_json()),
        }


def counts_of(totals: Sequence[SuiteExploration]) -> ProofCounts:
    return ProofCounts(
        trials=sum(total.programs for total in totals),
        idle=sum(total.idle for total in totals),
        judged=sum(total.counts["judged"] for total in totals),
        unknown=sum(total.counts["unknown"] for total in totals),
        executions=sum(total.executions for total in totals),
        cut=sum(total.counts["cut"] for total in totals),
        noun="program",
    )


def more_than(remarks: list[str]) -> list[str]:
    """One line for the remarks past those that are shown."""
    left = len(remarks) - MOST_REMARKS
    return [f"  {left} more remarks of this kind"] if left > 0 else []


def explore_suite(
    suite: Suite,
    total: SuiteExploration,
    *,
    threads: int | None,
    operations: int | None,
    seeds: int,
    seconds: float | None = None,
    executions: int,
    seed: int,
    progress: ProgressDisplay,
    module: str,
    mutant: str | None,
    limits: Limits | None,
    answers: bool = True,
    guided: bool = False,
    on_result: Callable[[TrialResult], object] | None = None,
    baseline: Baseline | None = None,
    **options: Any,
) -> None:
    """Explores programs of ``seeds`` seeds until one fails; adds the counts to ``total``.

    After ``seconds`` no more programs begin. With ``guided`` programs are scouted before they are
    explored, some are made from earlier ones (:class:`Guide`), and a program ends early when its
    executions are known; guidance is for samplers. Runs in a child process when there are
    ``limits``. ``on_result`` gets the trial of each program but the last one when it failed.
    A failure that the ``baseline`` knows ends its program only, unless it ends the process.
    """
    subject = checked_subject(suite.subject, module, mutant)
    size = TrialOptions(threads=threads, operations=operations)
    judge = judge_of(suite.model) if answers else None

    guide = None
    if guided and total.sampled:
        mixed = total.strategy == MIXTURE
        guide = Guide(subject, suite, seed, size, total.memory, searches=mixed)
    under_way: list[Guided] = []  # the program that the child explores

    started = time.monotonic()

    def drawn() -> Iterator[Guided]:
        for number in range(seeds):
            yield Guided(program_of(subject, suite, seed + number, size), unsteered())

    def search(tell: Callable[[Message], object]) -> None:
        explored = 0
        ended: set[str] = set()  # digests of programs with a known failure
        for one in guide.programs(seeds) if guide else drawn():
            if explored and seconds is not None and time.monotonic() - started >= seconds:
                break
            if ended and one.program.digest() in ended:
                continue
            tell(one)
            before = None if judge is None else dataclasses.replace(judge.counts)
            done = explore(
                subject,
                one.program,
                executions=one.executions(executions),
                seed=seed,
                judge=judge,
                on_batch=tell,
                on_left=tell,
                look=guide.look if guide else None,
                step_limit=steps_of(size),
                **{**options, **one.steering},
            )
            if guide:
                guide.learn(one.program)
            if one.scouted and done.failure is None:
                continue
            explored += 1
            if judge is not None and before is not None:
                statistics = dict(done.statistics)
                statistics["judged"] = judge.counts.judged - before.judged
                statistics["unknown"] = judge.counts.unknown - before.unknown
                done = dataclasses.replace(done, statistics=statistics)
            tell(done)
            if done.failure is not None:
                if not total.is_known(done.failure, baseline):
                    break
                ended.add(one.program.digest())
        if guide and seconds is not None:
            tell(guide.memory())

    def add(done: Message) -> None:
        if isinstance(done, Memory):
            total.memory = done
            return
        if isinstance(done, Left):
            show(total.executions + total.under_way, f"; {done}")
            return
        if isinstance(done, Guided):
            under_way[:] = [done]
            return
        if isinstance(done, int):  # executions of the program under way
            total.under_way = done
            show(total.executions + done)
            return
        if on_result is not None:
            program = under_way[0].program
            silent = dataclasses.replace(done, failure=None)
            trial = TrialOptions(module=module, mutant=mutant, noise=False)
            result = to_result(suite, trial, subject, program, silent)
            if done.failure is None:
                on_result(result)
            elif total.is_known(done.failure, baseline):
                found = as_violation(
                    dataclasses.replace(done.failure, module=module, mutant=mutant)
                )
                on_result(dataclasses.replace(result, violations=(found,), verdict=VIOLATING))
            else:
                total.failed = result
        total.add(done, baseline)
        show(total.executions)

    def show(count: int, left: str = "") -> None:
        programs = counted(total.programs, "program")
        text = f"{suite.name}: {count:,} executions, {programs} done{left}"
        done = total.programs if seconds is None else time.monotonic() - started
        progress.update(done, text)

    digits = 1 if seconds is not None and seconds < 10 else 0
    bound = counted(seeds, "program") if seconds is None else f"{seconds:,.{digits}f} s of programs"
    goal = f"{bound} from seed {seed} under the engine"
    length = seeds if seconds is None else seconds
    progress.begin(suite.name, length, f"{suite.name}: {goal}, {executions:,} executions each")
    try:
        if limits is None:
            search(add)
        else:
            watch(search, add, limits=limits)
    except LostError as crash:
        # The child may die before it has told of a program.
        guided_program = under_way[0] if under_way else next(drawn())
        known = {"seed": seed, **options, **guided_program.steering}
        crashed = lost_exploration(crash, subject, guided_program.program, known)
        add(crashed)
        if crashed.failure is not None and total.is_known(crashed.failure, baseline):
            total.remarks.append("  the known failure ended the process, and so the search")
    finally:
        progress.end()


def keep_failure(
    total: SuiteExploration,
    records: Path | None,
    module: str,
    mutant: str | None,
    limits: Limits | None,
    judge: Judge | None = None,
) -> Path | None:
    """Shrinks and writes the failure of a suite, if it has one; returns the path of the file."""
    if total.failure is None:
        return None
    folder = records or Path("runs/explore") / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{total.suite}-{total.failure.execution}.json"
    failure = dataclasses.replace(total.failure, module=module, mutant=mutant)
    with naming(path):  # before shrinking, which may be interrupted
        path.write_text(failure.to_json() + "\n")
    subject = checked_subject(failure.subject, module, mutant)
    total.failure = shrink_failure(failure, subject, limits, judge)
    with naming(path):
        path.write_text(total.failure.to_json() + "\n")
    return path
