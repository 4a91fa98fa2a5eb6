"""The history of an execution whose answers a judge refused, for the drawing of histories."""

from __future__ import annotations

from typing import Any

from pulsar_ml.harness.histories.recording import history_before, history_filled
from pulsar_ml.harness.judges.judge import EXPLAINING, NO_MEMORY, ModelJudge, as_checked
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.linearize import Options, check
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure, replay_explorer
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.report.history_page import data_of, drawn_operations, order_of, title_of


def history_data(failure: Failure, subject: Subject, judge: Judge | None) -> dict[str, Any]:
    """Return the data of the operations, with the longest order that the model allows.

    Empty for other failures, and where no model judges the answers.
    """
    if failure.kind != WRONG_ANSWERS or not isinstance(judge, ModelJudge):
        return {}
    explorer = replay_explorer(failure, subject)
    explorer.again(0)
    if explorer.end() != "complete":
        return {}
    before = history_filled(history_before(explorer), explorer)
    checker = judge.checker(
        before,
        len(explorer.program.threads),
        explorer.mode == "sc",
        scarce=NO_MEMORY in explorer.faults,
    )
    history = as_checked(checker, before)[0]
    model = checker.model
    options = Options(most_steps=EXPLAINING, weaker=False)
    verdict = check(history, model, options=options, checker=checker)
    shown = drawn_operations(history, verdict)
    order = order_of(verdict, shown)
    return {
        "title": title_of(history, verdict, model),
        **data_of(history, verdict, model, shown, order),
    }
