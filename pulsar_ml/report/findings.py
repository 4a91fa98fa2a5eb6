"""The findings of a run: totals, violations by signature, and curves over time.

Memory is bounded for any number of rows.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pulsar_ml.campaign.plan.allocation import Gain
from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.plan.rounds import Arm, GainCounter, read_rounds
from pulsar_ml.campaign.shrink.shrunk import Shrunk, digest_of, read_state, record_path
from pulsar_ml.campaign.store.baseline import verdict_against
from pulsar_ml.campaign.store.merge import Group, Summary, add
from pulsar_ml.campaign.store.read_run import SavedRun, json_object
from pulsar_ml.campaign.store.schema import TRIALS, VIOLATIONS
from pulsar_ml.campaign.store.store import SIGNATURE
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.exit_codes import of_run
from pulsar_ml.harness.testing.known import Baseline
from pulsar_ml.report.kill_cells import NAME, KillCells, read_kill_cells
from pulsar_ml.report.run_history import RunHistory
from pulsar_ml.terminal.command_line import DEFAULT_SUITES, replay_command
from pulsar_ml.versioned_json import check_keys, check_object

if TYPE_CHECKING:
    from pulsar_ml.campaign.plan.exhaustive import Program, Searched

MOST_GROUPS = 10_000  # the most signatures in a report
MOST_MEMBERS = 10_000  # the most violations listed one by one
MOST_POINTS = 200  # the most points of a curve
POINTS_OF_BATCH = 50  # the most new points of a curve from one batch of rows
MOST_TEXT = 4_000  # the most characters of a message
KILL_TABLE = "kill-table.json"
KILL_ROW: dict[str, Any] = {
    "mutant": str | None,
    "suites": list,
    "invariants": list,
    "title": str,
    **dict.fromkeys(("seeds", "found", "crashed"), int),
    "as_expected": bool,
}
KILL_VERSION = 1
MODULE = re.compile(r"[A-Za-z_][\w.]{0,200}", re.ASCII)


Column = NDArray[Any]


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
    """Distinct classes over executions: running sums in the order of the rows, thinned evenly."""

    points: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])

    def add(self, executions: Column, classes: Column) -> None:
        total_executions = self.points[-1][0] + np.cumsum(executions)
        total_classes = self.points[-1][1] + np.cumsum(classes)
        last = len(total_executions) - 1
        rows = np.unique(np.linspace(0, last, POINTS_OF_BATCH).astype(int))
        self.points += [(int(total_executions[row]), int(total_classes[row])) for row in rows]
        if len(self.points) > MOST_POINTS:
            distance = self.points[-1][0] / (MOST_POINTS // 2)
            thinned = self.points[:1]
            for point in self.points[1:-1]:
                if point[0] - thinned[-1][0] >= distance:
                    thinned.append(point)
            self.points = [*thinned, self.points[-1]]

    def recent_rate(self) -> float | None:
        """Classes per execution in the last tenth of the executions; None without executions."""
        executions, classes = self.points[-1]
        before = [point for point in self.points if point[0] <= 0.9 * executions][-1]
        if executions == before[0]:
            return None
        return (classes - before[1]) / (executions - before[0])


@dataclass(slots=True)
class Rate:
    """Executions (or trials of real threads) over time, in buckets that widen with the run."""

    seconds: int = 1  # the width of a bucket
    buckets: Counter[int] = field(default_factory=Counter)

    def add(self, at: Column, counts: Column) -> None:
        numbers, inverse = np.unique(at // self.seconds, return_inverse=True)
        for number, count in zip(numbers, np.bincount(inverse, weights=counts), strict=True):
            self.buckets[int(number)] += int(count)
        while self.buckets and max(self.buckets) - min(self.buckets) >= MOST_POINTS:
            self.seconds *= 2
            halves = self.buckets
            self.buckets = Counter()
            for half, executions in halves.items():
                self.buckets[half // 2] += executions

    def points(self) -> list[tuple[int, float]]:
        """(seconds since the start, executions per second) of each bucket, empty ones included."""
        if not self.buckets:
            return []
        first = min(self.buckets)
        return [
            ((number - first) * self.seconds, self.buckets[number] / self.seconds)
            for number in range(first, max(self.buckets) + 1)
        ]


@dataclass(slots=True)
class Yield:
    """The totals of the trials of one engine, mode and strategy."""

    trials: int = 0
    executions: int = 0
    classes: int = 0
    violating: int = 0
    busy_us: int = 0


@dataclass(slots=True)
class Findings:
    """Everything that a report shows of a run, except the interleavings."""

    run: SavedRun
    summary: Summary = field(default_factory=Summary)
    members: dict[str, list[Member]] = field(default_factory=dict)  # by signature
    dropped: int = 0  # violations with signatures beyond MOST_GROUPS
    curves: dict[str, Curve] = field(default_factory=dict)  # by suite; empty for real threads
    rate: Rate = field(default_factory=Rate)
    exhausted: Counter[tuple[str, str]] = field(default_factory=Counter)  # (suite, bounds searched)
    yields: dict[tuple[str, str, str], Yield] = field(default_factory=dict)
    kill_table: list[dict[str, Any]] = field(default_factory=list)  # of a sweep over mutants
    rounds: list[dict[Arm, Gain]] = field(default_factory=list)  # empty for a run without rounds
    shrunk: dict[str, Shrunk] = field(default_factory=dict)  # smaller failures by signature
    kill_cells: KillCells | None = None  # the product's kill table
    searched: dict[Program, Searched] = field(default_factory=dict)  # of an exhaustive run
    source: str = ""  # the name of the file or folder, for failures without a run
    records: dict[str, Path] = field(default_factory=dict)  # their files by signature
    baseline: Baseline | None = None
    history: RunHistory | None = None

    @property
    def controlled(self) -> bool:
        return self.summary.executions > 0

    @property
    def verdict(self) -> str:
        """The verdict: "violation", "nothing_exercised" or "clean"."""
        if not self.summary.trials and self.kill_table:
            return "clean" if all(row["as_expected"] for row in self.kill_table) else "violation"
        return self.summary.verdict

    @property
    def known_only(self) -> bool:
        """True when the run has violations, all of which the baseline knows."""
        return (
            self.verdict == "violation"
            and not self.dropped
            and bool(self.summary.groups)
            and verdict_against(self.summary, self.baseline) != "violation"
        )

    @property
    def exit_code(self) -> int:
        """The exit code of the command that produced the run, with the report's baseline."""
        verdict = self.verdict
        if self.records and self.known_only:  # records without a run, which nothing can call idle
            verdict = "clean"
        elif (self.summary.trials or self.source) and not self.dropped:
            verdict = verdict_against(self.summary, self.baseline)
        return of_run(self.run.facts["status"], verdict)

    def record(self, group: Group) -> Path | None:
        """The file with the record of a group's smallest failure; None when it is missing."""
        if group.signature in self.records:
            return self.records[group.signature]
        if group.signature in self.shrunk:
            return record_path(self.run.directory, group.signature)
        return self.run.record(group.signature)

    @property
    def suites(self) -> str | None:
        """The module of the suites, if they are not those of the package."""
        registry = self.run.facts["runner"].get("registry")
        if isinstance(registry, str) and MODULE.fullmatch(registry) and registry != DEFAULT_SUITES:
            return registry
        return None

    def command(self, group: Group) -> str:
        """The command that replays a group's smallest seed; "" when its record is missing."""
        record = self.record(group)
        return "" if record is None else replay_command(record, self.suites)


def gather(
    run: SavedRun,
    on_rows: Callable[[int], object] = lambda rows: None,
    *,
    kill_cells: Path | None = None,
    baseline: Baseline | None = None,
) -> Findings:
    """Reads all rows of a run; calls ``on_rows`` with the number of rows of each batch.

    ``kill_cells`` is the product's kill table; by default the one in the run directory, if any.
    Raises BadRecordError for a damaged file.
    """
    findings = Findings(run, baseline=baseline)
    counter = gain_counter_of(run)
    beside = run.directory / NAME
    if kill_cells is not None or os.path.lexists(beside):
        findings.kill_cells = read_kill_cells(kill_cells or beside)
    for batch in run.trials():
        add_trials(findings, batch)
        if counter:
            counter.spent(batch)
        on_rows(len(batch))
    for batch in run.violations():
        add_violations(findings, batch)
        if counter:
            counter.found(batch)
        on_rows(len(batch))
    if counter:
        findings.rounds = counter.gains()
    if run.facts["search"]:
        findings.searched = searched_by(run)
    use_smaller_failures(findings)
    if (run.directory / KILL_TABLE).exists():
        findings.kill_table = read_kill_table(run)
    return findings


def gain_counter_of(run: SavedRun) -> GainCounter | None:
    """The counter of gains by round; None without rounds. BadRecordError for a damaged round."""
    if not run.facts["rounds"]:
        return None
    try:
        return GainCounter([each.first_chunk for each in read_rounds(run.directory)])
    except BadRecordError as error:
        raise BadRecordError(f"{run.directory}: {error}") from None


def searched_by(run: SavedRun) -> dict[Program, Searched]:
    """The searched programs of an exhaustive run. BadRecordError for damaged state."""
    from pulsar_ml.campaign.plan.exhaustive import Exhaustive  # slow: imports the engine

    try:
        plan = Plan.from_json(run.facts["plan"])
        return Exhaustive.reopened(run.directory, plan, run.facts["search"]).programs
    except UsageError as error:
        raise BadRecordError(f"{run.directory}: {error}") from None


def use_smaller_failures(findings: Findings) -> None:
    """Replaces the records of a run by its smaller failures. BadRecordError for a damaged one."""
    for group in findings.summary.groups.values():
        if not SIGNATURE.fullmatch(group.signature):
            continue
        try:
            state = read_state(findings.run.directory, group.signature)
        except UsageError as error:
            raise BadRecordError(str(error)) from None
        if state and state.shrunk.record and state.of == digest_of(group.replay):
            group.replay = state.shrunk.record
            findings.shrunk[group.signature] = state.shrunk


def add_trials(findings: Findings, batch: pa.Table) -> None:
    add(findings.summary, batch, VIOLATIONS.empty_table())
    column = {
        name: batch[name].to_numpy()
        for name in ("suite", "executions", "classes", "exhausted", "duration_us")
    }
    executions = column["executions"]
    for suite in np.unique(column["suite"].astype(str)):
        of_suite = column["suite"] == suite
        if executions[of_suite].any():
            curve = findings.curves.setdefault(str(suite), Curve())
            curve.add(executions[of_suite], column["classes"][of_suite])
        bounds = column["exhausted"][of_suite]
        findings.exhausted.update((str(suite), str(words)) for words in bounds if words)
    seconds = batch["finished_at"].cast(pa.int64()).to_numpy() // 1_000_000
    findings.rate.add(seconds, np.where(executions > 0, executions, 1))
    keys = ["engine", "mode", "strategy"]
    sums = batch.group_by([*keys, "verdict"]).aggregate(
        [("seed", "count"), ("executions", "sum"), ("classes", "sum"), ("duration_us", "sum")]
    )
    for line in sums.to_pylist():
        total = findings.yields.setdefault(
            (line["engine"], line["mode"], line["strategy"]), Yield()
        )
        total.trials += line["seed_count"]
        total.executions += line["executions_sum"]
        total.classes += line["classes_sum"]
        total.busy_us += line["duration_us_sum"]
        total.violating += line["seed_count"] if line["verdict"] == "violation" else 0


def add_violations(findings: Findings, batch: pa.Table) -> None:
    groups = findings.summary.groups
    add(findings.summary, TRIALS.empty_table(), batch)
    for signature in list(groups)[MOST_GROUPS:]:
        findings.dropped += groups.pop(signature).count
    listed = sum(map(len, findings.members.values()))
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
            findings.members.setdefault(line["signature"], []).append(member)


def read_kill_table(run: SavedRun) -> list[dict[str, Any]]:
    """The rows of a sweep over mutants: the mutant, its suites, and how many seeds found it."""
    path = run.directory / KILL_TABLE
    content = json_object(path)
    content = check_object(
        {"version": KILL_VERSION, **content}, str(path), versions=(KILL_VERSION,)
    )
    rows = check_keys(content, {"rows": list[dict[str, Any]]}, str(path), others=True)["rows"]
    for number, row in enumerate(rows):
        check_keys(row, KILL_ROW, f"row {number} of {path}", optional={"mutant"}, others=True)
    return list(rows[:MOST_GROUPS])
