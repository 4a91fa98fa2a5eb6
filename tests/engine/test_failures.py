"""A failure is a value: it replays step by step, survives its text forms, and shrinks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pulsar_ml.errors import BadRecordError
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.shrink import MOST_ENDLESS, Shrinker, explained, shrink
from pulsar_ml.harness.subjects.program import Program
from tests.engine.programs.build_programs import explorer, program_of, programs

PREEMPTION, READ = 0, 1


def failure_of(name: str, **options: Any) -> Failure:
    found = explore(
        programs().SUBJECTS[name], program_of(name), executions=20_000, seed=11, **options
    ).failure
    assert found is not None
    return found


@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
@pytest.mark.parametrize("strategy", ["random", "pct", "pos", "surw", "portfolio"])
def test_an_execution_is_decided_by_seed_and_number(mode: str, strategy: str) -> None:
    hashes = []
    for _ in range(2):
        runs = explorer("bench_treiber", mode=mode, strategy=strategy, seed=42)
        runs.run(0, 100)
        first = runs.hashes()
        runs.run(1000, 1)
        other = runs.hashes()
        runs.again(99)
        assert runs.hashes() == first
        hashes.append((first, other))
    assert hashes[0] == hashes[1]
    assert hashes[0][0] != hashes[0][1]


@pytest.mark.parametrize(
    "name", ["counter", "aba", "chase_lev", "seqlock_fences", "use_after_free", "lost_wakeup"]
)
@pytest.mark.parametrize("strategy", ["random", "pct", "pos", "surw", "preemptions"])
def test_a_failure_replays_step_by_step(name: str, strategy: str) -> None:
    found = failure_of(name, strategy=strategy, reuse="mixed")
    again = found.replay(programs().SUBJECTS[name])
    assert again.exact
    assert again.failure == found


def test_a_replay_on_another_build_says_so() -> None:
    found = replace(failure_of("counter"), build_id="another")
    again = found.replay(programs().SUBJECTS["counter"])
    assert not again.same_build


def test_both_text_forms_give_the_same_failure() -> None:
    found = failure_of("seqlock_fences")
    assert Failure.from_text(found.to_json()) == found
    assert Failure.from_text(found.short()) == found


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: "pml1.AAAA",
        lambda text: "{}",
        lambda text: text.replace('"version": 1', '"version": 9'),
    ],
)
def test_damaged_text_is_refused_with_a_reason(damage: Callable[[str], str]) -> None:
    with pytest.raises(BadRecordError):
        Failure.from_text(damage(failure_of("counter").to_json()))


def test_shrinking_removes_threads_and_operations_that_do_not_matter() -> None:
    from pulsar_ml.harness.subjects.program import Program

    subject = programs().SUBJECTS["reorder_10"]
    program = Program.generate(subject, 0, threads=10, operations=3, noise=False)
    found = explore(subject, program, executions=20_000, mode="sc", seed=2).failure
    assert found is not None
    small = json.loads(shrink(found, subject).program)
    assert sum(len(calls) for calls in small["threads"]) == 2


def test_the_table_shows_the_stale_read() -> None:
    subject = programs().SUBJECTS["message_relaxed"]
    found = shrink(failure_of("message_relaxed"), subject)
    again = found.replay(subject)
    table = found.lane_table(again.trace)
    assert "(1 store old)" in table
    assert "thread 1" in table.splitlines()[0]
    assert "the flag without the data" in found.summary(again)


def test_impossible_decisions_are_passed_over() -> None:
    found = failure_of("counter", mode="sc")
    nonsense = ((7, 1, PREEMPTION, 60), (3, 0, READ, 9), (1000, 1, PREEMPTION, 1))
    runs = Explorer(
        programs().SUBJECTS["counter"],
        program_of("counter"),
        strategy="replay",
        mode="sc",
        decisions=(*nonsense, *found.decisions),
    )
    runs.again(0)
    assert runs.failed()


def test_a_search_that_was_interrupted_by_another_campaign_refuses_to_go_on() -> None:
    search = explorer("ticket_2_fixed", mode="sc", strategy="preemptions", bound=1)
    search.run(0, 3)
    explorer("counter", mode="sc").run(0, 1)
    with pytest.raises(RuntimeError, match="cannot go on"):
        search.run(3, 3)


def test_shrinking_what_runs_without_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsar_ml.harness.search.shrink.MOST_ENDLESS", 2)
    subject = programs().SUBJECTS["endless"]
    found = failure_of("endless")
    state = Shrinker(subject, found)
    program = Program.from_json(found.program)
    for left in (True, False):
        assert state.attempt(program, found.decisions) is not None
        assert bool(state.left) == left
    assert state.attempt(program, found.decisions) is None  # nothing was tried
    assert state.executions == 2
    assert shrink(found, subject).kind == "endless loop"


def test_an_explanation_is_made_after_the_bound_of_endless_executions() -> None:
    found = failure_of("endless")
    state = Shrinker(programs().SUBJECTS["endless"], found, endless=MOST_ENDLESS)
    assert not state.left
    explained(state, lambda runs: "")
    assert state.executions == 1
