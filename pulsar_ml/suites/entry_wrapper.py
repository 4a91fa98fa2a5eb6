"""Stress: wrappers that are filled, read, cleared and reused while stale readers look on."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

SUITE = Suite(
    name="entry_wrapper",
    subject="entry_wrapper",
    model="pulsar_ml.specs.wrapper_answers",
    summary="A few wrappers that change hands all the time, beside readers that hold stale handles.",
    threads=4,
    operations=8000,
    settings={"keys": (2, 10)},
    invariants={
        "I9": "Key and value of a read come from one write section.",
        "I23": "Every queued wrapper leaves the queue once, for its pool.",
        "I24": "A wrapper is taken by one user at a time and given back once.",
        "I27": "A linked wrapper holds its key for its owner.",
        "I28": "A wrapper without a key has no value, no owner and no size.",
        "I29": "A wrapper's count of write sections never goes back, over every reuse.",
        "I30": "A new incarnation was never requeued.",
        "I32": "An incarnation is cleared once, and for its own value only.",
        "I34": "What a former user wrote late does not change a later incarnation.",
        "I44": "Clearing answers the size that was stored at filling.",
        "I45": "As many wrappers are cleared as were filled.",
        "I59": "A requeue mark sets the timestamp and counts.",
        "I102": "No write section is left open.",
    },
)
