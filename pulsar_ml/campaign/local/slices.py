"""A suite whose exploration goes on slice by slice, each behind the programs of the one before."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pulsar_ml.campaign.local.exploring import SuiteExploration
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.harness.budgets.split import Slice, share_words

MOST_SEEDS = 10**9  # more than a time leaves room for


@dataclass(slots=True)
class SuiteSlices:
    """One suite of an exploration.

    Attributes:
        explore: explores programs from ``seed`` on, within ``seeds`` and ``seconds``, and adds them
            to ``total``; see :func:`pulsar_ml.campaign.local.exploring.explore_suite`.
        seed: the first seed of the suite.
        latest: the last slice.
        on_end: is called once, with the suite, when no more slices are of use.
    """

    suite: Suite
    total: SuiteExploration
    explore: Callable[..., None]
    seed: int
    on_end: Callable[[SuiteSlices], object]
    latest: Slice | None = None
    spent: float = 0.0
    slices: int = 0
    reported: bool = False

    @property
    def last(self) -> Slice | None:
        """The last slice; None behind a failure."""
        return None if self.total.failure is not None or self.reported else self.latest

    def run(self, seeds: int, seconds: float | None) -> None:
        """Explore the suite within a budget of its own."""
        try:
            self.explore(seed=self.seed, seeds=seeds, seconds=seconds)
        finally:
            self.end()

    def go_on(self, seconds: float) -> None:
        """Explore for one slice, at least one program."""
        started = time.monotonic()
        total = self.total
        executions, classes = total.executions, total.counts["classes"]
        self.slices += 1
        self.explore(seed=self.seed + total.programs, seeds=MOST_SEEDS, seconds=seconds)
        self.spent += time.monotonic() - started
        self.latest = Slice(total.executions - executions, total.counts["classes"] - classes)
        if total.failure is not None:
            self.end()

    def end(self) -> None:
        if not self.reported:
            self.reported = True
            self.on_end(self)

    def share(self) -> str:
        """Describe what the suite got of a budget, and what was new in its last slice."""
        return f"budget: {share_words(self.spent, self.slices, self.latest)}"


def budget_words(budget: float, begun: Sequence[SuiteSlices], missed: Sequence[str]) -> str:
    """Say what each suite got of a budget, what its last slice found, and what got nothing."""
    parts = []
    for one in begun:
        new = one.latest.new if one.latest else 0
        failed = one.total.failure is not None
        state = "failed" if failed else f"{new:,} new in its last slice"
        parts.append(f"{one.suite.name} {one.spent:.1f} s ({state})")
    words = f"budget of {budget:g} s: {', '.join(parts) or 'no suite'}"
    return f"{words}; not run: {', '.join(missed)}" if missed else words
