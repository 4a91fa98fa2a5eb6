"""Stress: entries, their copies, bytes, callbacks and expected reads."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="entry",
    subject="entry",
    model="pulsar_ml.specs.entry",
    summary="Entries that threads make, copy, parse, retain by stale handles, pass on and release.",
    settings={
        "chunk_bits": (0, 2),
        "limit": (4, 64),
        "counts_of_4": (0, 1),
        "shared": (0, 1),
        "kept": (0, 200),
    },
    threads=4,
    operations=6000,
    # Three threads and many passes: else few short programs share an entry.
    controlled=ControlledSize(
        sources=("new",),
        threads=(3, 3),
        operations=(5, 8),
        mix={
            "new": 8,
            "copy": 10,
            "retain": 4,
            "retain_stale": 6,
            "pass_on": 20,
            "read": 1,
            "expected": 2,
            "release": 10,
            "release_all": 2,
            "release_too_often": 1,
            "parse": 12,
            "has_callback": 3,
        },
        lives=(("new", "parse", "parse", "copy"), ("new", "has_callback", "pass_on", "parse")),
    ),
    invariants=named("I2 I3 I12 I13 I17 I18 I20 I69 I70 EN-7"),
)
