"""Stress: position maps whose pages come, go and change hands."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

SUITE = Suite(
    name="position_map",
    subject="position_map",
    model="pulsar_ml.specs.position_map",
    summary="Two maps that share few pages, under puts, removals, finds and iterations at far ends.",
    settings={"limit": (8, 128)},
    threads=4,
    operations=6000,
    invariants={
        "I5": "An iteration stays within its bounds.",
        "I7": "A handle that is in the map all the while is found, and seen by each iteration over it.",
        "I8": "A handle that was removed is not found again.",
        "I35": "Of several puts of a free position exactly one succeeds.",
        "I36": "A removal takes away the handle it was given and no other.",
        "I38": "An iteration ascends and ends.",
        "I39": "At quiescence no page and no branch is left without a position in it.",
    },
)
