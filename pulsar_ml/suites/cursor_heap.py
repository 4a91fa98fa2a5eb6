"""Stress: cursors in a heap that come, move and go while others ask for the slowest position."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.active_cursors import REGISTRY
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="cursor_heap",
    subject="cursor_heap",
    model="pulsar_ml.specs.cursor_heap",
    summary="Cursors that come, move and go while others ask for the slowest position.",
    settings={"cursors": (4, 40), "values": (2, 64), "chunk_bits": (0, 4)},
    threads=4,
    operations=4000,
    invariants=REGISTRY | named("I78 I81"),
    controlled=ControlledSize(
        sources=("add",),
        operations=(4, 8),
        mix={
            "add": 10,
            "update": 6,
            "remove": 3,
            "slowest": 8,
            "size": 1,
            "iterate": 1,
            "inspect": 1,
            "look": 3,
            "slowest_cursor": 3,
        },
    ),
)
