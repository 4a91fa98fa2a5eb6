"""Stress: active cursors that come, move and go while others ask for ranks and the slowest position."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite

REGISTRY = {
    "I79": "As many cursors are registered as were added and not removed; a registered one is found.",
    "I80": "The slowest position is the lowest of all tracked cursors.",
    "CR-1": "A walk meets a cursor that stays once, in the order of registration.",
    "CR-2": "The id of a cursor that was removed never names another one.",
    "CR-3": "The data version grows by one with every change.",
}

SUITE = Suite(
    name="active_cursors",
    subject="active_cursors",
    model="pulsar_ml.specs.active_cursors",
    summary="Cursors that come, move and go while others ask for ranks and for the slowest position.",
    # Few positions, so that cursors share them; sometimes as many as there are.
    settings={"cursors": (4, 40), "values": (2, 32), "chunk_bits": (0, 4)},
    threads=4,
    operations=4000,
    invariants=REGISTRY
    | {
        "I72": "Groups ascend strictly by position and are linked both ways.",
        "I73": "A cursor's rank is the number of tracked cursors at its position or before it.",
        "I74": "Cursors of one position share one group, and no others do.",
        "I75": "A cursor is pending at most once, and only one that is in place is not.",
        "I76": "After a query nothing is pending.",
        "I78": "Removed cursors and their groups go back to their pools after bounded further work.",
        "AC-6": "There is a group for each cursor, in the list or spare.",
        "AC-7": "Entries that are added are cached while a cursor is registered.",
    },
    # Short programs need cursors that exist and changes that are pending when somebody asks.
    controlled=ControlledSize(
        operations=(4, 8),
        mix={
            "add": 10, "update": 6, "remove": 3, "rank": 6, "slowest": 4, "size": 1, "should_cache": 1,
            "iterate": 1, "inspect": 1,
        },
    ),
)  # fmt: skip
