"""A campaign that searches programs to their end, whatever number of processes shares the search.

Each program is one search, cut into disjoint parts. A part is a trial of a bounded number of executions;
what it did not come to is cut into parts of the next stage, until nothing is left. What comes next follows
from the rows that are on disk and nothing else, so another process may go on at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_ml.campaign.controlled import BETWEEN
from pulsar_ml.campaign.plan import Chunk, Plan
from pulsar_ml.campaign.trial import CLEAN, VIOLATION
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import SEARCHES
from pulsar_ml.harness.partition import Part, divided, proved

if TYPE_CHECKING:
    from pulsar_ml.campaign.store import RunStore

PARTS = 64  # of a program at the same time
MOST_PARTS = 10_000
MOST_PROGRAMS = 1_000_000
COLUMNS = [
    "chunk_id",
    "suite",
    "seed",
    "verdict",
    "executions",
    "classes",
    "bounds",
    "rest",
    "part",
]

Program = tuple[str, int]  # suite and seed
Row = Mapping[str, Any]


@dataclass(slots=True)
class Searched:
    """What is known of one program.

    Attributes:
        parts, executions: made so far.
        clean: parts in which two threads touched one location, and nothing failed.
        failed: parts with a violation; nothing more of the program is searched then.
        left: parts that are still to be searched.
        bounds: those that left something out.
    """

    parts: int = 0
    executions: int = 0
    clean: int = 0
    failed: int = 0
    left: int = 0
    bounds: dict[str, None] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        self.parts += 1
        self.executions += row["executions"]
        self.clean += row["verdict"] == CLEAN
        self.failed += row["verdict"] == VIOLATION
        self.bounds.update(dict.fromkeys(row["bounds"].split(BETWEEN) if row["bounds"] else ()))

    @property
    def exhausted(self) -> str:
        """What the whole search has proved; "" when something is left, or failed."""
        return "" if self.failed or self.left or not self.parts else proved(self.bounds)

    @property
    def result(self) -> str:
        """The same in words, or why nothing is proved."""
        if self.failed:
            return f"failed in {self.failed} of its parts"
        if self.left or not self.parts:
            return f"{self.left} parts are left"
        idle = "" if self.clean else ", but no location was touched by two threads"
        return f"exhausted {self.exhausted}{idle}"


class Exhaustive:
    """The source of a search's chunks, one part each, stage by stage."""

    def __init__(self, plan: Plan, parts: int = PARTS) -> None:
        """UsageError unless the plan is of a strategy that can be exhausted.

        Arguments:
            plan: the programs: each of its suites with each of its seeds; its executions are of a part.
            parts: as many of each program are searched at the same time, if it can be cut so often.
        """
        if plan.options.strategy not in SEARCHES:
            raise UsageError(
                f"only the strategies {' and '.join(SEARCHES)} can be exhausted, "
                f"not {plan.options.strategy!r}"
            )
        if not 1 <= parts <= MOST_PARTS:
            raise UsageError(
                f"a program is searched in 1 to {MOST_PARTS:,} parts at once, not {parts}"
            )
        if plan.trials > MOST_PROGRAMS:
            raise UsageError(
                f"a search to the end has {MOST_PROGRAMS:,} programs at most, not {plan.trials:,}; "
                "use fewer seeds"
            )
        self.plan = plan
        self.parts = parts
        programs = [
            (suite, seed)
            for seed in range(plan.first_seed, plan.first_seed + plan.seeds)
            for suite in plan.suites
        ]
        self.programs = {program: Searched(left=1) for program in programs}
        self._chunks = [self._chunk(number, program, "") for number, program in enumerate(programs)]
        self._stage = 0  # where the chunks of the last stage begin

    @property
    def trials(self) -> int:
        """Parts that are known so far: what they leave is not."""
        return len(self._chunks)

    @property
    def chunk_trials(self) -> float:
        return 1.0

    @property
    def chunk_count(self) -> int:
        return len(self._chunks)

    def chunk(self, chunk_id: int) -> Chunk:
        """The chunk with this id, of a stage that is known."""
        if not 0 <= chunk_id < self.chunk_count:
            raise UsageError(
                f"chunk ids of this search are 0 to {self.chunk_count - 1}, not {chunk_id}"
            )
        return self._chunks[chunk_id]

    def difference(self, other: Exhaustive | None) -> str:
        """The first setting in which another search is not this one, in words; "" when they are equal."""
        if other is None:
            return "it is not searched to its end"
        return (
            ""
            if self.parts == other.parts
            else f"its parts is {other.parts!r} and not {self.parts!r}"
        )

    def to_data(self) -> dict[str, object]:
        """The settings as plain data for ``json``."""
        return {"parts": self.parts}

    @staticmethod
    def reopened(directory: Path, plan: Plan, data: object) -> Exhaustive:
        """The search of a run with these settings, as far as it came. UsageError for damage."""
        if not isinstance(data, dict) or type(data.get("parts")) is not int:
            raise UsageError(f"{directory / 'run.json'} is damaged: its search is {data!r:.100}")
        search = Exhaustive(plan, data["parts"])
        search.read(directory)
        return search

    def stages(self, store: RunStore) -> Iterator[Iterator[Chunk]]:
        """The chunks of each stage. A stage of which a part has no row, as it failed, is the last one."""
        self.read(store.directory)
        while self._stage < len(self._chunks):
            yield iter(self._chunks[self._stage :])
            before = self._stage
            self.read(store.directory)
            if self._stage == before:
                return

    def read(self, directory: Path) -> None:
        """Takes up every stage of which all parts are on disk, and cuts what the last one left."""
        from pulsar_ml.campaign.store import waves_of

        rows: dict[int, Row] = {}
        for name in waves_of(directory):
            path = directory / "trials" / name
            try:
                table = pq.read_table(path, columns=COLUMNS)
            except (OSError, pa.ArrowException) as error:
                raise UsageError(
                    f"{path} is damaged or incomplete: {str(error).splitlines()[0]}"
                ) from None
            rows.update((row["chunk_id"], row) for row in table.to_pylist())
        while self._stage < len(self._chunks) and all(
            number in rows for number in range(self._stage, len(self._chunks))
        ):
            self._take([rows[number] for number in range(self._stage, len(self._chunks))])

    def _take(self, rows: Sequence[Row]) -> None:
        rests: dict[Program, list[Part]] = {}
        for chunk, row in zip(self._chunks[self._stage :], rows, strict=True):
            program = (chunk.suite, chunk.seed_lo)
            if (row["suite"], row["seed"], row["part"]) != (*program, chunk.part):
                raise UsageError(
                    f"the row of {chunk} is damaged: it is not of that part of the search"
                )
            self.programs[program].add(row)
            if row["rest"]:
                rests.setdefault(program, []).append(Part.of(row["rest"]))
        self._stage = len(self._chunks)
        for program, searched in self.programs.items():
            parts = [] if searched.failed else divided(rests.get(program, ()), self.parts)
            searched.left = len(parts)
            for part in parts:
                self._chunks.append(self._chunk(len(self._chunks), program, str(part)))

    def _chunk(self, number: int, program: Program, part: str) -> Chunk:
        suite, seed = program
        return Chunk(number, suite, seed, seed + 1, part=part)
