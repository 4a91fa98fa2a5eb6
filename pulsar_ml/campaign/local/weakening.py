"""Automatic mutants of any suites: each atomic one step weaker, each fence dropped.

The engine makes the change at run time, so no source changes. An order that no suite notices is
stronger than necessary, or not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions, find_subject, select_mutant
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import ORDERS
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.search.weaken import WEAKER, Site, order_at, sites
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

LOOKING = 4  # executions of each program, to see which atomics a suite executes
PROGRAMS = 20
EXECUTIONS = 300

# The programs of a suite, each with the options of its exploration. The flag is true for the first
# of several suites.
Campaigns = Callable[[Suite, bool], Iterable[tuple[Program, dict[str, Any]]]]


@dataclass(frozen=True, slots=True, order=True)
class WeakOrder:
    """One mutant: an atomic with a weaker order, or a fence that is dropped.

    Attributes:
        place: function and file:line.
        op: "load", "store", "rmw", "cas" or "fence".
        order, weaker: the order in the source and the one that the engine uses; "none" for a fence.
        pcs: addresses of the instructions.
        suites: names of the suites that execute it.
    """

    place: str
    op: str
    order: str
    weaker: str
    pcs: tuple[int, ...]
    suites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WeakResult:
    """The result of one mutant.

    Attributes:
        executions: until a suite noticed it, or in all.
        suite, verdict: the suite that noticed it, and the broken rule or kind of failure; or "".
    """

    mutant: WeakOrder
    executions: int
    suite: str
    verdict: str

    def as_data(self) -> dict[str, object]:
        mutant = asdict(self.mutant)
        del mutant["pcs"]  # addresses of this process
        return {
            **mutant,
            "executions": self.executions,
            "suite": self.suite,
            "verdict": self.verdict,
        }


def weak_orders(
    module: ModuleType, suites: Iterable[Suite], programs: Callable[[Suite], Iterable[Program]]
) -> list[WeakOrder]:
    """All mutants of the atomics and fences that the suites' programs execute."""
    found: dict[tuple[str, str], list[tuple[Site, str]]] = {}
    for suite in suites:
        for site in sites(find_subject(module, suite), programs(suite), executions=LOOKING):
            found.setdefault((site.place, site.op), []).append((site, suite.name))
    return sorted(
        mutant for (place, op), seen in found.items() for mutant in weaker_orders(place, op, seen)
    )


def weaker_orders(place: str, op: str, seen: Sequence[tuple[Site, str]]) -> Iterator[WeakOrder]:
    # A failed compare-exchange is seen with the weaker order of its failure, at the same place.
    order = max((site.order for site, _ in seen), key=ORDERS.index)
    pcs = tuple(sorted({pc for site, _ in seen for pc in site.pcs}))
    names = tuple(dict.fromkeys(name for _, name in seen))
    for weaker in WEAKER.get((op, order), ()):
        yield WeakOrder(place, op, order, weaker, pcs, names)


def notice(
    module: ModuleType,
    suites: Sequence[Suite],
    campaigns: Campaigns,
    *,
    mutant: str | None = None,
    **options: Any,
) -> tuple[int, str, str]:
    """Runs executions of the suites, one suite after the other, until one fails.

    Returns the number of executions, and the suite and its verdict, or "" twice. ``mutant`` is
    active in them, and ``options`` are the fault's. Answers that the model also rejects from the
    unchanged code in the same program do not count: they are a mistake of the model.
    """
    executions = 0
    for suite in suites:
        subject = find_subject(module, suite)
        for program, more in campaigns(suite, suite is suites[0]):
            more = {**more, "judge": judge_for(suite, subject, program)}
            done = explored(module, mutant, subject, program, **more, **options)
            executions += done.executions
            if done.failure is None:
                continue
            if (
                done.failure.kind != WRONG_ANSWERS
                or not explored(module, None, subject, program, **more).failure
            ):
                return executions, suite.name, done.failure.rule or done.failure.kind
    return executions, "", ""


def judge_for(suite: Suite, subject: Subject, program: Program) -> Judge | None:
    """The judge of the suite's model.

    None for a program with calls that the suite does not draw, such as mistakes of a user: the
    model need not know them.
    """
    drawn = [
        operation.weight > 0 or operation.name in suite.mix for operation in subject.operations
    ]
    known = all(drawn[code] for calls in program.threads for code in calls["code"])
    return judge_of(suite.model) if known else None


def explored(
    module: ModuleType, mutant: str | None, subject: Subject, program: Program, **options: Any
) -> Exploration:
    select_mutant(module, mutant)
    try:
        return explore(subject, program, isolated=True, **options)
    finally:
        select_mutant(module, None)


# Suites of strangers ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Weakening:
    """All mutants of some suites, tried one by one in small programs.

    Attributes:
        module: the checked module of the suites' subjects.
        programs, seed: how many programs of each suite, and the seed of the first.
        executions: of each program and mutant, at most.
        mode: the memory model.
        places: only mutants whose place contains this text.
    """

    module: ModuleType
    suites: Sequence[Suite]
    programs: int = PROGRAMS
    seed: int = 0
    executions: int = EXECUTIONS
    mode: str = "c11"
    places: str = ""

    def programs_of(self, suite: Suite) -> list[Program]:
        subject = find_subject(self.module, suite)
        seeds = range(self.seed, self.seed + self.programs)
        return [program_of(subject, suite, seed, TrialOptions()) for seed in seeds]

    def campaigns(self, suite: Suite, first: bool) -> Iterator[tuple[Program, dict[str, Any]]]:
        for number, program in enumerate(self.programs_of(suite)):
            options = {"executions": self.executions, "seed": self.seed + number}
            yield program, {**options, "mode": self.mode, "reuse": "mixed"}

    def check_unchanged(self) -> None:
        """Raises UsageError if a suite fails without a mutant: no verdict would mean anything."""
        for suite in self.suites:
            subject = find_subject(self.module, suite)
            for program, options in self.campaigns(suite, True):
                judge = judge_for(suite, subject, program)
                done = explored(self.module, None, subject, program, judge=judge, **options)
                if done.failure is not None:
                    raise UsageError(
                        f"suite {suite.name} reports {done.failure.rule or done.failure.kind} in the "
                        f"unchanged code; correct that first, with: pulsar-ml explore {suite.name}"
                    )

    def mutants(self) -> list[WeakOrder]:
        found = weak_orders(self.module, self.suites, self.programs_of)
        return [mutant for mutant in found if self.places in mutant.place]

    def result(self, mutant: WeakOrder) -> WeakResult:
        """Runs the suites that execute the atomic until one notices the mutant."""
        suites = [suite for suite in self.suites if suite.name in mutant.suites]
        changes = order_at(mutant.pcs, mutant.weaker)
        return WeakResult(mutant, *notice(self.module, suites, self.campaigns, changes=changes))
