"""A manager that must be balanced when the test is over, and one of its caches."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from pulsar_ml import EntryCacheManager, RangeCache

# Hypothesis tries the same examples in every run.
FIXED = settings(derandomize=True, deadline=None, max_examples=200)


def assert_nothing_in_use(manager: EntryCacheManager) -> None:
    """Every native object of a closed manager is back in its pool, but for its caches."""
    if any(in_use_of(manager).values()):
        gc.collect()  # a cycle of a test's objects may keep some
    assert not any(in_use_of(manager).values()), in_use_of(manager)


def in_use_of(manager: EntryCacheManager) -> dict[str, int]:
    in_use = manager.objects_in_use()
    del in_use["range_caches"]
    return in_use


@pytest.fixture
def manager() -> Iterator[EntryCacheManager]:
    manager = EntryCacheManager()
    yield manager
    # A failed test keeps its entries alive in the traceback; a passed one must leave nothing.
    manager.close()
    assert_nothing_in_use(manager)


@pytest.fixture
def cache(manager: EntryCacheManager) -> RangeCache:
    return manager.range_cache("persistent://public/default/orders")


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Exceptions of callbacks."""
    seen: list[BaseException] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: seen.append(report.exc_value))
    return seen
