"""What a check answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LEGAL, ILLEGAL, UNKNOWN = "legal", "illegal", "unknown"

SEQUENTIAL, QUIESCENT = "sequentially consistent", "quiescently consistent"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a history is linearizable.

    Indices are those of the history's records.

    Attributes:
        answer: "legal", "illegal", or "unknown": a bound was reached first, as ``reason`` says.
        method: "search", "just in time" or "monitor": which algorithm answered.
        steps, configurations: that the searches took and kept.
        linearization: of a legal history an order that explains it, when a search found one. Calls that
            did not return are in it if they took effect.
        part: of an illegal history the part, by the model's partition, that is illegal; None: there are none.
        prefix: of an illegal history, the longest order found that is legal, for as much of the
            history as can be explained.
        blocked: the operation that cannot be placed after it; the history until just before its
            return is legal. -1: not determined.
        core: an illegal part from which no call could be left out any more (core.py says when one may, and
            how much is spent on it).
        weaker: of an illegal history, the answers for "sequentially consistent" and "quiescently
            consistent".
    """

    answer: str
    method: str = "search"
    reason: str = ""
    steps: int = 0
    configurations: int = 0
    linearization: tuple[int, ...] | None = None
    part: object = None
    prefix: tuple[int, ...] = ()
    blocked: int = -1
    core: tuple[int, ...] = ()
    weaker: Mapping[str, str] = field(default_factory=dict)

    @property
    def criterion(self) -> str:
        """The strongest criterion that holds: "linearizable", one of the weaker ones, "neither",
        "unknown"."""
        if self.answer == LEGAL:
            return "linearizable"
        holding = [name for name, answer in self.weaker.items() if answer == LEGAL]
        if holding:
            return " and ".join(holding)
        if self.weaker and all(answer == ILLEGAL for answer in self.weaker.values()):
            return "neither"
        return UNKNOWN
