"""What the rows of a run add up to: totals, violations by signature, and how it went on. Bounded in memory,
whatever the number of rows.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pulsar_ml.campaign.plan.allocation import Gain
from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.plan.rounds import Arm, GainCounter, read_rounds
from pulsar_ml.campaign.shrink.shrunk import Shrunk, digest_of, read_state, record_path
from pulsar_ml.campaign.store.merge import Group, Summary, add
from pulsar_ml.campaign.store.read_run import SIGNATURE, SavedRun, json_object
from pulsar_ml.campaign.store.schema import TRIALS, VIOLATIONS
from pulsar_ml.campaign.store.summary import short_path
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.report.kill_cells import NAME, KillCells, read_kill_cells

if TYPE_CHECKING:
    from pulsar_ml.campaign.plan.exhaustive import Program, Searched

MOST_GROUPS = 10_000  # of signatures that are told apart; a run with more has another problem
MOST_MEMBERS = 10_000  # violations listed one by one
MOST_POINTS = 200  # of a curve
POINTS_OF_BATCH = 50
MOST_TEXT = 4_000  # characters of a message
KILL_TABLE = "kill-table.json"
KILL_VERSION = 1
REGISTRY = "pulsar_ml.suites.registry"  # whose suites a command finds without being told
MODULE = re.compile(r"[A-Za-z_][\w.]{0,200}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Member:
    """One violation of a group."""

    seed: int
    message: str
    host: str
    log: str
    at: str


@dataclass(slots=True)
class Curve:
    """Distinct classes over executions, both summed up in the order of the rows, thinned out evenly."""

    points: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])

    def add(self, executions: np.ndarray, classes: np.ndarray) -> None:
        made = self.points[-1][0] + np.cumsum(executions)
        seen = self.points[-1][1] + np.cumsum(classes)
        places = np.unique(np.linspace(0, len(made) - 1, POINTS_OF_BATCH).astype(int))
        self.points += [(int(made[place]), int(seen[place])) for place in places]
        if len(self.points) > MOST_POINTS:
            apart = self.points[-1][0] / (MOST_POINTS // 2)
            kept = self.points[:1]
            for point in self.points[1:-1]:
                if point[0] - kept[-1][0] >= apart:
                    kept.append(point)
            self.points = [*kept, self.points[-1]]

    def lately(self) -> float | None:
        """Classes per execution in the last tenth of the executions; None for none."""
        made, seen = self.points[-1]
        before = [point for point in self.points if point[0] <= 0.9 * made][-1]
        return (seen - before[1]) / (made - before[0]) if made > before[0] else None


@dataclass(slots=True)
class Rate:
    """Executions (trials of real threads) by time, in buckets that grow with the length of the run."""

    seconds: int = 1  # of a bucket
    buckets: Counter[int] = field(default_factory=Counter)

    def add(self, at: np.ndarray, counts: np.ndarray) -> None:
        places, inverse = np.unique(at // self.seconds, return_inverse=True)
        for place, count in zip(places, np.bincount(inverse, weights=counts), strict=True):
            self.buckets[int(place)] += int(count)
        while self.buckets and max(self.buckets) - min(self.buckets) >= MOST_POINTS:
            self.seconds *= 2
            halves = self.buckets
            self.buckets = Counter()
            for place, count in halves.items():
                self.buckets[place // 2] += count

    def points(self) -> list[tuple[int, float]]:
        """(seconds since the start, per second), without a gap."""
        if not self.buckets:
            return []
        first = min(self.buckets)
        places = range(first, max(self.buckets) + 1)
        return [
            ((place - first) * self.seconds, self.buckets[place] / self.seconds) for place in places
        ]


@dataclass(slots=True)
class Yield:
    """What trials of one engine, mode and strategy brought."""

    trials: int = 0
    executions: int = 0
    classes: int = 0
    violating: int = 0
    busy_us: int = 0


@dataclass(slots=True)
class Findings:
    """Everything that reports tell of a run but its interleavings."""

    run: SavedRun
    summary: Summary = field(default_factory=Summary)
    members: dict[str, list[Member]] = field(default_factory=dict)  # by signature
    dropped: int = 0  # violations with signatures beyond MOST_GROUPS
    curves: dict[str, Curve] = field(default_factory=dict)  # by suite; none for real threads
    rate: Rate = field(default_factory=Rate)
    exhausted: Counter[tuple[str, str]] = field(default_factory=Counter)  # (suite, what was proved)
    yields: dict[tuple[str, str, str], Yield] = field(default_factory=dict)
    kill_table: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[dict[Arm, Gain]] = field(default_factory=list)  # empty for a run without them
    shrunk: dict[str, Shrunk] = field(
        default_factory=dict
    )  # by signature, where there is a smaller failure
    kill_cells: KillCells | None = None  # of the product, where there is one
    searched: dict[Program, Searched] = field(
        default_factory=dict
    )  # of a run that searches to the end

    @property
    def controlled(self) -> bool:
        return self.summary.executions > 0

    @property
    def verdict(self) -> str:
        """ "violation", "nothing_exercised" or "clean"."""
        if not self.summary.trials and self.kill_table:
            return "clean" if all(row["as_expected"] for row in self.kill_table) else "violation"
        return self.summary.verdict

    @property
    def exit_code(self) -> int:
        """The one with which a command that made this run ends."""
        by_status = {"interrupted": 130, "failed": 4}
        by_verdict = {"violation": 1, "nothing_exercised": 3, "clean": 0}
        return by_status.get(self.run.facts["status"], by_verdict[self.verdict])

    def command(self, group: Group) -> str:
        """What makes a group's violation of the smallest seed again; "" when its record is not there."""
        record = self.run.record(group.signature)
        if group.signature in self.shrunk:
            record = record_path(self.run.directory, group.signature)
        if record is None:
            return ""
        registry = self.run.facts["runner"].get("registry")
        other = isinstance(registry, str) and MODULE.fullmatch(registry) and registry != REGISTRY
        suites = f"--suites {registry} " if other else ""
        return f"python -m stress {suites}replay {shlex.quote(short_path(record))}"


def gather(
    run: SavedRun,
    told: Callable[[int], object] = lambda rows: None,
    *,
    kill_cells: Path | None = None,
) -> Findings:
    """Reads all rows of a run; ``told`` gets the number of each batch. BadRecordError when one is damaged.

    ``kill_cells`` is the product's kill table; without it the one beside the run counts, if there is one.
    """
    found = Findings(run)
    counter = gain_counter_of(run)
    beside = run.directory / NAME
    if kill_cells is not None or os.path.lexists(beside):
        found.kill_cells = read_kill_cells(kill_cells or beside)
    for batch in run.trials():
        add_trials(found, batch)
        if counter:
            counter.spent(batch)
        told(len(batch))
    for batch in run.violations():
        add_violations(found, batch)
        if counter:
            counter.found(batch)
        told(len(batch))
    if counter:
        found.rounds = counter.gains()
    if run.facts["search"]:
        found.searched = searched_by(run)
    take_smaller(found)
    if (run.directory / KILL_TABLE).exists():
        found.kill_table = read_kill_table(run)
    return found


def gain_counter_of(run: SavedRun) -> GainCounter | None:
    """What adds up the rounds of a run, if it has rounds. BadRecordError when one of them is damaged."""
    if not run.facts["rounds"]:
        return None
    try:
        return GainCounter([each.first_chunk for each in read_rounds(run.directory)])
    except BadRecordError as error:
        raise BadRecordError(f"{run.directory}: {error}") from None


def searched_by(run: SavedRun) -> dict[Program, Searched]:
    """What the searches of a run have shown. BadRecordError when it is damaged."""
    from pulsar_ml.campaign.plan.exhaustive import Exhaustive  # and with it the engine

    try:
        plan = Plan.from_json(run.facts["plan"])
        return Exhaustive.reopened(run.directory, plan, run.facts["search"]).programs
    except UsageError as error:
        raise BadRecordError(f"{run.directory}: {error}") from None


def take_smaller(found: Findings) -> None:
    """Puts the smaller failures of a run in the places of its records. BadRecordError for a damaged one."""
    for group in found.summary.groups.values():
        if not SIGNATURE.fullmatch(group.signature):
            continue
        try:
            state = read_state(found.run.directory, group.signature)
        except UsageError as error:
            raise BadRecordError(str(error)) from None
        if state and state.shrunk.record and state.of == digest_of(group.replay):
            group.replay = state.shrunk.record
            found.shrunk[group.signature] = state.shrunk


def add_trials(found: Findings, batch: pa.Table) -> None:
    add(found.summary, batch, VIOLATIONS.empty_table())
    column = {
        name: batch[name].to_numpy()
        for name in ("suite", "executions", "classes", "exhausted", "duration_us")
    }
    executions = column["executions"]
    for suite in np.unique(column["suite"].astype(str)):
        of_suite = column["suite"] == suite
        if executions[of_suite].any():
            curve = found.curves.setdefault(str(suite), Curve())
            curve.add(executions[of_suite], column["classes"][of_suite])
        proved = column["exhausted"][of_suite]
        found.exhausted.update((str(suite), str(words)) for words in proved if words)
    seconds = batch["finished_at"].cast(pa.int64()).to_numpy() // 1_000_000
    found.rate.add(seconds, np.where(executions > 0, executions, 1))
    keys = ["engine", "mode", "strategy"]
    sums = batch.group_by([*keys, "verdict"]).aggregate(
        [("seed", "count"), ("executions", "sum"), ("classes", "sum"), ("duration_us", "sum")]
    )
    for line in sums.to_pylist():
        total = found.yields.setdefault((line["engine"], line["mode"], line["strategy"]), Yield())
        total.trials += line["seed_count"]
        total.executions += line["executions_sum"]
        total.classes += line["classes_sum"]
        total.busy_us += line["duration_us_sum"]
        total.violating += line["seed_count"] if line["verdict"] == "violation" else 0


def add_violations(found: Findings, batch: pa.Table) -> None:
    groups = found.summary.groups
    add(found.summary, TRIALS.empty_table(), batch)
    for signature in list(groups)[MOST_GROUPS:]:
        found.dropped += groups.pop(signature).count
    listed = sum(map(len, found.members.values()))
    if listed >= MOST_MEMBERS:
        return
    for line in batch.select(
        ["signature", "seed", "message", "host", "log", "finished_at"]
    ).to_pylist():
        if line["signature"] in groups and listed < MOST_MEMBERS:
            listed += 1
            at = line["finished_at"].isoformat(timespec="seconds")
            member = Member(
                line["seed"], line["message"][:MOST_TEXT], line["host"], line["log"], at
            )
            found.members.setdefault(line["signature"], []).append(member)


def read_kill_table(run: SavedRun) -> list[dict[str, Any]]:
    """The rows of a run over mutants: which was found, where, and whether that is as expected."""
    path = run.directory / KILL_TABLE
    content = json_object(path)
    if (version := content.get("version", KILL_VERSION)) != KILL_VERSION or type(
        version
    ) is not int:
        raise BadRecordError(
            f"{path} has version {version!r:.60}; this release reads version {KILL_VERSION}"
        )
    rows = content.get("rows")
    kinds = {"title": str, "seeds": int, "found": int, "crashed": int, "as_expected": bool}
    if not isinstance(rows, list) or not all(
        isinstance(row, dict)
        and isinstance(row.get("mutant"), str | None)
        and isinstance(row.get("suites"), list)
        and isinstance(row.get("invariants"), list)
        and all(type(row.get(name)) is kind for name, kind in kinds.items())
        for row in rows
    ):
        raise BadRecordError(f"{path} is damaged: it should hold rows of mutants with counts")
    return rows[:MOST_GROUPS]
