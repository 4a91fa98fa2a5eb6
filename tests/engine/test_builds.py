"""The plain build knows nothing of the engine; the checked build of the same sources calls it."""

from __future__ import annotations

import importlib.util
import subprocess

import pytest

MARKS = ("pml_checked", "__tsan_", "__wrap_", "engine_")


def symbols_of(module: str) -> str:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return subprocess.run(
        ["nm", "-D", spec.origin], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("module", ["pulsar_ml._core", "pulsar_ml.operations._native"])
def test_the_plain_build_has_no_symbol_of_the_engine(module: str) -> None:
    assert not [mark for mark in MARKS if mark in symbols_of(module)]


def test_the_checked_build_calls_the_engine() -> None:
    assert all(mark in symbols_of("pulsar_ml.operations._checked") for mark in MARKS[:3])


def test_the_engine_offers_its_hooks_and_hides_the_rest() -> None:
    symbols = symbols_of("pulsar_ml.harness.engine._engine")
    assert " T __tsan_atomic64_compare_exchange_strong" in symbols
    assert " T engine_run" not in symbols
