"""Stress: memory of released payloads that goes from thread to thread."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="payload_memory",
    subject="payload_memory",
    model="pulsar_ml.specs.payload_memory",
    summary="Blocks of several sizes, taken and given back by all threads, of which few are kept.",
    # From less than a block to more than threads hold: blocks are found, dropped, asked for anew.
    settings={"most": (1, 400)},
    threads=4,
    operations=8000,
    invariants=named("BM-1 BM-2 BM-3"),
    controlled=ControlledSize(
        sources=("take",),
        operations=(4, 8),
        mix={"take": 10, "take_large": 2, "give": 4, "give_chain": 5, "read": 1},
        # Blocks of two sizes, of which most are kept.
        settings={"most": (32, 400)},
        spans={"bytes": (16, 40)},
        lives=(("take", "take", "give_chain", "take", "read"),),
    ),
)
