"""Cost of ack_state: making, storing, truncating and restoring a cursor with a million ranges."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import cache

from benchmarks.measure import Benchmark
from pulsar_ml import AckState

MILLION = 1_000_000
FIVE_MIB = 5 * 2**20
MARK = (0, -1)


def entries(order: str) -> list[tuple[int, int]]:
    """Every other entry of a ledger, each of which is a range."""
    positions = [(0, 2 * number + 1) for number in range(MILLION)]
    if order == "random":
        random.Random(1).shuffle(positions)
    return positions


def acknowledged(order: str) -> tuple[AckState, float]:
    """A cursor with a million acknowledged entries, and the seconds that it took."""
    acks = AckState(MARK, max_bytes=None, max_ranges=MILLION)
    acknowledge = acks.acknowledge
    places = entries(order)
    start = time.perf_counter()
    for place in places:
        acknowledge(place)
    return acks, time.perf_counter() - start


@cache
def full() -> AckState:
    return acknowledged("ascending")[0]


def milliseconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return 1000 * (time.perf_counter() - start)


def encode(max_bytes: int | None) -> Callable[[], float]:
    def run() -> float:
        acks = full()
        acks.configure(max_bytes=max_bytes, max_ranges=MILLION)
        return milliseconds(acks.encode)

    return run


def restore(max_bytes: int | None) -> Callable[[], float]:
    def run() -> float:
        acks = full()
        acks.configure(max_bytes=max_bytes, max_ranges=MILLION)
        stored = acks.encode()
        return milliseconds(lambda: AckState.restore(MARK, stored.data, stored.ranges, 0))

    return run


def size(max_bytes: int | None, what: str) -> Callable[[], float]:
    def run() -> float:
        acks = full()
        acks.configure(max_bytes=max_bytes, max_ranges=MILLION)
        stored = acks.encode()
        return float({"bytes": len(stored.data), "left": stored.ranges_left}[what])

    return run


BENCHMARKS = (
    Benchmark(
        "ack_state: acknowledge a million, ascending",
        lambda: 1e9 * acknowledged("ascending")[1] / MILLION,
    ),
    Benchmark(
        "ack_state: acknowledge a million, in random order",
        lambda: 1e9 * acknowledged("random")[1] / MILLION,
    ),
    Benchmark("ack_state: encode a million ranges", encode(None), unit="ms"),
    Benchmark("ack_state: bytes of a million ranges", size(None, "bytes"), unit="bytes"),
    Benchmark("ack_state: restore a million ranges", restore(None), unit="ms"),
    Benchmark("ack_state: encode the ranges that fit 5 MiB", encode(FIVE_MIB), unit="ms"),
    Benchmark(
        "ack_state: bytes of the ranges that fit 5 MiB", size(FIVE_MIB, "bytes"), unit="bytes"
    ),
    Benchmark("ack_state: ranges beyond 5 MiB", size(FIVE_MIB, "left"), unit="ranges"),
    Benchmark("ack_state: restore the ranges that fit 5 MiB", restore(FIVE_MIB), unit="ms"),
)
