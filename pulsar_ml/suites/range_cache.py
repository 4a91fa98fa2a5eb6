"""Stress: range caches under puts, reads, references that outlive evictions, and removal of ranges."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite

READS = {
    "I1": "What is read under a position is the entry of that position, as long as it is held.",
    "I2": "The bytes of a held entry are those that were put, and stay.",
    "I3": "A hit carries a reference.",
    "I5": "A range answers ascending positions inside its bounds, each once.",
    "I8": "A position that was never put does not exist.",
    "I11": "A read in one cache never answers an entry of another one.",
    "I13": "A held reference can be released.",
    "I14": "An incarnation is deallocated once.",
    "I18": "A held entry is not in its pool.",
}

BALANCE = {
    "I15": "A cached entry has one reference of the cache's at quiescence.",
    "I16": "The cache gives its reference back once for each put.",
    "I17": "After everything was removed and released no entry is in use.",
    "I20": "The deallocation callback runs once for each incarnation.",
    "I23": "Every queued wrapper leaves the queue once, for its pool.",
    "I24": "No object is in use and in its pool.",
    "I27": "A linked wrapper holds its key, its owner and a value.",
    "I31": "A position has one wrapper.",
    "I39": "Empty pages and branches are unlinked and given back.",
    "I40": "A size is never negative.",
    "I41": "A size is the sum of the sizes of the linked wrappers.",
    "I43": "A cleared cache has size 0.",
    "I44": "The size taken off for an incarnation is the one that was added.",
    "I46": "The bytes that removals answer add up to those that were put.",
    "I47": "Entries put less entries removed are linked.",
    "I55": "The mark of a hit stays until a write section takes it away.",
    "I60": "Empty wrappers are dropped and counted nowhere.",
    "I70": "Expected-read counts are given back with the last entry that shares them.",
    "I102": "No write section is left open.",
    "RB-2": "An empty cache pins no receive buffer.",
}

SUITE = Suite(
    name="range_cache",
    subject="range_cache",
    model="pulsar_ml.specs.range_answers",
    summary="One to three caches over few positions: puts, point and range reads, held references, removal.",
    threads=4,
    operations=6000,
    settings={"keys": (4, 64)},
    invariants=READS
    | BALANCE
    | {"I8": READS["I8"] + " A removal takes out its range, both ends too."},
)
