"""A campaign that searches programs exhaustively, shared by any number of processes.

Each program is one search, cut into disjoint parts. A part is a trial of a bounded number of
executions; its unfinished rest is cut into parts of the next stage, until no rest is left. The rows
on disk alone decide the next stage, so another process can resume the search at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_ml.campaign.plan.plan import Chunk, Plan
from pulsar_ml.campaign.trial.controlled import BOUND_SEPARATOR
from pulsar_ml.campaign.trial.trial import CLEAN, VIOLATION
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.engine import SEARCHES
from pulsar_ml.harness.search.partition import Part, ReducedPart, divided, proved, reasons
from pulsar_ml.versioned_json import check_keys

if TYPE_CHECKING:
    from pulsar_ml.campaign.store.store import RunStore

PARTS = 64  # of a program that run at the same time
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
    """The state of the search of one program.

    Attributes:
        parts, executions: numbers finished so far.
        clean: number of parts in which two threads touched one location and no execution failed.
        failed: number of parts with a violation; such a program is not searched further.
        left: number of parts that are still to be searched.
        bounds: the bounds that left executions out.
        unreduced: why a search with reduction was given up, as bits of partition.REASONS.
    """

    parts: int = 0
    executions: int = 0
    clean: int = 0
    failed: int = 0
    left: int = 0
    unsearched: int = 0
    unreduced: int = 0
    bounds: dict[str, None] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        self.parts += 1
        self.executions += row["executions"]
        self.clean += row["verdict"] == CLEAN
        self.failed += row["verdict"] == VIOLATION
        self.unsearched += row["executions"] == 0
        self.bounds.update(
            dict.fromkeys(row["bounds"].split(BOUND_SEPARATOR) if row["bounds"] else ())
        )

    @property
    def exhausted(self) -> str:
        """The proof of the whole search; "" while parts are left, or when one proved nothing."""
        if self.failed or self.left or self.unsearched or not self.parts:
            return ""
        return proved(self.bounds)

    @property
    def result(self) -> str:
        """The proof in words, or the reason why there is none."""
        why = reasons(self.unreduced)
        alone = f", without reduction, which does not cover it: {why}" if why else ""
        if self.failed:
            return f"failed in {self.failed} of its parts"
        if self.unsearched:
            return f"not searched: {BOUND_SEPARATOR.join(self.bounds) or 'no execution was made'}"
        if self.left or not self.parts:
            return f"{self.left} parts are left{alone}"
        idle = "" if self.clean else ", but no location was touched by two threads"
        return f"exhausted {self.exhausted}{idle}{alone}"


class Exhaustive:
    """The source of a search's chunks, one part each, stage by stage."""

    def __init__(self, plan: Plan, parts: int = PARTS) -> None:
        """Raise UsageError unless the plan's strategy can be exhausted.

        Arguments:
            plan: its suites and seeds are the programs; its ``executions`` bound each part.
            parts: number of parts of each program that are searched at the same time, where the
                program can be cut into so many.
        """
        if plan.options.strategy not in SEARCHES:
            raise UsageError(
                f"only the strategies {', '.join(SEARCHES)} can be exhausted, "
                f"not {plan.options.strategy!r}"
            )
        if not 1 <= parts <= MOST_PARTS:
            raise UsageError(
                f"a program is searched in 1 to {MOST_PARTS:,} parts at once, not {parts}"
            )
        if plan.trials > MOST_PROGRAMS:
            raise UsageError(
                f"an exhaustive search has {MOST_PROGRAMS:,} programs at most, not {plan.trials:,}; "
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
        self._stage = 0  # id of the first chunk of the last stage

    @property
    def trials(self) -> int:
        """The number of parts known so far, without the parts of rests that are not yet cut."""
        return len(self._chunks)

    @property
    def chunk_trials(self) -> float:
        return 1.0

    @property
    def chunk_count(self) -> int:
        return len(self._chunks)

    def chunk(self, chunk_id: int) -> Chunk:
        """Return the chunk with this id; its stage must be known."""
        if not 0 <= chunk_id < self.chunk_count:
            raise UsageError(
                f"chunk ids of this search are 0 to {self.chunk_count - 1}, not {chunk_id}"
            )
        return self._chunks[chunk_id]

    def difference(self, other: Exhaustive | None) -> str:
        """Describe the first setting in which another search differs; "" when all are equal."""
        if other is None:
            return "it is not an exhaustive search"
        return (
            ""
            if self.parts == other.parts
            else f"its parts is {other.parts!r} and not {self.parts!r}"
        )

    def to_data(self) -> dict[str, object]:
        """Return the settings as plain data for ``json``."""
        return {"parts": self.parts}

    @staticmethod
    def reopened(directory: Path, plan: Plan, data: object) -> Exhaustive:
        """The search of a run with these settings, as far as it came. UsageError for damage."""
        try:
            settings = check_keys(data, {"parts": int}, f"the search in {directory / 'run.json'}")
        except BadRecordError as error:
            raise UsageError(str(error)) from None
        search = Exhaustive(plan, settings["parts"])
        search.read(directory)
        return search

    def stages(self, store: RunStore) -> Iterator[Iterator[Chunk]]:
        """Yield the chunks of each stage; a stage with a part that has no row is the last."""
        self.read(store.directory)
        while self._stage < len(self._chunks):
            yield iter(self._chunks[self._stage :])
            before = self._stage
            self.read(store.directory)
            if self._stage == before:
                return

    def read(self, directory: Path) -> None:
        """Read every complete stage from disk, and cut the rest of the last one into parts."""
        from pulsar_ml.campaign.store.store import waves_of

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
            self.take([rows[number] for number in range(self._stage, len(self._chunks))])

    def take(self, rows: Sequence[Row]) -> None:
        """Add the rows of the last stage, in the order of its chunks, and make the next one."""
        rests: dict[Program, list[Part | ReducedPart]] = {}
        for chunk, row in zip(self._chunks[self._stage :], rows, strict=True):
            program = (chunk.suite, chunk.seed_lo)
            if (row["suite"], row["seed"], row["part"]) != (*program, chunk.part):
                raise UsageError(
                    f"the row of {chunk} is damaged: it is not of that part of the search"
                )
            self.programs[program].add(row)
            if row["rest"]:
                rests.setdefault(program, []).append(Part.of(row["rest"]))
        for program, found in rests.items():
            given_up = [part for part in found if isinstance(part, Part) and part.unreduced]
            if given_up:
                self._search_unreduced(program, found, given_up)
        self._stage = len(self._chunks)
        for program, searched in self.programs.items():
            parts = [] if searched.failed else divided(rests.get(program, ()), self.parts)
            searched.left = len(parts)
            for part in parts:
                self._chunks.append(self._chunk(len(self._chunks), program, str(part)))

    def _search_unreduced(
        self,
        program: Program,
        rests: list[Part | ReducedPart],
        given_up: list[Part],
    ) -> None:
        """Keep the rests of the search without reduction alone; it begins once for all parts."""
        searched = self.programs[program]
        if not searched.unreduced:
            whole = min(given_up, key=lambda part: len(part.path))
            begins_again = not whole.path
            rests[:] = [whole]
            if begins_again:
                searched.bounds.clear()
        searched.unreduced |= given_up[0].unreduced

    def _chunk(self, number: int, program: Program, part: str) -> Chunk:
        suite, seed = program
        return Chunk(number, suite, seed, seed + 1, part=part)
