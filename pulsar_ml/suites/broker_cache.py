"""The suite of the whole cache as a broker uses it: appends, readers, dispatch, eviction.

The subject is the cache manager's, with the mix of a broker: most calls read recent entries, and
dispatch copies count their reads. The manager's thread runs during some puts and evicts by age and
by size while readers hold entries; otherwise puts evict.
"""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.cache_manager import BOOKS
from pulsar_ml.suites.range_cache import BALANCE, READS

SUITE = Suite(
    name="broker_cache",
    subject="cache_manager",
    model="pulsar_ml.specs.manager_answers",
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
        "open_close": 1,
        "release_too_often": 1,
        "size": 4,
        "tick": 4,
        "free": 6,
        "configure": 1,
        "configure_policy": 1,
        "stats": 2,
        "serve": 12,
        "serves": 2,
        "miss": 4,
        "describe": 8,
    },
    settings={"keys": (16, 128), "caches": (2, 3), "max_requeue": (1, 5), "max_size": (500, 4096)},
    threads=4,
    operations=10000,
    invariants=READS | BALANCE | BOOKS,
    controlled=ControlledSize(
        sources=("put",),
        settings={
            "keys": (4, 16),
            "caches": (2, 2),
            "max_requeue": (0, 5),
            "max_size": (500, 4096),
        },
        kinds=("policy",),
        spans={"cache": (0, 1)},
        places=("cache",),
        duels=2,
        lives=(
            ("put", "read_range", "remove_range", "put"),
            ("put", "get", "remove_range", "put"),
            ("put", "dispatch", "drop"),
            ("put", "put", "free", "put"),
            ("put", "hold", "release", "clear"),
        ),
    ),
    # Each call of serve starts a thread, and the engine follows 63 in all.
    alone=ControlledSize(
        threads=(1, 1),
        operations=(20, 200),
        left_out=("serve",),
        added={"fill": 2},
    ),
)
