"""Cost of the position map on one thread: 100,000 dense ids of one ledger."""

from __future__ import annotations

from functools import partial

from benchmarks.measure import Benchmark, loops

COUNT = 100_000


def run(operation: str) -> float:
    positions = loops().Map(COUNT)
    spent = {name: getattr(positions, name)() for name in ("put", "find", "walk", "remove")}
    return float(spent[operation]) / COUNT


BENCHMARKS = tuple(
    Benchmark(f"position_map: {label}", partial(run, operation))
    for label, operation in (
        ("put", "put"),
        ("find", "find"),
        ("walk, an entry", "walk"),
        ("remove", "remove"),
    )
)
