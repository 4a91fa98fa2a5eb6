"""Stress: a pool whose objects go from thread to thread."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="object_pool",
    subject="object_pool",
    model="pulsar_ml.specs.object_pool",
    summary="Objects taken and given back by all threads, from a pool so small that it runs out.",
    # Small pools and small chunks: reuse, exhaustion and new chunks all the time.
    settings={"chunk_bits": (0, 2), "limit": (2, 24)},
    threads=4,
    operations=8000,
    invariants=named("I24 OP-1 OP-3"),
    controlled=ControlledSize(sources=("take",)),
)
