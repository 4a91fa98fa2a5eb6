"""Stress: time passes and size passes over all caches, by any thread, beside everything else."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.suites.range_cache import BALANCE, READS

EVICTION = {
    "I33": "An empty wrapper stays empty while it is queued.",
    "I51": "A time pass removes nothing at or past its threshold.",
    "I52": "A pass that stops leaves the head where it is.",
    "I53": "A size pass stops as soon as enough bytes are free.",
    "I54": "A size pass that freed too little left an empty queue.",
    "I55": "What was accessed and is to be kept for that is not removed.",
    "I56": "An entry is requeued for its expected reads at most as often as the settings say.",
    "I57": "A pass keeps each wrapper a bounded number of times, but for the released queue.",
    "I59": "A requeued wrapper has the time of the pass and counts the requeue.",
    "I64": "A time pass does not stop at a head that is old enough.",
}

SUITE = Suite(
    name="removal_queue",
    subject="removal_queue",
    model="pulsar_ml.specs.pass_answers",
    summary="Eviction by time and by size, at any moment and by any thread, of entries that others read.",
    threads=4,
    operations=6000,
    settings={"keys": (4, 96)},
    invariants=READS | BALANCE | EVICTION,
)
