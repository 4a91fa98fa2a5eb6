"""Programs for rare shapes: those that mutants of the catalogue have, and some more. Faults are tried in
them, beside the random ones."""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_ml.campaign.suite import Suite
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
    # A removal meets a put between the map and the books.
    shape("range_cache", (("put", 0, 1, 0),), (("remove_range", 0, 1, 0), ("size", 0)), **ONE_CACHE),
    # A wrapper comes to another position under a reader.
    shape(
        "range_cache",
        (("put", 0, 1, 0), ("remove_range", 0, 1, 0), ("sweep", 4), ("put", 0, 2, 0)),
        (("get", 0, 1), ("get", 0, 2)),
        **ONE_CACHE,
    ),
    # A read finds a wrapper in memory that was made after its page.
    shape(
        "range_cache",
        (("put", 0, 0, 0), ("put", 0, 1, 0), ("put", 0, 2, 0), ("put", 0, 3, 0)),
        (("get", 0, 3), ("get", 0, 3)),
        **ONE_CACHE,
        chunk_bits=(2, 2),
    ),
    # A duplicate meets the removal of what it finds.
    shape(
        "range_cache",
        (("put", 0, 1, 1), ("put", 0, 1, 2), ("get", 0, 1)),
        (("remove_range", 0, 1, 0), ("put", 0, 1, 3)),
        **ONE_CACHE,
    ),
    # Two passes to the watermark, two passes of different kinds, and passes beside changed settings.
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
    # A task that frees nothing beside inserts that it counts.
    shape(
        "cache_manager",
        (("tick",),),
        (("put", 0, 4, 0), ("put", 0, 3, 0)),
        **ONE_CACHE,
        max_size=(100, 100),
        watermark=(50, 50),
    ),
    # The thread's life beside changed settings.
    shape(
        "cache_manager",
        (("serve", 0, 1, 2),),
        (("configure", 60, 10, 0), ("serve", 0, 5, 2)),
        **ONE_CACHE,
        max_size=(100, 100),
        watermark=(50, 50),
    ),
)


def shapes(suite: Suite) -> Iterator[Mutant]:
    """Each program once, as a mutant of no kind."""
    known = []
    for one in (*CATALOGUE, *MORE):
        if one.suite == suite.name and one.calls and (one.calls, one.settings) not in known:
            known.append((one.calls, one.settings))
            yield one
