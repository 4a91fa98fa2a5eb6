"""The suite of the limiter: permits that are requested, awaited, held, shared and released."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="inflight_limiter",
    subject="inflight_limiter",
    model="pulsar_ml.specs.inflight_limiter",
    summary=(
        "Permits of reads under way: a full queue, timeouts, refused grants, copies that "
        "hold permits, requests above the maximum, no timeout, no limit."
    ),
    settings={"maximum": (-1, 64), "timeout": (-6, 20), "queue_size": (1, 8)},
    threads=4,
    operations=5000,
    # Asked for more often: else short programs leave nothing waiting.
    controlled=ControlledSize(
        sources=("acquire",),
        operations=(3, 6),
        mix={
            "acquire": 12,
            "try_acquire": 4,
            "release": 8,
            "share": 3,
            "pass_on": 2,
            "drop": 4,
            "expire": 3,
        },
    ),
    invariants=named("I82 I87 I88 I89 I90 IL-3 IL-6 IL-7 OP-1"),
)
