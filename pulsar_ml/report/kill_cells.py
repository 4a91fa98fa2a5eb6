"""The product's kill table, as ``make kill-table`` leaves it: a CSV file with a row for each mutant and
technique, and for the true core. It is somebody else's file: bounded, checked, and nothing in it is trusted.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pulsar_ml.campaign.store.summary import counted
from pulsar_ml.errors import BadRecordError
from pulsar_ml.input_files import bounded_text, one_line

NAME = "kill_table.csv"  # beside a run
MOST_BYTES = 16 << 20
MOST_ROWS = 20_000
MOST_TECHNIQUES = 50
MOST_NAME = 100  # characters of a case or technique
MOST_WORDS = 400  # of what was reported
CORE = "true core"  # how the labels of what has no mistake begin
TEXTS = ("case", "technique", "first", "verdicts", "size")
COUNTS = ("seeds", "found", "made")


@dataclass(frozen=True, slots=True)
class Cell:
    """What the seeds of a technique said of a case.

    Attributes:
        seeds, found: tried, and those that noticed something.
        made: programs or executions in all.
        first: of them, the median until the first failure; "" without one.
        verdicts, size: what was reported, and how small the smallest failure became, in words.
    """

    technique: str
    seeds: int
    found: int
    made: int
    first: str
    verdicts: str
    size: str


@dataclass(slots=True)
class KillCells:
    """A table by case and technique, both in the order of the file."""

    techniques: list[str] = field(default_factory=list)
    cases: dict[str, dict[str, Cell]] = field(default_factory=dict)

    @property
    def mutants(self) -> Mapping[str, Mapping[str, Cell]]:
        return {case: cells for case, cells in self.cases.items() if not case.startswith(CORE)}

    @property
    def missed(self) -> list[str]:
        """Mutants that no technique found; which of them are equivalent the table does not say."""
        return [
            case
            for case, cells in self.mutants.items()
            if not any(one.found for one in cells.values())
        ]

    @property
    def blamed(self) -> list[str]:
        """Cases of the true core in which something was reported."""
        return [
            case
            for case, cells in self.cases.items()
            if case.startswith(CORE) and any(one.found for one in cells.values())
        ]

    def sentence(self) -> str:
        core = len(self.cases) - len(self.mutants)
        told = (
            f"{len(self.mutants) - len(self.missed):,} of {len(self.mutants):,} mutants were found"
        )
        if self.missed:
            told += f", not {', '.join(self.missed[:20])}{' and others' if len(self.missed) > 20 else ''}"
        if core:
            told += f"; of {counted(core, 'case')} of the true core {len(self.blamed) or 'none'} was blamed"
        return told + "."


def read_kill_cells(path: Path) -> KillCells:
    """The table in a file. UsageError when it cannot be read, BadRecordError when it is damaged."""
    reader = csv.DictReader(io.StringIO(bounded_text(path, "the kill table", most=MOST_BYTES)))
    made = KillCells()
    try:
        missing = {*TEXTS, *COUNTS} - set(reader.fieldnames or ())
        if missing:
            raise ValueError(f"it has no column {min(missing)}, so it is no kill table")
        for number, line in enumerate(reader):
            if number >= MOST_ROWS:
                raise ValueError(f"it has more than {MOST_ROWS:,} rows")
            add(made, line)
    except (csv.Error, ValueError) as error:
        raise BadRecordError(
            f"{path} is damaged at line {reader.line_num}: {one_line(error)}"
        ) from None
    return made


def add(table: KillCells, line: Mapping[str, str | None]) -> None:
    """Another row. ValueError when it is wrong."""
    texts = {name: text_of(line[name]) for name in TEXTS}
    seeds, found, programs = (count_of(line[name]) for name in COUNTS)
    case, technique = texts["case"], texts["technique"]
    if not 1 <= len(case) <= MOST_NAME or not 1 <= len(technique) <= MOST_NAME:
        raise ValueError(f"case and technique have 1 to {MOST_NAME} characters")
    if found > seeds:
        raise ValueError(f"{found} of {seeds} seeds cannot have found something")
    cells = table.cases.setdefault(case, {})
    if technique in cells:
        raise ValueError(f"{case} has {technique} twice")
    if technique not in table.techniques:
        table.techniques.append(technique)
    if len(table.techniques) > MOST_TECHNIQUES:
        raise ValueError(f"it has more than {MOST_TECHNIQUES} techniques")
    first, verdicts, size = (texts[name][:MOST_WORDS] for name in ("first", "verdicts", "size"))
    cells[technique] = Cell(technique, seeds, found, programs, first, verdicts, size)


def text_of(text: str | None) -> str:
    if text is None:
        raise ValueError("the row is too short")
    return text


def count_of(text: str | None) -> int:
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 15:
        raise ValueError(f"{text!r:.60} should be a count")
    return int(text)
