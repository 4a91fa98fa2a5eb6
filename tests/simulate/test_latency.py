"""Durations of storage reads, and the percentiles of reads."""

from __future__ import annotations

from random import Random

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.simulate.latency import Durations, Latency, parse_latency

MILLI = 1_000_000


def drawn(latency: Latency, number: int = 10_000) -> list[float]:
    random = Random(1)
    return sorted(latency.nanos(random) / MILLI for _ in range(number))


def test_a_number_is_a_constant_and_takes_no_random_number() -> None:
    random = Random(1)
    before = random.getstate()
    assert parse_latency(5, "file").nanos(random) == 5 * MILLI
    assert random.getstate() == before


def test_a_pair_is_uniform() -> None:
    values = drawn(parse_latency([2, 4], "file"))
    assert 2 <= values[0] < 2.01 and 3.99 < values[-1] <= 4
    assert sum(values) / len(values) == pytest.approx(3, abs=0.02)


def test_a_table_has_its_percentiles() -> None:
    values = drawn(parse_latency({"p50": 2, "p99": 20, "p99_9": 100}, "file"))
    assert values[0] == 2 == values[4999]
    assert values[7450] == pytest.approx(11, abs=1)
    assert values[9850] == pytest.approx(19.6, abs=1)
    assert values[-1] == 100


@pytest.mark.parametrize(
    "value",
    [-1, True, "5", [3, 2], [], [1, 2, 3], {}, {"p50": -1}, {"50": 1}, {"p101": 1}, {"px": 1},
     {"p50": 3, "p99": 2}, 4e6, float("nan")],
)  # fmt: skip
def test_what_is_no_distribution_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(UsageError, match=r"^file: "):
        parse_latency(value, "file")


def test_percentiles_are_those_of_the_counted_durations() -> None:
    durations = Durations()
    assert set(durations.millis().values()) == {0.0}
    for number in range(1000):
        durations.add(0 if number < 900 else (number - 899) * MILLI)
    found = durations.millis()
    assert found["p50"] == 0 and found["max"] == 100
    assert found["p99"] == pytest.approx(90, rel=0.1) and found["p99.9"] == pytest.approx(
        99, rel=0.1
    )
    assert found["mean"] == pytest.approx(sum(range(1, 101)) / 1000)
