"""Sentences on wrong answers: the longest legal order, and the call that cannot follow it."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_ml.harness.judges.judge import EXPLAINING, ModelJudge
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.linearize import ILLEGAL, Options, check
from pulsar_ml.harness.linearize.picture import state_after
from pulsar_ml.harness.models.sequential import Sequential
from pulsar_ml.harness.search.failure import Failure, replay_explorer
from pulsar_ml.harness.subjects.subject import Subject

MOST_CALLS = 12  # of the order that are named; its last ones


def answer_sentences(failure: Failure, subject: Subject, judge: Judge | None) -> Iterator[str]:
    """Sentences on answers that a sequential model refuses; none for another kind of judge."""
    judge = judge or subject.judge
    if not isinstance(judge, ModelJudge):
        return
    explorer = replay_explorer(failure, subject)
    explorer.again(0)
    if explorer.end() != "complete":
        return
    prepared = judge.prepare(explorer)
    history = prepared.history.with_records(prepared.filled(explorer.answers()))
    model = prepared.checker.model
    verdict = check(
        history,
        model,
        options=Options(most_steps=EXPLAINING, weaker=False),
        checker=prepared.checker,
    )
    if verdict.answer != ILLEGAL or verdict.blocked < 0:
        return

    def called(row: int) -> str:
        thread = history.records["thread"][row]
        return f"{model.describe(history.call(row))} of thread {thread}"

    order = [called(row) for row in verdict.prefix]
    if order:
        left = len(order) - MOST_CALLS
        shown = "; ".join(order[-MOST_CALLS:])
        more = f"{left} calls; " if left > 0 else ""
        yield f"the longest order of the calls that gives these answers: {more}{shown}"
    # The states of compiled specifications are numbers without names.
    state = "" if isinstance(model, Sequential) else state_after(history, verdict.prefix, model)
    behind = f", which leaves {state}" if state else ""
    yield (
        f"behind it{behind}, {called(verdict.blocked)} has no legal place"
        if order
        else f"{called(verdict.blocked)} has no legal place even as the first call"
    )
