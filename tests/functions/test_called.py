"""Functions of a checked Cython module are tests, for ``check`` and for pytest."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.harness import InterleavingFailure, build_extension, check, load_checked
from tests import ROOT
from tests.functions.plugin.test_collect import collected

SOURCE = Path(__file__).parent / "operations" / "count.pyx"
BUILDS = ROOT / "build" / "functions"


@pytest.fixture(scope="module")
def module() -> ModuleType:
    return load_checked(build_extension(SOURCE, into=BUILDS, checked=True))


def test_a_clean_function(module: ModuleType) -> None:
    (result,) = check(module.adds, executions=500)
    assert result.verdict == "clean"
    assert result.exploration.executions == 500
    assert result.test.name == "adds"


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [("races", "data race", "count.pyx"), ("loses", "invariant", "AssertionError: lost")],
)
def test_a_failing_function(module: ModuleType, name: str, kind: str, message: str) -> None:
    for seed in range(20):
        with pytest.raises(InterleavingFailure, match=message) as caught:
            check(getattr(module, name), executions=2_000, seed=seed)
        assert caught.value.failure.kind == kind


def test_an_assertion_that_noexcept_drops_is_a_failure(module: ModuleType) -> None:
    with pytest.raises(InterleavingFailure, match="AssertionError: dropped"):
        check(module.drops, executions=100)


def test_a_function_in_which_no_two_threads_meet(module: ModuleType) -> None:
    with pytest.raises(AssertionError, match="nothing exercised"):
        check(module.alone, executions=50)


def test_one_thread_calls_a_function(module: ModuleType) -> None:
    with pytest.raises(UsageError, match="threads is 2, and a function of Cython is called by one"):
        check(module.adds, threads=2)


def test_a_time_is_a_budget(module: ModuleType) -> None:
    (result,) = check(module.adds, seconds=0.05)
    assert result.verdict == "clean"


@pytest.mark.parametrize("other", [len, print])
def test_other_functions_are_refused(other: object) -> None:
    with pytest.raises(UsageError, match="is no function of a checked module; load its module by"):
        check(other)  # type: ignore[call-overload]


def test_marked_functions_are_collected(tmp_path: Path) -> None:
    shutil.copy(SOURCE, tmp_path)
    (tmp_path / "test_count.py").write_text(
        "from pathlib import Path\n"
        "import pytest\n"
        "from pulsar_ml.harness import build_extension, load_checked\n"
        f"MODULE = load_checked(build_extension(Path({str(SOURCE)!r}), into=Path({str(BUILDS)!r}),"
        " checked=True))\n"
        "interleaved = pytest.mark.interleave(executions=400)\n"
        "test_adds, test_races = interleaved(MODULE.adds), interleaved(MODULE.races)\n"
        "test_more = pytest.mark.interleave(seconds=0.05)(MODULE.adds)\n"
    )
    said = collected(tmp_path)
    assert "1 failed, 2 passed" in said and "data race" in said
    again = collected(tmp_path, "--lf", budget=())
    assert "1 failed" in again and "passed" not in again
    assert "2 passed" in collected(tmp_path, "-k", "adds or more", "-n", "2", budget=())
    record = next((tmp_path / ".pulsar_ml" / "failures").glob("*.json"))
    assert "1 failed, 2 skipped" in collected(tmp_path, "--replay", str(record))
