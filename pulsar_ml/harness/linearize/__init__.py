"""Linearizability: was there an order of these operations, each within its interval, that the model allows?

:func:`check` answers for one history; a :class:`ModelChecker` that is kept answers for many.
"""

from __future__ import annotations

from pulsar_ml.harness.linearize.check import DEFAULT, Options, check
from pulsar_ml.harness.linearize.checker import ModelChecker
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
