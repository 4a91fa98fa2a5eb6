"""The suite of pending reads: joined and split requests; storage that answers in any order."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="pending_reads",
    subject="pending_reads",
    model="pulsar_ml.specs.pending_reads",
    summary=(
        "Overlapping requests of two ledgers, answered by any thread: rightly, short, "
        "foreign, late."
    ),
    threads=4,
    operations=3000,
    # Fewer counters and more overlap: short programs should leave requests waiting for each other.
    controlled=ControlledSize(
        sources=("read",),
        operations=(3, 6),
        mix={"read": 12, "answer": 8, "collect": 1, "expire": 2, "invalidate": 1},
    ),
    invariants=named("I2 I68 I82 I83 I84 I85 I86 OP-1 PR-7 PR-8 PR-10"),
)
