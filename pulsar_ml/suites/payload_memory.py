"""Stress: memory of released payloads that goes from thread to thread."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="payload_memory",
    subject="payload_memory",
    model="pulsar_ml.specs.payload_memory",
    summary="Blocks of several sizes, taken and given back by all threads; few are kept, or none.",
    # From nothing to more than threads can hold: blocks are found, dropped, and asked for anew.
    settings={"most": (0, 400)},
    threads=4,
    operations=8000,
    invariants=named("BM-1 BM-2 BM-3"),
    controlled=ControlledSize(sources=("take",)),
)
