"""Stress: a stamped lock around fields that change together."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

SUITE = Suite(
    name="stamped_lock",
    subject="stamped_lock",
    model="pulsar_ml.specs.stamped_lock",
    summary="Write sections, shared readers and optimistic readers of fields that change together.",
    threads=4,
    operations=8000,
    invariants={
        "I9": "A read under a validated stamp sees the fields as one write section left them.",
        "I29": "The version grows by one with each write section and never otherwise.",
        "SL-2": "A writer is alone: no other writer and no shared reader is inside with it.",
    },
)
