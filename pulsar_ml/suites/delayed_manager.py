"""The suite of the delayed manager: views of two topics, shared messages, and a timer."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.delayed_tracker import MESSAGES
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="delayed_manager",
    subject="delayed_manager",
    model="pulsar_ml.specs.delayed_answers",
    summary="Views of two topics that open and close, and share delayed messages.",
    threads=4,
    # Few, so that views are open all the while.
    operations=300,
    invariants=MESSAGES | named("I94 I95 I97 I98 I100 DM-9 DM-8 DM-10"),
    controlled=ControlledSize(
        sources=("add",),
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
            "timer": 2,
            "topic": 1,
        },
        # Most delays end within what a few calls let pass, and clocks differ by more than that.
        spans={"delay": (0, 24), "milliseconds": (4, 40)},
        kinds=("era",),
        settings={"clocks_apart": (4, 40), "start": (0, 40), "tick": (0, 8)},
        lives=(
            ("add", "pass_time", "fire"),
            ("add", "pass_time", "scheduled", "mark_delete"),
            ("add", "mark_delete", "mark_delete", "add"),
            ("open", "add", "close", "open"),
            ("close", "open", "add"),
            ("mark_delete", "mark_delete", "add", "count"),
            ("add", "pass_time", "scheduled", "add", "scheduled"),
        ),
    ),
    alone=ControlledSize(
        operations=(20, 400),
        spans={"entries": (1, 40)},
        kinds=("era",),
        sources=("add", "add_many"),
        mix={
            "open": 4,
            "close": 1,
            "add": 24,
            "add_many": 4,
            "add_apart": 2,
            "pass_time": 8,
            "scheduled": 8,
            "has_message": 3,
            "count": 3,
            "should_pause": 1,
            "clear": 1,
            "mark_delete": 6,
            "set_tick": 1,
            "fire": 4,
            "timer": 2,
            "topic": 3,
        },
    ),
)
