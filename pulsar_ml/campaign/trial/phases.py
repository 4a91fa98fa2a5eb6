"""The processor time of a trial by phase: inside the concurrent run, and around it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pulsar_ml.harness.subjects.result import CoreTime


@dataclass(slots=True)
class Phases:
    """Nanoseconds of processor time that all threads of this process spent in each phase.

    Attributes:
        draw: drawing programs from the seed.
        create: creating instances.
        run: inside concurrent runs; under the engine all executions, with the judging of answers.
        wait: starting threads, and waiting until all of a run have arrived or ended.
        check: invariants behind the run, and the end of the instance.
        record: short runs whose histories are recorded.
        judge: comparing these histories with the model.
    """

    draw: int = 0
    create: int = 0
    run: int = 0
    wait: int = 0
    check: int = 0
    record: int = 0
    judge: int = 0

    @contextmanager
    def of(self, phase: str) -> Iterator[None]:
        """Add the time of the block to a phase, also when it raises.

        Linux advances this clock by ticks of some milliseconds while the engine's timer runs, and
        up to a tick after it: a short phase between trials under the engine may be 0.
        """
        began = time.process_time_ns()
        try:
            yield
        finally:
            setattr(self, phase, getattr(self, phase) + time.process_time_ns() - began)

    @contextmanager
    def of_threads(self) -> Iterator[list[CoreTime]]:
        """Add the time of the block to those phases in which its runs spent it.

        The block appends the times of its runs; what is left of the block's time was waiting.
        """
        runs: list[CoreTime] = []
        with self.of("wait"):
            yield runs
        for spent in runs:
            self.run += spent.inside
            self.draw += spent.draw
            self.create += spent.create
            self.check += spent.check
            self.wait = max(0, self.wait - sum(spent))

    @property
    def around(self) -> int:
        """The time outside of concurrent runs."""
        return self.draw + self.create + self.wait + self.check + self.record + self.judge
