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
        lives=(
            ("put", "put", "put", "free"),
            ("put", "put", "expire", "put"),
            ("put", "get", "free", "put"),
            ("put", "put", "configure", "free"),
            ("put", "put", "expire", "free", "put"),
            ("open_close", "put", "free", "open_close"),
        ),
    ),
)
