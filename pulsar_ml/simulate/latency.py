"""Durations of storage reads as a distribution, and the percentiles of the reads of consumers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, TypeGuard

from pulsar_ml.errors import UsageError
from pulsar_ml.simulate.clock import MILLI

SHOWN = (50.0, 99.0, 99.9)  # the percentiles of a result
DIGITS = 2  # significant digits of a counted duration
MOST_MILLIS = 3_600_000.0


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of durations: milliseconds by percentile, with straight lines between them.

    A single point stands for a constant.
    """

    points: tuple[tuple[float, float], ...]

    def nanos(self, random: Random) -> int:
        """Draws a duration in nanoseconds; a constant takes no random number."""
        if len(self.points) == 1:
            return int(self.points[0][1] * MILLI)
        at = random.random() * 100
        before = self.points[0]
        for point in self.points[1:]:
            if at <= point[0]:
                share = (at - before[0]) / (point[0] - before[0])
                return int((before[1] + share * (point[1] - before[1])) * MILLI)
            before = point
        return int(before[1] * MILLI)


def parse_latency(value: object, where: str) -> Latency:
    """A distribution from milliseconds, a ``[least, most]`` pair, or a table like ``p99 = 20``.

    A table starts at p0, by default its least value, and ends at p100, by default its largest.
    Raises UsageError, which begins with ``where``.
    """
    if isinstance(value, Mapping):
        return parse_percentiles(value, where)
    pair: list[Any] = value if isinstance(value, list) else [value]
    if len(pair) not in (1, 2) or not all(is_duration(each) for each in pair) or pair[0] > pair[-1]:
        raise UsageError(
            f"{where}: {value!r:.60} should be milliseconds, [least, most], or a table like "
            "{ p50 = 2, p99 = 20 }, from 0 to 3,600,000"
        )
    if len(pair) == 1:
        return Latency(((0.0, float(pair[0])),))
    return Latency(((0.0, float(pair[0])), (100.0, float(pair[1]))))


def parse_percentiles(table: Mapping[str, object], where: str) -> Latency:
    found: dict[float, float] = {}
    for key, value in table.items():
        text = key.removeprefix("p").replace("_", ".")
        try:
            percentile = float(text) if key.startswith("p") else math.nan
        except ValueError:
            percentile = math.nan
        if not 0 <= percentile <= 100 or not is_duration(value):
            raise UsageError(
                f"{where}: {key} = {value!r:.60} should be a percentile from p0 to p100 (p99_9 is "
                "99.9) with milliseconds from 0 to 3,600,000"
            )
        found[percentile] = float(value)
    if not found:
        raise UsageError(f"{where}: the table is empty; write a percentile like p99 = 20")
    points = sorted(found.items())
    if [value for _, value in points] != sorted(found.values()):
        raise UsageError(f"{where}: a higher percentile should not be shorter than a lower one")
    points = [(0.0, points[0][1]), *points] if points[0][0] > 0 else points
    points = [*points, (100.0, points[-1][1])] if points[-1][0] < 100 else points
    return Latency(tuple(points))


def is_duration(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= MOST_MILLIS


class Durations:
    """Counts durations, each rounded to two significant digits of a microsecond or more."""

    __slots__ = ("counts", "longest", "total")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.longest = self.total = 0

    def add(self, nanos: int) -> None:
        micros = nanos // 1000
        digits = len(str(micros))
        if digits > DIGITS:
            scale = 10 ** (digits - DIGITS)
            micros -= micros % scale
        self.counts[micros] = self.counts.get(micros, 0) + 1
        self.longest = max(self.longest, nanos)
        self.total += nanos

    def millis(self) -> dict[str, float]:
        """The mean, percentiles and maximum in milliseconds; zeros when nothing was counted."""
        number = sum(self.counts.values())
        if not number:
            return dict.fromkeys(("mean", *map(name_of, SHOWN), "max"), 0.0)
        found = {"mean": self.total / number / MILLI}
        ordered = sorted(self.counts.items())
        for percentile in SHOWN:
            wanted = math.ceil(number * percentile / 100)
            seen = 0
            for micros, count in ordered:
                seen += count
                if seen >= wanted:
                    found[name_of(percentile)] = micros / 1000
                    break
        found["max"] = self.longest / MILLI
        return found


def name_of(percentile: float) -> str:
    """``99.9`` -> ``p99.9``."""
    return f"p{percentile:g}"
