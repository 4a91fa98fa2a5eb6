"""Stress: receive buffers, the entries cut from them, and what cached ones pin."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite

SUITE = Suite(
    name="receive_buffer",
    subject="receive_buffer",
    model="pulsar_ml.specs.receive_buffer",
    summary="Buffers that threads fill and cut into entries, which are copied, cached and passed on.",
    settings={"chunk_bits": (0, 2), "limit": (8, 64)},
    threads=4,
    operations=6000,
    controlled=ControlledSize(
        threads=(2, 2),
        operations=(5, 8),
        mix={"cut": 4, "copy": 1, "cache": 8, "uncache": 8, "pass_on": 1, "release": 1},
    ),
    invariants={
        "I2": "The bytes of a held slice are those that were received, while the receiver appends more.",
        "I17": "At quiescence references, entries and buffers are what threads hold, and nothing afterwards.",
        "I18": "A held entry stays the entry that was cut or copied.",
        "RB-2": "The bytes pinned are the capacities of the distinct buffers of cached slices, each once.",
        "RB-3": "The bytes sliced are the lengths of the cached slices.",
    },
)
