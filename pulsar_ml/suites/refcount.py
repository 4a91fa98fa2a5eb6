"""Stress: reference counts of objects that die and come back."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="refcount",
    subject="refcount",
    model="pulsar_ml.specs.refcount",
    summary=(
        "Counts that refuse to leave zero, under threads that retain and release a few objects."
    ),
    threads=4,
    operations=8000,
    invariants=named("I12 I13 I14 I17"),
    controlled=ControlledSize(sources=("publish",)),
)
