"""The explanation of an illegal history: the order that ends, the core, and weaker criteria.

An explanation has limits of its own. When it reaches one, the verdict stays, and says which part of
the explanation is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import RETURNED
from pulsar_ml.harness.linearize.consistency.program_order import in_program_order
from pulsar_ml.harness.linearize.limits._alarm import OutOfTime, alarm
from pulsar_ml.harness.linearize.search._answers import StatesFull
from pulsar_ml.harness.linearize.searches import (
    PROGRAM_ORDER,
    QUIESCENCE,
    Chosen,
    Searches,
)
from pulsar_ml.harness.linearize.shipped import blocked_call, order_before
from pulsar_ml.harness.linearize.verdict import (
    ILLEGAL,
    JUST_IN_TIME,
    LEGAL,
    QUIESCENT,
    SEQUENTIAL,
    UNKNOWN,
    Illegal,
    Verdict,
    unexplained,
)

WEAKER_STEPS = 200_000
WEAKER_STATES = 100_000  # the most new states of the model for each weaker criterion
WEAKER_MEMORY = 128 << 20  # the most bytes of each native search for a weaker criterion
WEAKER_RECORDS = 5_000  # longer histories that a monitor refuted are not compared with them
BLOCKED_STEPS = 500_000  # the most steps of a search for the blocked call

# Parts of an explanation, as "not found within the limits of an explanation: ..." names them.
BLOCKED, MINIMAL = "the blocked operation", "whether the core is minimal"
ORDER = "an order up to the blocked operation"
WEAKER = "the weaker criteria"


def explained(illegal: Illegal, searches: Searches) -> Verdict:
    """Return the verdict with its explanation, as far as limits allow."""
    own = Explanation(illegal, searches)
    try:
        with alarm(searches.effort.deadline_ns):
            own.run()
    except OutOfTime:
        pass
    return own.verdict()


class Explanation:
    """The state of one explanation: each step adds to it, and it can be read after each."""

    def __init__(self, illegal: Illegal, searches: Searches) -> None:
        self.illegal = illegal
        self.searches = searches
        self.known = unexplained(illegal)
        long = illegal.verdict.method == "monitor" and len(searches.records) > WEAKER_RECORDS
        self.missing = [BLOCKED, MINIMAL]
        if searches.options.weaker and not long:
            self.missing.append(WEAKER)

    def verdict(self) -> Verdict:
        return replace(self.known, unexplained=" and ".join(self.missing))

    def run(self) -> None:
        records, chosen = self.searches.records, self.illegal.chosen
        if chosen is None:
            chosen = np.arange(len(records), dtype=np.int32)
        beyond = chosen  # the calls among which the blocked one is searched
        if self.illegal.verdict.method == "monitor":
            # A monitor names a few calls, but the blocked call is that of the whole history.
            witness = records[chosen]
            last = witness["returned"][witness["ending"] == RETURNED].max(initial=0)
            beyond = np.flatnonzero(records["invoked"] <= last).astype(np.int32)
        blocked, way = located(self.illegal, self.searches, beyond)
        self.known = replace(self.known, prefix=tuple(way), blocked=blocked)
        if blocked >= 0:
            self.missing.remove(BLOCKED)
            if not way and self.illegal.verdict.method == JUST_IN_TIME:
                self.missing.insert(0, ORDER)
            # Calls invoked after the return of the blocked call do not matter.
            matters = records["invoked"] <= records["returned"][blocked]
            if not matters[chosen].all():
                few = chosen[matters[chosen]]
                by_themselves = len(few) < len(beyond) and self.refuted(few)
                chosen = few if by_themselves else beyond[matters[beyond]]
        self.known = replace(self.known, core=tuple(chosen.tolist()))
        self.shrink(chosen)
        if WEAKER in self.missing:
            self.known = replace(self.known, weaker=weaker(self.searches))
            self.missing.remove(WEAKER)

    def refuted(self, few: NDArray[np.int32]) -> bool:
        """Return True if the rest of a monitor's witness is illegal by itself."""
        if len(few) == 0:
            return False
        part = self.searches.of_part(few)
        if part.cells is None and part.parts is None:
            return False
        return part.natively(part.records, BLOCKED_STEPS)[0] == ILLEGAL

    def shrink(self, chosen: NDArray[np.int32]) -> None:
        """Find the core of the illegal ``chosen`` calls."""
        from pulsar_ml.harness.linearize.core import minimal

        part = self.searches
        if len(chosen) < len(part.records):
            part = part.of_part(chosen)
        try:
            smaller, complete = minimal(part, np.arange(len(chosen), dtype=np.int32))
        except StatesFull:
            return
        self.known = replace(self.known, core=tuple(int(chosen[place]) for place in smaller))
        if complete:
            self.missing.remove(MINIMAL)


def located(
    illegal: Illegal, searches: Searches, calls: NDArray[np.int32]
) -> tuple[int, list[int]]:
    """Return the blocked call of illegal ``calls``, -1 if not found, and the order before it."""
    orderless = illegal.verdict.method == JUST_IN_TIME  # it knows the call, and no order
    if illegal.blocked >= 0 and not orderless:
        return illegal.blocked, list(illegal.way)
    part = searches if len(calls) == len(searches.records) else searches.of_part(calls)
    try:
        if illegal.verdict.method == "monitor" and (part.cells or part.parts):
            # Most often the call that is blocked among the few calls is blocked among all.
            few = illegal.chosen if illegal.chosen is not None else calls
            blocked, _ = longest_order(searches.of_part(few))
            if blocked >= 0:
                at = int(np.searchsorted(calls, few[blocked]))
                answer, way = order_before(
                    lambda records: part.natively(records, BLOCKED_STEPS), part.records, at
                )
                if answer == LEGAL:
                    return int(calls[at]), [int(calls[place]) for place in way]
        blocked, way = longest_order(part)
    except StatesFull:
        blocked, way = -1, []
    if blocked < 0 and orderless:
        return illegal.blocked, []
    return int(calls[blocked]) if blocked >= 0 else -1, [int(calls[place]) for place in way]


def longest_order(part: Searches) -> tuple[int, list[int]]:
    """Return the blocked call of an illegal history, -1 if not found, and the order before it."""
    if part.cells is not None or part.parts is not None:
        return blocked_call(lambda records: part.natively(records, BLOCKED_STEPS), part.records)
    answer, way, blocked = part.of_model(None, BLOCKED_STEPS, ahead=False)
    return (blocked, way) if answer == ILLEGAL else (-1, way)


def weaker(searches: Searches) -> dict[str, str]:
    """Return the answers for the weaker criteria.

    Quiescent consistency of all keys implies that of the whole history, but not the reverse: a
    key may be quiet while calls of other keys are under way. Sequential consistency of all keys
    implies nothing.
    """
    moved, its_model = in_program_order(searches.history, searches.model)
    if moved is not searches.history:
        own = Searches(moved, its_model, searches.options, searches.effort)
        sequential = weaker_answer(own, PROGRAM_ORDER, [None])
        own.close()
        return {**weaker_as_is(searches), SEQUENTIAL: sequential}
    return weaker_as_is(searches)


def weaker_as_is(searches: Searches) -> dict[str, str]:
    """Return the answers when no thread goes on after a call that did not return."""
    if (native := searches.all_parts()) is not None:
        records = searches.records

        def natively(criterion: int, together: bool) -> str:
            answer, *_ = native.search(
                records, together=together, criterion=criterion, most_steps=WEAKER_STEPS
            )
            return {0: LEGAL, 1: ILLEGAL}.get(answer, UNKNOWN) if answer >= 0 else ""

        most, native.limit = native.limit, min(native.limit, WEAKER_MEMORY)
        quiescent, sequential = natively(QUIESCENCE, False), natively(PROGRAM_ORDER, True)
        if quiescent != LEGAL and native.parts > 1:
            quiescent = natively(QUIESCENCE, True)
        native.limit = most
        if quiescent and sequential:
            return {SEQUENTIAL: sequential, QUIESCENT: quiescent}
    try:
        pieces = [piece for _, piece in searches.checker.split(searches.symbols)]
    except StatesFull:
        return {SEQUENTIAL: UNKNOWN, QUIESCENT: UNKNOWN}
    quiescent = weaker_answer(searches, QUIESCENCE, pieces)
    if quiescent != LEGAL and len(pieces) > 1:
        quiescent = weaker_answer(searches, QUIESCENCE, [None])
    sequential = weaker_answer(searches, PROGRAM_ORDER, [None])
    return {SEQUENTIAL: sequential, QUIESCENT: quiescent}


def weaker_answer(searches: Searches, criterion: int, pieces: Sequence[Chosen]) -> str:
    """Return illegal if a piece is illegal, legal if all pieces are legal, else unknown."""
    from pulsar_ml.harness.linearize.core import few_states

    answers = set()
    with few_states(searches, WEAKER_STATES):
        for piece in pieces:
            try:
                answer, _, _ = searches.of_model(piece, WEAKER_STEPS, criterion)
            except StatesFull:
                answer = UNKNOWN
            if answer == ILLEGAL:
                return ILLEGAL
            answers.add(answer)
    return LEGAL if answers <= {LEGAL} else UNKNOWN
