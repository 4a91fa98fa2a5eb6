"""Stress: a stamped lock around fields that change together."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="stamped_lock",
    subject="stamped_lock",
    model="pulsar_ml.specs.stamped_lock",
    summary="Write sections, shared readers and optimistic readers of fields that change together.",
    threads=4,
    operations=8000,
    invariants=named("I9 I29 SL-2"),
)
