"""Stress: entries, their copies, bytes, callbacks and expected reads."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

SUITE = Suite(
    name="entry",
    subject="entry",
    model="pulsar_ml.specs.entry",
    summary="Entries that threads make, copy, retain by stale handles, pass on and release.",
    settings={"chunk_bits": (0, 2), "limit": (4, 64)},
    threads=4,
    operations=6000,
    invariants={
        "I2": "The bytes of a held entry are those that were put into it.",
        "I3": "An entry has at least one reference while it is held.",
        "I12": "Whoever holds a reference can take another one.",
        "I13": "A release of more references than there are changes nothing; one of a holder succeeds.",
        "I17": "At quiescence references and entries in use are what threads hold, and nothing afterwards.",
        "I18": "A held entry stays the entry that was retained.",
        "I20": "A callback runs exactly once for its incarnation, while the bytes are still there.",
        "I69": "Each counting entry that was deallocated has marked its read once, and no other has.",
        "I70": "Read counts live as long as an entry shares them, and no longer.",
    },
)
