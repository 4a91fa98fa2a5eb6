"""The automatic mutants of the whole core, named by file, line and operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

from stress.mutants.automatic.operators import Mistake, mistakes
from stress.mutants.automatic.statements import statements
from stress.mutants.build import ROOT

PACKAGE = ROOT / "pulsar_ml"
ROOMS = ("structures", "sync")


@dataclass(frozen=True, slots=True)
class Point:
    """One automatic mutant.

    Attributes:
        file: path below ``pulsar_ml/``.
        mistake: the statement and its change.
        ordinal: 1 and up, to tell equal changes of one function apart.
        repeat: 1 and up, to tell changes by one operator in one line apart.
    """

    file: str
    mistake: Mistake
    ordinal: int
    repeat: int

    @property
    def id(self) -> str:
        again = f":{self.repeat}" if self.repeat > 1 else ""
        operator = self.mistake.operator.replace(" ", "-")
        return f"{self.file}:{self.mistake.statement.line}:{operator}{again}"

    @property
    def structure(self) -> str:
        return Path(self.file).stem

    @property
    def key(self) -> tuple[str, ...]:
        """The mutant apart from its line, which other changes of the file move."""
        one = self.mistake
        return (
            self.file, one.statement.function, one.operator, one.change, one.statement.text(),
            str(self.ordinal),
        )  # fmt: skip


def sources() -> list[Path]:
    """The sources whose functions are changed."""
    return sorted(
        path
        for room in ROOMS
        for ext in ("pxd", "pyx")
        for path in (PACKAGE / room).glob(f"*.{ext}")
    )


@cache
def points() -> tuple[Point, ...]:
    """All automatic mutants, by file and line."""
    found = []
    for path in sources():
        file = path.relative_to(PACKAGE).as_posix()
        lines: Counter[tuple[int, str]] = Counter()
        equal: Counter[tuple[str, str, str, str]] = Counter()
        for one in mistakes(statements(path)):
            line = one.statement.line, one.operator
            same = one.statement.function, one.operator, one.change, one.statement.text()
            lines[line] += 1
            equal[same] += 1
            found.append(Point(file, one, equal[same], lines[line]))
    return tuple(found)


def sample(size: int, seed: int, chosen: Sequence[Point] | None = None) -> list[Point]:
    """A random sample without repeats. A larger sample of the same seed begins with a smaller.

    Each mutant has its own random place in the order, so changes of other lines move it little.
    """

    def place(point: Point) -> bytes:
        return blake2b(repr((seed, point.key)).encode(), digest_size=16).digest()

    return sorted(points() if chosen is None else chosen, key=place)[:size]
