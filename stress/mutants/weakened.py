"""Automatic mutants at the engine: each atomic of the structures one step weaker, each fence left out.

The engine makes them, in the unchanged checked module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.harness.engine import SEARCHES
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.explore import Exploration
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.search.sandbox import explore_in_child
from pulsar_ml.harness.search.weaken import NO_FENCE, WEAKER, Site, sites
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import ROOT
from stress.mutants.catalogue import concurrent_answers
from stress.mutants.engine import PER_PROGRAM, program_of_calls
from stress.mutants.engine import program_of as small_program_of
from stress.mutants.faults import Key, Noticed
from stress.mutants.shapes import shapes
from stress.mutants.sources import digest, reached

FOLDER = "structures/"
PROGRAMS = 30
LOOKING = 4  # executions of each program, to see which atomics a suite makes
OWN = 300  # executions of each program of the structure's own suite
RARE = 3_000  # of a program of a mutant's own
OTHERS = 60  # and of the other suites that make the atomic


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One atomic or fence of the source, with another order.

    Attributes:
        file, line: below ``pulsar_ml/``; ``text`` is that line, ``function`` where it stands, and ``number``
            tells the same lines of a function apart, from 1.
        op, order, weaker: what the source says, and what is done instead.
        pcs: its places in the code.
        suites: those that make it.
    """

    file: str
    line: int
    op: str
    order: str
    weaker: str
    function: str
    text: str
    pcs: tuple[int, ...]
    suites: tuple[str, ...]
    number: int = 1

    @property
    def key(self) -> Key:
        where = self.function if self.number == 1 else f"{self.function} ({self.number})"
        return Path(self.file).stem, where, self.text, self.weaker

    @property
    def source(self) -> str:
        return digest(SUITES[self.suites[0]].subject)[:12]


def programs_of(module: ModuleType, suite: Suite) -> list[Program]:
    """Every other one in the small worlds where mutants are hunted: chunks end and places meet there."""
    subject = module.SUBJECTS[suite.subject]
    return [
        program_of(subject, suite, seed, TrialOptions())
        if seed % 2
        else small_program_of(suite, subject, seed, suite.controlled)
        for seed in range(PROGRAMS)
    ]


def faults(module: ModuleType, suites: Iterable[Suite]) -> list[Fault]:
    """All that the suites make of the structures' own atomics; those of the operations are left out."""
    found: dict[tuple[str, int, str], dict[str, list[tuple[Site, str]]]] = {}
    for suite in suites:
        subject = module.SUBJECTS[suite.subject]
        for site in sites(subject, programs_of(module, suite), executions=LOOKING):
            place = site.place.rpartition(" ")[2]
            if place.startswith(FOLDER) and site.weaker():
                file, _, line = place.rpartition(":")
                by_order = found.setdefault((file, int(line), site.op), {})
                by_order.setdefault(site.order, []).append((site, suite.name))
    return numbered(
        sorted(fault for key, by_order in found.items() for fault in faults_at(*key, by_order))
    )


def numbered(found: Iterable[Fault]) -> list[Fault]:
    """The faults, of which the later ones have numbers where lines are the same."""
    seen: dict[Key, set[int]] = {}
    made = []
    for fault in found:
        lines = seen.setdefault(fault.key, set())
        lines.add(fault.line)
        made.append(replace(fault, number=len(lines)))
    return made


def faults_at(
    file: str, line: int, op: str, by_order: dict[str, list[tuple[Site, str]]]
) -> Iterator[Fault]:
    # A compare-exchange that failed is seen with the weaker order of its failure; it is the same place.
    order = max(by_order, key=("relaxed", "release", "acquire", "acq_rel", "seq_cst").index)
    seen = [pair for pairs in by_order.values() for pair in pairs]
    pcs = tuple(sorted({pc for site, _ in seen for pc in site.pcs}))
    own = Path(file).stem
    names = sorted({name for _, name in seen}, key=lambda name: order_of(SUITES[name], own))
    text = (ROOT / "pulsar_ml" / file).read_text().splitlines()[line - 1].strip()
    function = function_of(seen[0][0].place, own)
    for weaker in WEAKER[op, order]:
        yield Fault(file, line, op, order, weaker, function, text, pcs, tuple(names))


def order_of(suite: Suite, own: str) -> tuple[bool, int, str]:
    """The structure's own suite first, then those about the fewest sources: most of what they do is near."""
    return suite.name != own, len(reached(suite.subject)), suite.name


def function_of(place: str, module: str) -> str:
    """The function's name in the source; the compiler's has the module in front."""
    return re.sub(rf"^__pyx_f_.*?_{len(module)}{module}_", "", place.partition(" ")[0])


def hunt(module: ModuleType, fault: Fault, suites: Sequence[Suite]) -> Noticed:
    """Executions of the suites that make the atomic, the structure's own first, until one fails."""
    known = {suite.name: suite for suite in suites}
    weaken = (fault.pcs, NO_FENCE if fault.weaker == NO_FENCE else fault.weaker)
    return Noticed(
        *fault.key,
        fault.source,
        *notice(module, [known[name] for name in fault.suites], weaken=weaken),
    )


def notice(
    module: ModuleType, suites: Sequence[Suite], *, mutant: str | None = None, **options: Any
) -> tuple[int, str, str]:
    """Executions of the suites, one after the other, until one fails, or in all; the suite and what it saw.

    ``mutant`` is active meanwhile, and ``options`` are those of the fault. Answers that the model refuses of
    the true core as well, in the same program, are not noticed: they would be the model's mistake.
    """
    made = 0
    for suite in suites:
        subject = module.SUBJECTS[suite.subject]
        for program, more in campaigns(module, suite, own=suite is suites[0]):
            more["judge"] = judge_for(suite, subject, program)
            done = explored(module, mutant, subject, program, **more, **options)
            made += done.executions
            if done.failure is None:
                continue
            if (
                done.failure.kind != WRONG_ANSWERS
                or not explored(module, None, subject, program, **more).failure
            ):
                return made, suite.name, done.failure.rule or done.failure.kind
    return made, "", ""


def judge_for(suite: Suite, subject: Subject, program: Program) -> Judge | None:
    """The judge of the suite's model; None for a program with calls that the suite does not make by itself,
    such as a user's mistakes, which the model need not know."""
    drawn = [
        operation.weight > 0 or operation.name in suite.mix for operation in subject.operations
    ]
    known = all(drawn[code] for calls in program.threads for code in calls["code"])
    return judge_of(suite.model) if known else None


def explored(
    module: ModuleType, mutant: str | None, subject: Subject, program: Program, **options: Any
) -> Exploration:
    module.select_mutant(mutant)
    try:
        return explore_in_child(subject, program, **options)
    finally:
        module.select_mutant(None)


def campaigns(
    module: ModuleType, suite: Suite, *, own: bool
) -> Iterator[tuple[Program, dict[str, Any]]]:
    """The suite's programs, those in which only the model sees mistakes, and those that the catalogue has for
    rare shapes."""
    for seed, program in enumerate(programs_of(module, suite)):
        yield program, {"executions": OWN if own else OTHERS, "seed": seed, "reuse": "mixed"}
    subject = module.SUBJECTS[suite.subject]
    for one in concurrent_answers.MUTANTS:
        if one.suite == suite.name and not one.calls:
            for seed in range(one.executions // PER_PROGRAM):
                program = small_program_of(suite, subject, seed, one.programs, one.settings)
                yield program, {"executions": PER_PROGRAM, "seed": seed, "reuse": "mixed"}
    for one in shapes(suite):
        reuse = "quarantine" if one.strategy in SEARCHES else "mixed"
        more = {"executions": RARE, "strategy": one.strategy, "reuse": reuse}
        yield program_of_calls(suite, subject, one), more
