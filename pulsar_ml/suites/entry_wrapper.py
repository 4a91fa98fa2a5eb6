"""Stress: wrappers that are filled, read, cleared and reused while stale readers look on."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="entry_wrapper",
    subject="entry_wrapper",
    model="pulsar_ml.specs.wrapper_answers",
    summary=(
        "A few wrappers that change hands all the time, beside readers that hold stale handles."
    ),
    threads=4,
    operations=8000,
    settings={"keys": (2, 10)},
    invariants=named("I9 I23 I24 I27 I28 I29 I30 I32 I34 I44 I45 I59 I102"),
    controlled=ControlledSize(
        sources=("fill",),
        lives=(("fill", "clear", "fill"), ("fill", "churn", "fill")),
    ),
)
