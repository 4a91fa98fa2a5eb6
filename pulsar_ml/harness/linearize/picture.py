"""Texts about verdicts, with operations drawn as bars over time, one line for each thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pulsar_ml.harness.histories.history import RETURNED, History, overlap, ranks
from pulsar_ml.harness.linearize.verdict import ILLEGAL, JUST_IN_TIME, LEGAL, UNKNOWN, Verdict
from pulsar_ml.harness.models.model import describe_call, describe_state
from pulsar_ml.wording import counted

WIDTH = 110
MOST_SHOWN = 40
MOST_STATES = 100
MOST_LAST = 4  # the most shown calls at the end of the longest order


def lanes(history: History, indices: Sequence[int], model: Any = None, *, mark: int = -1) -> str:
    """Draws the operations with these indices as overlapping bars, one line for each thread.

    A bar is as long as its text; bars overlap where the operations did. A bar of an operation that
    did not return ends in dots; the bar of operation ``mark`` has stars.
    """
    part = history.select(indices)
    invoked, returned = ranks(part)
    moments = sorted({int(time) for time in (*invoked, *returned)})
    texts = [describe_call(model, part.call(row)) for row in range(len(part))]
    at: dict[int, int] = {}
    column = 0
    for moment in moments:
        needed = column
        for row in range(len(part)):
            if int(returned[row]) == moment:
                needed = max(needed, at[int(invoked[row])] + len(texts[row]) + 5)
        at[moment] = needed
        column = needed + 1
    rows: dict[int, str] = {}
    for row in sorted(range(len(part)), key=lambda one: int(invoked[one])):
        thread = int(part.records["thread"][row])
        begin, end = at[int(invoked[row])], at[int(returned[row])]
        open_end = bool(part.records["ending"][row])
        edge = "*" if indices[row] == mark else "|"
        bar = edge + f" {texts[row]} ".center(end - begin - 1, "-") + ("..." if open_end else edge)
        rows[thread] = rows.get(thread, "").ljust(begin) + bar
    names = {thread: f"thread {history.thread_name(thread)}" for thread in rows}
    head = max(map(len, names.values()), default=0) + 2
    return "\n".join(names[thread].ljust(head) + rows[thread] for thread in sorted(rows))


def describe_verdict(history: History, verdict: Verdict, model: Any = None) -> str:
    """Describes a verdict in words, with a drawing of an illegal core."""
    lines = [headline(history, verdict), *(f"  {remark}" for remark in verdict.remarks)]
    if verdict.answer == UNKNOWN:
        lines += advice(history, verdict, model)
    if verdict.answer != ILLEGAL:
        return "\n".join(lines)
    if verdict.key is not None:
        lines.append(f"  among the calls of key {verdict.key!r}")
    if verdict.blocked >= 0:
        count = len(verdict.prefix)
        if count == 0 and verdict.method == JUST_IN_TIME:
            before = "no order of operations leads to"
        else:
            before = (
                f"{count} operation{'s' * (count != 1)} can be put in order; then nothing leads to"
            )
        lines.append(
            f"  {before} {named(history, verdict.blocked)}, "
            f"{describe_call(model, history.call(verdict.blocked))}"
        )
        if order := order_in_words(history, verdict.prefix, model):
            lines.append(f"  that order{' ends' * (count > MOST_LAST)}: {order}")
        if state := state_after(history, verdict.prefix, model):
            lines.append(f"  it leads to the state {state}")
    if verdict.weaker:
        shown = ", ".join(f"{name}: {answer}" for name, answer in verdict.weaker.items())
        lines.append(f"  {shown}")
    if verdict.unexplained:
        lines.append(f"  not found within the limits of an explanation: {verdict.unexplained}")
    if verdict.core:
        count = len(verdict.core)
        lines.append(
            f"  illegal by {'itself' if count == 1 else 'themselves'}: {count} of {len(history)}"
        )
        shown_part = sorted(verdict.core, key=lambda index: int(history.records["invoked"][index]))
        lines += ["", lanes(history, shown_part[:MOST_SHOWN], model, mark=verdict.blocked)]
        if count > MOST_SHOWN:
            lines.append(f"... and {count - MOST_SHOWN} more")
    return "\n".join(lines)


def named(history: History, index: int) -> str:
    """The number of an operation, and where it stands in its file."""
    place = history.place(index)
    return f"operation {index}" + f" ({place})" * bool(place)


def order_in_words(history: History, order: Sequence[int], model: Any) -> str:
    """The last calls of an order; empty when the text would be too long."""
    shown = "; ".join(describe_call(model, history.call(index)) for index in order[-MOST_LAST:])
    return shown if len(shown) <= WIDTH - 20 else ""


def state_after(history: History, order: Sequence[int], model: Any) -> str:
    """The state or states of the model after an order of calls; empty when the text is too long."""
    if not hasattr(model, "step"):
        return ""
    states = [model.init()]
    for index in order:
        states = [after for state in states for after in model.step(state, history.call(index))]
        if len(states) > MOST_STATES:
            return ""
    shown = " or ".join(sorted({describe_state(model, state) for state in states}))
    return shown if len(shown) <= WIDTH - 30 else ""


def advice(history: History, verdict: Verdict, model: Any) -> list[str]:
    """Advice for an unanswered check."""
    lines = []
    if verdict.reason.startswith("out of steps"):
        lines.append(
            "  more --steps may help; their number cannot be predicted: the problem is NP-hard"
        )
    if verdict.reason.startswith("out of time"):
        lines.append("  a larger --timeout may help")
    if "memory" in verdict.reason or "bytes" in verdict.reason:
        lines.append("  more --memory may help")
    if verdict.key is not None:
        lines.append(f"  the calls of key {verdict.key!r} have no answer")
    open_ = int((history.records["ending"] != RETURNED).sum())
    lines.append(
        f"  up to {overlap(history)} operations overlapped, and {open_} of {len(history)} did not "
        "return: a history with fewer of either is easier"
    )
    if model is not None and not hasattr(model, "pure"):
        lines.append("  the model has no pure(call), which shortens most searches")
    if getattr(model, "monitor", ""):
        lines.append("  histories in which each value is put only once have a quick answer")
    return lines


def headline(history: History, verdict: Verdict) -> str:
    how = f"{counted(len(history), 'operation')}, by {verdict.method}"
    if verdict.steps:
        how += f", {counted(verdict.steps, 'step')}"
    if verdict.answer == LEGAL:
        return f"legal: linearizable ({how})"
    if verdict.answer == ILLEGAL:
        return f"illegal: not linearizable ({how})"
    return f"unknown: {verdict.reason} ({how})"
