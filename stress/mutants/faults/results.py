"""Results of automatic mutants: each weaker order, each dropped fence and each ignored lock.

Automatic mutants need no entry in the catalogue. An order that no suite notices is stronger than
necessary, or not tested; ``data/fault_reasons.toml`` says which, one by one. The results are kept
in the repository.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stress.mutants.build import ROOT
from stress.mutants.csv_rows import read_rows, write_rows
from stress.mutants.faults.places import NOT_EXECUTED
from stress.mutants.markdown import head, row
from stress.mutants.sources.origin import Origin

FAULTS = ROOT / "stress" / "mutants" / "data" / "faults.csv"
REASONS = FAULTS.with_name("fault_reasons.toml")
IGNORED = "ignored"  # the replacement of a lock

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, order=True)
class FaultResult:
    """The result of one fault.

    Attributes:
        file: the structure's source, without its ending.
        function, text: the function, and the line of the source in it.
        instead: the replacement: a weaker order, "none" for a fence, "ignored" for a lock.
        code, programs, model, engine: the result's origin, see :class:`Origin`.
        executions: until the first failure, or in all.
        suite, verdict: the suite that noticed the fault, and its report; "" if no suite did.
    """

    file: str
    function: str
    text: str
    instead: str
    code: str
    programs: str
    model: str
    engine: str
    executions: int
    suite: str = ""
    verdict: str = ""

    @property
    def key(self) -> Key:
        """The fault's name, which does not depend on line numbers."""
        return self.file, self.function, self.text, self.instead

    @property
    def origin(self) -> Origin:
        return Origin(self.code, self.programs, self.model, self.engine)

    @property
    def reason(self) -> str:
        return reasons().get(self.key, "")


@cache
def reasons() -> dict[Key, str]:
    """The reasons for faults that no suite notices."""
    content = tomllib.loads(REASONS.read_text())
    return {
        (file, function, text, instead): reason["text"]
        for reason in content["reasons"]
        for file, function, text, instead in reason["faults"]
    }


def read(path: Path) -> list[FaultResult]:
    return read_rows(path, FaultResult) if path.exists() else []


def write(path: Path, results: Sequence[FaultResult]) -> None:
    write_rows(path, FaultResult, sorted(results))


def unexplained(results: Sequence[FaultResult]) -> list[FaultResult]:
    """Faults that no suite noticed and that have no reason."""
    return [one for one in results if not one.suite and not one.reason]


def fault_tables(results: Sequence[FaultResult]) -> str:
    """Three sections of a page: weakened orders, ignored locks, and orders without a result."""
    text = "\n## Weakened orders\n\nEach atomic of the structures one step weaker, each fence "
    text += "dropped, in the engine.\n"
    text += tables([one for one in results if one.instead != IGNORED])
    text += "\n## Ignored locks\n\nEach lock neither taken nor given back, in the engine.\n"
    text += tables([one for one in results if one.instead == IGNORED])
    return text + not_executed_table()


def not_executed_table() -> str:
    text = "\n## Orders that no suite executes\n\n" + head("place", "source", "why")
    for (file, function, line), why in NOT_EXECUTED.items():
        text += row(f"{file}, {function}", f"`{line}`", why)
    return text


def tables(results: Sequence[FaultResult]) -> str:
    noticed = [one for one in results if one.suite]
    unnoticed = [one for one in results if not one.suite]
    text = f"{len(results)} faults: {len(noticed)} noticed, {len(unnoticed)} not.\n"
    if unnoticed:
        text += "\n### Not noticed\n\n" + head("place", "source", "instead", "executions", "why")
        for one in unnoticed:
            why = one.reason or "**not explained**"
            text += row(*place(one), f"{one.executions:,}", why)
        text += "\n### Noticed\n"
    text += "\n" + head("place", "source", "instead", "executions", "suite", "reported as")
    for one in noticed:
        text += row(*place(one), f"{one.executions:,}", one.suite, one.verdict)
    return text


def place(one: FaultResult) -> tuple[str, str, str]:
    return f"{one.file}, {one.function}", f"`{one.text}`", one.instead
