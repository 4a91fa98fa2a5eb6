"""Stress: requests that join and split storage reads, and a storage that answers in any order and way."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite

SUITE = Suite(
    name="pending_reads",
    subject="pending_reads",
    model="pulsar_ml.specs.pending_reads",
    summary="Overlapping requests of two ledgers, answered by any thread: rightly, short, foreign, late.",
    threads=4,
    operations=3000,
    # Fewer counters and more overlap: short programs should leave requests waiting for each other.
    controlled=ControlledSize(
        operations=(3, 6),
        mix={"read": 12, "answer": 8, "collect": 1, "expire": 2, "invalidate": 1},
    ),
    invariants={
        "I2": "The bytes of an answer are those of the storage.",
        "I68": "At quiescence each position was read as often as it was delivered.",
        "I82": "A request is answered once, and no read outlives its timeout.",
        "I83": "A request waits for the read that it joined.",
        "I84": "A request is answered outside the monitor (else it waits for itself).",
        "I85": "An answer is the whole range in order, each entry once.",
        "I86": "At quiescence no entry of the storage is left.",
        "OP-1": "Every read and every part goes back to its pool.",
        "PR-7": "The reads of a ledger that can be joined do not overlap.",
        "PR-8": "A read is completed once, and is in the list until then.",
    },
)
