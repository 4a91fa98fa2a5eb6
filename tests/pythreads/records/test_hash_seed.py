"""The hash seed is part of a record: a test that depends on the order of a set can be repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.harness.subjects.hash_seed import RANDOM, other_hashes, seed_of, seed_text
from pulsar_ml.terminal.hash_seed import environment, is_named
from tests import QUICK_PYTEST, ROOT

ORDER = "print(next(iter({'alpha', 'beta'})))"
# Loses an update only when the set begins with another word than under PYTHONHASHSEED=0.
MODULE = """
import threading

NAMES = {"alpha", "beta"}


def test_order():
    counter = [0]
    lock = threading.Lock()

    def add():
        if next(iter(NAMES)) == USUAL:
            with lock:
                counter[0] = counter[0] + 1
        else:
            counter[0] = counter[0] + 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter[0] == 2


USUAL = "{usual}"
"""
PLUGIN = ("-m", "pytest", "-q", "-p", "pulsar_ml.harness.testing.pytest_plugin")


def python(
    *words: str, seed: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python with a hash seed, or with the variable not set."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    env = {
        **kept,
        **QUICK_PYTEST,
        **({"PYTHONHASHSEED": seed} if seed else {}),
        "PYTHONPATH": f"{ROOT}:{cwd}",
    }
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True
    )


def check(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "pulsar_ml", "check", *words, cwd=cwd)


@pytest.fixture(scope="module")
def orders() -> tuple[str, str]:
    """Return the first word under the seed 0, and another seed under which the other one is."""
    usual = python("-c", ORDER, seed="0").stdout.strip()
    other = next(
        seed
        for seed in map(str, range(1, 200))
        if python("-c", ORDER, seed=seed).stdout.strip() != usual
    )
    return usual, other


@pytest.fixture(scope="module")
def found(
    tmp_path_factory: pytest.TempPathFactory, orders: tuple[str, str]
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Return a folder with tests, and the command that found the failure of one by pytest."""
    folder = tmp_path_factory.mktemp("orders")
    (folder / "check_order.py").write_text(MODULE.replace("{usual}", orders[0]))
    (folder / "test_order.py").write_text(
        "import pytest\nfrom check_order import test_order as order_test\n\n\n"
        "@pytest.mark.interleave(executions=100)\n"
        "def test_order():\n    order_test()\n"
    )
    done = python(*PLUGIN, "test_order.py", seed=orders[1], cwd=folder)
    assert done.returncode == 1, done.stdout
    return folder, done


@pytest.fixture
def folder(found: tuple[Path, object]) -> Path:
    return found[0]


@pytest.fixture
def record(folder: Path) -> Path:
    (path,) = (folder / ".pulsar_ml" / "failures").iterdir()
    return path


def test_pytest_names_the_hash_seed(
    found: tuple[Path, subprocess.CompletedProcess[str]], orders: tuple[str, str]
) -> None:
    printed = found[1].stdout
    assert f"hash seed: PYTHONHASHSEED={orders[1]}\n" in printed
    assert f"replay it: PYTHONHASHSEED={orders[1]} pytest --replay " in printed


def test_pytest_under_other_hashes_has_no_verdict(
    folder: Path, record: Path, orders: tuple[str, str]
) -> None:
    done = python(*PLUGIN, "test_order.py", "--replay", str(record), seed="0", cwd=folder)
    assert done.returncode == 1, done.stdout
    assert "no verdict: the execution ended without a failure; the order of sets" in done.stdout
    assert f"repeat it under PYTHONHASHSEED={orders[1]}" in done.stdout


def test_the_command_replays_a_record_under_its_hash_seed(folder: Path, record: Path) -> None:
    again = check(folder, "test_order.py", "--replay", str(record))
    assert again.returncode == 1, again.stdout
    assert again.stdout.count("the failure was made again, step by step") == 1


def test_the_command_runs_under_a_fixed_hash_seed(folder: Path) -> None:
    clean = check(folder, "check_order.py", "--executions", "100")
    assert (clean.returncode, "1 clean" in clean.stdout) == (0, True), clean.stdout


@pytest.mark.parametrize(
    ("hash_seed", "cause"),
    [
        ("0", "code that the test imports has changed, or something outside the engine's control"),
        (RANDOM, "was drawn at random and has no name, so the order of sets of strings may differ"),
    ],
)
def test_a_record_of_other_hashes_has_no_verdict(
    folder: Path, tmp_path: Path, record: Path, hash_seed: str, cause: str
) -> None:
    content = json.loads(record.read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**content, "hash_seed": hash_seed}))
    again = check(folder, "test_order.py", "--replay", str(other))
    assert again.returncode == 4, again.stdout
    assert again.stderr.startswith("no verdict: the execution ended without a failure; ")
    assert cause in again.stderr


def test_the_processes_of_a_sweep_have_the_hash_seed_of_the_command(
    folder: Path, orders: tuple[str, str]
) -> None:
    words = (
        *("-m", "pulsar_ml", "sweep", "--engine", "controlled", "--runner", "pool"),
        *("--workers", "1", "--seeds", "1", "--executions", "100", "--progress", "plain"),
        *("--suites", "check_order", "--module", "check_order", "--out", "out"),
    )
    swept = python(*words, seed=orders[1], cwd=folder)
    assert swept.returncode == 1, swept.stderr
    assert json.loads((folder / "out" / "run.json").read_text())["hash_seed"] == orders[1]
    (record,) = (folder / "out" / "records").iterdir()
    assert json.loads(record.read_text())["hash_seed"] == orders[1]
    trace = ("-m", "pulsar_ml", "trace", str(record), "--suites", "check_order", "--trust")
    traced = python(*trace, cwd=folder)
    assert traced.returncode == 1, traced.stderr
    assert "made again, step by step" in traced.stdout
    assert "counter[0] = counter[0] + 1" in traced.stdout


@pytest.mark.parametrize(
    ("value", "ignored", "seed"),
    [("7", False, "7"), ("007", False, "7"), ("random", False, RANDOM), ("", False, RANDOM),
     (None, False, RANDOM), ("7", True, RANDOM)],
)  # fmt: skip
def test_the_hash_seed_of_a_process(value: str | None, ignored: bool, seed: str) -> None:
    assert seed_of(value, ignored=ignored) == seed


@pytest.mark.parametrize("seed", ["", RANDOM, "-1", "4294967296", "9" * 5000, "٣", "1 2"])
def test_a_damaged_hash_seed_starts_nothing(seed: str) -> None:
    assert not is_named(seed)
    assert environment(seed) == dict(os.environ)
    assert is_named("4294967295")
    assert environment("5")["PYTHONHASHSEED"] == "5"


def test_code_without_the_interpreter_has_no_hashes() -> None:
    assert not other_hashes("")
    assert "may not come again; run it with PYTHONHASHSEED=0" in seed_text(RANDOM)
