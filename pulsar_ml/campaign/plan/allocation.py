"""How the budget of a round is divided between arms, from what each of them found before: pure arithmetic.

The rule is probability matching with a floor (Goldberg, "Probability matching, the magnitude of
reinforcement, and classifier system bidding", Machine Learning 5, 1990; with a least part for each as in
Thierens, "An adaptive pursuit strategy for allocating operator probabilities", GECCO 2005): each arm gets the
floor, and the rest is divided in proportion to what the arms find for each trial. Only the last rounds count,
because what there was to find gets less (the sliding window of Garivier and Moulines, "On upper-confidence
bound policies for switching bandit problems", ALT 2011).

Two things are found, which no rate of exchange relates: new signatures of violations and classes of
executions. Where new signatures were found, one half of the rest follows them, and the other half the
classes; else all of it does. Numbers are exact fractions and no time goes in, so a division is the same
everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pulsar_ml.errors import UsageError

WINDOW = 3  # rounds that count


@dataclass(frozen=True, slots=True)
class Gain:
    """What one arm spent and found in one round.

    Attributes:
        trials, executions: spent; real threads have no executions.
        classes: executions of a trial that differ in what read from what, summed over the trials, each of
            which has a program of its own. A trial ends at its first failure, so one that fails has few.
        violations: found.
        signatures: of them, those that no round before had found.
    """

    trials: int = 0
    executions: int = 0
    classes: int = 0
    violations: int = 0
    signatures: int = 0


def divide(budget: int, histories: Sequence[Sequence[Gain]], floor: Fraction) -> list[int]:
    """Trials of each arm in the next round, ``budget`` in all; a history has the arm's rounds, in order.

    Each arm gets at least ``floor`` (0 to 1) of an equal part, and at least one trial. What is left over by
    rounding goes to the largest remainders, in the order of the arms. UsageError when the budget is less than
    one trial for each arm.
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
    """The part of each arm in what lies above the floor; they add up to 1."""
    equal = [Fraction(1, len(histories))] * len(histories)
    classes = matched(histories, lambda gain: gain.classes) or equal
    failures = matched(histories, lambda gain: gain.signatures) or classes
    return [(one + other) / 2 for one, other in zip(failures, classes, strict=True)]


def matched(histories: Sequence[Sequence[Gain]], found: Callable[[Gain], int]) -> list[Fraction]:
    """Parts in proportion to what each arm found for its trials in the window; empty for nothing found."""
    rates = [rate(history[-WINDOW:], found) for history in histories]
    total = sum(rates)
    return [each / total for each in rates] if total else []


def rate(history: Sequence[Gain], found: Callable[[Gain], int]) -> Fraction:
    trials = sum(gain.trials for gain in history)
    return Fraction(sum(map(found, history)), trials) if trials else Fraction(0)
