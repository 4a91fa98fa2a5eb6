"""Judges from sequential models: what they accept, refuse, and cannot tell."""

from __future__ import annotations

import gc
import importlib
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from pulsar_ml.campaign.trial.controlled import program_of
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.histories.history import RECORD
from pulsar_ml.harness.histories.recording import history_before, history_of_execution
from pulsar_ml.harness.judges import judge as judge_module
from pulsar_ml.harness.judges.judge import ModelJudge, Prepared
from pulsar_ml.harness.linearize import core
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.operations import _checked
from pulsar_ml.specs import (
    Answer,
    answer,
    entry,
    manager_answers,
    mpsc_queue,
    position_map,
    range_answers,
    refcount,
    stamped_lock,
)
from pulsar_ml.suites.registry import SUITES
from tests.answers import Row, history

MAP = {"chunk_bits": 1, "limit": 200, "spread": 5}
# Suites whose models allow what calls beside each other may answer.
EXACT = [
    suite for suite in SUITES.values() if hasattr(importlib.import_module(suite.model), "Exact")
]
CACHES = {"caches": 1, "keys": 8, "length_shift": 0, "policy": 0}


def refused(model: Any, settings: dict[str, int], *rows: Row, fresh: bool = False) -> str:
    return ModelJudge(model).message(history(rows, settings), 3, fresh=fresh)


def test_answers_of_some_order_are_accepted() -> None:
    rows: list[Row] = [
        (0, "publish", (0,), answer(0, 1, 1), 1, 10),
        (1, "retain", (0,), answer(0, 1, 1), 2, 3),
        (1, "release", (0, 1), answer(0, 0, 0), 4, 5),
    ]
    assert refused(refcount.Model, {"objects": 1}, *rows) == ""


def test_answers_of_no_order_are_told_with_what_is_wrong() -> None:
    rows: list[Row] = [
        (0, "publish", (0,), answer(0, 1, 1), 1, 2),
        (1, "retain", (0,), answer(0, 2, 1), 3, 4),
        (2, "publish", (1,), answer(0, 1, 1), 1, 9),
    ]
    message = refused(refcount.Model, {"objects": 2}, *rows)
    assert message.startswith("retain(0) -> (0, (2, 1, 0, 0)) of thread 1 cannot follow")
    assert "publish(1)" not in message.split("illegal by themselves")[1]


class Contrary(refcount.Model):
    """Answers of another status than those of a count."""

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        status, words = super().step(operation, arguments, thread=thread)
        return 1 - status, words


def test_an_exact_model_judges_one_thread_and_the_operations_that_it_knows() -> None:
    calls = history([(0, "publish", (0,), answer(0, 1, 1), 1, 2)], {"objects": 1})
    judge = ModelJudge(refcount.Model, exact=Contrary)
    assert judge.message(calls, 2) == ""
    assert judge.message(calls, 1) != ""
    knowing: Any = type("Knowing", (Contrary,), {"operations": {"retain"}})
    assert ModelJudge(refcount.Model, exact=knowing).message(calls, 1) == ""


@pytest.mark.parametrize("suite", EXACT, ids=lambda suite: suite.name)
def test_programs_of_one_thread_of_the_true_core_follow_the_exact_model(suite: Suite) -> None:
    judge = judge_of(suite.model)
    assert judge is not None and judge.exact is not None
    subject = _checked.SUBJECTS[suite.subject]
    for seed in range(30):
        program = program_of(subject, suite, seed, TrialOptions(threads=1, operations=20))
        done = explore(subject, program, executions=1, seed=seed, judge=judge)
        assert done.failure is None, f"program {seed}: {done.failure.message}"


def test_what_takes_too_long_is_counted_and_not_called_right() -> None:
    rows: list[Row] = [
        *((thread, "offer", (), answer(0, 1), 1, 9) for thread in range(3)),
        *((0, "poll", (), answer(0, 1, thread), 10 + thread, 11 + thread) for thread in (2, 1, 0)),
    ]
    quick = ModelJudge(mpsc_queue.Model, most_steps=2)
    assert quick.message(history(rows, {}), 3) == ""
    assert (quick.counts.judged, quick.counts.unknown) == (1, 1)
    patient = ModelJudge(mpsc_queue.Model)
    assert patient.message(history(rows, {}), 3) == ""
    assert (patient.counts.judged, patient.counts.unknown) == (1, 0)


def test_handles_out_of_order_are_refused() -> None:
    rows: list[Row] = [
        (0, "offer", (), answer(0, 1), 1, 2),
        (1, "offer", (), answer(0, 1), 3, 4),
        (2, "poll", (), answer(0, 1, 1), 5, 6),
    ]
    assert "poll() -> (0, (1, 1, 0, 0))" in refused(mpsc_queue.Model, {}, *rows)


def test_an_old_number_is_legal_where_threads_may_see_old_values_and_only_there() -> None:
    rows: list[Row] = [
        (0, "write", (5,), answer(0, 5, 1), 1, 2),
        (1, "read_optimistic", (), answer(0, 0), 3, 4),
    ]
    assert refused(stamped_lock.Model, {}, *rows) == ""
    assert "read_optimistic" in refused(stamped_lock.Model, {}, *rows, fresh=True)
    own: Row = (0, "read_optimistic", (), answer(0, 0), 3, 4)
    assert "read_optimistic" in refused(stamped_lock.Model, {}, rows[0], own)


def scan(count: int, seen: int, thread: int, start: int, end: int) -> Row:
    return (thread, "iterate_all", (0,), answer(0, count, seen), start, end)


def test_a_scan_may_miss_what_changes_meanwhile_and_nothing_else() -> None:
    early: Row = (1, "put_own", (0, 0), answer(0), 1, 2)
    late: Row = (0, "put_own", (1, 0), answer(0), 4, 6)
    both = sorted([position_map.own_position(0, 1), position_map.own_position(1, 0)])
    for found, legal in (
        (both, True),
        ([position_map.own_position(0, 1)], True),
        ([position_map.own_position(1, 0)], False),
        ([], False),
    ):
        seen = scan(len(found), position_map.digest(found), 1, 3, 7)
        assert (refused(position_map.Model, MAP, early, late, seen) == "") is legal
        # Another thread need not know of the first one, except where everybody sees everything.
        other = scan(len(found), position_map.digest(found), 2, 3, 7)
        assert refused(position_map.Model, MAP, early, late, other) == ""
        assert (refused(position_map.Model, MAP, early, late, other, fresh=True) == "") is legal


def put(number: int, start: int, thread: int = 0) -> Row:
    return (thread, "put", (0, 3, 0), answer(0, thread << 40 | number, 48), start, start + 1)


def get(status: int, incarnation: int, start: int, thread: int = 0) -> Row:
    return (thread, "get", (0, 3), answer(status, incarnation, 0, 2 * status), start, start + 1)


def clear(start: int, end: int, thread: int = 1, removed: int = 1) -> Row:
    return (thread, "clear", (0,), answer(0, 0, 0, removed, 48 * removed), start, end)


@pytest.mark.parametrize(
    ("rows", "legal"),
    [
        ([put(1, 1), get(1, 1, 3)], True),
        ([put(1, 1), get(1, 2, 3)], False),  # never put
        ([put(1, 1), get(0, 0, 3)], False),  # nobody removed it
        ([put(1, 1), clear(2, 9), get(0, 0, 3)], True),
        # nobody says to have removed it
        ([put(1, 1), clear(2, 9, removed=0), get(0, 0, 3)], False),
        ([put(1, 1), clear(2, 9), clear(2, 9, thread=2), get(0, 0, 3)], False),  # both do
        ([put(1, 1), clear(2, 9), clear(2, 9, thread=2, removed=0), get(0, 0, 3)], True),
        ([put(1, 1), clear(2, 3), get(1, 1, 5)], True),  # seen late
        ([put(1, 1), clear(3, 4, thread=0), get(1, 1, 5)], False),  # by who removed it
        ([put(1, 1), clear(3, 4), put(2, 5), get(1, 1, 7)], False),  # an older incarnation
        # which another may still see
        ([put(1, 1), clear(3, 4), put(2, 5), get(1, 1, 7, thread=2)], True),
        ([put(1, 1), put(2, 3)], False),  # put twice
        ([put(1, 1), clear(2, 9), put(2, 3)], True),
    ],
)  # fmt: skip
def test_what_a_range_cache_may_answer(rows: list[Row], legal: bool) -> None:
    assert (refused(range_answers.Model, CACHES, *rows) == "") is legal


ENTRIES = {"shared": 1, "counts_of_4": 0, "limit": 5}


@pytest.mark.parametrize(
    ("rows", "legal"),
    [
        # The last release marks the read of the entry that all threads have from the start; its
        # copy in another thread may show the older count, and no count that never was.
        ([(1, "expected", (0,), answer(0, 1, 1), 9, 10)], True),
        ([(1, "expected", (0,), answer(0, 1, 0), 9, 10)], True),
        ([(1, "expected", (0,), answer(0, 1, 2), 9, 10)], False),
    ],
)
def test_an_older_read_count_of_the_entry_of_the_start(rows: list[Row], legal: bool) -> None:
    before: list[Row] = [
        (2, "release", (0,), answer(0, 0), 1, 2),
        (1, "copy", (0, 0), answer(0, 2), 1, 2),
        (1, "release", (0,), answer(0, 1), 3, 4),
        (0, "release", (0,), answer(entry.LAST, 0), 5, 6),
    ]
    assert (refused(entry.Model, ENTRIES, *before, *rows) == "") == legal


def test_the_read_count_of_an_own_entry_is_exact() -> None:
    def rows(last: int) -> list[Row]:
        return [
            (0, "release", (0,), answer(0, 0), 1, 2),
            (0, "new", (1, 1, 1), answer(0, 1), 3, 4),
            (0, "copy", (0, 0), answer(0, 2), 5, 6),
            (0, "release", (0,), answer(entry.LAST, 1), 7, 8),
            (0, "expected", (0,), answer(0, 1, last), 9, 10),
        ]

    assert refused(entry.Model, ENTRIES, *rows(0)) == ""
    assert refused(entry.Model, ENTRIES, *rows(1)) != ""


def test_explaining_asks_the_model_only_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [
        (0, "publish", (0,), answer(0, 1, 1), 1, 2),
        (1, "retain", (0,), answer(0, 2, 1), 3, 4),
        (2, "publish", (1,), answer(0, 1, 1), 1, 9),
    ]
    assert "publish(1)" not in refused(refcount.Model, {"objects": 2}, *rows)
    monkeypatch.setattr(core, "MORE_ANSWERS", -1)
    message = refused(refcount.Model, {"objects": 2}, *rows)
    assert message.startswith("retain(0) -> (0, (2, 1, 0, 0)) of thread 1 cannot follow")
    assert "publish(1)" in message


def test_calls_at_any_time_need_not_begin_before_they_end() -> None:
    """The explanation of an illegal history asks the model in this way."""
    rows: list[Row] = [
        (0, "configure", (4096,), answer(0), 1, 2),
        (0, "free", (0,), answer(0), 3, 4),
        (1, "configure", (0,), answer(0), 5, 6),
        (1, "get", (0, 3), answer(1, 7, 0, 2), 7, 8),
    ]
    settings = {**CACHES, "max_size": 4096, "watermark": 90}
    message = refused(manager_answers.Model, settings, *rows)
    assert "get(0, 3)" in message.split("illegal by themselves")[1]


class Counting(refcount.Model):
    """Counts the steps of all instances."""

    times = 0

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Any:
        Counting.times += 1
        return super().step(operation, arguments, thread=thread)


def test_a_judge_that_is_kept_asks_its_model_less_and_less() -> None:
    subject = _checked.SUBJECTS["refcount"]
    program = Program.generate(subject, 1, threads=2, operations=4, noise=False)
    judge = ModelJudge(Counting)
    Counting.times = 0
    first = explore(subject, program, executions=200, judge=judge)
    once, histories = Counting.times, judge.counts.judged
    second = explore(subject, program, executions=200, judge=judge)
    assert first.failure is None
    assert second.failure is None
    assert once > 0
    assert judge.counts.judged == 2 * histories
    assert Counting.times == once


def test_histories_that_are_known_to_be_right_do_not_stop_a_run() -> None:
    subject = _checked.SUBJECTS["mpsc_queue"]
    program = Program.generate(subject, 1, threads=3, operations=4, noise=False)
    judge = ModelJudge(mpsc_queue.Model)
    done = explore(subject, program, executions=2_000, judge=judge)
    assert done.failure is None
    known, by_model = judge.accepted.tolist()
    assert judge.counts.judged == judge.stopped + known + by_model
    assert judge.stopped == 1  # at the first one, of which nothing was prepared
    assert known > by_model > 0
    every = ModelJudge(mpsc_queue.Model)

    def slowly(explorer: Explorer) -> str:
        every.prepared = None
        return every.message(history_of_execution(explorer), 3)

    explore(subject, program, executions=2_000, judge=slowly)
    assert every.counts.judged == judge.counts.judged


@pytest.mark.parametrize(("memory", "unknown"), [(1 << 18, False), (1 << 12, True)])
def test_a_judge_that_is_full_forgets_and_judges_again(
    memory: int, unknown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_module, "MEMORY", memory)
    subject = _checked.SUBJECTS["mpsc_queue"]
    program = Program.generate(subject, 1, threads=3, operations=5, noise=False)
    judge = ModelJudge(mpsc_queue.Model)
    prepared_for: list[Explorer] = []
    prepare = judge.prepare

    def counted(explorer: Explorer) -> Prepared:
        prepared_for.append(explorer)
        return prepare(explorer)

    monkeypatch.setattr(judge, "prepare", counted)
    assert explore(subject, program, executions=2_000, judge=judge).failure is None
    assert len(prepared_for) > 1
    assert (judge.counts.unknown > 0) is unknown


class Rare(refcount.Model):
    """Wrong about one answer, which few executions give."""

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Any:
        status, words = super().step(operation, arguments, thread=thread)
        return (status, (words[0] + 1, *words[1:])) if words[0] == 3 else (status, words)


def test_checkers_that_are_not_kept_are_freed_without_the_garbage_collector() -> None:
    models: list[weakref.ref[object]] = []

    class Model(mpsc_queue.Model):
        def __init__(self, settings: Mapping[str, int], threads: int) -> None:
            super().__init__(settings, threads)
            models.append(weakref.ref(self))

    suite = SUITES["mpsc_queue"]
    subject = _checked.SUBJECTS[suite.subject]
    judge = ModelJudge(Model)
    gc.disable()
    try:
        for seed in range(12):
            program = program_of(subject, suite, seed, TrialOptions())
            assert explore(subject, program, executions=50, judge=judge).failure is None
        assert len(models) > judge_module.CHECKERS == len(judge.checkers)
        assert sum(one() is not None for one in models) == judge_module.CHECKERS
    finally:
        gc.enable()


def test_what_is_known_does_not_hide_what_is_wrong() -> None:
    subject = _checked.SUBJECTS["refcount"]
    found = []
    for seed in range(1, 5):
        program = Program.generate(subject, seed, threads=3, operations=6, noise=False)
        judge = ModelJudge(Rare)
        failure = explore(subject, program, executions=1_000, judge=judge).failure
        found.append((failure is not None, int(judge.accepted[0])))
    assert any(failed and known for failed, known in found)


def test_an_oracle_is_asked_about_the_calls_of_the_program() -> None:
    subject = _checked.SUBJECTS["refcount"]
    program = Program.generate(subject, 1, threads=2, operations=2, noise=False)
    explorer = Explorer(subject, program, judged=True)
    checker = ModelJudge(refcount.Model).checker(history_before(explorer), 2, False)
    records = np.zeros(4, RECORD)
    counts = np.zeros(2, np.int64)
    with pytest.raises(TypeError, match="a call for each of them"):
        explorer.ask(checker.native, records, np.arange(3), counts)
    with pytest.raises(ValueError, match="in two numbers, not in 1"):
        explorer.ask(checker.native, records, np.arange(4), counts[:1])
    with pytest.raises(ValueError, match=r"outside 0\.\.3"):
        explorer.ask(checker.native, records, np.arange(1, 5), counts)


def test_only_complete_executions_are_judged() -> None:
    subject = _checked.SUBJECTS["refcount"]
    program = Program.generate(subject, 1, threads=2, operations=40, noise=False)
    explorer = Explorer(subject, program, judged=True, step_limit=10)
    explorer.run(0, 1)
    judge = ModelJudge(refcount.Model)
    assert explorer.end() != "complete"
    assert judge(explorer) == ""
    assert judge.counts.judged == 0


def test_a_model_that_is_not_there_is_an_error_of_usage() -> None:
    with pytest.raises(UsageError, match="no model in 'pulsar_ml.specs.none'"):
        judge_of("pulsar_ml.specs.none")
    assert judge_of("") is None
