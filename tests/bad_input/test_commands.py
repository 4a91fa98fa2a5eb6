"""Each command of each app, given garbage: one clear message, exit code 2 (or 4 where the machine is to
blame), no traceback, and nothing on the disk that was not there before.
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

import pulsar_ml.cli.stress
from benchmarks.__main__ import main as benchmarks
from pulsar_ml.cli import cluster, compact, doctor, pack, scale, stress, sweep
from pulsar_ml.cli import main as pulsar_ml
from pulsar_ml.cli import shrink_run as shrink
from pulsar_ml.cli import simulate_grid as simulate
from stress.mutants import __main__ as stress_mutants
from stress.mutants import sweep as mutants
from stress.mutants.kill_table import main as kill_table
from tests.bad_input.damage import MANY, NO_FILES, digest, make_no_file, other_values
from tests.bad_input.parsers import run_file
from tests.report.kit import row, write_run

APPS: dict[str, click.Command] = {
    "pulsar_ml": pulsar_ml,
    "stress": stress.cli,
    "stress.mutants.kill_table": kill_table,
    "spark.cluster": cluster.main,
    "spark.compact": compact.main,
    "spark.doctor": doctor.main,
    "spark.mutants": mutants.main,
    "spark.pack": pack.main,
    "spark.scale": scale.main,
    "spark.shrink": shrink.main,
    "spark.simulate": simulate.main,
    "spark.sweep": sweep.main,
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
    """As on the command line. ``python -m stress`` catches by itself what its commands raise."""
    if app == "stress":
        with CliRunner().isolation() as streams:
            code = stress.main(list(arguments))
            said = streams[0].getvalue().decode() + streams[1].getvalue().decode()
        return Ended(code, said)
    done = CliRunner().invoke(APPS[app], list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return Ended(done.exit_code, done.output)


def is_clear(ended: Ended, codes: Sequence[int] = (USAGE,)) -> None:
    assert ended.code in codes, (ended.code, ended.said[-500:])
    assert "Traceback" not in ended.said, ended.said[-2_000:]
    told = [line for line in ended.said.splitlines() if line.strip()]
    told = [line for line in told if not line.startswith(("Usage: ", "Try "))]
    assert 1 <= len(told) <= 3, told[:10]
    assert all(len(line) < 2_000 for line in told), told[0][:500]


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
    """With an argument that is missing or wrong, so that no command goes on with a number that it takes."""
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


# Paths that are read: the words before and behind the bad one. Each option or argument that takes a path is
# here or below.
READ: dict[tuple[str, str], tuple[list[str], list[str]]] = {
    ("pulsar_ml build", "file"): ([], ["--into", "made"]),
    ("pulsar_ml collect", "runs"): ([], ["--into", "made"]),
    ("pulsar_ml config", "file"): (["--file"], []),
    ("pulsar_ml linearize", "file"): ([], ["--model", "register"]),
    ("pulsar_ml report", "run"): ([], []),
    ("pulsar_ml report", "kill_table"): (["run", "--kill-table"], []),
    ("pulsar_ml simulate", "workloads"): ([], []),
    ("stress replay", "record"): ([], []),
    ("stress schedule", "record"): ([], []),
    ("stress shrink", "failure"): ([], []),
    ("stress trace", "failure"): ([], []),
    ("stress.mutants.kill_table", "path"): (["--page-only", "--page", "made", "--results"], []),
    ("spark.cluster stop", "directory"): (["--directory"], []),
    ("spark.cluster url", "directory"): (["--directory"], []),
    ("spark.compact", "run"): ([], []),
    ("spark.shrink", "run"): (["--runner", "pool"], []),
    ("spark.simulate", "workload"): ([], []),
    ("spark.simulate", "broker_conf"): (["fan_out", "--grid", "x", "--conf"], []),
    ("spark.sweep", "resume"): (["--resume"], []),
    ("spark.sweep", "environment"): (
        [
            "--suite",
            "refcount",
            "--seeds",
            "1",
            "--master",
            "local",
            "--out",
            "made",
            "--environment",
        ],
        [],
    ),
    ("spark.sweep", "module"): (
        ["--runner", "inline", "--seeds", "1", "--out", "made", "--module"],
        [],
    ),
    ("spark.sweep", "registry"): (["--runner", "inline", "--out", "made", "--suites"], []),
    ("stress run", "module"): (["refcount", "--module"], []),
    ("stress explore", "module"): (["refcount", "--module"], []),
}
# Paths that are written: a place where nothing can be.
WRITTEN: dict[tuple[str, str], list[str]] = {
    ("pulsar_ml build", "into"): ["nothing.pyx", "--into"],
    ("pulsar_ml collect", "into"): ["nothing", "--into"],
    ("pulsar_ml report", "output"): ["nothing", "-o"],
    ("pulsar_ml simulate", "target"): ["nothing", "--plot"],
    ("stress explore", "out"): ["entry", "--executions", "10", "--programs", "1", "--out"],
    ("stress run", "out"): ["refcount", "--programs", "1", "--out"],
    ("stress schedule", "into"): ["nothing", "--into"],
    ("stress.mutants.kill_table", "target"): ["--page-only", "--page"],
    ("spark.sweep", "out"): ["--runner", "inline", "--suite", "refcount", "--seeds", "1", "--out"],
}
# What takes a path and is not tried here, and why.
ELSEWHERE = {
    ("pulsar_ml build", "include"): "for the compiler",
    ("stress explore", "records"): "made when something is found",
    ("stress run", "folder"): "likewise",
    (
        "spark.cluster start",
        "directory",
    ): "it starts processes; a damaged state is refused by stop and url",
    ("spark.doctor", "environment"): "by the same function as in sweep",
    ("spark.sweep", "progress_file"): "appended to, and a pipe may be what is wanted",
    ("spark.mutants", "out"): "it compiles all mutants first",
    ("spark.pack", "out"): "it makes an environment first",
    ("spark.pack", "wheel"): "given to pip",
}
MADE = (
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
    ("pulsar_ml config", "brackets"),  # a key that is no setting
    ("pulsar_ml build", "binary"),
    ("pulsar_ml build", "brackets"),
}


@pytest.mark.parametrize(
    ("place", "kind"),
    [(place, kind) for place in READ for kind in MADE if (place[0], kind) not in RIGHT],
    ids=lambda one: one if isinstance(one, str) else " ".join(one),
)
def test_a_path_that_is_none(
    place: tuple[str, str], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app, words, _ = COMMANDS[place[0]]
    before_it, behind = READ[place]
    bad = bad_path(kind, tmp_path)
    if place == ("pulsar_ml report", "kill_table"):
        write_run(tmp_path / "run", [row(0)])
    before = digest(tmp_path)
    ended = run(app, [*words, *before_it, bad, *behind])
    if app == "spark.cluster" and ended.code == 0:
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
        ended = run("spark.cluster", [command, "--directory", str(tmp_path)])
        is_clear(ended, (FAILED,))
        assert "cluster.json is damaged" in ended.said
        assert digest(tmp_path) == before


@pytest.mark.parametrize("content", ["", "[]", '{"url": 1}', "[" * 100_000, '"'])
def test_a_state_that_is_about_no_cluster_stays(content: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(content)
    assert run("spark.cluster", ["stop", "--directory", str(tmp_path)]).code == 0
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


COMMAND = {
    "names": ["refcount"], "seeds": 20, "first_seed": 0, "engine": "threads", "mode": None, "strategy": None,
    "executions": None, "threads": 2, "operations": 3, "noise": True, "mutant": None, "runner": "inline",
    "module": "pulsar_ml.operations._native", "registry": "pulsar_ml.suites.registry", "master": None, "conf": ["a=b"],
    "environment": None, "task_cpus": None, "workers": None, "chunk_size": None, "chunk_seconds": 3.0,
    "wave_seconds": 30.0, "trial_seconds": 150.0, "trial_memory": 2048, "trial_address_space": 16384,
}  # fmt: skip


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
    ended = run("spark.sweep", ["--resume", str(path.parent)])
    is_clear(ended, (USAGE, FAILED))
    assert digest(folder) == before
