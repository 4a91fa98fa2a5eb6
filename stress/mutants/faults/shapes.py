"""Programs of rare shapes, from the mutants of the catalogue and from the list below.

Faults are tried in them and in random programs.
"""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_ml.campaign.trial.suite import Suite
from stress.mutants.catalogue import CATALOGUE, Mutant

ONE_CACHE = {"caches": (1, 1), "keys": (16, 16), "policy": (0, 0), "length_shift": (0, 0)}


def shape(
    suite: str, *threads: tuple[tuple[str, *tuple[int, ...]], ...], **settings: tuple[int, int]
) -> Mutant:
    return Mutant(
        id="",
        title="",
        origin="",
        file="",
        old="",
        new="",
        suite=suite,
        breaks="",
        calls=threads,
        settings=settings,
    )


MORE: tuple[Mutant, ...] = (
    # A removal meets a put that has changed the map and not yet the size.
    shape(
        "range_cache", (("put", 0, 1, 0),), (("remove_range", 0, 1, 0), ("size", 0)), **ONE_CACHE
    ),
    # A wrapper is reused for another position under a reader.
    shape(
        "range_cache",
        (("put", 0, 1, 0), ("remove_range", 0, 1, 0), ("sweep", 4), ("put", 0, 2, 0)),
        (("get", 0, 1), ("get", 0, 2)),
        **ONE_CACHE,
    ),
    # A read finds a wrapper in memory that is younger than its page.
    shape(
        "range_cache",
        (("put", 0, 0, 0), ("put", 0, 1, 0), ("put", 0, 2, 0), ("put", 0, 3, 0)),
        (("get", 0, 3), ("get", 0, 3)),
        **ONE_CACHE,
        chunk_bits=(2, 2),
    ),
    # A read finds an entry in memory that is younger than its wrapper's place.
    shape(
        "range_cache",
        (
            ("put", 0, 0, 0),
            ("put", 0, 1, 0),
            ("remove_range", 0, 0, 0),
            ("put", 0, 2, 0),
            ("put", 0, 3, 0),
            ("sweep", 2),
            ("put", 0, 0, 0),
        ),
        (("get", 0, 0), ("get", 0, 0)),
        **ONE_CACHE,
        chunk_bits=(2, 2),
    ),
    # A hit touches a wrapper in memory that is younger than the entry's.
    shape(
        "eviction_policy",
        (
            ("put", 0, 0, 0),
            ("put", 0, 1, 0),
            ("put", 0, 2, 0),
            ("remove_range", 0, 0, 0),
            ("put", 0, 0, 0),
        ),
        (("get", 0, 0), ("get", 0, 0)),
        **{**ONE_CACHE, "policy": (5, 5)},
        chunk_bits=(2, 2),
    ),
    # A duplicate meets the removal of the entry that it finds.
    shape(
        "range_cache",
        (("put", 0, 1, 1), ("put", 0, 1, 2), ("get", 0, 1)),
        (("remove_range", 0, 1, 0), ("put", 0, 1, 3)),
        **ONE_CACHE,
    ),
    # Two passes to the watermark, two passes of different kinds, passes beside changed settings.
    shape(
        "cache_manager",
        (("put", 0, 4, 0), ("put", 0, 9, 0), ("put", 0, 14, 0), ("put", 0, 3, 0), ("evict",)),
        (("put", 0, 8, 0), ("evict",)),
        **ONE_CACHE,
        max_size=(240, 240),
        watermark=(30, 30),
    ),
    shape(
        "cache_manager",
        (("put", 0, 4, 0), ("put", 0, 3, 0), ("evict",)),
        (("put", 0, 9, 0), ("free", 100)),
        **ONE_CACHE,
        max_size=(100, 100),
        watermark=(50, 50),
    ),
    shape(
        "cache_manager",
        (("put", 0, 4, 0), ("configure", 100, 20, 0)),
        (("put", 0, 3, 0), ("configure", 60, 10, 0)),
        **ONE_CACHE,
        max_size=(200, 200),
        watermark=(50, 50),
    ),
    # A task that frees nothing runs beside inserts that it counts.
    shape(
        "cache_manager",
        (("tick",),),
        (("put", 0, 4, 0), ("put", 0, 3, 0)),
        **ONE_CACHE,
        max_size=(100, 100),
        watermark=(50, 50),
    ),
    # A task finds nothing left to free while settings change.
    shape(
        "cache_manager",
        (("put", 0, 4, 0), ("put", 0, 9, 0)),
        (("remove_range", 0, 4, 0),),
        (("configure", 40, 90, 0),),
        **ONE_CACHE,
        max_size=(100, 100),
        watermark=(90, 90),
    ),
    # The eviction thread lives while settings change.
    shape(
        "cache_manager",
        (("serve", 0, 1, 2),),
        (("configure", 60, 10, 0), ("serve", 0, 5, 2)),
        **ONE_CACHE,
        max_size=(100, 100),
        watermark=(50, 50),
    ),
    # A pass looks at the wrapper that a removal gives back.
    shape(
        "cache_manager",
        (("remove_range", 0, 3, 0),),
        (("put", 0, 3, -1), ("configure", 0, 10, 0)),
        caches=(2, 2),
        keys=(4, 4),
        length_shift=(0, 0),
        policy=(5, 5),
        max_size=(72, 72),
        watermark=(100, 100),
        max_requeue=(0, 0),
    ),
    # A put takes over the reads that another put of the position has promised to an entry.
    shape(
        "range_cache",
        (("put", 0, 3, 0), ("dispatch", 2, 3, -7), ("put", 0, 2, -1)),
        (("put", 0, 3, -1), ("put", 0, 3, -1), ("put", 0, 3, -1)),
        caches=(1, 1),
        keys=(5, 5),
        chunk_bits=(2, 2),
        queue_chunk_bits=(2, 2),
        keep=(1, 1),
        policy=(0, 0),
        length_shift=(0, 0),
    ),
    # The timer is read while another thread arms it.
    shape("delayed_tracker", (("timer",),), (("add", 1, 30),)),
    # A late message visits the views while other threads open and close them.
    shape(
        "delayed_manager",
        (("add", 0, 60, 22),),
        (("close", 0),),
        (
            ("add", 0, 40, 51),
            ("pass_time", 29),
            ("scheduled", 2, 13),
            ("scheduled", 1, 11),
            ("open", 2),
        ),
        tick=(7, 7),
        strict=(1, 1),
        start=(26, 26),
        spread=(3, 3),
    ),
    shape(
        "delayed_manager",
        (("scheduled", 0, 1),),
        (("close", 0),),
        (("add", 2, 0, 3),),
        tick=(4, 4),
        strict=(1, 1),
        start=(32, 32),
        spread=(2, 2),
    ),
    shape(
        "delayed_manager",
        (("scheduled", 2, 1),),
        (("close", 0), ("pass_time", 26), ("open", 0), ("add", 0, 40, 53)),
        tick=(9, 9),
        strict=(1, 1),
        start=(-1, -1),
        spread=(2, 2),
    ),
    # A bucket is emptied and filled again under a thread that found it before.
    shape(
        "delayed_manager",
        (("pass_time", 6), ("pass_time", 14), ("close", 0), ("mark_delete", 2, 10)),
        (
            ("add", 0, 14, 59),
            ("add", 2, 52, 59),
            ("scheduled", 2, 14),
            ("add", 1, 37, 30),
            ("count", 0, 38),
        ),
        tick=(20, 20),
        strict=(0, 0),
        start=(-16, -16),
        prune_interval=(18, 18),
        spread=(1, 1),
    ),
)


def shapes(suite: Suite) -> Iterator[Mutant]:
    """Yields each program of the suite once, as a mutant that changes nothing."""
    known = []
    for one in (*CATALOGUE, *MORE):
        if one.suite == suite.name and one.calls and (one.calls, one.settings) not in known:
            known.append((one.calls, one.settings))
            yield one
