"""The leak verdict on invented series of memory, and the watch of the process."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from pulsar_ml.campaign.local.watch import (
    FEWEST_SAMPLES,
    MEGABYTE,
    MOST_SAMPLES,
    MemorySeries,
    ProcessWatch,
    sanitized,
)

Shape = Callable[[float], float]
THRESHOLD = 8 * MEGABYTE


def judge(shape: Shape, rounds: int) -> str | None:
    series = MemorySeries()
    for number in range(rounds):
        series.add(int((100 + shape(number / rounds)) * MEGABYTE))
    return series.leak(THRESHOLD)


def noise(x: float) -> float:
    """Between -2 and 2 megabytes, the same each time."""
    return 2 * math.sin(x * 12345.678)


@pytest.mark.parametrize("rounds", [FEWEST_SAMPLES, 100, 1000, 5000])
@pytest.mark.parametrize(
    "shape",
    [
        lambda x: 0,
        noise,
        lambda x: 200 * min(x, 0.4),  # warm-up
        lambda x: 60 if x > 0.7 else 0,  # one step to a new level
        lambda x: 60 if 0.9 < x < 0.95 else 0,  # a spike
        lambda x: 40 * (1 - math.exp(-8 * x)) + noise(x),  # levels off
        lambda x: 10 * x + noise(x),  # grows, below the threshold
        lambda x: -60 * x,
    ],
)
def test_memory_that_levels_off_is_no_leak(shape: Shape, rounds: int) -> None:
    assert judge(shape, rounds) is None


@pytest.mark.parametrize("rounds", [FEWEST_SAMPLES, 100, 1000, 5000])
@pytest.mark.parametrize(
    "shape",
    [
        lambda x: 40 * x,
        lambda x: 40 * x + noise(x),
        lambda x: 80 * x * x,
        lambda x: 10 * math.floor(8 * x),
    ],
)
def test_steady_growth_is_a_leak(shape: Shape, rounds: int) -> None:
    assert "did not level off" in (judge(shape, rounds) or "")


def test_few_rounds_say_nothing() -> None:
    assert judge(lambda x: 1000 * x, FEWEST_SAMPLES - 1) is None


def test_the_series_stays_small_and_even() -> None:
    series = MemorySeries()
    for number in range(10_000):
        series.add(number)
    assert FEWEST_SAMPLES <= len(series.samples) < MOST_SAMPLES
    steps = {
        later - earlier for earlier, later in zip(series.samples, series.samples[1:], strict=False)
    }
    assert len(steps) == 1


def test_the_watch_sees_this_process() -> None:
    with ProcessWatch() as watch:
        usage = watch.usage()
    assert usage.resident_peak >= usage.resident > MEGABYTE
    assert usage.threads_peak >= 1
    assert usage.switches_voluntary >= 0 and usage.switches_involuntary >= 0
    assert not sanitized()
