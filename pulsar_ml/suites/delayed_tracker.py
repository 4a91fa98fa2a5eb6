"""The suite of the delayed tracker: messages of one subscription, and their timer."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

MESSAGES = named("I91 I93 I94 I95 ES-2 ES-3 ES-4 OP-1")

SUITE = Suite(
    name="delayed_tracker",
    subject="delayed_tracker",
    model="pulsar_ml.specs.delayed_tracker",
    summary="Delayed messages of one subscription that come, become due and are taken.",
    threads=4,
    operations=2000,
    invariants=MESSAGES | named("I92 I96 I98"),
    controlled=ControlledSize(
        sources=("add",),
        operations=(3, 7),
        kinds=("era",),
        mix={
            "add": 12,
            "pass_time": 8,
            "scheduled": 8,
            "has_message": 4,
            "count": 3,
            "should_pause": 2,
            "clear": 2,
            "set_tick": 2,
            "fire": 4,
            "timer": 2,
            "bytes": 1,
        },
    ),
    # Enough messages for a block's other forms, and enough times for several pages of the index.
    alone=ControlledSize(
        operations=(50, 500),
        spans={"entries": (1, 60)},
        settings={"tick": (0, 5)},
        kinds=("era",),
        # A time comes and the timer fires, before and after messages; a tracker is used again.
        lives=(
            ("add", "pass_time", "fire", "add", "timer"),
            ("add", "add", "clear", "add", "should_pause"),
            ("add", "pass_time", "scheduled", "timer"),
        ),
        sources=("add", "add_many"),
        mix={
            "add": 100,
            "add_many": 12,
            "add_span": 1,
            "add_apart": 3,
            "pass_time": 30,
            "scheduled": 10,
            "has_message": 5,
            "count": 5,
            "should_pause": 2,
            "clear": 1,
            "set_tick": 2,
            "fire": 6,
            "timer": 5,
            "bytes": 2,
        },
    ),
)
