"""Automatic mutants: what came of each weakened atomic, each fence left out and each lock ignored.

They need no entry in the catalogue. What no suite notices is stronger than it has to be, or not tested:
``overstrong.py`` says which, one by one. The results are kept in the repository.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from stress.mutants.build import ROOT
from stress.mutants.markdown import head, row
from stress.mutants.origin import Origin
from stress.mutants.overstrong import KNOWN
from stress.mutants.tables import rows

NOTICED = ROOT / "stress" / "mutants" / "data" / "faults.csv"
IGNORED = "ignored"  # instead of a lock

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, order=True)
class Noticed:
    """What came of a fault.

    Attributes:
        file: without its ending; ``function`` where the place is, ``text`` its line.
        instead: what was done instead: a weaker order, "none" for a fence, "ignored" for a lock.
        code, programs, model, engine: the result's origin, see :class:`Origin`.
        executions: until the first failure, or in all.
        suite, verdict: who saw it and what; "" when nobody did.
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
        """What stays the same when lines move."""
        return self.file, self.function, self.text, self.instead

    @property
    def origin(self) -> Origin:
        return Origin(self.code, self.programs, self.model, self.engine)

    @property
    def reason(self) -> str:
        return KNOWN.get(self.key, "")


def read(path: Path) -> list[Noticed]:
    return rows(path, Noticed) if path.exists() else []


def write(path: Path, results: Sequence[Noticed]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, [one.name for one in fields(Noticed)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(one) for one in sorted(results))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.getvalue())


def unexplained(results: Sequence[Noticed]) -> list[Noticed]:
    return [one for one in results if not one.suite and not one.reason]


def fault_tables(results: Sequence[Noticed]) -> str:
    """The orders and the locks: what nothing noticed, with the reason, and what was noticed."""
    text = "\n## Weakened orders\n\nEach atomic of the structures one step weaker, each fence left out, "
    text += "in the engine.\n"
    text += tables([one for one in results if one.instead != IGNORED])
    text += "\n## Ignored locks\n\nEach lock taken and given back by nobody, in the engine.\n"
    return text + tables([one for one in results if one.instead == IGNORED])


def tables(results: Sequence[Noticed]) -> str:
    seen = [one for one in results if one.suite]
    left = [one for one in results if not one.suite]
    text = f"{len(results)} faults: {len(seen)} noticed, {len(left)} not.\n"
    if left:
        text += "\n### Not noticed\n\n" + head("place", "source", "instead", "executions", "why")
        for one in left:
            why = one.reason or "**not explained**"
            text += row(*place(one), f"{one.executions:,}", why)
        text += "\n### Noticed\n"
    text += "\n" + head("place", "source", "instead", "executions", "suite", "reported as")
    for one in seen:
        text += row(*place(one), f"{one.executions:,}", one.suite, one.verdict)
    return text


def place(one: Noticed) -> tuple[str, str, str]:
    return f"{one.file}, {one.function}", f"`{one.text}`", one.instead
