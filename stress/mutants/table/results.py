"""The cells of the kill table, one for each case and technique, kept as a file in the repository.

A cell keeps its origin. A new run of the table makes only cells that are missing, that have another
origin, or that have fewer seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from stress.mutants.build import ROOT
from stress.mutants.csv_rows import read_rows, write_rows
from stress.mutants.sources.origin import Origin
from stress.mutants.table.origins import origin_of
from stress.mutants.table.techniques import STUCK_SEEDS, Case, Technique, Trial, cases, seeds_of

DATA = ROOT / "stress" / "mutants" / "data" / "kill_table.csv"
SIZES = ("threads", "operations", "preemptions", "stale reads")

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of the seeds of one technique for one case.

    Attributes:
        case, technique: the case's label and the technique's name.
        code, programs, model, engine: the result's origin, see :class:`Origin`.
        seeds, found: seeds that ran, and seeds that reported something.
        spent: programs or executions of all seeds together.
        first, seconds: medians until the first failure, of seeds that found one; "" without.
        verdicts: the most frequent ones with their counts.
        size: of the smallest failure after shrinking, in words.
    """

    case: str
    technique: str
    code: str
    programs: str
    model: str
    engine: str
    seeds: int
    found: int
    spent: int
    first: str
    seconds: str
    verdicts: str
    size: str

    @property
    def key(self) -> Key:
        return self.case, self.technique

    @property
    def origin(self) -> Origin:
        return Origin(self.code, self.programs, self.model, self.engine)


def summary(case: Case, technique: Technique, trials: Sequence[Trial]) -> Cell:
    """The cell of these trials, with the origin of today."""
    hits = [trial for trial in trials if trial.found]
    counts = Counter(trial.verdict for trial in hits)
    origin = origin_of(technique, case)
    sizes = [trial.size for trial in hits if trial.size is not None]
    return Cell(
        case.label,
        technique.name,
        origin.code,
        origin.programs,
        origin.model,
        origin.engine,
        len(trials),
        len(hits),
        sum(trial.spent for trial in trials),
        f"{median(trial.spent for trial in hits):.0f}" if hits else "",
        f"{median(trial.seconds for trial in hits):.3f}" if hits else "",
        ", ".join(f"{verdict} ({count})" for verdict, count in counts.most_common(3)),
        in_words(min(sizes, key=lambda size: sum(size.values()))) if sizes else "",
    )


def in_words(size: Mapping[str, int]) -> str:
    return ", ".join(f"{size[name]} {name}" for name in SIZES if size[name] or name in SIZES[:2])


class Results:
    """The cells of a file. Only one process may write it."""

    def __init__(self, path: Path = DATA) -> None:
        self.path = path
        self.cells: dict[Key, Cell] = {}
        if path.exists():
            self.cells = {cell.key: cell for cell in read_rows(path, Cell)}

    def of(self, case: Case, technique: Technique) -> Cell | None:
        return self.cells.get((case.label, technique.name))

    def lacks(self, technique: Technique, case: Case, seeds: int) -> bool:
        """Returns true if the cell is missing or does not hold for today's sources and seeds."""
        cell = self.of(case, technique)
        if cell is None or cell.origin != origin_of(technique, case):
            return True
        return cell.seeds < seeds_of(case, seeds) and cell.seeds != STUCK_SEEDS

    def add(self, cell: Cell) -> None:
        """Adds a cell and writes the file at once, without cells of cases that no longer exist."""
        self.cells[cell.key] = cell
        order = {case.label: number for number, case in enumerate(cases())}
        present = [one for one in self.cells.values() if one.case in order or one.key == cell.key]
        present.sort(key=lambda one: (order.get(one.case, -1), one.technique))
        write_rows(self.path, Cell, present)
