"""Trials under the engine: equal in every run and process, and exact in replay."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from pulsar_ml.campaign.plan import probe
from pulsar_ml.campaign.plan.exhaustive import Searched
from pulsar_ml.campaign.plan.plan import Chunk, Plan
from pulsar_ml.campaign.run.runner import InlineRunner, PoolRunner, Watch
from pulsar_ml.campaign.store import summary as report
from pulsar_ml.campaign.store.merge import Summary, add
from pulsar_ml.campaign.store.schema import ROW, split
from pulsar_ml.campaign.store.sketch import SIZE, estimate
from pulsar_ml.campaign.trial import controlled, trial
from pulsar_ml.campaign.trial.chunk import Job, run_chunk
from pulsar_ml.campaign.trial.engines import load_module, most_threads, program_of, run_trial
from pulsar_ml.campaign.trial.isolation import Isolation
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.campaign.trial.trial import CHECKED, CONTROLLED, TrialOptions, TrialResult
from pulsar_ml.cli import main
from pulsar_ml.errors import NondeterminismError, UsageError
from pulsar_ml.harness.engine import OFFERED
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.suites.registry import SUITES
from tests.campaign.rows import stable_rows
from tests.engine.programs.build_programs import programs
from tests.engine.sandbox.test_sandbox import rogues_path
from tests.harness.toys.build_toys import toys_path

QUIET = Watch(lambda: False, lambda trials, violations: None)
PRODUCT = TrialOptions(engine=CONTROLLED, module=CHECKED, executions=60)


def toy(name: str, **changes: object) -> Suite:
    return Suite(name=name, subject=name, summary="A toy.", **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def options() -> TrialOptions:
    return TrialOptions(engine=CONTROLLED, module=str(toys_path(checked=True)), executions=300)


@pytest.mark.parametrize("name", sorted(SUITES))
def test_every_suite_runs_under_the_engine_and_exercises_something(name: str) -> None:
    results = [run_trial(SUITES[name], seed, PRODUCT) for seed in range(6)]
    assert not any(result.violations for result in results)
    assert "clean" in {result.verdict for result in results}
    for result in results:
        assert result.executions == 60 and 1 <= result.classes <= 60
        assert result.operations > 0 and result.steps > 0 and result.replay.noise is False


def test_the_seed_draws_the_size_of_a_program_unless_it_is_told() -> None:
    suite = toy("counter", controlled=ControlledSize(threads=(2, 4), operations=(1, 3)))
    subject = load_module(PRODUCT).SUBJECTS["refcount"]
    sizes = set()
    for seed in range(100):
        threads = program_of(subject, suite, seed, PRODUCT).threads
        sizes.add((len(threads), len(threads[0])))
    assert sizes == {(threads, operations) for threads in (2, 3, 4) for operations in (1, 2, 3)}
    options = dataclasses.replace(PRODUCT, threads=5, operations=7)
    assert [len(calls) for calls in program_of(subject, suite, 1, options).threads] == [7] * 5
    assert most_threads(suite, options) == 1 and most_threads(suite, TrialOptions(threads=5)) == 5


def test_the_sketch_of_a_trial_is_of_its_classes(options: TrialOptions) -> None:
    def explored(seed: int, executions: int, size: int = 2) -> TrialResult:
        sizes: dict[str, Any] = {"executions": executions, "threads": size, "operations": size}
        return run_trial(toy("counter"), seed, dataclasses.replace(options, **sizes))

    few = explored(4, 40)
    assert 1 < few.classes == len(few.sketch) and list(few.sketch) == sorted(set(few.sketch))
    assert 0 < few.once <= few.classes
    assert set(few.sketch) <= set(explored(4, 60).sketch), "of the same program"
    assert not set(few.sketch) & set(explored(8, 40).sketch)
    many = explored(4, 2000, size=3)
    assert many.classes > len(many.sketch) == SIZE
    assert abs(estimate(many.sketch) / many.classes - 1) < 0.27, "three standard errors"


def test_a_sweep_gives_the_same_rows_again_inline_and_in_other_processes(
    options: TrialOptions,
) -> None:
    suites = {name: toy(name) for name in ("counter", "racy", "tattler")}
    plan = Plan(tuple(suites), 7, 6, 2, options)
    job = Job("a-run", probe.check(list(suites.values()), options), options)
    runners: list[InlineRunner | PoolRunner] = [
        InlineRunner(suites),
        InlineRunner(suites),
        PoolRunner(suites, workers=2),
    ]
    tables = []
    for runner in runners:
        tables.append(stable_rows(runner.run(job, list(plan.chunks()), QUIET).table()))
        runner.close()
    assert len(tables[0]) == 18
    assert tables[0] == tables[1] == tables[2]
    by_suite = {row["suite"]: row for row in tables[0]}
    assert by_suite["racy"]["verdict"] == "violation" and by_suite["counter"]["verdict"] == "clean"
    for row in tables[0]:
        assert (row["engine"], row["mode"], row["strategy"]) == (CONTROLLED, "c11", "portfolio")


def test_a_failure_is_small_and_is_made_again_step_by_step(
    options: TrialOptions, tmp_path: Path
) -> None:
    found = []
    seeds = [seed for seed in range(100) if not readers(options, seed)][:2]
    for seed in seeds:
        batch = run_chunk(
            toy("racy"), Chunk(0, "racy", seed, seed + 1), Job("r", "toys-build-1", options)
        )
        assert batch is not None and batch.schema.equals(ROW)
        found += split(batch)[1].to_pylist()
    assert [row["invariant"] for row in found] == ["T1", "T1"]
    assert found[0]["signature"] == found[1]["signature"], "another seed, the same failure"

    failure = Failure.from_text(found[0]["replay"])
    assert (failure.module, failure.seed, failure.strategy) == (
        options.module,
        seeds[0],
        "replay",
    )
    assert sum(len(calls) for calls in json.loads(failure.program)["threads"]) <= 3
    assert failure.replay(load_module(options).SUBJECTS["racy"]).exact

    path = tmp_path / "failure.json"
    path.write_text(found[0]["replay"])
    done = CliRunner().invoke(main, ["replay", "--trust", str(path)])
    assert done.exit_code == 1 and "the failure was made again, step by step" in done.output
    done = CliRunner().invoke(main, ["replay", "--trust", "--json", str(path)])
    assert json.loads(done.stdout)["exact"] is True


def test_the_mutant_of_a_failure_is_selected_for_its_replay(
    options: TrialOptions, tmp_path: Path
) -> None:
    mutated = dataclasses.replace(options, mutant="T01")
    [violation] = run_trial(toy("counter"), 1, mutated).violations
    assert not run_trial(toy("counter"), 1, options).violations
    path = tmp_path / "failure.json"
    path.write_text(violation.record)
    done = CliRunner().invoke(main, ["replay", "--trust", str(path)])
    assert "step by step" in done.output
    path.write_text(json.dumps({**json.loads(violation.record), "mutant": None}))
    done = CliRunner().invoke(main, ["replay", "--trust", str(path)])
    assert done.exit_code == 4 and "without a failure" in done.output


def test_a_record_of_real_threads_is_none_of_the_engine(
    options: TrialOptions, tmp_path: Path
) -> None:
    record = run_trial(toy("racy"), 1, options).replay
    assert ReplayRecord.from_json(record.to_json()) == record
    path = tmp_path / "record.json"
    path.write_text(record.to_json())
    done = CliRunner().invoke(main, ["replay", "--trust", str(path)])
    assert done.exit_code == 2 and "no suite is called 'racy'" in done.output


def readers(options: TrialOptions, seed: int) -> list[int]:
    """The threads without an addition in the program of a seed of the toy "racy"."""
    program = program_of(load_module(options).SUBJECTS["racy"], toy("racy"), seed, options)
    return [thread for thread, calls in enumerate(program.threads) if 0 not in calls["code"]]


@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
def test_a_thread_that_never_comes_leaves_the_others_in_a_livelock(
    options: TrialOptions, mode: str
) -> None:
    # A program with a thread that only reads, so it never joins the others. No store stays in a
    # buffer, so every mode gives the same.
    seed = next(seed for seed in range(100) if len(readers(options, seed)) == 1)
    trial = run_trial(toy("racy"), seed, dataclasses.replace(options, mode=mode))
    [violation] = trial.violations
    assert violation.invariant == "livelock"
    assert "spins on what nobody changes" in violation.message


def test_an_execution_that_takes_its_process_along_is_named_and_made_again(tmp_path: Path) -> None:
    rogue = toy("ends_the_process", controlled=ControlledSize(threads=(2, 2), operations=(1, 1)))
    options = TrialOptions(
        engine=CONTROLLED, module=str(rogues_path()), executions=300, strategy="random"
    )
    place = Isolation()
    try:
        batch = place.run(rogue, Chunk(0, rogue.name, 5, 8), Job("r", "programs", options))
    finally:
        place.close()
    found = batch.to_pylist()
    assert [(row["seed"], row["verdict"], row["threads"]) for row in found] == [
        (seed, "violation", 2) for seed in (5, 6, 7)
    ]
    (violation,) = found[1]["violations"]
    message = "the code under test ended its process with exit status 3"
    assert (violation["invariant"], violation["message"]) == (
        "crash",
        f"{message}; tried again: {message}",
    )
    failure = Failure.from_text(violation["replay"])
    assert (
        failure.ended_process
        and failure.seed == 6
        and failure.execution + 1 == found[1]["executions"]
    )
    path = tmp_path / "failure.json"
    path.write_text(violation["replay"])
    done = CliRunner().invoke(main, ["replay", "--trust", "--json", str(path)])
    assert json.loads(done.stdout)["exact"] is True, done.output


def test_a_stuck_trial_names_the_place_of_each_thread() -> None:
    rogue = toy("computes_for_ever", controlled=ControlledSize(threads=(2, 2), operations=(1, 1)))
    options = TrialOptions(
        engine=CONTROLLED, module=str(rogues_path()), executions=300, strategy="random"
    )
    stuck = Job("r", "programs", options, Limits(wall=120.0, cpu=0.5))
    place = Isolation()
    try:
        [row] = place.run(rogue, Chunk(0, rogue.name, 6, 7), stuck).to_pylist()
    finally:
        place.close()
    [violation] = row["violations"]
    assert violation["invariant"] == "hang"
    first, _, second = violation["message"].partition("; tried again: ")
    for message in (first, second):
        assert re.search(r"\(.*thread 1 at \w+ sandbox/rogues\.h:\d+", message), message


def test_one_thread_exercises_nothing(options: TrialOptions) -> None:
    result = run_trial(toy("counter"), 1, dataclasses.replace(options, threads=1))
    assert (result.verdict, result.executions) == ("nothing_exercised", 300)


def test_an_exhaustive_search_says_what_it_proved(options: TrialOptions) -> None:
    small = dataclasses.replace(options, strategy="preemptions", mode="sc", operations=1, threads=2)
    result = run_trial(toy("counter"), 1, dataclasses.replace(small, executions=100_000))
    assert result.verdict == "clean" and result.exhausted
    assert result.executions < 100_000
    assert result.rest == ""


def test_a_search_goes_on_with_its_rest(options: TrialOptions) -> None:
    small = dataclasses.replace(options, strategy="preemptions", mode="sc", operations=1, threads=2)
    whole = run_trial(toy("counter"), 1, dataclasses.replace(small, executions=100_000))
    outcome, rest = 0, ""
    proofs: list[str] = []
    while not proofs or rest:
        part = run_trial(toy("counter"), 1, dataclasses.replace(small, executions=10, part=rest))
        outcome, rest = outcome + part.executions, part.rest
        proofs.append(part.exhausted)
    assert outcome == whole.executions > 10
    assert proofs[:-1] == [""] * (len(proofs) - 1) and proofs[-1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "arm"}, "no mode 'arm'; use one of: sc, tso, c11"),
        ({"strategy": "replay"}, "no strategy 'replay'; use one of: random"),
        ({"executions": 0}, "not 0"),
        ({"strategy": "delays", "bound": -1}, "0 or more, not -1"),
        (
            {"part": "0:0/2"},
            "for the strategies preemptions, delays, exhaust, reduce, enumerate, not for 'portfolio'",
        ),
        ({"strategy": "delays", "part": "0:5/2"}, "this part of a search is damaged: '0:5/2'"),
        ({"engine": "steam"}, "no engine 'steam'; use one of: threads, controlled"),
        ({"threads": 64}, "1 to 63 threads"),
        ({"module": str(toys_path())}, "has no hooks"),
        ({"module": "pulsar_ml.nowhere"}, "cannot load the native module pulsar_ml.nowhere"),
    ],
)
def test_what_the_engine_cannot_run_is_refused(
    options: TrialOptions, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        probe.check([toy("counter")], dataclasses.replace(options, **changes))
    assert "replay" not in OFFERED


def test_the_risk_that_is_left_counts_what_was_exercised(options: TrialOptions) -> None:
    summary = Summary()
    for name, threads in (("counter", 2), ("racy", 2), ("tattler", 1), ("counter", 1)):
        job = Job("r", "toys-build-1", dataclasses.replace(options, threads=threads))
        chunk = Chunk(0, name, threads * 10, threads * 10 + 2)
        batch = run_chunk(toy(name, settings={"start": (100, 100)}), chunk, job)
        assert batch is not None
        add(summary, *split(batch))
    counter = summary.suites["counter"]
    assert (counter.executions, counter.telling, counter.residual_risk) == (1200, 600, 3 / 600)
    assert summary.suites["racy"].residual_risk is None, "it failed"
    assert summary.suites["tattler"].residual_risk is None, "nothing was exercised"


@pytest.mark.parametrize("engine", ["threads", CONTROLLED])
def test_a_row_and_the_summary_say_how_many_histories_a_model_judged(engine: str) -> None:
    module = CHECKED if engine == CONTROLLED else "pulsar_ml.operations._native"
    options = TrialOptions(engine=engine, module=module, executions=60, operations=50)
    summary = Summary()
    for name in ("refcount", "removal_queue"):
        suite = SUITES[name] if name == "refcount" else dataclasses.replace(SUITES[name], model="")
        job = Job("r", build_of(module), options)
        batch = run_chunk(suite, Chunk(0, name, 1, 4), job)
        assert batch is not None
        rows = batch.to_pylist()
        assert all((row["judged"] > 0) == (name == "refcount") for row in rows)
        assert {row["unknown"] for row in rows} == {0}
        add(summary, *split(batch))
    out = io.StringIO()
    report.print_summary(Console(width=200, file=out), summary, lambda group: "")
    shown = [line.replace("│", " ").split() for line in out.getvalue().splitlines()]
    judged = report.short_number(summary.suites["refcount"].judged)
    cells = {words[0]: words[-2:] for words in shown if words and words[0] in summary.suites}
    assert cells == {"refcount": [judged, "0"], "removal_queue": ["-", "-"]}


def build_of(module: str) -> str:
    return str(trial.load_native(module).SUBJECTS["refcount"].build_id)


def test_a_plan_from_before_the_engine_is_one_of_real_threads() -> None:
    data = Plan(("a",), 0, 10, 2, TrialOptions(threads=3)).to_json()
    first = ("threads", "operations", "noise", "module", "mutant")
    old = {name: data["options"][name] for name in first}  # type: ignore[index]
    assert Plan.from_json({**data, "version": 1, "options": old}).options == TrialOptions(threads=3)
    controlled = Plan(("a",), 0, 10, 2, PRODUCT)
    assert Plan.from_json(json.loads(json.dumps(controlled.to_json()))) == controlled


def test_what_the_engine_does_not_decide_is_a_violation_of_its_seed(
    monkeypatch: pytest.MonkeyPatch, options: TrialOptions
) -> None:
    def refuses(*arguments: object, **more: object) -> None:
        raise NondeterminismError("the same choices led to different executions")

    monkeypatch.setattr(controlled, "explore", refuses)
    result = run_trial(toy("counter"), 3, options)
    (found,) = result.violations
    assert (result.verdict, found.invariant, result.executions) == (
        "violation",
        "nondeterminism",
        0,
    )
    assert found.message == "the same choices led to different executions"


def test_a_seed_beyond_the_engine_is_a_row_among_others() -> None:
    path = str(programs().__file__)
    names = ("too_large", "seven_stores")
    options = TrialOptions(
        engine=CONTROLLED, module=path, operations=1, executions=3_000, threads=2
    )
    job = Job("a-run", programs().SUBJECTS["too_large"].build_id, options)
    pool = PoolRunner({name: toy(name) for name in names}, workers=1)
    try:
        wave = pool.run(job, list(Plan(names, 0, 2, 1, options).chunks()), QUIET)
    finally:
        pool.close()
    assert wave.failures == []
    rows = {(row["suite"], row["seed"]): row for row in wave.table().to_pylist()}
    assert set(rows) == {(name, seed) for name in names for seed in (0, 1)}
    for seed in (0, 1):
        large, right = (rows[name, seed] for name in names)
        assert (large["verdict"], large["executions"]) == ("nothing_exercised", 0)
        assert "use a smaller program" in large["bounds"]
        assert (right["verdict"], right["executions"]) == ("clean", 3_000)


def test_a_search_that_could_not_run_proves_nothing() -> None:
    searched = Searched()
    searched.add({"executions": 0, "verdict": "nothing_exercised", "bounds": "too large"})
    assert (searched.exhausted, searched.result) == ("", "not searched: too large")
