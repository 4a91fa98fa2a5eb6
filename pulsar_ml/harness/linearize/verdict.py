"""Verdict: the result of a linearizability check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEGAL, ILLEGAL, UNKNOWN = "legal", "illegal", "unknown"
SEARCH = "search"  # the method of most verdicts
JUST_IN_TIME = "just in time"

SEQUENTIAL, QUIESCENT = "sequentially consistent", "quiescently consistent"


# The attributes of an explanation, which is computed when one of them is first read.
EXPLANATION = ("prefix", "blocked", "core", "unexplained", "weaker")


@dataclass(frozen=True)
class Verdict:
    """The verdict on a history. All indices refer to the history's records.

    The explanation of an illegal history (``prefix``, ``blocked``, ``core``, ``unexplained`` and
    ``weaker``) is computed when one of them is first read.

    Attributes:
        answer: "legal", "illegal", or "unknown": the check reached a limit, which ``reason`` names.
        method: the algorithm that gave the answer: "search", "just in time" or "monitor".
        reason: the limit that was reached; "" for a definite answer.
        steps, configurations: the search effort.
        linearization: of a legal history, an order that explains it, when a search found one. Calls
            that did not return are in the order if they took effect.
        key: the partition key of the illegal (or unanswered) calls; None without a partition.
        remarks: what else happened, such as the death of a worker process.
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
    method: str = SEARCH
    reason: str = ""
    steps: int = 0
    configurations: int = 0
    linearization: tuple[int, ...] | None = None
    key: object = None
    remarks: tuple[str, ...] = ()
    # Factories, because a default would hide an attribute that is not there yet.
    prefix: tuple[int, ...] = field(default_factory=tuple)
    blocked: int = field(default_factory=lambda: -1)
    core: tuple[int, ...] = field(default_factory=tuple)
    unexplained: str = field(default_factory=str)
    weaker: Mapping[str, str] = field(default_factory=dict)

    def explained_by(self, explain: Callable[[], Verdict], known: Callable[[], Verdict]) -> Verdict:
        """Return this verdict with the explanation of the verdict that ``explain`` returns.

        ``explain`` is called once, when the explanation is first read. ``known`` returns a verdict
        with the part of the explanation that needs no search.
        """
        found = object.__new__(Verdict)
        found.__dict__.update(self.__dict__, _explain=explain, _known=known)
        for name in EXPLANATION:
            del found.__dict__[name]
        return found

    def without_explanation(self, reason: str) -> Verdict:
        """Return this verdict with what is known of its explanation, and why there is no more."""
        if "_explain" not in self.__dict__:
            return self
        known: Callable[[], Verdict] = self.__dict__["_known"]
        return replace(known(), unexplained=reason)

    def __getattr__(self, name: str) -> Any:
        explain = self.__dict__.get("_explain")
        if name not in EXPLANATION or explain is None:
            raise AttributeError(f"a verdict has no {name!r}")
        explained = explain()
        self.__dict__.update({one: getattr(explained, one) for one in EXPLANATION})
        del self.__dict__["_explain"], self.__dict__["_known"]
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy, which is explained."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

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


@dataclass(frozen=True, slots=True)
class Illegal:
    """An illegal history before its explanation.

    Attributes:
        verdict: the verdict without its explanation.
        chosen: the calls that are illegal by themselves; None: all.
        way, blocked: the longest order of these calls, and the call that cannot follow it; -1: not
            known.
    """

    verdict: Verdict
    chosen: NDArray[np.int32] | None = None
    way: tuple[int, ...] = ()
    blocked: int = -1


def unexplained(illegal: Illegal) -> Verdict:
    """Return the verdict with what the search for the answer found besides."""
    if illegal.verdict.method == "monitor" and illegal.chosen is not None:
        return replace(illegal.verdict, core=tuple(illegal.chosen.tolist()))
    return replace(illegal.verdict, prefix=illegal.way, blocked=illegal.blocked)
