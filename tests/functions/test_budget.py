"""Budgets and threads of a test function: in comments, in pyproject.toml, and as options."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pulsar_ml.harness.functions.check as checking
import pulsar_ml.harness.search.explore as exploring
from pulsar_ml.errors import UsageError
from pulsar_ml.exit_codes import CLEAN, NOTHING_EXERCISED, USAGE, VIOLATION
from pulsar_ml.harness import check, explore
from pulsar_ml.harness.functions.budget import NO_LIMIT, replacing, with_budget
from pulsar_ml.harness.functions.check import build_tests
from pulsar_ml.harness.functions.source import read_source
from pulsar_ml.harness.subjects.program import Program
from tests import ROOT
from tests.commands import call
from tests.functions.test_command import RING

BUILDS = ROOT / "build" / "functions"
ONCE = """#include <assert.h>
#include <stdatomic.h>

static _Atomic(int *) shared;
static int storage;

static int *instance(void)
{
    int *found = atomic_load_explicit(&shared, ORDER);
    if (!found) {
        storage = 1;
        found = &storage;
        atomic_store_explicit(&shared, found, memory_order_release);
    }
    return found;
}

void test_instance(void) { assert(*instance() == 1); }
"""


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The options of the last exploration, which makes 20 executions."""
    options: dict[str, Any] = {}

    def short(*words: Any, **more: Any) -> Any:
        options.clear()
        options.update(more)
        return explore(*words, **{**more, "executions": 20, "seconds": None})

    monkeypatch.setattr(checking, "explore", short)
    return options


def written(folder: Path, text: str) -> Path:
    path = folder / "ring.c"
    path.write_text(text)
    return path


def clock(seconds: Callable[[], float]) -> SimpleNamespace:
    return SimpleNamespace(monotonic=seconds, thread_time=time.thread_time)


def test_a_time_ends_an_exploration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = build_tests(read_source(written(tmp_path, RING)), into=BUILDS)["test_add"]
    program = Program.of_test(subject)
    ticks = count()
    monkeypatch.setattr(exploring, "time", clock(lambda: float(next(ticks))))
    done = explore(subject, program, executions=10**12, seconds=3)
    assert done.verdict == "clean" and 0 < done.executions < 10**6
    # The first batch is made in any case, and both budgets hold.
    assert explore(subject, program, executions=10**12, seconds=0.5).executions > 0
    assert explore(subject, program, executions=7, seconds=10**6).executions == 7


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_time_is_a_number_above_0(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(UsageError, match=r"seconds is .*; it should be a number above 0"):
        check(written(tmp_path, RING), into=BUILDS, seconds=seconds)


def test_one_budget_replaces_the_others() -> None:
    own = {"executions": 5, "seconds": 2.0, "mode": "sc"}
    assert replacing(own, {"seed": 1}) == {**own, "seed": 1}
    assert replacing(own, {"seconds": 1.0}) == {"mode": "sc", "seconds": 1.0}
    assert replacing(own, {"executions": 9}) == {"mode": "sc", "executions": 9}
    assert with_budget({}, 30) == {"executions": 30}
    assert with_budget({"seconds": 1.0}, 30) == {"executions": NO_LIMIT, "seconds": 1.0}
    assert with_budget(own, 30) == own


def test_a_budget_in_a_comment_and_on_the_command_line(
    tmp_path: Path, used: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, f"// check: seconds=2.5\n\n{RING}")
    assert call("check", "ring.c::test_add").code == CLEAN
    assert (used["executions"], used["seconds"]) == (NO_LIMIT, 2.5)
    assert call("check", "ring.c::test_add", "--executions", "9").code == CLEAN
    assert used["executions"] == 9 and "seconds" not in used
    assert call("check", "ring.c::test_add", "--seconds", "4", "--executions", "9").code == CLEAN
    assert (used["executions"], used["seconds"]) == (9, 4.0)
    check("ring.c", test="test_add", seconds=1.5)
    assert (used["executions"], used["seconds"]) == (NO_LIMIT, 1.5)


def test_a_budget_in_a_table(
    tmp_path: Path, used: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, RING + "void test_pair(void) { run(add); }\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pulsar_ml.check."ring.c::test_pair"]\nseconds = 3\nthreads = 2\n'
    )
    results = check("ring.c", into=BUILDS, test="test_pair")
    assert used["seconds"] == 3.0
    assert results[0].exploration.statistics["threads"] == 4, "each starts one more"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("seconds=0", "seconds is '0'; it should be a number above 0"),
        ("seconds=soon", "seconds is 'soon'; it should be a number above 0"),
        ("seconds=", "seconds is ''"),
        ("executions=0", "executions is '0'; it should be a number from 1"),
        ("executions=" + "9" * 5_000, "it should be a number from 1"),
        ("threads=none", "threads is 'none'; it should be a number from 1"),
        ("second=1", "did you mean seconds=?"),
    ],
)
def test_a_wrong_budget_is_named(tmp_path: Path, words: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(written(tmp_path, f"// check: {words}\n\n{RING}"), into=BUILDS)
    assert message in str(caught.value)


def test_threads_call_a_function_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("check", "ring.c", "--executions", "2000", "--into", str(BUILDS))
    written(tmp_path, ONCE.replace("ORDER", "memory_order_acquire"))
    assert call(*words).code == NOTHING_EXERCISED, "one thread by itself"
    raced = call(*words, "--threads", "2")
    assert raced.code == VIOLATION, "both may store the value"
    assert "  test_instance, 2 threads, mode c11, " in raced.out
    assert "thread 1 in test_instance(): " in raced.out
    mended = ONCE.replace("static int storage;", "static int storage = 1;")
    mended = mended.replace("        storage = 1;\n", "")
    written(tmp_path, mended.replace("ORDER", "memory_order_acquire"))
    for seed in range(4):
        assert call(*words, "--threads", "3", "--seed", str(seed)).code == CLEAN
    many = call(*words, "--threads", "64")
    assert many.code == USAGE and "--threads" in many.err
