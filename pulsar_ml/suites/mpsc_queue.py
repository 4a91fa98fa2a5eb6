"""Stress: a queue of small chunks with many producers and one consumer."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

SUITE = Suite(
    name="mpsc_queue",
    subject="mpsc_queue",
    model="pulsar_ml.specs.mpsc_queue",
    summary="Many producers and one consumer on a queue whose chunks hold one to fifteen handles.",
    settings={"chunk_bits": (1, 4)},
    threads=4,
    operations=8000,
    invariants={
        "MQ-1": "Each offered handle is polled once, after each handle whose offer was finished before "
        "its own began, and with all that its producer wrote before.",
    },
)
