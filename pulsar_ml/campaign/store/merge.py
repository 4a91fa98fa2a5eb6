"""Adds up what a campaign found: totals by suite, violations by signature with the smallest seed.

Totals are sums over the ledger, and sketches are united: nothing here grows with the number of trials.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_ml.campaign.store.ledger import ledger_of
from pulsar_ml.campaign.store.schema import COUNTED, SUMMED
from pulsar_ml.campaign.store.sketch import Sketch, estimate, union


@dataclass(slots=True)
class SuiteTotals:
    """Sums over the trials of one suite; ``busy_us`` is the time inside trials.

    ``executions`` and what follows are of the engine, and 0 for real threads. ``telling`` are the
    executions of trials that exercised something and drew their schedules; ``exhausted`` counts the trials
    whose program was searched exhaustively. ``judged`` histories were compared with the suite's model, on
    real threads too; ``unknown`` ones of them took too long to tell. Of the ``classes`` of each program,
    ``once`` were met once; ``sketch`` is of what all trials met, told apart by program: classes, or pairs of
    operations that overlapped on real threads.
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
    once: int = 0
    cut: int = 0
    exhausted: int = 0
    judged: int = 0
    unknown: int = 0
    sketch: Sketch = ()

    @property
    def distinct(self) -> int | None:
        """How many different things the trials met, about so when there are many; None: not known."""
        return estimate(self.sketch) if self.sketch else None

    @property
    def unseen_mass(self) -> float | None:
        """Good and Turing: how likely one more execution of these programs is of a class not met yet.

        The mean over executions made; None for real threads, and where no schedule was drawn.
        """
        return min(1.0, self.once / self.executions) if self.telling else None

    @property
    def residual_risk(self) -> float | None:
        """With 95 % confidence an execution of these programs fails more rarely than this.

        The rule of three, which holds only when none failed: None when one did, when nothing was
        exercised, for real threads, and for strategies that draw no schedules.
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
    def classes(self) -> int:
        return sum(totals.classes for totals in self.suites.values())

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
            name
            for name, totals in self.suites.items()
            if totals.nothing_exercised == totals.trials
        )

    @property
    def verdict(self) -> str:
        if self.groups:
            return "violation"
        return "nothing_exercised" if self.idle_suites or not self.suites else "clean"

    def in_order(self) -> list[Group]:
        """Groups by suite, then by smallest seed."""
        return sorted(
            self.groups.values(), key=lambda group: (group.suite, group.seed, group.signature)
        )


def add(
    summary: Summary, trials: pa.Table, violations: pa.Table, chunks: pa.Table | None = None
) -> list[Group]:
    """Adds a wave's tables; returns the groups that are new or have a smaller seed than before.

    Without the ledger's ``chunks`` they are made of the trials, which have no sketch.
    """
    add_chunks(summary, ledger_of(trials) if chunks is None else chunks)
    return add_violations(summary, violations)


def add_chunks(summary: Summary, chunks: pa.Table) -> None:
    """Adds rows of the ledger."""
    names = [name for name in (*COUNTED, *SUMMED) if name != "violations"]
    sums = chunks.group_by("suite", use_threads=False).aggregate([(name, "sum") for name in names])
    for line in sums.to_pylist():
        totals = summary.suites.setdefault(line["suite"], SuiteTotals())
        for name in names:
            setattr(totals, name, getattr(totals, name) + line[f"{name}_sum"])
    for suite, sketches in _by_suite(chunks).items():
        summary.suites[suite].sketch = union([summary.suites[suite].sketch, *sketches])


def _by_suite(chunks: pa.Table) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {}
    pairs = zip(chunks["suite"].to_pylist(), chunks["sketch"].to_pylist(), strict=True)
    for suite, sketch in pairs:
        if sketch:
            found.setdefault(suite, []).append(sketch)
    return found


def add_violations(summary: Summary, violations: pa.Table) -> list[Group]:
    """Adds rows of violations; returns the groups that are new or have a smaller seed than before."""
    return add_groups(summary, witnesses(violations))


def witnesses(violations: pa.Table) -> list[Group]:
    """A group for each signature."""
    # The smallest seed by a full order, so that the witness does not depend on the order of arrival.
    ordered = violations.sort_by([(name, "ascending") for name in ("seed", "message", "replay")])
    firsts = ordered.group_by("signature", use_threads=False).aggregate(
        [("seed", "count"), ("unlisted", "sum")]
        + [(name, "first") for name in ("suite", "invariant", "seed", "message", "phase", "replay")]
    )
    firsts = firsts.rename_columns([name.removesuffix("_first") for name in firsts.column_names])
    firsts = firsts.append_column("count", pc.add(firsts["seed_count"], firsts["unlisted_sum"]))
    return [
        Group(**line) for line in firsts.drop_columns(["seed_count", "unlisted_sum"]).to_pylist()
    ]


def add_groups(summary: Summary, found: Iterable[Group]) -> list[Group]:
    """Adds groups of other trials; returns those that are new or have a smaller seed than before."""
    groups = summary.groups
    changed = []
    for group in found:
        known = groups.get(group.signature)
        count = group.count + (known.count if known else 0)
        if known is None or (group.seed, group.message) < (known.seed, known.message):
            changed.append(group)
            groups[group.signature] = group
        groups[group.signature].count = count
    return changed
