"""Stress: reference counts of objects that die and come back."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

SUITE = Suite(
    name="refcount",
    subject="refcount",
    model="pulsar_ml.specs.refcount",
    summary="Counts that refuse to leave zero, under threads that retain and release a few objects.",
    threads=4,
    operations=8000,
    invariants={
        "I12": "A count never leaves zero except when a new incarnation is published.",
        "I13": "A count is never negative, and a release of more references than there are changes nothing.",
        "I14": "Exactly one release of an incarnation is the last one.",
        "I17": "At quiescence each count is the number of references that threads hold.",
    },
)
