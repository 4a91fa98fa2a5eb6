"""Stress: time passes and size passes over all caches, by any thread, beside everything else."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named
from pulsar_ml.suites.range_cache import BALANCE, READS

EVICTION = named("I33 I51 I52 I53 I54 I55 I56 I57 I59 I64")

SUITE = Suite(
    name="removal_queue",
    subject="removal_queue",
    model="pulsar_ml.specs.pass_answers",
    summary=(
        "Eviction by time and by size, at any moment and by any thread, of entries that "
        "others read."
    ),
    threads=4,
    operations=6000,
    settings={"keys": (4, 96)},
    invariants=READS | BALANCE | EVICTION,
    controlled=ControlledSize(
        sources=("put",),
        kinds=("policy",),
        spans={"age": (0, 12), "bytes": (1, 200)},
        lives=(
            ("put", "expire", "put"),
            ("put", "dispatch", "free"),
            ("put", "put", "get", "free"),
            ("put", "remove_range", "put"),
            ("put", "put", "free", "remove_range"),
            ("put", "put", "configure", "free"),
            ("put", "hold", "free", "release"),
        ),
    ),
)
