"""A failure that rests on stale reads says so, and what was tried without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.harness.functions.check import build_tests, check_function
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.search import stale

HEAD = """#include <atomic>
#include <cassert>
#include <thread>
std::atomic<int> x{0}, y{0}, z{0};
"""
BUFFERING = """
void test_one_is_seen() {
    int a = 0, b = 0;
    std::thread other([&] {
        x.store(1, std::memory_order_relaxed);
        a = y.load(std::memory_order_relaxed);
    });
    y.store(1, std::memory_order_relaxed);
    b = x.load(std::memory_order_relaxed);
    other.join();
    assert(a == 1 || b == 1);
}
"""
# The value 3 is read in both modes, but under c11 most executions that read it read a stale x.
ANYWAY = """
void test_anyway() {
    std::thread other([&] { x.store(1, std::memory_order_relaxed); z = 1; x.store(2, std::memory_order_relaxed); });
    while (z.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    int seen = x.load(std::memory_order_relaxed);
    other.join();
    assert(seen == 7);
}
"""
STALE = "a stale read of "


def text_of(folder: Path, code: str, **options: Any) -> str:
    path = folder / "some.cpp"
    path.write_text(HEAD + code)
    source = read_source(path)
    (subject,) = build_tests(source, into=folder).values()
    result = check_function(path, source.tests[0], subject, **{"executions": 3_000, **options})
    assert result.failure is not None
    return result.text


@pytest.mark.parametrize("mode", ["c11", "tso"])
def test_a_failure_by_a_stale_read_is_legal_without(tmp_path: Path, mode: str) -> None:
    text = text_of(tmp_path, BUFFERING, mode=mode)
    assert f"  legal under sequential consistency: {STALE}" in text
    assert ", some.cpp:" in text
    assert "none of all its 20 executions fails" in text
    assert 'mode="sc", or a weaker assertion' in text


def test_a_sample_is_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale, "SC_EXECUTIONS", 7)
    text = text_of(tmp_path, BUFFERING)
    assert f"  seen with stale reads alone: {STALE}" in text
    assert "7 executions under sequential consistency did not show it" in text
    assert "legal under" not in text


def test_a_failure_without_stale_reads_says_nothing_of_them(tmp_path: Path) -> None:
    text = text_of(tmp_path, ANYWAY)
    assert "stale read" not in text
    assert "sequential consistency" not in text


def test_a_failure_that_needs_no_stale_read_is_not_blamed_on_one(tmp_path: Path) -> None:
    path = tmp_path / "some.cpp"
    path.write_text(HEAD + BUFFERING.replace("a == 1 || b == 1", "a == 1 && b == 1"))
    source = read_source(path)
    (subject,) = build_tests(source, into=tmp_path).values()
    result = check_function(path, source.tests[0], subject, executions=3_000)
    assert result.failure is not None
    done = stale.under_sc(result.failure, subject, None)
    assert done.failure is not None
    assert done.mode == "sc"
    assert "legal under" not in result.text


def test_stale_reads_of_both_modes() -> None:
    def event(op: str, thread: int, address: int = 8, old: int = 0) -> dict[str, object]:
        return {"op": op, "thread": thread, "address": address, "stale": old}

    old = event("load", 1, old=2)
    assert stale.stale_reads([event("store", 0), event("load", 1), old]) == [old]
    hidden = event("load", 1)
    trace = [event("buffer", 0), event("load", 0), hidden, event("flush", 0), event("load", 1)]
    assert stale.stale_reads(trace) == [hidden]
    assert stale.stale_reads([event("buffer", 0, 16), event("load", 1)]) == []
