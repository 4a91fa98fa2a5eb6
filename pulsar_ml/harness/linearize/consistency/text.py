"""Texts about the answer for a criterion."""

from __future__ import annotations

from typing import Any

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize.consistency.criteria import Consistency
from pulsar_ml.harness.linearize.consistency.names import CRITERIA, GUARANTEES
from pulsar_ml.harness.linearize.picture import MOST_SHOWN, lanes, named
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL, UNKNOWN
from pulsar_ml.harness.models.model import describe_call
from pulsar_ml.wording import counted

MOST_OF_ORDER = 12  # the most shown calls of an order


def describe_consistency(history: History, found: Consistency, model: Any = None) -> str:
    """Describe an answer with its witness."""
    name = CRITERIA[found.criterion]
    guarantee = found.criterion in GUARANTEES
    how = counted(len(history), "operation")
    if found.steps:
        how += f", {counted(found.steps, 'step')}"
    if found.answer == UNKNOWN:
        return f"unknown: {found.reason} ({name}, {how})"
    if found.answer == LEGAL:
        lines = [f"legal: {'with ' * guarantee}{name} ({how})"]
        if found.order:
            shown = [describe_call(model, history.call(at)) for at in found.order[:MOST_OF_ORDER]]
            more = len(found.order) - len(shown)
            rest = f"; and {more} more, which --json prints" if more else ""
            what = "the writes in order" if guarantee else "an order"
            lines.append(f"  {what}: {'; '.join(shown)}{rest}")
        return "\n".join(lines)
    assert found.answer == ILLEGAL
    lines = [f"illegal: {'without' if guarantee else 'not'} {name} ({how})"]
    lines += [f"  {sentence}" for sentence in found.contradiction]
    if found.unexplained:
        lines.append(f"  not found within the limits of an explanation: {found.unexplained}")
    if found.core:
        count = len(found.core)
        lines.append(
            f"  illegal by {'itself' if count == 1 else 'themselves'}: {count} of {len(history)}"
        )
        shown_part = sorted(found.core, key=lambda at: int(history.records["invoked"][at]))
        shown_part = shown_part[:MOST_SHOWN]
        if not found.contradiction:
            lines += [
                f"    {named(history, at)}, {describe_call(model, history.call(at))}"
                for at in shown_part
            ]
        lines += ["", lanes(history, shown_part, model)]
        if count > MOST_SHOWN:
            lines.append(f"... and {count - MOST_SHOWN} more")
    return "\n".join(lines)
