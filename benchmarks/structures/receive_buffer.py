"""Counted and pinned bytes of a cache of received messages: PIP-430's note about the cache size.

A connection reads into buffers whose size adapts, and entries are slices of them. A frame that does
not end in its buffer is joined with the next one by a copy into a buffer of a power of two, as
Netty's frame decoder does. ``python -m benchmarks.structures.receive_buffer`` prints bytes and
ratios for all combinations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.measure import Benchmark
from pulsar_ml import BufferSlice, EntryCacheManager, ReceiveBufferSize

SIZES = (100, 1_000, 10_000, 100_000)  # bytes of a message
MEGABYTE = 1 << 20
STREAM = 16 * MEGABYTE  # bytes that a connection receives
MAXIMA = (1_048_576, 65_536)  # brokerAdaptiveRecvByteBufAllocatorMaximumSize
SPARSE = 16  # one message of this many is cached: the other topics have no readers


@dataclass(frozen=True, slots=True)
class Case:
    """One stream and how it is cached.

    A ``busy`` connection fills every buffer; an idle one reads one message at a time. One message
    of ``every`` is cached.
    """

    size: int
    maximum: int = MAXIMA[0]
    copy: bool = False
    every: int = SPARSE
    busy: bool = True

    @property
    def name(self) -> str:
        how = "copied" if self.copy else f"buffers up to {self.maximum >> 10} KiB"
        share = "all" if self.every == 1 else f"1 of {self.every}"
        return f"{self.size:,} B, {'busy' if self.busy else 'idle'}, {share} cached, {how}"


def messages(manager: EntryCacheManager, case: Case) -> Iterator[BufferSlice]:
    """Yields the slices that a connection cuts from the bytes that it receives."""
    guess = ReceiveBufferSize(maximum=case.maximum)
    received = rest = 0
    while received < STREAM:
        read = guess.next if case.busy else min(guess.next, case.size - rest)
        capacity = guess.next if rest == 0 else 1 << (rest + read - 1).bit_length()
        guess.record(read)
        received += read
        with manager.receive_buffer(capacity) as buffer:
            buffer.write(bytes(rest + read))
            whole = (rest + read) // case.size
            for number in range(whole):
                yield buffer.slice(number * case.size, case.size)
        rest = (rest + read) % case.size


def sizes(case: Case) -> tuple[int, int]:
    """Bytes counted and bytes pinned after the whole stream was received."""
    with EntryCacheManager(copy_entries=case.copy) as manager:
        cache = manager.range_cache("topic")
        for number, message in enumerate(messages(manager, case)):
            if number % case.every == 0:
                cache.put((1, number), message)
        del message
        return manager.size, manager.pinned_size


def ratio(case: Case) -> float:
    counted, pinned = sizes(case)
    return pinned / counted


def cut(copy: bool) -> float:
    """Nanoseconds to make an entry of a received message of 1,000 bytes in Python."""
    size, count = 1_000, 1_000
    with EntryCacheManager() as manager:
        buffer = manager.receive_buffer(size * count)
        text = bytes(size)
        for _ in range(count):
            buffer.write(text)
        before = time.perf_counter_ns()
        for number in range(count):
            manager.entry(
                (1, number), text if copy else buffer.slice(number * size, size)
            ).release()
        return (time.perf_counter_ns() - before) / count


CASES = tuple(
    Case(size, maximum, every=every, busy=busy)
    for busy in (True, False)
    for every in (SPARSE, 1)
    for maximum in MAXIMA
    for size in SIZES
) + tuple(Case(size, copy=True) for size in SIZES)


def measured(case: Case) -> Callable[[], float]:
    return lambda: ratio(case)


BENCHMARKS = (
    Benchmark("receive_buffer: slice, entry, released", lambda: cut(False)),
    Benchmark("receive_buffer: copy, entry, released", lambda: cut(True)),
    *(
        Benchmark(f"receive_buffer: pinned over counted, {case.name}", measured(case), unit="x")
        for case in CASES
        if case.busy and case.every == SPARSE
    ),
)


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"a stream of {STREAM // MEGABYTE} MiB, MiB counted and pinned")
    for column in (
        "message",
        "connection",
        "cached",
        "bytes",
        "counted",
        "pinned",
        "pinned / counted",
    ):
        table.add_column(column, justify="right")
    for case in CASES:
        counted, pinned = sizes(case)
        table.add_row(
            f"{case.size:,} B",
            "busy" if case.busy else "idle",
            "all" if case.every == 1 else f"1 of {case.every}",
            "copied" if case.copy else f"slices, ≤ {case.maximum >> 10} KiB",
            f"{counted / MEGABYTE:.2f}",
            f"{pinned / MEGABYTE:.2f}",
            f"{pinned / counted:.2f}",
        )
    Console(width=None if Console().is_terminal else 140).print(table)


if __name__ == "__main__":
    main()
