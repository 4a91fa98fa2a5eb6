"""Leaks under the engine: left out on request, and shrunk to a block of the same owner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search import shrink as shrinking
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.shrink import Shrinker, shrink
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from tests.engine.programs.build_programs import program_of, programs


def leaky() -> Subject:
    subject: Subject = programs().SUBJECTS["leak"]
    return subject


def found(**options: Any) -> Failure | None:
    return explore(leaky(), program_of("leak"), executions=100, seed=5, **options).failure


def test_a_leak_is_found_shrunk_and_replayed() -> None:
    failure = found()
    assert failure is not None and failure.kind == "leak"
    small = shrink(failure, leaky())
    assert small.signature == failure.signature
    assert sum(map(len, Program.from_json(small.program).threads)) == 1
    assert small.replay(leaky()).exact


def test_leaks_are_left_out_on_request_and_in_a_replay() -> None:
    assert found(leaks=False) is None
    failure = found()
    assert failure is not None
    ignoring = Failure.from_text(replace(failure, leaks=False).to_json())
    assert ignoring.replay(leaky()).failure is None


class Leaking:
    """An execution that leaks a block which a thread, or the main thread (-1), allocated."""

    def __init__(self, thread: int) -> None:
        self.thread = thread

    def failed(self) -> bool:
        return True

    def failure(self) -> dict[str, object]:
        return {"other_thread": self.thread}


def test_a_leak_of_the_program_is_not_one_of_its_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = found()
    assert failure is not None
    monkeypatch.setattr(shrinking, "signature_of", lambda *arguments: failure.signature)
    monkeypatch.setattr(shrinking, "of_recorded", lambda *arguments: failure)
    state = Shrinker(leaky(), failure)

    def same(thread: int) -> bool:
        explorer: Explorer = Leaking(thread)  # type: ignore[assignment]
        return state.same(explorer, 0, {}, "") is not None

    assert same(1) and same(0)
    assert not same(-1)
