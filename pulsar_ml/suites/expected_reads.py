"""The suite of expected reads: entries are put again, copied, replayed, dropped and evicted.

One thread puts, so that the cached entry is known to share the read count of its newest addition.
"""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.cache_manager import BOOKS
from pulsar_ml.suites.invariants import named
from pulsar_ml.suites.range_cache import BALANCE, READS

MIX = {
    "put_alone": 120,
    "get": 10,
    "hold": 20,
    "dispatch": 60,
    "release": 20,
    "expect": 20,
    "drop": 10,
    "remove_range": 8,
    "tick": 4,
    "evict": 4,
    "describe": 4,
}

SUITE = Suite(
    name="expected_reads",
    subject="cache_manager",
    model="pulsar_ml.specs.manager_answers",
    summary=(
        "Read counts that copies share and a newer addition replaces, under readers and eviction."
    ),
    mix=MIX,
    settings={"keys": (4, 16), "caches": (1, 1), "policy": (0, 0), "max_size": (500, 4096)},
    threads=3,
    operations=4000,
    invariants=READS | BALANCE | BOOKS | named("I71"),
    controlled=ControlledSize(mix=MIX | {"put_alone": 60}, sources=("put_alone",)),
)
