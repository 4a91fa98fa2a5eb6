"""The page about one history: its operations over time, and why they are legal or not.

One HTML file that needs no network and no server, with the style and the policy of the report page.
The operations are drawn on a canvas, only those that are in view, so ten thousand do not slow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from pulsar_ml import __version__
from pulsar_ml.harness.histories.history import NEVER, History, ranks
from pulsar_ml.harness.linearize.picture import (
    MOST_STATES,
    describe_verdict,
    headline,
    named,
)
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL, Verdict
from pulsar_ml.harness.models.model import describe_call, describe_state
from pulsar_ml.report.html import environment, policy, script_of, style_of
from pulsar_ml.wording import counted

MOST_OPERATIONS = 50_000  # the most drawn operations
MOST_STEPS = 5_000  # the most steps of an order whose states are on the page
MOST_CHARACTERS = 300  # of a text

BADGES = {"legal": "✓ Legal", "illegal": "✗ Illegal"}
SHOWN_AS = {"legal": "clean", "illegal": "violation"}  # classes of the style sheet


def history_page(history: History, verdict: Verdict, model: Any, *, name: str) -> str:
    """Return the page about a history and the verdict of ``model``; ``name`` is the file's."""
    shown = drawn_operations(history, verdict)
    order = order_of(verdict, shown)
    style, script = style_of("colours", "page", "history"), script_of("history", "history_page")
    return (
        environment()
        .get_template("history.html")
        .render(
            style=Markup(style),
            script=Markup(script),
            policy=policy(style, script),
            name=name,
            badge=BADGES.get(verdict.answer, "○ Unknown"),
            verdict=SHOWN_AS.get(verdict.answer, ""),
            title=title_of(history, verdict, model),
            headline=headline(history, verdict),
            weaker=dict(verdict.weaker),
            left_out=len(history) - len(shown),
            illegal=verdict.answer == ILLEGAL,
            key=verdict.key,
            steps=len(order),
            core=bool(verdict.core),
            text=describe_verdict(history, verdict, model),
            data=data_of(history, verdict, model, shown, order),
            version=__version__,
        )
    )


def title_of(history: History, verdict: Verdict, model: Any) -> str:
    """The sentence that a reader needs first."""
    if verdict.answer == LEGAL:
        return f"{counted(len(history), 'operation')} could have run one after the other"
    if verdict.answer != ILLEGAL:
        return f"No answer: {verdict.reason}"
    if verdict.blocked < 0:
        return "No order of the operations explains their results"
    blocked = describe_call(model, history.call(verdict.blocked))[:MOST_CHARACTERS]
    return f"No legal order leads to {named(history, verdict.blocked)}, {blocked}"


def drawn_operations(history: History, verdict: Verdict) -> list[int]:
    """The operations on the page, by invocation; of a long history, those around its core."""
    by_time = np.lexsort((history.records["returned"], history.records["invoked"]))
    if len(by_time) > MOST_OPERATIONS:
        matters = verdict.core or ((verdict.blocked,) if verdict.blocked >= 0 else ())
        places = np.flatnonzero(np.isin(by_time, np.array(matters, dtype=np.int64)))
        middle = int(places.mean()) if len(places) else 0
        first = min(max(0, middle - MOST_OPERATIONS // 2), len(by_time) - MOST_OPERATIONS)
        window = by_time[first : first + MOST_OPERATIONS]
        outside = np.setdiff1d(np.array(matters, dtype=np.int64), window)
        by_time = by_time[np.isin(by_time, np.concatenate([window, outside]))]
    return [int(index) for index in by_time]


def order_of(verdict: Verdict, shown: Sequence[int]) -> list[int]:
    """The order to step through: the legal one, or the longest part of one, if it is drawn."""
    order = verdict.prefix if verdict.answer == ILLEGAL else verdict.linearization or ()
    drawn = set(shown)
    return list(order) if all(index in drawn for index in order) else []


def data_of(
    history: History, verdict: Verdict, model: Any, shown: Sequence[int], order: Sequence[int]
) -> dict[str, Any]:
    """Return the data of the script, which names operations by their places in ``operations``."""
    part = history.select(shown)
    invoked, returned = ranks(part)
    place = {index: number for number, index in enumerate(shown)}
    first = int(part.records["invoked"].min(initial=NEVER)) if len(part) else 0
    operations = [
        [
            int(part.records["thread"][row]),
            int(invoked[row]),
            -1 if returned[row] == NEVER else int(returned[row]),
            describe_call(model, part.call(row))[:MOST_CHARACTERS],
            shown[row],
            part.place(row),
            int(part.records["invoked"][row]) - first,
            None if returned[row] == NEVER else int(part.records["returned"][row]) - first,
        ]
        for row in range(len(part))
    ]
    threads = sorted({int(number) for number in part.records["thread"]})
    return {
        "threads": [[number, history.thread_name(number)] for number in threads],
        "operations": operations,
        "first": str(first),
        "core": [place[index] for index in verdict.core if index in place],
        "blocked": place.get(verdict.blocked, -1),
        "order": [place[index] for index in order],
        "states": states_of(history, model, order),
    }


def states_of(history: History, model: Any, order: Sequence[int]) -> list[str]:
    """The texts of the states before the first and after each step of an order.

    Fewer where the model takes an order apart by keys, or has too many states.
    """
    if not hasattr(model, "step"):
        return []
    states = [model.init()]
    texts = [state_text(model, states)]
    for index in order[:MOST_STEPS]:
        call = history.call(index)
        states = [after for state in states for after in model.step(state, call)]
        if not 0 < len(states) <= MOST_STATES:
            break
        texts.append(state_text(model, states))
    return texts


def state_text(model: Any, states: Sequence[Any]) -> str:
    return " or ".join(sorted({describe_state(model, state) for state in states}))[:MOST_CHARACTERS]
