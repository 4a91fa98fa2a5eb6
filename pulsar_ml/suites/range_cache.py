"""The suite of range caches: puts, reads, references that outlive evictions, removal."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

READS = named("I1 I2 I3 I5 I8 I11 I13 I14 I18")

BALANCE = named(
    "I15 I16 I17 I20 I23 I24 I27 I31 I39 I40 I41 I43 I44 I46 I47 I55 I60 I70 I102 EP-6 RB-2"
)

SUITE = Suite(
    name="range_cache",
    subject="range_cache",
    model="pulsar_ml.specs.range_answers",
    summary=(
        "One to three caches over few positions: puts, point and range reads, held "
        "references, removal."
    ),
    threads=4,
    operations=6000,
    settings={"keys": (4, 64)},
    invariants=READS | BALANCE,
    controlled=ControlledSize(
        sources=("put",),
        kinds=("policy",),
        lives=(
            ("put", "remove_range", "put"),
            ("put", "dispatch", "drop"),
            ("put", "hold", "expect", "put"),
            ("put", "hold", "remove_range", "release"),
            ("put", "clear", "put"),
            ("put", "release_too_often", "get"),
        ),
    ),
    alone=ControlledSize(
        threads=(1, 1), operations=(20, 200), sources=("put", "fill"), added={"fill": 4}
    ),
)
