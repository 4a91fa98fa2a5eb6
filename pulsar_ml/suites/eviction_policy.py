"""Stress: each eviction policy in turn, its passes cut into slices of any length between those of others."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.suites.range_cache import BALANCE, READS

POLICY = {
    "I51": "A time pass removes nothing at or past its threshold.",
    "I53": "A size pass removes nothing once enough bytes are free; a scan asks each cache for its part.",
    "I55": "A last pass keeps what a queue is to keep because it was accessed, and nothing else.",
    "I57": "A pass keeps each wrapper a bounded number of times, but for the released queue.",
    "I59": "What a last pass kept has its time and is not marked as accessed.",
    "I64": "A last pass removes everything that is old.",
}

SUITE = Suite(
    name="eviction_policy",
    subject="eviction_policy",
    model="pulsar_ml.specs.policy_answers",
    summary="Six eviction policies: passes in slices, by any thread, beside puts, hits and removal.",
    threads=4,
    operations=6000,
    settings={"keys": (4, 96)},
    invariants=READS | BALANCE | POLICY,
)
