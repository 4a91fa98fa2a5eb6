"""Stress: permits that threads ask for, wait for, refuse, hold, share among copies and give back."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite

SUITE = Suite(
    name="inflight_limiter",
    subject="inflight_limiter",
    model="pulsar_ml.specs.inflight_limiter",
    summary="Permits of reads under way: a full queue, timeouts, refused grants, copies that hold permits.",
    settings={"maximum": (0, 64), "timeout": (1, 20), "queue_size": (1, 8)},
    threads=4,
    operations=5000,
    # Asked for more often: else short programs leave nothing waiting.
    controlled=ControlledSize(
        operations=(3, 6),
        mix={"acquire": 12, "release": 8, "share": 3, "pass_on": 2, "drop": 4, "expire": 3},
    ),
    invariants={
        "I82": "A request that waits is told once, granted or failed.",
        "I87": "What remains lies between 0 and the maximum whenever the monitor is free.",
        "I88": "Permits that remain and permits that are out make the maximum at quiescence.",
        "I89": "All permits remain when nothing is in flight.",
        "I90": "The first request that waits neither fits nor is past its timeout while nobody is inside.",
        "IL-3": "The queue has as many requests as are counted, and no more than it may.",
        "OP-1": "Every waiter and every share goes back to its pool.",
    },
)
