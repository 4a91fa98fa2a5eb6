"""Divides the budget of a round between arms by what each arm found before: pure arithmetic.

The rule is probability matching with a floor (Goldberg, "Probability matching, the magnitude of
reinforcement, and classifier system bidding", Machine Learning 5, 1990; with a least share as in
Thierens, "An adaptive pursuit strategy for allocating operator probabilities", GECCO 2005): each
arm gets the floor, and the rest is divided in proportion to findings per trial. Only the last
rounds count, because findings become rarer (the sliding window of Garivier and Moulines, "On
upper-confidence bound policies for switching bandit problems", ALT 2011).

There are two kinds of findings, with no exchange rate between them: new signatures of violations,
and classes of executions. Where a window has new signatures, one half of the rest follows the
signatures and the other half the classes; otherwise the whole rest follows the classes. Numbers are
exact fractions and times do not count, so a division is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pulsar_ml.errors import UsageError

WINDOW = 3  # rounds that count


@dataclass(frozen=True, slots=True)
class Gain:
    """Costs and findings of one arm in one round.

    Attributes:
        trials, executions: numbers run; real threads have no executions.
        classes: classes of executions, summed over the trials, each of which has a program of its
            own. A trial ends at its first failure, so a failing trial has few.
        violations: number of violations.
        signatures: number of signatures that no earlier round had found.
    """

    trials: int = 0
    executions: int = 0
    classes: int = 0
    violations: int = 0
    signatures: int = 0


def divide(budget: int, histories: Sequence[Sequence[Gain]], floor: Fraction) -> list[int]:
    """Return the trials of each arm in the next round; they add up to ``budget``.

    A history holds an arm's rounds in order. Each arm gets at least ``floor`` (0 to 1) of an equal
    share, and at least one trial. Trials lost to rounding go to the largest remainders, in the
    order of the arms. UsageError when the budget is below one trial for each arm.
    """
    arms = len(histories)
    least = max(1, int(floor * budget / arms))
    rest = budget - arms * least
    if rest < 0:
        raise UsageError(
            f"a round of {budget} trials is too short for {arms} arms; use more seeds or fewer rounds"
        )
    quotas = [rest * weight for weight in weights(histories)]
    shares = [int(quota) for quota in quotas]
    by_remainder = sorted(range(arms), key=lambda arm: (shares[arm] - quotas[arm], arm))
    for arm in by_remainder[: rest - sum(shares)]:
        shares[arm] += 1
    return [least + share for share in shares]


def weights(histories: Sequence[Sequence[Gain]]) -> list[Fraction]:
    """Return each arm's share of the budget above the floor; the shares add up to 1."""
    equal = [Fraction(1, len(histories))] * len(histories)
    classes = matched(histories, lambda gain: gain.classes) or equal
    failures = matched(histories, lambda gain: gain.signatures) or classes
    return [(one + other) / 2 for one, other in zip(failures, classes, strict=True)]


def matched(histories: Sequence[Sequence[Gain]], found: Callable[[Gain], int]) -> list[Fraction]:
    """Return shares in proportion to findings per trial in the window; empty without findings."""
    rates = [rate(history[-WINDOW:], found) for history in histories]
    total = sum(rates)
    return [each / total for each in rates] if total else []


def rate(history: Sequence[Gain], found: Callable[[Gain], int]) -> Fraction:
    trials = sum(gain.trials for gain in history)
    return Fraction(sum(map(found, history)), trials) if trials else Fraction(0)
