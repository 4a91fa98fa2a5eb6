"""Stress: a queue of small chunks with many producers and one consumer."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="mpsc_queue",
    subject="mpsc_queue",
    model="pulsar_ml.specs.mpsc_queue",
    summary="Many producers and one consumer on a queue whose chunks hold one to fifteen handles.",
    settings={"chunk_bits": (1, 4)},
    threads=4,
    operations=8000,
    invariants=named("MQ-1"),
    # Only polls show the order of offers: if the consumer comes last, every order is a candidate.
    recorded=5,
    controlled=ControlledSize(sources=("offer",)),
)
