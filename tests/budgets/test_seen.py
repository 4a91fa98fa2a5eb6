"""Classes that add up over slices, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from pulsar_ml.harness.budgets import seen
from pulsar_ml.harness.budgets.seen import Hashes, Seen


def hashes(first: int, count: int) -> Hashes:
    """Numbers that look random, the same ones each time."""
    rows = np.arange(first, first + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    rows ^= rows >> np.uint64(29)
    return rows * np.uint64(0xBF58476D1CE4E5B9) ^ rows >> np.uint64(32)


def sample(rows: Hashes, shift: int) -> tuple[Hashes, int]:
    """The hashes that the engine keeps of many, and the number that it estimates."""
    kept = rows[rows & np.uint64((1 << shift) - 1) == 0]
    return kept, len(kept) << shift


def test_classes_of_two_slices_are_counted_once() -> None:
    both = Seen()
    assert both.add(hashes(0, 100), 100) == 100
    assert both.add(hashes(50, 100), 100) == 50
    assert both.add(hashes(0, 150), 150) == 0
    assert both.add(hashes(0, 0), 0) == 0
    assert both.count == 150


def test_a_sample_and_a_whole_one_add_up_by_the_smaller_ones_rule() -> None:
    both = Seen()
    both.add(hashes(0, 20_000), 20_000)
    new = both.add(*sample(hashes(10_000, 100_000), 3))
    assert both.shift == 3
    assert new == pytest.approx(90_000, rel=0.05)
    assert both.count == pytest.approx(110_000, rel=0.05)
    assert both.add(*sample(hashes(0, 110_000), 3)) == 0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "MOST", 1_000)
    both = Seen()
    for first in range(0, 20_000, 2_000):
        both.add(hashes(first, 2_000), 2_000)
        assert len(both.hashes) <= 1_000
    assert both.count == pytest.approx(20_000, rel=0.2)
