"""Options: what a linearizability check may do, and how long."""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.linearize.checker import MEMORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a check.

    Attributes:
        partition: check the keys of a model with a partition one by one.
        monitors: use monitors for models of a register, queue, stack or set.
        natively: use native searches for the models of this package, without calling their methods.
        most_steps: the limit of steps of all searches together; beyond it the answer is "unknown".
        memory: the limit in bytes for each of states, answers and configurations; likewise.
        timeout: the limit in seconds for the answer and its explanation together; None: no limit.
        workers: the most processes that search parts side by side; more than one are forks of this
            process, begun when a check takes long. Answers do not depend on their number.
        explain: compute the core of an illegal history, and the order that leads to it.
        weaker: also check an illegal history against the weaker criteria.
    """

    partition: bool = True
    monitors: bool = True
    natively: bool = True
    most_steps: int = 50_000_000
    memory: int = MEMORY
    timeout: float | None = None
    workers: int = 1
    explain: bool = True
    weaker: bool = True

    def __post_init__(self) -> None:
        """Raise UsageError for a limit that is none."""
        for name in ("most_steps", "memory", "workers"):
            limit = getattr(self, name)
            if not isinstance(limit, int) or limit < 1:
                raise UsageError(f"{name} is {limit!r}; it should be an integer >= 1")
        seconds = self.timeout
        if seconds is not None and not (
            isinstance(seconds, int | float) and 0 < seconds < float("inf")
        ):
            raise UsageError(f"the timeout is {seconds!r}; it should be a number of seconds > 0")


DEFAULT = Options()
