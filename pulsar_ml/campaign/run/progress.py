"""Progress of a running campaign: sums of finished waves and reports of the wave under way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pulsar_ml.campaign.run.runner import Watch
from pulsar_ml.campaign.store.merge import Summary


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of a campaign at one moment; ``signatures`` counts those of finished waves.

    ``earlier`` trials and ``earlier_executions`` were run before this process resumed the campaign.
    ``total`` is None for a campaign without an end. ``executions`` and ``classes`` are 0 on real
    threads. ``wave`` is the number of the wave under way and ``round`` the number of its stage: a
    plan is one stage, each round is one, and without an end each batch is one. ``inside`` is the
    share of core time that the finished waves of this process spent inside concurrent runs, or
    under the engine inside executions; None before there is one.
    """

    trials: int
    total: int | None
    violations: int
    signatures: int
    elapsed: float
    earlier: int = 0
    executions: int = 0
    earlier_executions: int = 0
    classes: int = 0
    wave: int = 0
    round: int = 1
    inside: float | None = None

    @property
    def rate(self) -> float:
        """Trials per second of this process."""
        return (self.trials - self.earlier) / self.elapsed if self.elapsed > 0 else 0.0

    @property
    def execution_rate(self) -> float:
        """Executions per second of this process."""
        return (
            (self.executions - self.earlier_executions) / self.elapsed if self.elapsed > 0 else 0.0
        )

    @property
    def seconds_left(self) -> float | None:
        if self.total is None or self.trials <= self.earlier or not self.rate:
            return None
        return (self.total - self.trials) / self.rate


class Meter:
    """Adds runners' reports of the wave under way to the summary of finished waves."""

    def __init__(
        self,
        summary: Summary,
        total: int | None,
        show: Callable[[Progress], None],
        *,
        cores: int,
    ) -> None:
        self._summary = summary
        self.total = total  # may grow, where trials lead to more trials
        self._show = show
        self._began = time.monotonic()
        self._earlier = (summary.trials, summary.executions)
        self._cores = cores
        self._earlier_us = inside_us(summary)
        self._inside: float | None = None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def kept(self) -> None:
        """Measure the core time of the waves that the summary has."""
        spent = inside_us(self._summary) - self._earlier_us
        if self.seconds > 0 and spent > 0:
            self._inside = spent / (self._cores * self.seconds * 1e6)

    def watch(
        self, wave: int, stopped: Callable[[], bool], stage: int = 1, *, carry: bool = False
    ) -> Watch:
        """Return the watch for the runner of a wave, or of the rest of a wave."""
        trials = violations = executions = classes = 0

        def done(more: int, found: int) -> None:
            nonlocal trials, violations
            trials, violations = trials + more, violations + found
            self.report(wave, stage, trials, violations, executions, classes)

        def searched(more: int, new: int) -> None:
            nonlocal executions, classes
            executions, classes = executions + more, classes + new

        return Watch(stopped, done, searched, wave, stage, carry=carry)

    def report(
        self,
        wave: int,
        stage: int,
        trials: int = 0,
        violations: int = 0,
        executions: int = 0,
        classes: int = 0,
    ) -> None:
        """Show the progress; the arguments count the wave under way."""
        summary = self._summary
        self._show(
            Progress(
                trials=summary.trials + trials,
                total=self.total,
                violations=summary.violations + violations,
                signatures=len(summary.groups),
                elapsed=self.seconds,
                earlier=self._earlier[0],
                executions=summary.executions + executions,
                earlier_executions=self._earlier[1],
                classes=summary.classes + classes,
                wave=wave,
                round=stage,
                inside=self._inside,
            )
        )


def inside_us(summary: Summary) -> int:
    """The microseconds of processor time that all trials spent inside runs or executions."""
    return sum(totals.run_us for totals in summary.suites.values())
