"""Mutants in equal wall time: what a seed's process can do, and sums of the cells."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from stress.mutants import wall_time
from stress.mutants.catalogue import CATALOGUE
from stress.mutants.wall_time import Cell, cell, fewer, main, summary


def finds(number: int) -> object:
    return [SimpleNamespace(invariant="I7")] if number % 1000 == 2 else []


def dies(number: int) -> object:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def waits(number: int) -> object:
    signal.pause()
    return []


@pytest.mark.parametrize(
    ("deed", "verdict"),
    [(finds, "I7"), (dies, "process ended"), (waits, "process stuck"), (lambda number: [], "")],
)
def test_a_seed_finds_a_violation_a_death_or_a_hang_or_nothing(
    deed: Callable[[int], object], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trial(suite: object, number: int, options: object) -> object:
        return SimpleNamespace(violations=deed(number))

    monkeypatch.setattr(wall_time, "run_trial", trial)
    monkeypatch.setattr(wall_time, "GRACE_SECONDS", 0.1)
    seconds = 120.0 if verdict in {"I7", "process ended"} else 0.3
    found = cell(Path("x.so"), CATALOGUE[0], 3, seconds, 0)
    assert (found.mutant, found.seed, found.verdict) == (CATALOGUE[0].id, 3, verdict)
    assert (found.milliseconds == 300) == (seconds == 0.3)


BEFORE = [Cell("A", "one", 0, "I1", 10), Cell("A", "one", 1, "", 2000)]
BEFORE += [Cell("B", "two", seed, "I2", 30) for seed in (0, 1)]
AFTER = [Cell("A", "one", seed, "", 2000) for seed in (0, 1)]
AFTER += [Cell("B", "two", seed, "I2", 20) for seed in (0, 1)]


def test_sums_are_of_suites_and_of_all() -> None:
    lines = summary([BEFORE, AFTER]).splitlines()[2:]
    assert lines == [
        "| one | 1 | 1 | 0 | 1 | 10 | 0 | 0 | 0 | - |",
        "| two | 1 | 1 | 1 | 2 | 30 | 1 | 1 | 2 | 20 |",
        "| all | 2 | 2 | 1 | 3 | 30 | 1 | 1 | 2 | 20 |",
    ]
    assert fewer(BEFORE, AFTER) == ["A (0 after 1)"] and fewer(AFTER, BEFORE) == []


def test_an_unknown_mutant_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--mutant", "XX", "--results", str(tmp_path / "cells.csv")])
    assert done.exit_code == 2 and "there is no mutant XX" in done.output


def test_cells_of_the_file_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds_run: list[int] = []

    def one(path: Path, mutant: object, seed: int, seconds: float, runs: int) -> Cell:
        seeds_run.append(seed)
        return Cell(CATALOGUE[0].id, CATALOGUE[0].suite, seed, "I1", 5)

    monkeypatch.setattr(wall_time, "build", lambda checked: tmp_path)
    monkeypatch.setattr(wall_time, "load_native", lambda path: None)
    monkeypatch.setattr(wall_time, "cell", one)
    words = ["--mutant", CATALOGUE[0].id, "--results", str(tmp_path / "cells.csv"), "--seeds"]
    for seeds in ("2", "3"):
        done = CliRunner().invoke(main, [*words, seeds])
        assert done.exit_code == 0, done.output
    assert seeds_run == [0, 1, 2]
    assert "| all | 1 | 1 | 1 | 3 | 5 |" in done.output
