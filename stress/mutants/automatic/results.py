"""The results of automatic mutants, kept in the repository, and the reasons of equivalent ones."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path

from pulsar_ml.errors import BadRecordError
from pulsar_ml.input_files import bounded_text
from stress.mutants.automatic.hunting import (
    AGAIN,
    ALLOCATIONS,
    EACH,
    EACH_LARGE,
    EXECUTIONS,
    FAULTY_EXECUTIONS,
    LARGE,
    LONGER,
    NEAREST,
    PROGRAMS,
    SINGLE,
    SINGLE_FAULTY,
    SINGLE_OPERATIONS,
    TIMES_FAULTY,
    TRIALS,
    Outcome,
    suites_of,
)
from stress.mutants.automatic.points import Point
from stress.mutants.build import ROOT
from stress.mutants.csv_rows import read_rows, write_rows
from stress.mutants.sources.digests import code_digest, engine_digest, short_digest

DATA = ROOT / "stress" / "mutants" / "data" / "automatic.csv"
# Samples that nothing was improved with when they were hunted, by their seeds.
HELD_OUT = {
    2: DATA.with_name("automatic_held_out.csv"),
    3: DATA.with_name("automatic_held_out_3.csv"),
    4: DATA.with_name("automatic_held_out_4.csv"),
    5: DATA.with_name("automatic_held_out_5.csv"),
}
REASONS = DATA.with_name("automatic_reasons.toml")
NORMAL_95 = 1.959964  # two-sided quantile of the normal distribution

EQUIVALENT, HOLE = "equivalent", "hole"

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One hunted mutant.

    Attributes:
        file, function, operator, change, text, ordinal: the mutant's name apart from its line.
        line: of the source when the mutant was hunted.
        origin: digits of the code behind the nearest suite, the engine and the budgets.
        technique, suite, verdict, executions, seconds: see :class:`Outcome`.
        reached: "yes" if some program executed the mutant.
    """

    file: str
    function: str
    operator: str
    change: str
    text: str
    ordinal: int
    line: int
    origin: str
    technique: str
    suite: str
    verdict: str
    executions: int
    seconds: str
    reached: str

    @property
    def key(self) -> Key:
        return (
            self.file, self.function, self.operator, self.change, self.text, str(self.ordinal),
        )  # fmt: skip

    @property
    def structure(self) -> str:
        return Path(self.file).stem

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}:{self.operator.replace(' ', '-')}"

    @property
    def found(self) -> bool:
        return bool(self.technique)


def result_of(point: Point, outcome: Outcome) -> Result:
    one = point.mistake
    return Result(
        point.file, one.statement.function, one.operator, one.change, one.statement.text(),
        point.ordinal, one.statement.line, origin_of(point.file), outcome.technique, outcome.suite,
        outcome.verdict, outcome.executions, f"{outcome.seconds:.2f}",
        "yes" if outcome.reached else "no",
    )  # fmt: skip


@cache
def origin_of(file: str) -> str:
    """Digits of everything on which a result of this file depends, beside the generator."""
    budgets = (
        SINGLE, SINGLE_OPERATIONS, LARGE, EACH, EACH_LARGE, ALLOCATIONS, SINGLE_FAULTY, TIMES_FAULTY,
        PROGRAMS, EXECUTIONS, FAULTY_EXECUTIONS, NEAREST, AGAIN, LONGER, TRIALS
    )  # fmt: skip
    suites = suites_of(file)
    code = code_digest(suites[0].subject) if suites else ""
    return short_digest([*budgets, code, engine_digest()])


class Results:
    """The results of a file. Only one process may write it."""

    def __init__(self, path: Path = DATA) -> None:
        self.path = path
        self.by_key: dict[Key, Result] = {}
        if path.exists():
            self.by_key = {one.key: one for one in read_rows(path, Result)}

    def of(self, point: Point) -> Result | None:
        """The result of a mutant, made from the present sources; None without one."""
        result = self.by_key.get(point.key)
        return result if result and result.origin == origin_of(point.file) else None

    def add(self, result: Result) -> None:
        """Adds a result and writes the file at once: an interruption loses nothing."""
        self.by_key[result.key] = result
        ordered = sorted(self.by_key.values(), key=lambda one: (one.file, one.line, one.key))
        write_rows(self.path, Result, ordered)


# Survivors ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """A survivor that somebody read.

    Attributes:
        kind: EQUIVALENT (no program can tell it from the core) or HOLE (a program or an oracle is
            missing).
        reason: one sentence.
    """

    kind: str
    reason: str


def readings(path: Path = REASONS) -> Mapping[Key, Reading]:
    """The survivors that were read. Raises BadRecordError for a damaged file."""
    try:
        tables = tomllib.loads(bounded_text(path, "the reasons")).get("survivor", [])
        found: dict[Key, Reading] = {}
        for one in tables:
            if one["kind"] not in {EQUIVALENT, HOLE}:
                raise ValueError(f"kind is {one['kind']!r}; it should be {EQUIVALENT} or {HOLE}")
            key = (one["file"], one["function"], one["operator"], one["change"], one["text"])
            reading = Reading(one["kind"], " ".join(one["reason"].split()))
            found[*key, str(one.get("ordinal", 1))] = reading
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadRecordError(f"{path} is damaged: {error}") from None
    return found


@dataclass(frozen=True, slots=True)
class Score:
    """The share of the mutants that were found, among those that are not equivalent."""

    found: int
    tried: int
    equivalent: int

    @property
    def share(self) -> float:
        return self.found / self.tried if self.tried else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95 % for the share in the whole core."""
        n, p, z = self.tried, self.share, NORMAL_95
        if not n:
            return 0.0, 1.0
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.found} of {self.tried} found ({self.share:.1%}; 95 % between {low:.1%} and "
            f"{high:.1%}), {self.equivalent} equivalent"
        )


def score(results: Iterable[Result], known: Mapping[Key, Reading]) -> Score:
    """The score of these results. An equivalent mutant does not count, unless it was found."""
    found = tried = equivalent = 0
    for one in results:
        reading = known.get(one.key)
        if not one.found and reading is not None and reading.kind == EQUIVALENT:
            equivalent += 1
        else:
            tried += 1
            found += one.found
    return Score(found, tried, equivalent)
