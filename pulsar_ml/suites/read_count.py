"""Stress: counts of expected reads that threads pass on to each other."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="read_count",
    subject="read_count",
    model="pulsar_ml.specs.read_count",
    summary="Counts of expected reads, shared and passed on between threads.",
    # Few counts and many changes of each, so that two threads often change the same one.
    mix={
        "new": 2,
        "retain": 6,
        "pass_on": 6,
        "increment": 30,
        "mark_read": 30,
        "value": 4,
        "release": 3,
    },
    # A count that would pass its limit does so for a moment, which others may see.
    settings={"chunk_bits": (0, 2), "limit": (2, 12), "below_zero": (0, 1), "near_limit": (0, 0)},
    threads=4,
    operations=8000,
    # More references are made and passed on: else short programs hold none and change nothing.
    controlled=ControlledSize(
        sources=("new",),
        threads=(3, 3),
        operations=(5, 8),
        mix={"new": 5, "retain": 2, "pass_on": 8, "increment": 4, "mark_read": 4, "release": 3},
    ),
    alone=ControlledSize(
        threads=(1, 1), operations=(20, 200), settings={"near_limit": (0, 1)}, kinds=("near_limit",)
    ),
    invariants=named("I12 I17 I67 I70 EX-3 OP-1"),
)
