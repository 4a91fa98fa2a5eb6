"""Adds up a campaign: totals by suite, and violations by signature with the smallest seed.

Totals are sums over the ledger, and sketches are united: memory does not grow with the trials.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pulsar_ml.campaign.store.counts import ProofCounts
from pulsar_ml.campaign.store.ledger import ledger_of
from pulsar_ml.campaign.store.schema import COUNTED, SUMMED
from pulsar_ml.campaign.store.sketch import Sketch, estimate, union
from pulsar_ml.harness.engine import SEARCHES


@dataclass(slots=True)
class SuiteTotals:
    """Sums over the trials of one suite; ``busy_us`` is the time inside trials.

    ``executions`` and the fields below it count the engine's work and are 0 on real threads.
    ``telling`` counts the executions of trials that exercised something and drew their schedules at
    random; ``exhausted`` counts trials whose program was searched exhaustively. ``judged`` counts
    histories compared with the suite's model, also on real threads, and ``unknown`` those whose
    check ran out of its budget. Of the ``classes`` of each program, ``once`` were seen exactly
    once. ``sketch`` is the sketch of the classes of all programs, or, on real threads, of the pairs
    of operations that overlapped. ``sampled`` and ``sampled_once`` are ``executions`` and ``once``
    of the strategies that draw schedules at random. ``draw_us`` to ``judge_us`` are processor time
    by phase, see :class:`pulsar_ml.campaign.trial.phases.Phases`.
    """

    trials: int = 0
    clean: int = 0
    violation: int = 0
    nothing_exercised: int = 0
    operations: int = 0
    overlaps: int = 0
    runs: int = 0
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
    draw_us: int = 0
    create_us: int = 0
    run_us: int = 0
    wait_us: int = 0
    check_us: int = 0
    record_us: int = 0
    judge_us: int = 0
    sampled: int = 0
    sampled_once: int = 0
    sketch: Sketch = ()

    @property
    def counts(self) -> ProofCounts:
        return ProofCounts(
            trials=self.trials,
            idle=self.nothing_exercised,
            judged=self.judged,
            unknown=self.unknown,
            executions=self.executions,
            cut=self.cut,
        )

    @property
    def distinct(self) -> int | None:
        """The number of distinct classes or pairs, an estimate when there are many.

        None: unknown.
        """
        return estimate(self.sketch) if self.sketch else None

    @property
    def unseen_mass(self) -> float | None:
        """Good and Turing's estimate: the probability that one more execution has an unseen class.

        A mean over the executions; None on real threads and for strategies that draw no schedules.
        """
        return min(1.0, self.sampled_once / self.sampled) if self.telling and self.sampled else None

    @property
    def residual_risk(self) -> float | None:
        """The bound below which, with 95 % confidence, the failure rate of an execution lies.

        By the rule of three, which holds only without a failure: None after a failure, when nothing
        was exercised, on real threads, and for strategies that draw no schedules.
        """
        if self.violation or not self.telling:
            return None
        return min(1.0, 3 / self.telling)


@dataclass(slots=True)
class Group:
    """The violations of one signature; message, phase and record are those of the smallest seed."""

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
    """The merged result of any number of waves.

    Its size does not depend on the number of trials.
    """

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
    def counts(self) -> ProofCounts:
        totals = self.suites.values()
        return ProofCounts(
            trials=self.trials,
            idle=sum(one.nothing_exercised for one in totals),
            judged=self.judged,
            unknown=self.unknown,
            executions=self.executions,
            cut=sum(one.cut for one in totals),
        )

    @property
    def idle_suites(self) -> list[str]:
        """The suites of which no trial exercised anything: their silence proves nothing."""
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
        """The groups by suite, then by smallest seed."""
        return sorted(
            self.groups.values(), key=lambda group: (group.suite, group.seed, group.signature)
        )


def add(
    summary: Summary, trials: pa.Table, violations: pa.Table, chunks: pa.Table | None = None
) -> list[Group]:
    """Add a wave's tables; return the groups that are new or have a smaller seed than before.

    Without the ledger's ``chunks``, sums are made from the trials, which have no sketch.
    """
    add_chunks(summary, ledger_of(trials) if chunks is None else chunks)
    return add_violations(summary, violations)


def add_chunks(summary: Summary, chunks: pa.Table) -> None:
    """Add rows of the ledger."""
    names = [name for name in (*COUNTED, *SUMMED) if name != "violations"]
    sums = chunks.group_by("suite", use_threads=False).aggregate([(name, "sum") for name in names])
    for line in sums.to_pylist():
        totals = summary.suites.setdefault(line["suite"], SuiteTotals())
        for name in names:
            setattr(totals, name, getattr(totals, name) + line[f"{name}_sum"])
    for line in sums_of_samples(chunks):
        totals = summary.suites[line["suite"]]
        totals.sampled += line["executions_sum"]
        totals.sampled_once += line["once_sum"]
    for suite, sketches in _by_suite(chunks).items():
        summary.suites[suite].sketch = union([summary.suites[suite].sketch, *sketches])


def sums_of_samples(chunks: pa.Table) -> list[dict[str, Any]]:
    """Return the executions and classes of each suite, without those of exhaustive searches."""
    searches = pa.array(SEARCHES, chunks.schema.field("strategy").type)
    samples = chunks.filter(pc.invert(pc.is_in(chunks["strategy"], searches)))
    sums = samples.group_by("suite", use_threads=False).aggregate(
        [("executions", "sum"), ("once", "sum")]
    )
    found: list[dict[str, Any]] = sums.to_pylist()
    return found


def _by_suite(chunks: pa.Table) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {}
    pairs = zip(chunks["suite"].to_pylist(), chunks["sketch"].to_pylist(), strict=True)
    for suite, sketch in pairs:
        if sketch:
            found.setdefault(suite, []).append(sketch)
    return found


def add_violations(summary: Summary, violations: pa.Table) -> list[Group]:
    """Add rows of violations; return the groups that are new or have a smaller seed."""
    return add_groups(summary, witnesses(violations))


def witnesses(violations: pa.Table) -> list[Group]:
    """Return one group for each signature."""
    # By a total order, so that the smallest seed does not depend on the order of arrival.
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
    """Add groups of other trials; return the groups that are new or have a smaller seed."""
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
