"""Stress: delayed messages of one subscription that come, become due and are taken, and their timer."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite

MESSAGES = {
    "I91": "The count is the number of messages in all sets, counted one by one.",
    "I93": "No message comes before its time, or a tick before it when delivery is not strict.",
    "I94": "At the end of time every message that was kept has been returned.",
    "I95": "What is due later has a timer, which fires for it or a tick after its last run.",
    "ES-2": "Sets are sorted, and their runs do not touch.",
    "ES-3": "The bytes are those that are allocated.",
    "OP-1": "Every bucket goes back to its pool.",
}

SUITE = Suite(
    name="delayed_tracker",
    subject="delayed_tracker",
    model="pulsar_ml.specs.delayed_tracker",
    summary="Delayed messages of one subscription that come, become due and are taken.",
    threads=4,
    operations=2000,
    invariants=MESSAGES
    | {
        "I92": "There are buckets exactly when there are messages, and none is empty.",
        "I96": "The timer has a target exactly while it is armed.",
        "I98": "A bucket in the index is the tracker's, under its key.",
    },
    controlled=ControlledSize(
        operations=(3, 7),
        mix={
            "add": 12,
            "pass_time": 8,
            "scheduled": 8,
            "has_message": 4,
            "count": 3,
            "should_pause": 1,
            "clear": 1,
            "set_tick": 2,
            "fire": 4,
        },
    ),
)
