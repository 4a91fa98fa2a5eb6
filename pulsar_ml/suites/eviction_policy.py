"""The suite of eviction policies: each in turn, its passes cut into slices."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named
from pulsar_ml.suites.range_cache import BALANCE, READS

POLICY = named("I51 I53 I55 I57 I59 I64")

SUITE = Suite(
    name="eviction_policy",
    subject="eviction_policy",
    model="pulsar_ml.specs.policy_answers",
    summary=(
        "Eight eviction policies: passes in slices, by any thread, beside puts, hits and removal."
    ),
    threads=4,
    operations=6000,
    settings={"keys": (4, 96)},
    invariants=READS | BALANCE | POLICY,
    controlled=ControlledSize(
        sources=("put",),
        kinds=("policy",),
        # Passes beside each other, and what changes the lists that they walk.
        mix={
            "put": 40,
            "free": 24,
            "expire": 20,
            "get": 8,
            "remove_range": 8,
            "two_passes": 8,
            "hold": 4,
            "dispatch": 4,
            "configure": 4,
        },
        # A few calls put a few entries: passes end and stop among them. A chunk of
        # the pool has room for 16 caches.
        spans={
            "slice": (1, 2), "age": (0, 1), "bytes": (40, 300), "other": (0, 300), "caches": (8, 20),
        },
        lives=(
            ("put", "put", "put", "free", "expire"),
            ("put", "put", "expire", "free", "put"),
            ("put", "get", "free", "put"),
            ("put", "put", "remove_range", "free"),
            ("put", "put", "configure", "free"),
            ("open_close", "put", "free", "open_close"),
            ("put", "put", "put", "put", "put", "two_passes"),
        ),
    ),
    # Long lists, whose memory grows, and keys that meet in one place of a table.
    alone=ControlledSize(
        threads=(1, 1),
        operations=(20, 300),
        settings={"keys": (8, 128)},
        lives=(
            # Two passes take turns, each with entries that the other one would remove next.
            ("put", "put", "put", "put", "put", "put", "put", "put", "two_passes"),
            ("put", "put", "get", "free"),
            ("put", "put", "dispatch", "expire", "free"),
            ("put", "put", "hold", "free", "release"),
            ("put", "put", "free", "remove_range", "free", "put"),
        ),
        sources=("put", "fill"),
        added={"fill": 8},
    ),
)  # fmt: skip
