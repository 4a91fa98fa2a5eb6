"""Adds up what a campaign found: totals by suite, violations by signature with the smallest seed."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

SUMMED = (
    "executions",
    "steps",
    "classes",
    "cut",
    "judged",
    "unknown",
)  # columns of trials and fields of the totals


@dataclass(slots=True)
class SuiteTotals:
    """Sums over the trials of one suite; ``busy_us`` is the time inside trials.

    ``executions`` and what follows are of the engine, and 0 for real threads. ``telling`` are the
    executions of trials that exercised something; ``exhausted`` counts the trials whose program was
    searched exhaustively. ``judged`` histories were compared with the suite's model, on real threads too;
    ``unknown`` ones of them took too long to tell.
    """

    trials: int = 0
    clean: int = 0
    violation: int = 0
    nothing_exercised: int = 0
    operations: int = 0
    overlaps: int = 0
    busy_us: int = 0
    executions: int = 0
    telling: int = 0
    steps: int = 0
    classes: int = 0
    cut: int = 0
    exhausted: int = 0
    judged: int = 0
    unknown: int = 0

    @property
    def residual_risk(self) -> float | None:
        """With 95 % confidence an execution of these programs fails more rarely than this.

        The rule of three, which holds only when none failed: None when one did, when nothing was
        exercised, and for real threads.
        """
        if self.violation or not self.telling:
            return None
        return min(1.0, 3 / self.telling)


@dataclass(slots=True)
class Group:
    """Violations that look alike; message, phase and record are those of the smallest seed."""

    signature: str
    suite: str
    invariant: str
    count: int
    seed: int
    message: str
    phase: str
    replay: str


@dataclass(slots=True)
class Summary:
    """The merged result of any number of waves. Its size does not depend on the number of trials."""

    suites: dict[str, SuiteTotals] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)

    @property
    def trials(self) -> int:
        return sum(totals.trials for totals in self.suites.values())

    @property
    def operations(self) -> int:
        return sum(totals.operations for totals in self.suites.values())

    @property
    def executions(self) -> int:
        return sum(totals.executions for totals in self.suites.values())

    @property
    def judged(self) -> int:
        return sum(totals.judged for totals in self.suites.values())

    @property
    def unknown(self) -> int:
        return sum(totals.unknown for totals in self.suites.values())

    @property
    def violations(self) -> int:
        return sum(group.count for group in self.groups.values())

    @property
    def idle_suites(self) -> list[str]:
        """Suites of which no trial exercised anything: their silence proves nothing."""
        return sorted(
            name for name, totals in self.suites.items() if totals.nothing_exercised == totals.trials
        )

    @property
    def verdict(self) -> str:
        if self.groups:
            return "violation"
        return "nothing_exercised" if self.idle_suites or not self.suites else "clean"

    def in_order(self) -> list[Group]:
        """Groups by suite, then by smallest seed."""
        return sorted(self.groups.values(), key=lambda group: (group.suite, group.seed, group.signature))


def add(summary: Summary, trials: pa.Table, violations: pa.Table) -> list[Group]:
    """Adds a wave's tables; returns the groups that are new or have a smaller seed than before."""
    _add_trials(summary.suites, trials)
    return _add_violations(summary.groups, violations)


def _add_trials(suites: dict[str, SuiteTotals], trials: pa.Table) -> None:
    proved = pc.cast(pc.not_equal(trials["exhausted"], ""), pa.int64())
    trials = trials.append_column("proved", proved)
    summed = [*SUMMED, "overlaps", "operations", "duration_us", "proved"]
    sums = trials.group_by(["suite", "verdict"]).aggregate(
        [("seed", "count"), *((name, "sum") for name in summed)]
    )
    for line in sums.to_pylist():
        totals = suites.setdefault(line["suite"], SuiteTotals())
        count = line["seed_count"]
        totals.trials += count
        totals.operations += line["operations_sum"]
        totals.overlaps += line["overlaps_sum"]
        totals.busy_us += line["duration_us_sum"]
        totals.exhausted += line["proved_sum"]
        for name in SUMMED:
            setattr(totals, name, getattr(totals, name) + line[f"{name}_sum"])
        if line["verdict"] != "nothing_exercised":
            totals.telling += line["executions_sum"]
        match line["verdict"]:
            case "violation":
                totals.violation += count
            case "nothing_exercised":
                totals.nothing_exercised += count
            case _:
                totals.clean += count


def _add_violations(groups: dict[str, Group], violations: pa.Table) -> list[Group]:
    # The smallest seed by a full order, so that the witness does not depend on the order of arrival.
    ordered = violations.sort_by([("seed", "ascending"), ("message", "ascending")])
    firsts = ordered.group_by("signature", use_threads=False).aggregate(
        [("seed", "count")]
        + [(name, "first") for name in ("suite", "invariant", "seed", "message", "phase", "replay")]
    )
    changed = []
    for line in firsts.to_pylist():
        found = Group(
            signature=line["signature"],
            suite=line["suite_first"],
            invariant=line["invariant_first"],
            count=line["seed_count"],
            seed=line["seed_first"],
            message=line["message_first"],
            phase=line["phase_first"],
            replay=line["replay_first"],
        )
        known = groups.get(found.signature)
        if known is None or (found.seed, found.message) < (known.seed, known.message):
            changed.append(found)
            groups[found.signature] = found
        if known is not None:
            groups[found.signature].count = known.count + line["seed_count"]
    return changed
