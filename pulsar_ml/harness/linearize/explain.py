"""The explanation of an illegal history: the order that ends, the core, and weaker criteria.

An explanation has limits of its own. When it reaches one, the verdict stays, and says which part of
the explanation is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pulsar_ml.harness.linearize.search._answers import StatesFull
from pulsar_ml.harness.linearize.searches import (
    PROGRAM_ORDER,
    QUIESCENCE,
    Chosen,
    Searches,
)
from pulsar_ml.harness.linearize.shipped import blocked_call
from pulsar_ml.harness.linearize.verdict import (
    ILLEGAL,
    LEGAL,
    QUIESCENT,
    SEQUENTIAL,
    UNKNOWN,
    Verdict,
)

WEAKER_STEPS = 200_000
WEAKER_STATES = 100_000  # the most new states of the model for each weaker criterion
WEAKER_RECORDS = 5_000  # longer histories that a monitor refuted are not compared with them
BLOCKED_STEPS = 500_000  # the most steps of a search for the blocked call


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
    chosen: Chosen = None
    way: tuple[int, ...] = ()
    blocked: int = -1


def unexplained(illegal: Illegal) -> Verdict:
    """Return the verdict with what the search for the answer found besides."""
    if illegal.verdict.method == "monitor" and illegal.chosen is not None:
        return replace(illegal.verdict, core=tuple(illegal.chosen.tolist()))
    return replace(illegal.verdict, prefix=illegal.way, blocked=illegal.blocked)


def explained(illegal: Illegal, searches: Searches) -> Verdict:
    """Return the verdict with its explanation, as far as limits allow."""
    options = searches.options
    verdict = with_core(illegal, searches)
    long = illegal.verdict.method == "monitor" and len(searches.records) > WEAKER_RECORDS
    if options.weaker and not long:
        verdict = replace(verdict, weaker=weaker(searches))
    return verdict


def with_core(illegal: Illegal, searches: Searches) -> Verdict:
    """Return the verdict with the order, the blocked call and the core."""
    from pulsar_ml.harness.linearize.core import minimal

    verdict = illegal.verdict
    indices = illegal.chosen
    part = searches
    if indices is None:
        indices = np.arange(len(searches.records), dtype=np.int32)
    else:
        part = searches.of_part(indices)
    local = {index: place for place, index in enumerate(indices.tolist())}
    way = [local[index] for index in illegal.way]
    blocked = local.get(illegal.blocked, -1)
    missing = []
    try:
        if blocked < 0:
            blocked, way = longest_order(part)
        if blocked < 0:
            missing.append("the blocked operation")
    except StatesFull:
        missing.append("the blocked operation")
    core = np.arange(len(indices), dtype=np.int32)
    if blocked >= 0:
        # Calls invoked after the return of the blocked call do not matter.
        until = part.records["returned"][blocked]
        core = core[part.records["invoked"] <= until]
    try:
        smaller, complete = minimal(part, core)
    except StatesFull:
        smaller, complete = tuple(core.tolist()), False
    if not complete:
        missing.append("whether the core is minimal")
    return replace(
        verdict,
        prefix=tuple(int(indices[place]) for place in way),
        blocked=int(indices[blocked]) if blocked >= 0 else -1,
        core=tuple(int(indices[place]) for place in smaller),
        unexplained=" and ".join(missing),
    )


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
    if (native := searches.all_parts()) is not None:
        records = searches.records

        def natively(criterion: int, together: bool) -> str:
            answer, *_ = native.search(
                records, together=together, criterion=criterion, most_steps=WEAKER_STEPS
            )
            return {0: LEGAL, 1: ILLEGAL}.get(answer, UNKNOWN) if answer >= 0 else ""

        quiescent, sequential = natively(QUIESCENCE, False), natively(PROGRAM_ORDER, True)
        if quiescent != LEGAL and native.parts > 1:
            quiescent = natively(QUIESCENCE, True)
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
