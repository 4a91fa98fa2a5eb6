"""The product's kill table: the CSV file of ``make kill-table``, read as untrusted input.

It has a row for each mutant and technique, and rows for the true core. Sizes are bounded and all
values are checked.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pulsar_ml.errors import BadRecordError
from pulsar_ml.input_files import bounded_text, one_line
from pulsar_ml.wording import counted

NAME = "kill_table.csv"  # in the directory of a run
MOST_BYTES = 16 << 20
MOST_ROWS = 20_000
MOST_TECHNIQUES = 50
MOST_NAME = 100  # the most characters of a case or technique
MOST_WORDS = 400  # the most characters of any other text
CORE = "true core"  # the beginning of the names of cases without a mutant
TEXTS = ("case", "technique", "first", "verdicts", "size")
COUNTS = ("seeds", "found", "spent")


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of one technique on one case.

    Attributes:
        seeds, found: the number of seeds, and of seeds that reported a failure.
        programs: programs or executions of all seeds together (the column "spent").
        first: the median number of programs or executions until the first failure; "" without one.
        verdicts: the reported failures, in words.
        size: the size of the smallest failure after shrinking, in words.
    """

    technique: str
    seeds: int
    found: int
    programs: int
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
        """The mutants that no technique found, equivalent ones included."""
        return [
            case
            for case, cells in self.mutants.items()
            if not any(one.found for one in cells.values())
        ]

    @property
    def blamed(self) -> list[str]:
        """The cases of the true core with a reported failure, which is a false alarm."""
        return [
            case
            for case, cells in self.cases.items()
            if case.startswith(CORE) and any(one.found for one in cells.values())
        ]

    def sentence(self) -> str:
        core = len(self.cases) - len(self.mutants)
        found = len(self.mutants) - len(self.missed)
        text = f"{found:,} of {len(self.mutants):,} mutants were found"
        if self.missed:
            others = " and others" if len(self.missed) > 20 else ""
            text += f", not {', '.join(self.missed[:20])}{others}"
        if core:
            blamed = len(self.blamed) or "none"
            text += f"; of {counted(core, 'case')} of the true core {blamed} was blamed"
        return text + "."


def read_kill_cells(path: Path) -> KillCells:
    """Reads a kill table. UsageError for an unreadable file, BadRecordError for a damaged one."""
    reader = csv.DictReader(io.StringIO(bounded_text(path, "the kill table", most=MOST_BYTES)))
    table = KillCells()
    try:
        missing = {*TEXTS, *COUNTS} - set(reader.fieldnames or ())
        if missing:
            raise ValueError(f"it has no column {min(missing)}, so it is not a kill table")
        for number, line in enumerate(reader):
            if number >= MOST_ROWS:
                raise ValueError(f"it has more than {MOST_ROWS:,} rows")
            add(table, line)
    except (csv.Error, ValueError) as error:
        raise BadRecordError(
            f"{path} is damaged at line {reader.line_num}: {one_line(error)}"
        ) from None
    return table


def add(table: KillCells, line: Mapping[str, str | None]) -> None:
    """Adds a row. Raises ValueError for a damaged one."""
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
