"""Stress: receive buffers, the entries cut from them, and what cached ones pin."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="receive_buffer",
    subject="receive_buffer",
    model="pulsar_ml.specs.receive_buffer",
    summary=(
        "Buffers that threads fill and cut into entries, which are copied, cached and passed on."
    ),
    settings={"chunk_bits": (0, 2), "limit": (8, 64)},
    threads=4,
    operations=6000,
    controlled=ControlledSize(
        sources=("cut",),
        operations=(6, 9),
        mix={"cut": 4, "copy": 1, "cache": 8, "uncache": 8, "pass_on": 2, "release": 1},
    ),
    invariants=named("I2 I17 I18 I70 RB-2 RB-3"),
)
