"""Stress: views of two topics that open and close, share delayed messages and mark them, and a timer."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.delayed_tracker import MESSAGES

SUITE = Suite(
    name="delayed_manager",
    subject="delayed_manager",
    model="pulsar_ml.specs.delayed_answers",
    summary="Views of two topics that open and close, and share delayed messages.",
    threads=4,
    # Few, so that views are open all the while.
    operations=300,
    invariants=MESSAGES
    | {
        "I94": "In the end every message that is there has come to each view that has not marked it.",
        "I95": "Views read only when they are told to, and nothing is left.",
        "I97": "What a view added and never marked is still there.",
        "I98": "At quiescence a bucket in the index is the topic's, under its key.",
        "I100": "A closed view takes and gives nothing, and is not triggered.",
        "DM-9": "The first chance to prune is taken, whatever the clock says.",
        "DM-8": "A topic without views is not in the factory.",
    },
    controlled=ControlledSize(
        operations=(3, 7),
        mix={
            "open": 3,
            "close": 2,
            "add": 14,
            "pass_time": 6,
            "scheduled": 8,
            "has_message": 2,
            "count": 1,
            "should_pause": 1,
            "clear": 1,
            "mark_delete": 8,
            "set_tick": 1,
            "fire": 5,
            "topic": 1,
        },
    ),
)
