"""Verdict: the result of a linearizability check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LEGAL, ILLEGAL, UNKNOWN = "legal", "illegal", "unknown"

SEQUENTIAL, QUIESCENT = "sequentially consistent", "quiescently consistent"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a history. All indices refer to the history's records.

    Attributes:
        answer: "legal", "illegal", or "unknown": the check reached a limit, which ``reason`` names.
        method: the algorithm that gave the answer: "search", "just in time" or "monitor".
        reason: the limit that was reached; "" for a definite answer.
        steps, configurations: the search effort.
        linearization: of a legal history, an order that explains it, when a search found one. Calls
            that did not return are in the order if they took effect.
        key: the partition key of the illegal (or unanswered) calls; None without a partition.
        prefix: of an illegal history, the longest legal order found for the explainable part.
        blocked: the operation that cannot be placed after the prefix; the history until just before
            its return is legal. -1: not determined.
        core: illegal calls of which none can be left out any more; see core.py for the exact
            meaning.
        unexplained: of an illegal history, the parts of its explanation that a limit left open.
        weaker: of an illegal history, the answers for the weaker criteria "sequentially consistent"
            and "quiescently consistent".
    """

    answer: str
    method: str = "search"
    reason: str = ""
    steps: int = 0
    configurations: int = 0
    linearization: tuple[int, ...] | None = None
    key: object = None
    prefix: tuple[int, ...] = ()
    blocked: int = -1
    core: tuple[int, ...] = ()
    unexplained: str = ""
    weaker: Mapping[str, str] = field(default_factory=dict)

    @property
    def criterion(self) -> str:
        """The strongest criterion: "linearizable", a weaker one, "neither", or "unknown"."""
        if self.answer == LEGAL:
            return "linearizable"
        holding = [name for name, answer in self.weaker.items() if answer == LEGAL]
        if holding:
            return " and ".join(holding)
        if self.weaker and all(answer == ILLEGAL for answer in self.weaker.values()):
            return "neither"
        return UNKNOWN
