"""Stress: the whole cache as a broker uses it: appends, tailing and catch-up readers, dispatch, eviction.

The subject is that of the removal queue. The mix is a broker's: most calls read what was put lately,
dispatch copies count their reads, evictors come now and then and meet readers that still hold entries.
"""

from __future__ import annotations

from pulsar_ml.campaign.suite import Suite
from stress.range_cache import BALANCE, READS
from stress.removal_queue import EVICTION

SUITE = Suite(
    name="broker_cache",
    subject="removal_queue",
    summary="A broker's cache as a whole: puts, tailing and catch-up readers, dispatch, eviction.",
    mix={
        "put": 100,
        "put_late": 4,
        "get": 20,
        "hold": 20,
        "release": 20,
        "dispatch": 100,
        "read_range": 30,
        "exists": 4,
        "remove_range": 10,
        "clear": 1,
        "size": 4,
        "expire": 6,
        "free": 12,
        "configure": 1,
    },
    settings={"keys": (16, 128), "caches": (2, 3), "max_requeue": (1, 5)},
    threads=4,
    operations=10000,
    invariants=READS | BALANCE | EVICTION,
)
