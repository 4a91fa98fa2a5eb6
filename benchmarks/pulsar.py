"""The cache beside that of Pulsar 5.0.1 and 4.2.4, the same work on both sides in one run.

The Java loops run eight times before they count, so that they are compiled. Each repeat measures
this cache and both releases, one after the other; a ratio is of the medians' own repeats and says
how many times as fast this cache is. One thread works, and its processor time counts: the threads
of Java's collector are not in it. The last rows have two readers and an evictor on two cores, by
the clock. A hit takes a reference and gives it back; two atomic read-modify-writes are its floor,
and what they cost on an entry that the caller knows already is the floor of any search. The stages
of an eviction have rows of their own.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from benchmarks.measure import Benchmark, ratio
from benchmarks.peers import pulsar
from benchmarks.structures.range_cache import (
    COUNT,
    READS,
    RETAIN_AND_RELEASE,
    TAIL,
    duplicate,
    filled,
    hit,
    known,
    native_bytes,
    put_and_evict,
    range_read,
    range_read_again,
    readers,
)
from benchmarks.structures.removal_queue import STAGES, all_stages, one_pass, stage

NEWEST, OLDEST = "5.0.1", "4.2.4"


class Row(NamedTuple):
    """A loop of both sides.

    Attributes:
        least: what the ratio to 5.0.1 should be at least; None without a target.
        rate: more is better: the figure counts reads.
    """

    name: str
    loop: str
    ours: Callable[[], float]
    least: float | None = None
    unit: str = "ns"
    rate: bool = False


def two_readers() -> float:
    """Both on the cores that the releases have, with the evictor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, pulsar.cores())
    try:
        return readers(2, span=TAIL, evictor=True)
    finally:
        os.sched_setaffinity(0, before)


ROWS = (
    Row("put with eviction", "put", put_and_evict, 3),
    Row("duplicate", "duplicate", duplicate, 3),
    Row("range read, an entry", "range", range_read, 3),
    Row("range read again, an entry", "again", range_read_again, 3),
    Row("time pass, an entry", "time", lambda: one_pass(True), 3),
    Row("size pass, an entry", "size", lambda: one_pass(False), 3),
    Row("remove range, an entry", "remove", lambda: filled().remove_range() / COUNT, 3),
    Row("hit, random in 100,000", "random", lambda: hit(COUNT, True), 3),
    Row("miss", "miss", lambda: filled().miss(READS) / READS, 3),
    Row("dispatch copy", "dispatch", lambda: filled(TAIL).dispatch(READS, TAIL) / READS, 2.5),
    Row("hit, tail of 1,000", "tail", lambda: hit(TAIL, False)),
    Row("hit, random in 1,000", "thousand", lambda: hit(TAIL, True)),
    Row("two readers beside an evictor", "readers", two_readers, unit="reads/us", rate=True),
    Row("memory beyond the payload", "bytes", native_bytes, unit="bytes"),
)


# The span of a row of hits, and if its positions are drawn.
HITS = {"tail": (TAIL, False), "thousand": (TAIL, True), "random": (COUNT, True)}


class Samples:
    """The repeats of a row: each measures all sides once, for all columns that ask for it."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self._taken: list[dict[str, float]] = []
        self._shown: defaultdict[str, int] = defaultdict(int)

    def column(self, name: str, value: Callable[[dict[str, float]], float]) -> float:
        """The figure of a column in its next repeat."""
        number = self._shown[name]
        self._shown[name] += 1
        if number == len(self._taken):
            theirs = {version: peer.figure(self.row.loop) for version, peer in peers_of()}
            self._taken.append({**theirs, "ours": self.row.ours(), "floor": RETAIN_AND_RELEASE()})
            if self.row.loop in HITS:
                self._taken[-1]["known"] = known(*HITS[self.row.loop])
        return value(self._taken[number])


def peers_of() -> Iterator[tuple[str, pulsar.Peer]]:
    found = pulsar.peers()
    return ((version, found[version]) for version in (NEWEST, OLDEST))


def times(version: str, rate: bool, sample: dict[str, float]) -> float:
    """How many times as fast, or as small, ours is."""
    ratio = sample[version] / sample["ours"]
    return 1 / ratio if rate else ratio


def columns(row: Row) -> Iterator[Benchmark]:
    samples = Samples(row)

    def column(
        name: str,
        value: Callable[[dict[str, float]], float],
        unit: str,
        target: float | None = None,
        at_least: bool = False,
    ) -> Benchmark:
        run = partial(samples.column, name, value)
        return Benchmark(f"pulsar: {row.name}, {name}", run, unit, target, at_least)

    most = 80 if row.loop == "bytes" else None
    yield column("ours", itemgetter("ours"), row.unit, most)
    for version in (NEWEST, OLDEST):
        yield column(version, itemgetter(version), row.unit)
    least = row.least
    yield column(f"{NEWEST} over ours", partial(times, NEWEST, row.rate), "x", least, True)
    yield column(f"{OLDEST} over ours", partial(times, OLDEST, row.rate), "x")
    if row.loop in ("tail", "thousand"):
        yield column("two read-modify-writes", itemgetter("floor"), "ns")
        yield column("ours over that", lambda sample: sample["ours"] / sample["floor"], "x", 1.5)
    if row.loop in HITS:
        yield column("both on a known entry", itemgetter("known"), "ns")
        yield column("ours over these", lambda sample: sample["ours"] / sample["known"], "x")


def stages() -> Iterator[Benchmark]:
    for number, name in enumerate(STAGES):
        yield Benchmark(f"pulsar: eviction of an entry, {name}", partial(stage, number))
    yield Benchmark(
        "pulsar: stages of an eviction over an entry of a time pass",
        ratio(all_stages, partial(one_pass, True)),
        unit="x",
    )


BENCHMARKS = (
    (*(column for row in ROWS for column in columns(row)), *stages()) if pulsar.available() else ()
)

if not pulsar.available():
    print(pulsar.WITHOUT_JAVA, file=sys.stderr)
