"""Monitors: histories of distinct values, decided in O(n log n).

With distinct values it is known which write a read saw, and which value a call put or took; the
rest is geometry of intervals. A monitor answers only for histories that qualify.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize.monitors.containers import container
from pulsar_ml.harness.linearize.monitors.registers import register
from pulsar_ml.harness.linearize.monitors.sets import members
from pulsar_ml.harness.linearize.monitors.view import Judgement, NotDistinct, View

__all__ = ["Judgement", "judge"]

FEW = 1_000  # calls that show whether values are repeated


def judge(monitor: str, history: History, model: Any) -> Judgement | None:
    """Run the monitor of that name, see Extras in model.py; None for an unsuitable history."""
    try:
        if monitor in ("set", "multiset"):
            return members(View(history), counted=monitor == "multiset")
        if monitor == "register" and not repeats_soon(history, "write"):
            view = View(history)
            return register(view, view.code(model.initial))
        containers = ("queue", "stack", "priority-queue")
        if monitor in containers and not repeats_soon(history, model.put):
            return container(View(history), model.put, model.take, monitor)
    except NotDistinct:
        pass
    return None


def repeats_soon(history: History, put: str) -> bool:
    """Return True if the first puts repeat a value, which takes less time than a view."""
    codes = [code for code, one in enumerate(history.signatures) if one.name == put]
    records = history.records[:FEW]
    words = records["arguments"][np.isin(records["operation"], codes), 0]
    return len(np.unique(words)) < len(words)
