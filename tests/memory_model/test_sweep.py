"""A sweep counts what it compared, in any number of pieces, and can be interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner

from tests.memory_model import __main__ as command
from tests.memory_model import sweep
from tests.memory_model.arm import sweep as arm_sweep
from tests.memory_model.arm.a64 import wrong_translation
from tests.memory_model.litmus import Litmus
from tests.memory_model.models import Allowed, allowed
from tests.memory_model.sweep import Counts, pieces, work


class OneProcess:
    """Takes the place of a pool; ``ends_after`` pieces comes a Ctrl-C."""

    def __init__(self, ends_after: int) -> None:
        self.ends_after = ends_after

    def imap(
        self, function: Callable[[tuple[range, int]], Any], parts: list[tuple[range, int]]
    ) -> Iterator[Any]:
        for at, part in enumerate(parts):
            if at == self.ends_after:
                raise KeyboardInterrupt
            yield function(part)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PIECE", 4)


def run(monkeypatch: pytest.MonkeyPatch, *options: str, ends_after: int = -1) -> tuple[int, str]:
    @contextmanager
    def pool_of(workers: int | None) -> Iterator[OneProcess]:
        yield OneProcess(ends_after)

    monkeypatch.setattr(command, "pool_of", pool_of)
    result = CliRunner().invoke(command.main, [*options, "--executions", "200"])
    return result.exit_code, result.stdout


def test_pieces_are_the_seeds_in_order(small_pieces: None) -> None:
    seeds = [seed for part, _ in pieces(3, 10, 200) for seed in part]
    assert seeds == list(range(3, 13))


def test_pieces_add_up(small_pieces: None) -> None:
    counts = Counts()
    for piece in pieces(5, 10, 200):
        counts.add(work(piece))
    whole = work((range(5, 15), 200))
    assert counts == whole and whole.programs == 10 and whole.comparisons == 30
    assert whole.executions > whole.samples > 0


def test_the_command_counts(monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> None:
    code, text = run(monkeypatch, "--programs", "10")
    assert code == 0
    assert text.startswith("10 programs (") and ", 0 disagreements, " in text, text


def test_ctrl_c_keeps_the_counts(monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> None:
    code, text = run(monkeypatch, "--programs", "20", "--seed", "7", ends_after=2)
    assert code == command.INTERRUPTED
    assert text.startswith("8 programs (") and "go on with --seed 15\n" in text, text


def test_a_disagreement_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, small_pieces: None
) -> None:
    monkeypatch.setattr(sweep, "faults_of_seed", lambda seed, program: ())

    def wrong(program: Litmus, mode: str, **options: Any) -> Allowed:
        return allowed(program, mode, **{**options, "defect": "deaf notify"})

    monkeypatch.setattr("tests.memory_model.compare.allowed", wrong)
    monkeypatch.setattr(sweep, "shrunk", str)
    code, text = run(monkeypatch, "--programs", "100")
    assert code == 1
    assert "program " in text and "forbidden outcome: " in text and "notify" in text, text


def test_the_command_compares_arm(monkeypatch: pytest.MonkeyPatch, small_pieces: None) -> None:
    code, text = run(monkeypatch, "--arm", "--programs", "10")
    assert code == 0
    assert text.startswith("10 programs in ") and "; 0 disagreements, " in text, text


def test_a_wrong_translation_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        arm_sweep, "translation", lambda target: wrong_translation("a release store is plain")
    )
    code, text = run(monkeypatch, "--arm", "--programs", "100")
    assert code == 1
    assert "outcome on Arm that RC11 forbids: thread 0: " in text and "(release)" in text, text
