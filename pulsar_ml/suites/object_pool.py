"""Stress: a pool whose objects go from thread to thread."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

SUITE = Suite(
    name="object_pool",
    subject="object_pool",
    model="pulsar_ml.specs.object_pool",
    summary="Objects taken and given back by all threads, from a pool so small that it runs out.",
    # Small pools and small chunks: reuse, exhaustion and new chunks all the time.
    settings={"chunk_bits": (0, 2), "limit": (2, 24)},
    threads=4,
    operations=8000,
    invariants={
        "I24": "An object in the pool is used by nobody, and a taken one only by its taker.",
        "OP-1": "An object is handed to one taker at a time: objects taken are those given plus those held.",
        "OP-3": "The memory behind a handle stays mapped and is always that object's.",
    },
)
