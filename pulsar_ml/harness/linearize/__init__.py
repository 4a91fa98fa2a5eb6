"""Linearizability checking: is there an order of the operations that the model allows?

In the order, each operation takes effect at a moment between its invocation and its return.

:func:`check` checks one history; a :class:`ModelChecker` that is kept checks many.
"""

from __future__ import annotations

from pulsar_ml.harness.linearize.check import check
from pulsar_ml.harness.linearize.checker import ModelChecker
from pulsar_ml.harness.linearize.options import DEFAULT, Options
from pulsar_ml.harness.linearize.search._native import ANSWERS, Watch
from pulsar_ml.harness.linearize.verdict import (
    ILLEGAL,
    LEGAL,
    QUIESCENT,
    SEQUENTIAL,
    UNKNOWN,
    Verdict,
)

__all__ = [
    "ANSWERS",
    "DEFAULT",
    "ILLEGAL",
    "LEGAL",
    "QUIESCENT",
    "SEQUENTIAL",
    "UNKNOWN",
    "ModelChecker",
    "Options",
    "Verdict",
    "Watch",
    "check",
]
