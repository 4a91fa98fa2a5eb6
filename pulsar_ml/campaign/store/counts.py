"""Counts that say how much a result proves, and a warning when it proves little.

A trial that exercised nothing is idle: its silence says nothing about concurrency. A history whose
check ran out of its budget is unknown, and an execution that the bound on steps ended is cut.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

IDLE_BOUND = 0.1  # a larger share of idle trials is a warning


@dataclass(frozen=True, slots=True)
class ProofCounts:
    """Numbers of trials, histories and executions. ``noun`` is the word for a trial."""

    trials: int
    idle: int
    judged: int = 0
    unknown: int = 0
    executions: int = 0
    cut: int = 0
    noun: str = "trial"

    @property
    def exercised(self) -> int:
        return self.trials - self.idle

    def trials_text(self) -> str:
        return f"{self.exercised:,} exercised, {self.idle:,} idle"

    def histories_text(self) -> str:
        histories = "history" if self.judged == 1 else "histories"
        return f"{self.judged:,} {histories} judged ({self.unknown:,} unknown)"

    def executions_text(self) -> str:
        return f"{self.executions:,} executions under the engine ({self.cut:,} cut)"

    def warning(self) -> str:
        """A sentence about too many idle trials, or ""."""
        if not self.trials or self.idle <= IDLE_BOUND * self.trials:
            return ""
        share = self.idle / self.trials
        seen = (
            "no two threads touched one location" if self.executions else "no operations overlapped"
        )
        return (
            f"warning: {self.idle:,} of {self.trials:,} {self.noun}s ({share:.0%}) were idle: "
            f"{seen}, so they prove nothing; more --operations or --threads exercise more"
        )

    def as_data(self) -> dict[str, int]:
        content = asdict(self)
        del content["noun"]
        return {**content, "exercised": self.exercised}
