"""Each command, given garbage: one clear message, exit code 2 (or 4 where the machine is to blame),
no traceback, and nothing new on the disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.__main__ import main as benchmarks
from pulsar_ml.cli import main as pulsar_ml
from pulsar_ml.sweep.options import SweepOptions
from pulsar_ml.sweep.sweep import kept_options
from stress.mutants import __main__ as stress_mutants
from stress.mutants.sweep import command as mutants
from stress.mutants.table.command import main as kill_table
from tests import ROOT
from tests.bad_input.damage import MANY, NO_FILES, digest, make_no_file, other_values
from tests.bad_input.parsers import run_file
from tests.report.kit import row, write_run

APPS: dict[str, click.Command] = {
    "pulsar-ml": pulsar_ml,
    "stress.mutants.table": kill_table,
    "spark.mutants": mutants,
    "benchmarks": benchmarks,
}
NUMBERS = (click.types.IntParamType, click.types.FloatParamType)  # and ranges of them
USAGE, FAILED = 2, 4


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    said: str


def walk(
    command: click.Command, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The commands below a command, with the words that lead to them."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from walk(found, (*words, name))


COMMANDS = {
    " ".join((app, *words)): (app, words, command)
    for app, group in APPS.items()
    for words, command in walk(group)
}


def run(app: str, arguments: Sequence[str]) -> Ended:
    """Runs an app as from the command line."""
    done = CliRunner().invoke(APPS[app], list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return Ended(done.exit_code, done.output)


def is_clear(ended: Ended, codes: Sequence[int] = (USAGE,)) -> None:
    assert ended.code in codes, (ended.code, ended.said[-500:])
    assert "Traceback" not in ended.said, ended.said[-2_000:]
    lines = [line for line in ended.said.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("Usage: ", "Try "))]
    assert 1 <= len(lines) <= 3, lines[:10]
    assert all(len(line) < 2_000 for line in lines), lines[0][:500]


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_does_not_exist(name: str) -> None:
    app, words, _ = COMMANDS[name]
    ended = run(app, [*words, "--no-such-option"])
    assert ended.code == USAGE
    assert "Traceback" not in ended.said
    assert "--no-such-option" in ended.said


@pytest.mark.parametrize("value", ["garbage", "", "1e999", "9" * 400, "-1", "\u0663", "nan"])
@pytest.mark.parametrize("name", COMMANDS)
def test_numbers_and_choices_that_are_none(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gives a missing or wrong argument, too, so that no command starts work."""
    monkeypatch.chdir(tmp_path)
    app, words, command = COMMANDS[name]
    for option in command.params:
        if isinstance(option, click.Option) and isinstance(option.type, (*NUMBERS, click.Choice)):
            ended = run(app, [*words, "--no-such-option", option.opts[-1], value])
            assert ended.code == USAGE
            if value == "garbage":
                needed = (
                    ["x"]
                    if any(isinstance(other, click.Argument) for other in command.params)
                    else []
                )
                ended = run(app, [*words, *needed, option.opts[-1], value])
                assert ended.code == USAGE, ended.said
            assert "Traceback" not in ended.said
    assert list(tmp_path.iterdir()) == []


# Paths that are read: the words before and behind the bad one. Each option or argument that takes
# a path is here or below.
SWEEP = ["--suite", "refcount", "--seeds", "1"]
READ: dict[tuple[str, str], tuple[list[str], list[str]]] = {
    ("pulsar-ml build", "file"): ([], ["--into", "made"]),
    ("pulsar-ml cluster stop", "directory"): (["--directory"], []),
    ("pulsar-ml cluster url", "directory"): (["--directory"], []),
    ("pulsar-ml collect", "runs"): ([], ["--into", "made"]),
    ("pulsar-ml compact", "run"): ([], []),
    ("pulsar-ml config", "broker_conf"): (["--broker-conf"], []),
    ("pulsar-ml explore", "module"): (["refcount", "--module"], []),
    ("pulsar-ml explain", "failure"): ([], []),
    ("pulsar-ml hunt", "record"): ([], []),
    ("pulsar-ml check", "baseline"): (["a_test.cpp", "--baseline"], []),
    ("pulsar-ml explore", "baseline"): (["refcount", "--baseline"], []),
    ("pulsar-ml report", "baseline"): (["run", "--baseline"], []),
    ("pulsar-ml run", "baseline"): (["refcount", "--baseline"], []),
    ("pulsar-ml sweep", "baseline"): (
        [*SWEEP, "--runner", "inline", "--out", "made", "--baseline"],
        [],
    ),
    ("pulsar-ml check", "database"): (["a_test.cpp", "--compile-commands"], []),
    ("pulsar-ml check", "replay"): (["a_test.cpp", "--replay"], []),
    ("pulsar-ml linearize", "file"): ([], ["--model", "register"]),
    ("pulsar-ml replay", "record"): ([], []),
    ("pulsar-ml report", "run"): ([], []),
    ("pulsar-ml report", "history"): (["run", "--history"], []),
    ("pulsar-ml report", "kill_table"): (["run", "--kill-table"], []),
    ("pulsar-ml run", "module"): (["refcount", "--module"], []),
    ("pulsar-ml run", "suites"): (["refcount", "--suites"], []),
    ("pulsar-ml shrink", "target"): (["--runner", "pool"], []),
    ("pulsar-ml simulate", "workloads"): ([], []),
    ("pulsar-ml simulate", "broker_conf"): (["fan_out", "--grid", "x", "--broker-conf"], []),
    ("pulsar-ml simulate", "scrapes"): (["--scrape", str(ROOT / "README.md"), "--scrape"], []),
    ("pulsar-ml sweep", "resume"): (["--resume"], []),
    ("pulsar-ml sweep", "environment"): (
        [*SWEEP, "--master", "local", "--out", "made", "--environment"],
        [],
    ),
    ("pulsar-ml sweep", "module"): (
        [*SWEEP, "--runner", "inline", "--out", "made", "--module"],
        [],
    ),
    ("pulsar-ml sweep", "suites"): (["--runner", "inline", "--out", "made", "--suites"], []),
    ("pulsar-ml trace", "failure"): ([], []),
    ("stress.mutants.table", "path"): (["--page-only", "--page", "made", "--results"], []),
}
# Paths that are written: a place where nothing can be.
WRITTEN: dict[tuple[str, str], list[str]] = {
    ("pulsar-ml build", "into"): ["nothing.pyx", "--into"],
    ("pulsar-ml check", "into"): ["nothing.cpp", "--into"],
    ("pulsar-ml check", "junit"): ["nothing.cpp", "--junit"],
    ("pulsar-ml check", "markdown"): ["nothing.cpp", "--markdown"],
    ("pulsar-ml check", "sarif"): ["nothing.cpp", "--sarif"],
    ("pulsar-ml collect", "into"): ["nothing", "--into"],
    ("pulsar-ml explore", "out"): ["entry", "--executions", "10", "--seeds", "1", "--out"],
    ("pulsar-ml hunt", "out"): ["nothing", "--out"],
    ("pulsar-ml linearize", "page"): [
        str(ROOT / "docs" / "examples" / "account.jsonl"),
        "--model",
        f"{ROOT / 'docs' / 'examples' / 'account.py'}:Account",
        "--html",
    ],
    ("pulsar-ml report", "out"): ["nothing", "--out"],
    ("pulsar-ml run", "out"): ["refcount", "--seeds", "1", "--out"],
    ("pulsar-ml simulate", "target"): ["nothing", "--plot"],
    ("pulsar-ml sweep", "out"): ["--runner", "inline", *SWEEP, "--out"],
    ("stress.mutants.table", "target"): ["--page-only", "--page"],
}
# Options that take a path and are not tried here, and why.
ELSEWHERE = {
    ("pulsar-ml build", "include"): "for the compiler",
    ("pulsar-ml check", "include"): "for the compiler",
    ("pulsar-ml cluster start", "directory"): "it starts processes; stop and url refuse damage",
    ("pulsar-ml doctor", "environment"): "checked by the function that checks that of sweep",
    ("pulsar-ml explore", "records"): "made when a failure is found",
    ("pulsar-ml pack", "out"): "it makes an environment first",
    ("pulsar-ml pack", "wheel"): "given to pip",
    ("pulsar-ml run", "records"): "made when a failure is found",
    ("pulsar-ml shrink", "environment"): "checked by the function that checks that of sweep",
    ("pulsar-ml sweep", "progress_file"): "appended to, and a pipe may be intended",
    ("spark.mutants", "out"): "it compiles all mutants first",
}
CREATED = (
    "nothing",
    *NO_FILES,
    "binary",
    "brackets",
    "inside a file",
    "long",
)


def bad_path(kind: str, folder: Path) -> str:
    path = folder / "bad"
    make_no_file(kind, path)
    match kind:
        case "binary":
            path.write_bytes(b"\x80\x04\xff\x00PAR1")
        case "brackets":
            path.write_text("[" * 50_000)
        case "inside a file":
            path.write_text("")
            return str(path / "in" / "it")
        case "long":
            return str(path) + "x" * 300
    return str(path)


# What is right although it looks like garbage, or is for the compiler to refuse.
RIGHT = {
    ("pulsar-ml config", "brackets"),  # a key that is no setting
    ("pulsar-ml build", "binary"),
    ("pulsar-ml build", "brackets"),
}


@pytest.mark.parametrize(
    ("place", "kind"),
    [(place, kind) for place in READ for kind in CREATED if (place[0], kind) not in RIGHT],
    ids=lambda one: one if isinstance(one, str) else " ".join(one),
)
def test_a_path_that_is_none(
    place: tuple[str, str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app, words, _ = COMMANDS[place[0]]
    before_it, behind = READ[place]
    bad = bad_path(kind, tmp_path)
    if place[1] in ("kill_table", "history"):
        write_run(tmp_path / "run", [row(0)])
    before = digest(tmp_path)
    ended = run(app, [*words, *before_it, bad, *behind])
    if place[0] == "pulsar-ml cluster stop" and ended.code == 0:
        assert ended.said == "there is no cluster to stop\n"
    else:
        is_clear(ended, (USAGE, FAILED))
    assert digest(tmp_path) == before


@pytest.mark.parametrize("kind", ["inside a file", "long"])
@pytest.mark.parametrize("place", WRITTEN, ids=" ".join)
def test_a_place_where_nothing_can_be(
    place: tuple[str, str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app, words, _ = COMMANDS[place[0]]
    bad = bad_path(kind, tmp_path)
    before = digest(tmp_path)
    is_clear(run(app, [*words, *WRITTEN[place], bad]), (USAGE, FAILED))
    assert digest(tmp_path) == before


def test_each_path_that_a_command_takes_is_tried() -> None:
    taken = {
        (name, option.name)
        for name, (_, _, command) in COMMANDS.items()
        for option in command.params
        if isinstance(option.type, click.Path)
    }
    assert taken <= {*READ, *WRITTEN, *ELSEWHERE}, taken - {*READ, *WRITTEN, *ELSEWHERE}


def test_a_state_of_a_cluster_that_is_damaged_stays(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"url": 1, "workers": [], "processes": {}}')
    before = digest(tmp_path)
    for command in ("stop", "url", "start"):
        ended = run("pulsar-ml", ["cluster", command, "--directory", str(tmp_path)])
        is_clear(ended, (FAILED,))
        assert "cluster.json is damaged" in ended.said
        assert digest(tmp_path) == before


@pytest.mark.parametrize("content", ["", "[]", '{"url": 1}', "[" * 100_000, '"'])
def test_a_state_that_is_about_no_cluster_stays(content: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(content)
    assert run("pulsar-ml", ["cluster", "stop", "--directory", str(tmp_path)]).code == 0
    assert (tmp_path / "cluster.json").read_text() == content


@pytest.mark.parametrize(
    "arguments", [["--no-such"], ["\0"], ["--engine", "none"], ["--faults", "../.."]]
)
def test_mutants_that_do_not_exist(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["stress.mutants", *arguments])
    assert stress_mutants.main() == USAGE
    said = capsys.readouterr()
    assert said.out or said.err


COMMAND = kept_options(
    SweepOptions(suite=("refcount",), seeds=20, threads=2, operations=3, runner="inline")
)


@settings(parent=MANY, max_examples=60)
@given(data=st.data())
def test_options_of_a_run_that_were_made_up(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The run is of no build that there is, so no command goes on with it, whatever its options."""
    folder = tmp_path_factory.mktemp("resumed")
    path = run_file("run.json")(folder)
    content = json.loads(path.read_text())
    command = json.loads(data.draw(other_values(json.dumps(COMMAND))))
    path.write_text(json.dumps({**content, "command": command}))
    before = digest(folder)
    ended = run("pulsar-ml", ["sweep", "--resume", str(path.parent)])
    is_clear(ended, (USAGE, FAILED))
    assert digest(folder) == before
