"""Cost of eviction: one pass over 100,000 entries of 100 bytes."""

from __future__ import annotations

from functools import partial

from benchmarks.measure import Benchmark, ratio
from benchmarks.structures.range_cache import COUNT, filled, put_and_evict


def one_pass(by_time: bool) -> float:
    return float(filled().evict(by_time)) / COUNT


STAGES = ("lock", "unlink", "release", "free", "recycle")


def stage(number: int) -> float:
    """One stage of the eviction of an entry; the others are timed apart."""
    spent: list[int] = filled().stages(COUNT)
    return spent[number] / COUNT


def all_stages() -> float:
    """All stages of the eviction of an entry, each of which was timed apart."""
    spent: list[int] = filled().stages(COUNT)
    return sum(spent) / COUNT


BENCHMARKS = (
    Benchmark("removal_queue: time pass, an entry", lambda: one_pass(True)),
    Benchmark("removal_queue: size pass, an entry", lambda: one_pass(False)),
    Benchmark(
        "removal_queue: time pass over a put with later eviction",
        ratio(lambda: one_pass(True), put_and_evict),
        unit="x",
        target=1,
    ),
    *(
        Benchmark(f"removal_queue: stage {name}, an entry", partial(stage, number))
        for number, name in enumerate(STAGES)
    ),
)
