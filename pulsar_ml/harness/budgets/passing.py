"""Known failures, behind which an exploration goes on to look for another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.wording import counted

MOST_MET = 5_000  # executions: each costs as much as hundreds that do not fail

IsKnown = Callable[[Failure], bool]


@dataclass(frozen=True, slots=True)
class Met:
    """A known failure that an exploration met.

    Attributes:
        failure: the first one of its signature.
        at: the number of its execution in the exploration, from 1.
        executions: how many executions ended in it.
    """

    failure: Failure
    at: int
    executions: int = 1


class Passing:
    """The known failures of one exploration, by signature."""

    def __init__(self, is_known: IsKnown | None) -> None:
        self.is_known = is_known
        self.found: dict[tuple[str, ...], Met] = {}

    def passes(self, failure: Failure, at: int) -> bool:
        """Count a failure if it is known, and return whether it is."""
        if self.is_known is None or not self.is_known(failure):
            return False
        met = self.found.get(failure.signature)
        self.found[failure.signature] = (
            replace(met, executions=met.executions + 1) if met else Met(failure, at)
        )
        return True

    @property
    def is_full(self) -> bool:
        """True when so many executions met known failures that going on is of no use."""
        return is_enough(self.found.values())


def is_enough(met: Iterable[Met]) -> bool:
    """True when no more executions are made behind these failures."""
    return sum(each.executions for each in met) >= MOST_MET


def together(one: Iterable[Met], other: Iterable[Met], before: int) -> tuple[Met, ...]:
    """The known failures of two slices; ``before`` are the executions of the first one."""
    found = {met.failure.signature: met for met in one}
    for met in other:
        known = found.get(met.failure.signature)
        found[met.failure.signature] = (
            replace(known, executions=known.executions + met.executions)
            if known
            else replace(met, at=met.at + before)
        )
    return tuple(found.values())


def met_words(met: Sequence[Met], executions: int) -> str:
    """Say how many executions ended in known failures; "" for none."""
    ended = sum(each.executions for each in met)
    if not ended:
        return ""
    kinds = ", ".join(dict.fromkeys(each.failure.kind for each in met))
    words = f"{counted(ended, 'execution')} of {executions:,} ended in a known failure ({kinds})"
    return f"{words}, and no more were made behind them" if is_enough(met) else words
