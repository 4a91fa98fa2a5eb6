"""The display of a running sweep: lines for people, JSON lines for programs."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from pulsar_ml.campaign.run import progress
from pulsar_ml.campaign.run.progress import Meter, Progress
from pulsar_ml.campaign.store.merge import Group, SuiteTotals, Summary
from pulsar_ml.cli.find.sweep import command as main
from pulsar_ml.cli.understand.report import command as report
from pulsar_ml.sweep.display import KINDS, NONE, PLAIN, Display, line
from pulsar_ml.sweep.events import JSON_VERSION, fields
from tests import ROOT
from tests.spark.inline import sweep

MOMENT = Progress(
    trials=1500,
    total=6000,
    violations=3,
    signatures=2,
    elapsed=10.0,
    earlier=500,
    executions=900_000,
    earlier_executions=300_000,
    classes=1234,
    wave=7,
    round=2,
    inside=0.375,
)
GROUP = Group("0123456789ab", "a", "I1", 3, 17, "the sum is 1", "running", "{}")


def test_the_line_of_a_search_has_executions_and_classes() -> None:
    assert line(MOMENT) == (
        "1,500 of 6,000 trials (25%), 100/s, 60,000 executions/s, 38% inside executions, "
        "violations 3, signatures 2, classes 1,234, left 0:45"
    )


def test_the_share_inside_runs_is_of_finished_waves_and_of_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=lambda: 1000.0)
    monkeypatch.setattr(progress, "time", clock)
    summary = Summary({"a": SuiteTotals(trials=5, run_us=9_000_000)})
    seen: list[Progress] = []
    meter = Meter(summary, 10, seen.append, cores=4)
    meter.report(1, 1)
    meter.kept()
    meter.report(1, 1)
    assert [moment.inside for moment in seen] == [None, None]
    summary.suites["a"] = SuiteTotals(trials=6, run_us=12_000_000)
    clock.monotonic = lambda: 1002.0
    meter.kept()
    meter.report(2, 1)
    assert seen[-1].inside == 3 / (4 * 2)


def test_a_sweep_without_an_end_says_for_how_long() -> None:
    endless = Progress(trials=1500, total=None, violations=0, signatures=0, elapsed=75.0)
    assert line(endless) == "1,500 trials, 20/s, violations 0, signatures 0, for 1:15"
    assert fields(endless)["planned"] is None and fields(endless)["seconds_left"] is None


def test_the_fields_of_a_moment() -> None:
    assert fields(MOMENT) == {
        "round": 2,
        "wave": 7,
        "seconds": 10.0,
        "trials": 1500,
        "earlier": 500,
        "planned": 6000,
        "trials_per_second": 100.0,
        "executions": 900_000,
        "executions_per_second": 60_000.0,
        "violations": 3,
        "signatures": 2,
        "classes": 1234,
        "inside": 0.375,
        "seconds_left": 45.0,
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("terminal", [False, True])
def test_each_kind_tells_what_it_says(kind: str, terminal: bool) -> None:
    screen = io.StringIO()
    display = Display(Console(file=screen, force_terminal=terminal, width=200), kind=kind)
    display.begin("100 trials of a", run_id="a-run")
    with display.live():
        display.show(MOMENT)
        display.found(GROUP)
        display.note("something to know")
    display.end(status="finished")
    display.close()
    text = screen.getvalue()
    if kind == NONE:
        assert text == "something to know\n"
    elif kind == "json":
        events = [json.loads(one) for one in text.splitlines()]
        assert [event["event"] for event in events] == [
            "begin",
            "progress",
            "violation",
            "note",
            "end",
        ]
        assert {event["version"] for event in events} == {JSON_VERSION}
        assert (
            fields(MOMENT).items() <= events[1].items()
            and fields(MOMENT).items() <= events[-1].items()
        )
        assert (events[2]["signature"], events[2]["seed"]) == (GROUP.signature, GROUP.seed)
    else:
        for words in (
            "100 trials of a",
            "violation: a I1 at seed 17: the sum is 1",
            "something to know",
        ):
            assert words in text
        assert ("\x1b[" in text) == (terminal and kind != PLAIN)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in text.splitlines()]


def test_a_sweep_as_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "progress.jsonl"
    options = ["--suite", "tattler", "--seeds", "7", "--chunk-size", "3", "--wave-seconds", "0.001"]
    options += ["--out", str(tmp_path / "run"), "--progress", "json", "--progress-file", str(file)]
    done = sweep(*options)
    assert done.exit_code == 1, done.output
    events = lines(done.stderr)
    assert (events[0]["event"], events[0]["planned"], events[0]["suites"]) == (
        "begin",
        7,
        ["tattler"],
    )
    waves = {event["wave"] for event in events if event["event"] == "progress"}
    assert waves == {0, 1, 2, 3}, "each wave has a line, whatever the time"
    (found,) = [event for event in events if event["event"] == "violation"]
    assert (found["suite"], found["invariant"]) == ("tattler", "T2")
    end = events[-1]
    assert (end["event"], end["status"], end["exit_code"]) == ("end", "finished", 1)
    assert (end["trials"], end["violations"], end["signatures"], end["seconds_left"]) == (
        7,
        7,
        1,
        0,
    )
    kept = [{**event, "at": ""} for event in lines(file.read_text())]
    assert [event["event"] for event in kept if event["event"] != "progress"] == [
        event["event"] for event in events if event["event"] != "progress"
    ]
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert "progress" not in run["command"] and "progress_file" not in run["command"]


def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    done = sweep(
        *("--suite", "counter", "--chunk-size", "5", "--out", str(tmp_path / "run")),
        *("--progress-file", str(tmp_path / "nowhere" / "file")),
    )
    assert done.exit_code == 2 and "cannot be written: No such file" in done.stderr
    assert not (tmp_path / "run").exists()


def test_the_page_has_every_field_and_every_kind() -> None:
    page = (ROOT / "docs" / "watching.md").read_text()
    for name in (*fields(MOMENT), *KINDS[1:], "begin", "violation", "note", "end"):
        assert f"`{name}`" in page or f"`--progress {name}`" in page, name
    assert f"`version` ({JSON_VERSION};" in page
    known = {option for command in (main, report) for one in command.params for option in one.opts}
    assert set(re.findall(r"--[a-z][a-z-]+", page)) <= known


def test_the_commands_of_the_page_are_understood() -> None:
    page = (ROOT / "docs" / "watching.md").read_text().replace("\\\n", "")
    commands = re.findall(r"^(?:nohup )?pulsar-ml sweep (.*?)(?: &)?$", page, re.MULTILINE)
    assert len(commands) == 7
    for command in commands:
        if "--resume" not in command:  # which wants a run
            context = main.make_context("sweep", shlex.split(command))
            assert context.params["forever"] == ("--forever" in command)
    defaults = {
        name: main.make_context("sweep", []).params[name] for name in ("report_every", "witnesses")
    }
    assert f"`--report-every` minutes ({defaults['report_every']:.0f})" in page
    assert f"`--witnesses N` ({defaults['witnesses']})" in page
