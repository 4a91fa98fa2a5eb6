"""Stress: entries, their copies, bytes, callbacks and expected reads."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="entry",
    subject="entry",
    model="pulsar_ml.specs.entry",
    summary="Entries that threads make, copy, retain by stale handles, pass on and release.",
    settings={"chunk_bits": (0, 2), "limit": (4, 64), "counts_of_4": (0, 1)},
    threads=4,
    operations=6000,
    invariants=named("I2 I3 I12 I13 I17 I18 I20 I69 I70"),
)
