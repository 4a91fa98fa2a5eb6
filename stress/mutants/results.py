"""What the kill table is made from: one cell for each case and technique, kept in the repository.

A cell says of which sources it is: a rerun makes only cells that are missing, of other sources, or of fewer
seeds.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import ROOT
from stress.mutants.sources import digest
from stress.mutants.tables import rows
from stress.mutants.techniques import (
    SANITIZED_OPERATIONS,
    STUCK_SEEDS,
    Case,
    Technique,
    Trial,
    budget_of,
    cases,
    seeds_of,
)

DATA = ROOT / "stress" / "mutants" / "data" / "kill_table.csv"
# Of a mutant, for its results.
MATTERS = (
    *("file", "old", "new", "helper", "cimports"),
    *("within", "programs", "calls", "settings", "strategy"),
)
SIZES = ("threads", "operations", "preemptions", "stale reads")

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """What the seeds of one technique said of a case.

    Attributes:
        case, technique: the case's label and the technique's name.
        source: twelve digits of what the result depends on.
        seeds, found: tried, and those that noticed something.
        made: programs or executions in all.
        first, seconds: medians until the first failure, of the seeds that found one; "" without one.
        verdicts: the most frequent ones with their counts.
        size: of the smallest failure after shrinking, in words.
    """

    case: str
    technique: str
    source: str
    seeds: int
    found: int
    made: int
    first: str
    seconds: str
    verdicts: str
    size: str

    @property
    def key(self) -> Key:
        return self.case, self.technique


def source_of(technique: Technique, case: Case) -> str:
    """Twelve digits that change with everything that a trial depends on, other than harness and models."""
    suite = SUITES[case.mutant.suite]
    judged = technique.name == "linear" and judge_of(suite.model) is not None
    parts = (
        digest(suite.subject),
        [getattr(case.mutant, name) for name in MATTERS],
        case.selected,
        (
            technique.name,
            budget_of(technique, case),
            SANITIZED_OPERATIONS if technique.name == "tsan" else 0,
        ),
        (
            suite.name,
            dict(suite.mix),
            dict(suite.settings),
            suite.threads,
            suite.operations,
            suite.controlled,
        ),
        judged,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def summary(case: Case, technique: Technique, trials: Sequence[Trial]) -> Cell:
    hits = [trial for trial in trials if trial.found]
    counts = Counter(trial.verdict for trial in hits)
    sizes = [trial.size for trial in hits if trial.size is not None]
    return Cell(
        case.label,
        technique.name,
        source_of(technique, case),
        len(trials),
        len(hits),
        sum(trial.made for trial in trials),
        f"{median(trial.made for trial in hits):.0f}" if hits else "",
        f"{median(trial.seconds for trial in hits):.3f}" if hits else "",
        ", ".join(f"{verdict} ({count})" for verdict, count in counts.most_common(3)),
        in_words(min(sizes, key=lambda size: sum(size.values()))) if sizes else "",
    )


def in_words(size: Mapping[str, int]) -> str:
    return ", ".join(f"{size[name]} {name}" for name in SIZES if size[name] or name in SIZES[:2])


class Results:
    """The cells of a file. One process writes it."""

    def __init__(self, path: Path = DATA) -> None:
        self.path = path
        self.cells: dict[Key, Cell] = {}
        if path.exists():
            self.cells = {cell.key: cell for cell in rows(path, Cell)}

    def of(self, case: Case, technique: Technique) -> Cell | None:
        return self.cells.get((case.label, technique.name))

    def lacks(self, technique: Technique, case: Case, seeds: int) -> bool:
        """Whether the cell is to be made, again or for the first time."""
        cell = self.of(case, technique)
        if cell is None or cell.source != source_of(technique, case):
            return True
        return cell.seeds < seeds_of(case, seeds) and cell.seeds != STUCK_SEEDS

    def add(self, cell: Cell) -> None:
        """Also in the file, at once, in the order of the table. Cells of cases that are gone go, too."""
        self.cells[cell.key] = cell
        order = {case.label: number for number, case in enumerate(cases())}
        known = [one for one in self.cells.values() if one.case in order or one.key == cell.key]
        text = io.StringIO()
        writer = csv.DictWriter(text, [one.name for one in fields(Cell)], lineterminator="\n")
        writer.writeheader()
        for one in sorted(known, key=lambda one: (order.get(one.case, -1), one.technique)):
            writer.writerow(asdict(one))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = self.path.with_suffix(".new")
        whole.write_text(text.getvalue())
        whole.replace(self.path)
