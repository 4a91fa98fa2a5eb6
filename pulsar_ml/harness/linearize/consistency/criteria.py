"""Checks of criteria beside linearizability: sequential, quiescent, and guarantees of sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import NEVER, RETURNED, History, frozen
from pulsar_ml.harness.linearize.check import check
from pulsar_ml.harness.linearize.consistency.names import CRITERIA, GUARANTEES
from pulsar_ml.harness.linearize.consistency.program_order import in_program_order
from pulsar_ml.harness.linearize.consistency.sessions import check_sessions
from pulsar_ml.harness.linearize.core import minimal
from pulsar_ml.harness.linearize.effort import FOR_EVER, Effort
from pulsar_ml.harness.linearize.limits._alarm import OutOfTime, alarm
from pulsar_ml.harness.linearize.options import DEFAULT, Options
from pulsar_ml.harness.linearize.search._answers import StatesFull
from pulsar_ml.harness.linearize.search._native import ANSWERS
from pulsar_ml.harness.linearize.searches import PROGRAM_ORDER, TIME, Searches
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL, UNKNOWN
from pulsar_ml.harness.models.conformance import refuse_others


@dataclass(frozen=True, slots=True)
class Consistency:
    """The answer for one criterion, with its witness. Indices refer to the history's records.

    Attributes:
        criterion: a name of ``CRITERIA``.
        answer: "legal", "illegal" or "unknown"; ``reason`` says why it is unknown.
        order: of a legal history, an order that the criterion asks for: of all calls, or, for the
            guarantees of sessions, of the writes. Empty when a monitor gave the answer.
        core: of an illegal history, calls that contradict the criterion by themselves.
        contradiction: for the guarantees of sessions, a sentence for each step of the
            contradiction.
        unexplained: the parts of an explanation that a limit left open.
        steps, configurations: the search effort.
    """

    criterion: str
    answer: str
    reason: str = ""
    order: tuple[int, ...] = ()
    core: tuple[int, ...] = ()
    contradiction: tuple[str, ...] = ()
    unexplained: str = ""
    steps: int = 0
    configurations: int = 0


def check_criterion(
    history: History, model: Any, criterion: str, *, options: Options = DEFAULT
) -> Consistency:
    """Check ``history`` for one of ``CRITERIA``.

    "sequential" and "quiescent" take every model; the guarantees of sessions take registers,
    compare-and-set registers, one of either for each key, and maps without ``append``. Raises
    UsageError for another model or criterion, and ModelError for a model that breaks its contract.
    """
    refuse_others(history, model)
    found: Consistency | None = None
    try:
        with alarm(Effort.of(options.most_steps, options.timeout).deadline_ns):
            found = answer_of(history, model, criterion, options)
    except OutOfTime:
        pass
    return found or Consistency(criterion, UNKNOWN, TIME)


def answer_of(history: History, model: Any, criterion: str, options: Options) -> Consistency:
    if criterion in GUARANTEES:
        found = check_sessions(history, model, criterion)
        return Consistency(
            criterion, found.answer, found.reason, found.order, found.core, found.contradiction
        )
    if criterion not in CRITERIA:
        names = ", ".join(CRITERIA)
        raise UsageError(f"there is no criterion {criterion!r}; it should be one of {names}")
    if hasattr(model, "ends"):
        raise UsageError(
            f"the model {type(model).__name__} has calls with two moments, which can be checked "
            "for linearizability only"
        )
    by_name: dict[str, Callable[[History, Any, Options], Consistency]] = {
        "sequential": sequential,
        "quiescent": quiescent,
    }
    return by_name[criterion](history, model, options)


# Sequential consistency
# ----------------------------------------------------------------------------------------


def sequential(history: History, model: Any, options: Options) -> Consistency:
    """Search for an order that keeps the order of each thread."""
    effort = Effort.of(options.most_steps, options.timeout)
    moved, its_model = in_program_order(history, model)
    searches = Searches(moved, its_model, options, effort)
    try:
        answer, way = program_order(searches, effort.left)
        steps, configurations = effort.steps, effort.configurations
        name = "sequential"
        if answer == LEGAL:
            order = tuple(way)
            return Consistency(name, LEGAL, order=order, steps=steps, configurations=configurations)
        if answer != ILLEGAL:
            reason = effort.limit_reached(answer) if answer in ANSWERS else answer
            return Consistency(name, UNKNOWN, reason, steps=steps, configurations=configurations)
        core: tuple[int, ...] = ()
        unexplained = ""
        if options.explain:
            try:
                core, unexplained = program_core(searches)
                core = with_earlier(history, core)
            except OutOfTime:
                unexplained = "a core"
        return Consistency(
            name, ILLEGAL, core=core, unexplained=unexplained, steps=steps,
            configurations=configurations,
        )  # fmt: skip
    finally:
        searches.close()


def program_order(searches: Searches, most: int) -> tuple[str, list[int]]:
    """Return the answer of a search in program order, and the order; else the limit's sentence."""
    native = searches.all_parts() if searches.options.natively else None
    if native is not None:
        answer, way, steps, configurations = native.search(
            searches.records, together=True, criterion=PROGRAM_ORDER, most_steps=most
        )
        if answer >= 0:
            searches.effort.add(steps, configurations)
            return ANSWERS[answer], way
    try:
        found, way, _ = searches.of_model(None, most, PROGRAM_ORDER)
    except StatesFull as error:
        return str(error), []
    return found, way


def program_core(searches: Searches) -> tuple[tuple[int, ...], str]:
    """Return calls that have no order by themselves, and the unexplained rest of the claim."""
    searches.cells = None  # it knows real time only
    searches.effort = Effort.of(FOR_EVER, searches.effort.seconds_left())
    everything = np.arange(len(searches.records), dtype=np.int32)
    try:
        core, complete = minimal(searches, everything, PROGRAM_ORDER)
    except StatesFull:
        core, complete = tuple(everything.tolist()), False
    return core, "" if complete else "whether the core is minimal"


def with_earlier(history: History, core: tuple[int, ...]) -> tuple[int, ...]:
    """Add the call that each call of the core that did not return comes behind in its thread."""
    records = history.records
    found = set(core)
    for index in core:
        if records["ending"][index] != RETURNED:
            earlier = np.flatnonzero(
                (records["thread"] == records["thread"][index])
                & (records["ending"] == RETURNED)
                & (records["invoked"] < records["invoked"][index])
            )
            if len(earlier):
                found.add(int(earlier[np.argmax(records["invoked"][earlier])]))
    return tuple(sorted(found))


# Quiescent consistency
# -----------------------------------------------------------------------------------------


def quiescent(history: History, model: Any, options: Options) -> Consistency:
    """Check for an order that keeps calls apart that a quiet moment separates.

    A history with the periods of activity as intervals is linearizable exactly when such an order
    exists, so that every algorithm for linearizability applies.
    """
    verdict = check(in_periods(history), model, options=replace(options, weaker=False))
    illegal = verdict.answer == ILLEGAL
    return Consistency(
        "quiescent",
        verdict.answer,
        verdict.reason,
        order=verdict.linearization or (),
        core=verdict.core if illegal else (),
        unexplained="whether the core is minimal" if illegal and "core" in verdict.unexplained
        else "",
        steps=verdict.steps,
        configurations=verdict.configurations,
    )  # fmt: skip


def in_periods(history: History) -> History:
    """Return the history with periods of activity as the intervals of its calls.

    Between two periods no call is under way. A call that did not return is under way for ever.
    """
    records = history.records.copy()
    if len(records):
        order = np.argsort(records["invoked"], kind="stable")
        ended = records["ending"] == RETURNED
        until = np.maximum.accumulate(np.where(ended, records["returned"], NEVER)[order])
        begins = np.ones(len(records), bool)
        begins[1:] = records["invoked"][order][1:] > until[:-1]
        period = np.empty(len(records), np.int64)
        period[order] = np.cumsum(begins)
        records["invoked"] = period
        records["returned"] = np.where(ended, period, NEVER)
        records["moment"] = 0
    return replace(history, records=frozen(records))
