"""The suite of active cursors: cursors come, move and go while others read ranks."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

REGISTRY = named("I79 I80 CR-1 CR-2 CR-3 CR-4")

SUITE = Suite(
    name="active_cursors",
    subject="active_cursors",
    model="pulsar_ml.specs.active_cursors",
    summary=(
        "Cursors that come, move and go while others ask for ranks and for the slowest "
        "position."
    ),
    # Few positions, so that cursors share them; sometimes as many as there are.
    settings={"cursors": (4, 40), "values": (2, 32), "chunk_bits": (0, 4)},
    threads=4,
    operations=4000,
    invariants=REGISTRY
    | named("I72 I73 I74 I75 I76 I78 AC-6 AC-7"),
    # Short programs need cursors that exist and changes that are pending when somebody asks.
    controlled=ControlledSize(
        sources=("add",),
        operations=(4, 8),
        mix={
            "add": 10, "update": 6, "remove": 3, "rank": 6, "rank_at": 2, "slowest": 4, "size": 1,
            "should_cache": 1, "iterate": 1, "inspect": 1, "look": 3, "slowest_cursor": 3,
        },
        left_out=("churn",),
        lives=(
            ("add", "remove", "should_cache"),
            ("add", "update", "rank"),
            ("add", "remove", "add", "slowest"),
        ),
    ),
)  # fmt: skip
