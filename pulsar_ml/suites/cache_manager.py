"""The suite of the cache manager: puts, passes, ticks, settings, the thread's life."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named
from pulsar_ml.suites.range_cache import BALANCE, READS

BOOKS = named("I42 I45 I53 I61 I63 CM-7")

SUITE = Suite(
    name="cache_manager",
    subject="cache_manager",
    model="pulsar_ml.specs.manager_answers",
    summary=(
        "Books, trigger, passes and settings of the manager, its thread started and "
        "ended meanwhile."
    ),
    mix={
        "put": 120,
        "put_late": 8,
        "get": 40,
        "hold": 20,
        "release": 20,
        "dispatch": 20,
        "read_range": 10,
        "remove_range": 16,
        "clear": 1,
        "sweep": 2,
        "open_close": 2,
        "release_too_often": 2,
        "tick": 8,
        "trigger": 6,
        "evict": 6,
        "free": 4,
        "configure": 4,
        "configure_policy": 2,
        "stats": 8,
        "serve": 4,
        "serves": 2,
        "miss": 2,
        "fork": 1,
        "describe": 12,
    },
    settings={"keys": (4, 64), "max_size": (0, 1000)},
    threads=4,
    operations=6000,
    invariants=READS | BALANCE | BOOKS,
    controlled=ControlledSize(
        sources=("put",),
        mix={
            "put": 40,
            "get": 6,
            "remove_range": 6,
            "clear": 2,
            "tick": 16,
            "trigger": 4,
            "evict": 6,
            "configure": 16,
            "serve": 4,
        },
        # A few puts fill the cache.
        settings={"max_size": (0, 300)},
        spans={"max_size": (0, 120)},
        kinds=("policy",),
        lives=(
            # Few steps decide whether a task that ends notices a change of the settings.
            *(("configure", "put", "tick"),) * 4,
            ("put", "put", "evict"),
            ("put", "put", "free", "put"),
            ("put", "tick"),
            ("put", "configure", "put"),
            ("put", "tick", "configure"),
            ("put", "remove_range", "put"),
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
