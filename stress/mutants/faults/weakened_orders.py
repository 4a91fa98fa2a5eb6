"""Automatic mutants in the engine: each atomic one step weaker, each fence dropped.

The engine makes them at run time; the checked module is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pulsar_ml.campaign.local.weakening import WeakOrder, notice, weak_orders
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import PRODUCT, load_native
from pulsar_ml.harness.engine import SEARCHES
from pulsar_ml.harness.search.weaken import order_at
from pulsar_ml.harness.subjects.program import Program, words
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import ROOT, STRUCTURES
from stress.mutants.catalogue import concurrent_answers
from stress.mutants.faults.results import FaultResult, Key
from stress.mutants.faults.shapes import shapes
from stress.mutants.hunting import PER_PROGRAM, program_of_calls
from stress.mutants.hunting import program_of as small_program_of
from stress.mutants.sources.digests import (
    code_digest,
    engine_digest,
    model_digest,
    reached,
    short_digest,
)
from stress.mutants.sources.origin import Origin
from stress.mutants.table.origins import SAMPLED

FOLDER = "structures/"
PROGRAMS = 30
SIZE_STREAM = 3  # of a seed's random numbers, for the sizes of its program
OWN = 300  # executions of each program of the structure's own suite
RARE = 3_000  # of each program that belongs to a mutant
OTHERS = 60  # of each program of the other suites that execute the atomic


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One atomic or fence of the source, with another order.

    Attributes:
        file, line: the place, below ``pulsar_ml/``.
        op, order: the operation and its order in the source.
        weaker: the order that the engine uses instead.
        function, text: the function, and the line of the source.
        pcs: addresses of the instructions.
        suites: the suites that execute it.
        number: 1 and up, to tell equal lines of a function apart.
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


def programs_of(module: ModuleType, suite: Suite) -> list[Program]:
    """Programs of a suite, every other one in the small worlds in which mutants are hunted.

    Chunks end and positions collide there.
    """
    subject = module.SUBJECTS[suite.subject]
    return [
        large_program_of(suite, subject, seed)
        if seed % 2
        else small_program_of(suite, subject, seed, suite.controlled)
        for seed in range(PROGRAMS)
    ]


def large_program_of(suite: Suite, subject: Subject, seed: int) -> Program:
    """A program whose calls, arguments and settings are drawn one by one, in worlds of any size."""
    size = suite.controlled
    threads, operations = (
        low + ((int(word) >> 32) * (high - low + 1) >> 32)
        for word, (low, high) in zip(
            words(seed, SIZE_STREAM, 2), (size.threads, size.operations), strict=True
        )
    )
    return Program.generate(
        subject,
        seed,
        threads=threads,
        operations=operations,
        mix=size.mix or suite.mix,
        settings=suite.settings,
        noise=False,
    )


def faults(module: ModuleType, suites: Iterable[Suite]) -> list[Fault]:
    """All atomics of the structures that the suites execute, without those of the operations."""
    orders = weak_orders(module, suites, lambda suite: programs_of(module, suite))
    return with_numbers(sorted(fault_of(one) for one in orders if f" {FOLDER}" in one.place))


def with_numbers(found: Iterable[Fault]) -> list[Fault]:
    """Numbers the faults whose lines are equal."""
    seen: dict[Key, set[int]] = {}
    numbered = []
    for fault in found:
        lines = seen.setdefault(fault.key, set())
        lines.add(fault.line)
        numbered.append(replace(fault, number=len(lines)))
    return numbered


def fault_of(order: WeakOrder) -> Fault:
    function, _, place = order.place.rpartition(" ")
    file, _, number = place.rpartition(":")
    own, line = Path(file).stem, int(number)
    suites = tuple(sorted(order.suites, key=lambda name: order_of(SUITES[name], own)))
    text = (ROOT / "pulsar_ml" / file).read_text().splitlines()[line - 1].strip()
    return Fault(
        file, line, order.op, order.order, order.weaker, function_of(function, own), text,
        order.pcs, suites,
    )  # fmt: skip


def order_of(suite: Suite, own: str) -> tuple[bool, int, str]:
    """Sorts the structure's own suite first, then the suites with the fewest sources."""
    return suite.name != own, len(reached(suite.subject)), suite.name


def function_of(place: str, module: str) -> str:
    """The function's name in the source. In the compiler's name the module comes first."""
    return re.sub(rf"^__pyx_f_.*?_{len(module)}{module}_", "", place.partition(" ")[0])


def hunt(module: ModuleType, fault: Fault, suites: Sequence[Suite]) -> FaultResult:
    """Runs executions of the suites that execute the atomic until one fails."""
    known = {suite.name: suite for suite in suites}
    changes = order_at(fault.pcs, fault.weaker)
    tried = [known[name] for name in fault.suites]
    return fault_result(
        fault.key, *notice(module, tried, partial(campaigns, module), changes=changes)
    )


def fault_result(key: Key, executions: int, suite: str, verdict: str) -> FaultResult:
    """The result of a fault with its origin."""
    origin = fault_origin(key[0], suite)
    return FaultResult(
        *key, origin.code, origin.programs, origin.model, origin.engine, executions, suite, verdict
    )


@cache
def fault_origin(file: str, suite: str) -> Origin:
    """The present origin of a fault's result: that of the suite that noticed it. A fault that no
    suite noticed has the origin of the first suite of its structure."""
    path = STRUCTURES / f"{file}.pxd"
    name = suite or min(
        (one for one in SUITES if path in reached(SUITES[one].subject)),
        key=lambda one: order_of(SUITES[one], file),
    )
    programs = programs_of(load_native(PRODUCT), SUITES[name])[:SAMPLED]
    return Origin(
        code=code_digest(SUITES[name].subject),
        programs=short_digest([OWN, RARE, OTHERS, *(program.digest() for program in programs)]),
        model=model_digest(SUITES[name].model),
        engine=engine_digest(),
    )


def campaigns(
    module: ModuleType, suite: Suite, own: bool
) -> Iterator[tuple[Program, dict[str, Any]]]:
    """Yields the programs of the suite, of mutants that only a model sees, and of rare shapes."""
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
