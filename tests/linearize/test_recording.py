"""Recorded histories of real executions: on threads, and in the engine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.histories.files import load_history, save_history
from pulsar_ml.harness.histories.history import NEVER, RECORD, Call, overlap, record_array
from pulsar_ml.harness.histories.recording import history_of_execution, record_run
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, ModelChecker, check
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.threads import run_program
from tests.engine.programs.build_programs import program_of, programs


class Sum:
    """The model of a toy sum: add returns the sum after some addition; read returns the sum."""

    def init(self) -> int:
        return 0

    def step(self, state: int, call: Call) -> Iterable[int]:
        if call.name == "add":
            return (state + int(str(call.arguments[0])),)
        result: Any = call.result
        return (state,) if call.pending or result[1][0] == state else ()

    def pure(self, call: Call) -> bool:
        return call.name == "read"


def toy_program(toys: Any, name: str, reads: int) -> Program:
    """Two threads that add ten times; then one of them reads."""
    program = Program.generate(toys.SUBJECTS[name], 5, threads=2, operations=10 + reads)
    threads = []
    for thread, calls in enumerate(program.threads):
        calls = calls.copy()
        calls["code"] = 0
        calls["arguments"][:, 0] = thread + 1
        calls["code"][10:] = 1
        threads.append(calls)
    return Program(name, 5, program.settings, program.operations, tuple(threads))


def test_a_run_on_threads_is_recorded_and_linearizable(toys: Any, tmp_path: Path) -> None:
    toys.select_mutant(None)
    program = toy_program(toys, "counter", 20)
    instance = toys.SUBJECTS["counter"].create(threads=2, settings=program.settings)
    result, history = record_run(instance, program)
    assert len(history) == result.operations == 60
    records = history.records
    assert np.all(records["invoked"] <= records["returned"]) and not records["ending"].any()
    for thread in range(2):
        its = records[records["thread"] == thread]
        assert np.all(its["returned"][:-1] <= its["invoked"][1:])
        assert its["operation"].tolist() == program.threads[thread]["code"].tolist()
    assert 1 <= overlap(history) <= 2
    assert check(history, Sum()).answer == LEGAL
    save_history(history, tmp_path / "run.parquet")
    again = load_history(tmp_path / "run.parquet")
    assert (again.subject, again.source) == ("counter", "threads")
    assert check(again, Sum()).answer == LEGAL


def test_a_lost_update_makes_the_recorded_history_illegal(toys: Any) -> None:
    program = toy_program(toys, "racy", 20)
    instance = toys.SUBJECTS["racy"].create(threads=2, settings=program.settings)
    _, history = record_run(instance, program)
    verdict = check(history, Sum())
    assert verdict.answer == ILLEGAL
    assert history.call(verdict.blocked).name == "read"


def test_operations_that_were_not_begun_are_not_in_the_history(toys: Any) -> None:
    program = Program.generate(toys.SUBJECTS["tattler"], 1, threads=1, operations=200, noise=False)
    settings = {"start": 10}
    instance = toys.SUBJECTS["tattler"].create(threads=1, settings=settings)
    result, history = record_run(instance, program)
    assert result.violations
    assert len(history) == result.operations < 200


def test_records_of_another_shape_are_refused(toys: Any) -> None:
    program = toy_program(toys, "counter", 1)
    instance = toys.SUBJECTS["counter"].create(threads=2, settings=program.settings)
    records = record_array(program.threads)
    assert all((each["invoked"] == NEVER).all() for each in records)
    with pytest.raises(ValueError, match="there should be records for"):
        run_program(instance, program, records=records[:1])
    with pytest.raises(TypeError, match=r"contiguous arrays of history\.RECORD"):
        run_program(
            instance, program, records=[np.zeros(len(calls), "<i8") for calls in program.threads]
        )
    assert RECORD.itemsize == 96


def test_executions_of_the_engine_have_histories() -> None:
    explorer = Explorer(
        programs().SUBJECTS["striped_counter_fixed"], program_of("striped_counter_fixed")
    )
    seen = set()
    for number in range(40):
        assert explorer.run(number, 1) == 1
        history = history_of_execution(explorer)
        assert len(history) == sum(len(calls) for calls in explorer.program.threads)
        assert np.all(history.records["invoked"] <= history.records["returned"])
        seen.add(overlap(history))
    assert seen == {1, 2}  # sequential and concurrent executions


class Once:
    """A model in which each thread's share of a program may come once."""

    by_thread = True

    def init(self) -> frozenset[int]:
        return frozenset()

    def step(self, state: frozenset[int], call: Call) -> Iterable[frozenset[int]]:
        return () if call.thread in state else (state | {call.thread},)


def test_a_checker_that_is_kept_serves_all_executions() -> None:
    explorer = Explorer(
        programs().SUBJECTS["striped_counter_fixed"], program_of("striped_counter_fixed")
    )
    rows = []
    for number in range(50):
        explorer.run(number, 1)
        rows.append(history_of_execution(explorer))
    checker = ModelChecker(Once(), rows[0].signatures)
    answers = checker.check_many(np.stack([history.records for history in rows]))
    assert not answers.any()
    assert checker.native.searches + checker.native.looked_up == 50
    assert checker.native.searches <= 4


def test_a_failed_execution_has_no_history() -> None:
    explorer = Explorer(programs().SUBJECTS["counter"], program_of("counter"))
    while not explorer.failed():
        explorer.run(explorer.statistics()["executions"], 100)
    with pytest.raises(ValueError, match="only a complete one has all its results"):
        history_of_execution(explorer)
