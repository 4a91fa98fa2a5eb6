"""The command line without Spark: exit codes, refusals, and the commands that it prints."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsar_ml.campaign.plan.plan import Chunk
from pulsar_ml.campaign.run.progress import Progress
from pulsar_ml.campaign.run.runner import ChunkFailure
from pulsar_ml.campaign.run.waves import Outcome
from pulsar_ml.campaign.store.merge import Group, SuiteTotals, Summary
from pulsar_ml.campaign.store.store import read_trials, record_path, waves_of
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.cli.find.sweep import command as main
from pulsar_ml.sweep.command_lines import search_command
from pulsar_ml.sweep.display import line
from pulsar_ml.sweep.run import exit_code, warnings
from pulsar_ml.sweep.texts import verdict
from pulsar_ml.terminal.command_line import DEFAULT_SUITES, replay_command
from pulsar_ml.terminal.progress import clock
from tests.spark.inline import sweep

GROUP = Group("0123456789ab", "a", "I1", 3, 17, "the sum is 1", "running", "{}")


def test_violations_end_with_1_and_the_commands_to_replay_them(tmp_path: Path) -> None:
    done = sweep("--suite", "tattler", "--seeds", "7", "--chunk-size", "3", "--out", str(tmp_path))
    assert done.exit_code == 1, done.output
    (record,) = (tmp_path / "records").iterdir()
    assert f"replay {record} --suites tests.spark.sweep_suites --trust\n" in done.stdout
    assert "finished: " in done.stdout and "7 of 7 trials" in done.stdout
    assert sorted(read_trials(tmp_path)["seed"].to_pylist()) == list(range(7))


def test_a_clean_sweep_ends_with_0_and_its_summary_can_be_json(tmp_path: Path) -> None:
    # One thread has nothing to overlap with, so its trials are clean on every machine.
    options = [
        "--suite",
        "counter",
        "--seeds",
        "5",
        "--threads",
        "1",
        "--out",
        str(tmp_path),
        "--json",
    ]
    done = sweep(*options, "--chunk-size", "5")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert (result["verdict"], result["trials"], result["exit_code"], result["signatures"]) == (
        "clean",
        5,
        0,
        [],
    )
    run = json.loads((tmp_path / "run.json").read_text())
    assert (run["status"], run["plan"]["seeds"], run["summary"]["trials"]) == ("finished", 5, 5)


def test_the_measured_time_of_a_trial_decides_the_chunks(tmp_path: Path) -> None:
    done = sweep("--suite", "counter", "--seeds", "40", "--threads", "1", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert read_trials(tmp_path).num_rows == 40


def test_a_sweep_leaves_the_signal_handlers_as_they_were(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    sweep("--suite", "counter", "--seeds", "1", "--chunk-size", "1", "--out", str(tmp_path))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--suite", "nope"], "no suite is called 'nope'; there are: counter"),
        (["--suites", "nowhere"], "no suites in module 'nowhere'"),
        (["--module", "/nowhere.so"], "cannot load the native module /nowhere.so"),
        (["--mutant", "H99"], "no mutant 'H99'"),
        (["--threads", "65"], "65 is not in the range"),
        (["--operations", "0"], "0 is not in the range"),
        (["--seeds", "0"], "0 is not in the range"),
        (["--seed", "-1"], "-1 is not in the range"),
        (["--chunk-size", "0"], "0 is not in the range"),
        (["--master", "nowhere"], "does not know the master 'nowhere'"),
        (["--conf", "spark.ui.enabled"], "KEY=VALUE, not 'spark.ui.enabled'"),
        (["--seeds", "many"], "'many' is not a valid integer"),
        (["--trial-seconds", "0"], "0"),
        (["--trial-memory", "0"], "0"),
    ],
)
def test_a_usage_error_ends_with_2_and_one_sentence(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = sweep("--suite", "counter", "--out", str(tmp_path / "out"), *options)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert not (tmp_path / "out").exists()


def test_results_are_never_written_over_others(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("mine")
    done = sweep("--suite", "counter", "--chunk-size", "1", "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


RUN = ("--suite", "tattler", "--suite", "counter", "--seeds", "6", "--chunk-size", "2")


def half_a_run(directory: Path, *options: str) -> None:
    """A run that was killed after half of its waves."""
    done = sweep(
        *RUN, "--wave-seconds", "0.001", "--threads", "1", *options, "--out", str(directory)
    )
    assert done.exit_code == 1, done.output
    for name in waves_of(directory)[3:]:
        (directory / "trials" / name).unlink()
    assert read_trials(directory).num_rows == 6


def resume(directory: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["--resume", str(directory), "--trust", *options])


def whole(directory: Path) -> bool:
    keys = sorted((row["suite"], row["seed"]) for row in read_trials(directory).to_pylist())
    return keys == [(suite, seed) for suite in ("counter", "tattler") for seed in range(6)]


def test_a_run_goes_on_with_no_more_than_its_name(tmp_path: Path) -> None:
    run = tmp_path / "run"
    half_a_run(run)
    before = json.loads((run / "run.json").read_text())
    done = resume(run)
    assert done.exit_code == 1, done.output
    assert "6 of 12 trials of tattler, counter" in done.stderr and "12 of 12 trials" in done.stdout
    assert whole(run)
    after = json.loads((run / "run.json").read_text())
    assert (after["status"], after["run_id"], after["summary"]["trials"]) == (
        "finished",
        before["run_id"],
        12,
    )
    assert len(after["resumed_at"]) == 1 and after["started_at"] == before["started_at"]
    again = resume(run, "--json")
    assert again.exit_code == 1 and json.loads(again.stdout)["trials"] == 12, (
        "there is nothing left to do"
    )


def test_a_run_of_spark_goes_on_without_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    half_a_run(run)
    facts = json.loads((run / "run.json").read_text())
    facts["command"] |= {"runner": "spark", "rows": "executors", "speculate": True}
    (run / "run.json").write_text(json.dumps(facts))
    done = resume(run, "--runner", "inline")
    assert done.exit_code == 1, done.output
    assert whole(run)


def test_the_same_command_goes_on_with_the_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    half_a_run(run)
    done = sweep(*RUN, "--threads", "1", "--out", str(run), "--resume", str(run))
    assert done.exit_code == 1, done.output
    assert whole(run)


def changed(run: Path, **changes: object) -> None:
    """A run that differs and has no wave yet."""
    for name in waves_of(run):
        (run / "trials" / name).unlink()
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, **changes}))


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        (["--seeds", "7"], None, "another plan: its seeds is 6 and not 7"),
        (["--seed", "7"], None, "its first_seed is 0 and not 7"),
        (["--suite", "tattler"], None, "its suites is ('tattler', 'counter') and not ('tattler',)"),
        (["--threads", "2"], None, "its threads is 1 and not 2"),
        (["--chunk-size", "1"], None, "its pieces is 3 and not 6"),
        (["--engine", "controlled"], None, "hooks"),
        (["--out", "elsewhere"], None, "--out elsewhere is another directory"),
        ([], {"build_id": "another"}, "is a run of build another, and "),
        ([], {"suites": "0123"}, "the suites have changed since"),
        ([], {"version": 3}, "use a newer pulsar_ml"),
        ([], {"plan": {}}, "the plan: version is null; it should be 1 or 2"),
    ],
)
def test_what_is_not_the_run_is_refused_and_changes_nothing(
    tmp_path: Path, options: list[str], changes: dict[str, object] | None, message: str
) -> None:
    run = tmp_path / "run"
    half_a_run(run)
    if changes is not None:
        changed(run, **changes)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    done = resume(run, *options)
    assert done.exit_code == 2, done.output
    assert message in done.stderr and "Traceback" not in done.output
    assert len(done.stderr.strip().splitlines()) == 1
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_the_clock_stops_a_sweep_after_whole_chunks_and_it_can_go_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ["--suite", "counter", "--threads", "1", "--chunk-size", "4", "--out", str(run)]
    done = sweep(*options, "--seconds", "1e-9")
    assert done.exit_code == 0, done.output
    assert "trials of counter: seeds from 0 for 1e-09 s" in done.stderr
    assert "stopped after 1e-09 s: no violation in 4 trials" in done.stdout
    assert json.loads((run / "run.json").read_text())["status"] == "stopped"
    assert sorted(read_trials(run)["seed"].to_pylist()) == [0, 1, 2, 3]
    done = resume(run, "--seconds", "1e-9", "--json")
    result = json.loads(done.stdout)
    assert (result["status"], result["trials"], result["planned"]) == ("stopped", 8, None)


def test_the_clock_and_a_number_of_seeds_both_bound_a_sweep(tmp_path: Path) -> None:
    options = ["--suite", "counter", "--threads", "1", "--chunk-size", "3", "--seconds"]
    done = sweep(*options, "1000", "--seeds", "3", "--out", str(tmp_path / "whole"))
    assert done.exit_code == 0 and "finished: no violation in 3 of 3 trials" in done.stdout
    done = sweep(*options, "1e-9", "--seeds", "9", "--out", str(tmp_path / "part"))
    assert done.exit_code == 0 and "no violation in 3 of 9 trials" in done.stdout
    assert "stopped after 1e-09 s" in done.stdout


def test_a_sweep_counts_what_it_proves_in_its_last_line() -> None:
    ended = outcome(
        "finished",
        trials=5,
        clean=3,
        nothing_exercised=2,
        judged=7,
        unknown=1,
        executions=90,
        cut=4,
    )
    words = verdict(TrialOptions(engine="controlled"), ended, 5)
    assert "no violation in 5 of 5 trials (3 exercised, 2 idle)" in words
    assert "with 90 executions under the engine (4 cut), 7 histories judged (1 unknown)" in words


def test_many_idle_trials_are_a_warning() -> None:
    (warning,) = warnings(outcome("finished", trials=40, clean=30, nothing_exercised=10))
    assert warning.startswith("warning: 10 of 40 trials (25%) were idle: no operations overlapped")
    assert warnings(outcome("finished", trials=40, clean=36, nothing_exercised=4)) == []
    assert exit_code(outcome("finished", trials=2, nothing_exercised=2)) == 3


def test_a_master_that_does_not_answer_is_named(tmp_path: Path) -> None:
    common = ["--suite", "refcount", "--seeds", "1", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [*common, "--master", "spark://127.0.0.1:1"])
    assert done.exit_code == 4, done.output
    (sentence,) = done.stderr.splitlines()
    assert "the Spark master spark://127.0.0.1:1 does not answer" in sentence
    assert not (tmp_path / "out").exists()


def test_an_unexpected_error_is_one_sentence_and_never_a_violation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **more: object) -> None:
        raise KeyError("a bug of ours")

    monkeypatch.setattr("pulsar_ml.sweep.sweep.load_suites", fail)
    done = CliRunner().invoke(main, ["--runner", "inline", "--out", str(tmp_path / "out")])
    assert done.exit_code == 4
    assert done.stderr == (
        "Failed: unexpected KeyError: 'a bug of ours' (--traceback shows where)\n"
    )
    done = CliRunner().invoke(main, ["--runner", "inline", "--traceback"])
    assert done.exit_code == 4 and "Traceback (most recent call last)" in done.stderr


def test_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    done = resume(tmp_path / "nowhere")
    assert done.exit_code == 2 and "there is no run in" in done.stderr
    assert not (tmp_path / "nowhere").exists()


def outcome(status: str, **counts: int) -> Outcome:
    totals = SuiteTotals(**counts)  # type: ignore[arg-type]
    summary = Summary(
        {"a": totals} if totals.trials else {}, {"x": GROUP} if totals.violation else {}
    )
    return Outcome(status, summary)


@pytest.mark.parametrize(
    ("ended", "code", "words"),
    [
        (outcome("finished", trials=3, clean=3), 0, "no violation in 3 of 3 trials"),
        (
            outcome("finished", trials=3, clean=2, violation=1),
            1,
            "3 violations with 1 signature in 3",
        ),
        (outcome("finished", trials=3, nothing_exercised=3), 3, "nothing exercised by a"),
        (outcome("failed", trials=2, clean=2), 4, "failed: no violation in 2 of 3"),
        (outcome("failed", trials=2, clean=1, violation=1), 4, "failed: 3 violations"),
        (outcome("failed"), 4, "none of 3 trials"),
        (outcome("interrupted", trials=1, clean=1), 130, "interrupted: no violation in 1 of 3"),
    ],
)
def test_the_exit_code_and_the_last_line_say_how_it_ended(
    ended: Outcome, code: int, words: str
) -> None:
    assert exit_code(ended) == code
    assert words in verdict(TrialOptions(), ended, 3)


def test_commands_work_where_the_sweep_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "a run"
    words = shlex.split(replay_command(record_path(run, GROUP.signature), DEFAULT_SUITES))
    assert words[-2:] == ["replay", "a run/records/0123456789ab.json"]
    monkeypatch.chdir("/usr")
    words = shlex.split(replay_command(record_path(run, GROUP.signature), "mine.suites"))
    record = str(run / "records" / "0123456789ab.json")
    assert words[-4:] == ["replay", record, "--suites", "mine.suites"]


def test_the_search_for_a_crash_repeats_the_options_of_the_sweep() -> None:
    options = TrialOptions(
        threads=8, operations=None, noise=False, module="/m/x y.so", mutant="H01"
    )
    command = search_command(Chunk(0, "a", 40, 60), options, DEFAULT_SUITES)
    words = shlex.split(command)
    assert words[words.index("run") :] == (
        [
            "run",
            "a",
            "--seed",
            "40",
            "--seeds",
            "20",
            "--threads",
            "8",
            "--module",
            "/m/x y.so",
            "--mutant",
            "H01",
            "--no-noise",
        ]
    )
    assert (
        str(ChunkFailure(Chunk(0, "a", 40, 60), "it died"))
        == "chunk 0 (a, seeds 40 to 59): it died"
    )


def test_the_progress_line_has_rate_findings_and_time_left() -> None:
    text = line(Progress(trials=1500, total=6000, violations=3, signatures=2, elapsed=10.0))
    assert text == "1,500 of 6,000 trials (25%), 150/s, violations 3, signatures 2, left 0:30"
    assert line(Progress(0, 6000, 0, 0, 1.0)).endswith("left ?")
    assert [clock(seconds) for seconds in (0, 61, 3600, 360_000)] == [
        "0:00",
        "1:01",
        "1:00:00",
        "100:00:00",
    ]


def test_help_shows_examples_and_exit_codes() -> None:
    done = CliRunner().invoke(main, ["--help"])
    assert done.exit_code == 0
    for words in ("pulsar-ml sweep --runner pool", "130  interrupted", "--seeds"):
        assert words in done.output
