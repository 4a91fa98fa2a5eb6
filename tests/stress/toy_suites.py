"""Suites over the toy subjects, for ``--suites tests.stress.toy_suites``."""

from __future__ import annotations

from collections.abc import Mapping

from pulsar_ml.campaign.trial.suite import Suite


def toy(name: str, subject: str, operations: int, mix: Mapping[str, int] | None = None) -> Suite:
    return Suite(
        name=name,
        subject=subject,
        summary=f"Drives the toy {subject}.",
        mix=mix or {},
        threads=2,
        operations=operations,
        invariants={"T1": "the sum is the sum of what was added"},
    )


SUITES = {
    suite.name: suite
    for suite in [
        toy("counter", "counter", 2000),
        toy("racy", "racy", 2000),
        toy("leaky", "leaky", 4),
        toy("tattler", "tattler", 2000),
        toy("slow", "slow", 1000),
        toy("alone", "owned", 100, {"poll": 1}),
        toy("lonely", "lonely", 100),
    ]
}
