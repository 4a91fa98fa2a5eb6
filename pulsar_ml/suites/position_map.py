"""Stress: position maps whose pages come, go and change hands."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="position_map",
    subject="position_map",
    model="pulsar_ml.specs.position_map",
    summary=(
        "Two maps that share few pages, under puts, removals, finds and iterations at far ends."
    ),
    settings={"limit": (8, 128)},
    threads=4,
    operations=6000,
    invariants=named("I5 I7 I8 I11 I35 I36 I38 I39"),
    controlled=ControlledSize(
        sources=("put", "put_own"),
        # A page that changes hands under a thread that came to it before.
        lives=(
            ("put", "recall", "remove", "put_across", "look"),
            ("put", "remove", "put_across", "remove_across", "put", "find"),
        ),
    ),
)
