"""Signals at any moment of a command: the exit code is 128 + the number, and run.json says so.

A process reports that it came to a point and waits there, so that nothing depends on time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from pulsar_ml.cli import main
from pulsar_ml.terminal.signals import SIGNALS
from tests import ROOT
from tests.bad_input.damage import digest

NUMBERS = pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
# Waits for a signal, which raises, or for a line; a descriptor of its own is no standard stream.
HERE = """
import os, select, signal, sys
def here(name):
    os.write(1, f"{name}\\n".encode())
    while not select.select([0], [], [], 60)[0]:
        pass
    os.read(0, 1)
"""
MAIN = "from pulsar_ml.__main__ import run\nsys.argv[0] = 'pulsar-ml'\nrun()\n"
OPENS = f"""{HERE}
import pulsar_ml.sweep.run as sweep
from pulsar_ml.campaign.store.store import RunStore
write = RunStore.write_run
def slowly(store, facts):
    if facts["status"] != "running":
        here("writes")
    write(store, facts)
RunStore.write_run = slowly
open_runner = sweep.open_runner
def opens(*arguments):
    runner = open_runner(*arguments)
    children = []
    for place in getattr(runner, "_places", ()):
        place.start()
        children.append(place._process.pid)
    os.write(1, f"{{' '.join(map(str, children))}}\\n".encode())
    here("opens")
    return runner
sweep.open_runner = opens
{MAIN}"""
SWEEP = ("sweep", "--runner", "pool", "--workers", "1", "--suite", "refcount", "--seeds", "2")


class Process:
    """A command that stops at points."""

    def __init__(self, *words: str, cwd: Path, script: bool = True) -> None:
        """``words``: a script and its arguments, or the arguments of Python."""
        self.process = subprocess.Popen(
            [sys.executable, *(("-c", *words) if script else words)],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{cwd}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=heed,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rstrip("\n")

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self) -> tuple[int, str]:
        _, printed = self.process.communicate(timeout=900)
        return self.process.returncode, printed.decode()


def stops_at(module: str) -> str:
    """A script that stops where a module is imported."""
    return HERE + (
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            sys.meta_path.remove(self)\n"
        "            here('imports')\n"
        "sys.meta_path.insert(0, Finder())\n"
    )


def heed() -> None:
    """Undo what a shell does to the signals of a background process."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def run_of(directory: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((directory / "out" / "run.json").read_text())
    return content


def ended(status: int, printed: str, number: int) -> None:
    assert status == 128 + number, printed
    assert "Traceback" not in printed and "Interrupted" in printed, printed


@NUMBERS
@pytest.mark.parametrize("module", ["pyarrow", "pulsar_ml.cli.find.sweep"])
def test_during_an_import_nothing_is_left(tmp_path: Path, module: str, number: int) -> None:
    script = stops_at(module)
    process = Process(script + MAIN, *SWEEP, "--out", "out", cwd=tmp_path)
    assert process.line() == "imports"
    process.send(number)
    ended(*process.end(), number)


@pytest.mark.parametrize("start", [("-m", "pulsar_ml"), ("-mpulsar_ml",), ("pulsar-ml",)])
@NUMBERS
def test_while_the_package_is_imported(tmp_path: Path, start: tuple[str, ...], number: int) -> None:
    """The native module is imported before the first line of the command itself."""
    (tmp_path / "sitecustomize.py").write_text(stops_at("pulsar_ml._core"))
    script = tmp_path / "pulsar-ml"
    script.write_text("from pulsar_ml.__main__ import run\nrun()\n")
    process = Process(*start, "--version", cwd=tmp_path, script=False)
    assert process.line() == "imports"
    process.send(number)
    ended(*process.end(), number)


def test_the_package_leaves_the_signals_of_other_programs_alone(tmp_path: Path) -> None:
    script = "import signal, pulsar_ml; print(signal.getsignal(signal.SIGINT))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, preexec_fn=heed
    )
    assert "default_int_handler" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "times"),
    [(signal.SIGINT, 2), (signal.SIGTERM, 1), (signal.SIGTERM, 3), (signal.SIGQUIT, 3)],
)
def test_before_the_first_wave_the_run_says_that_it_was_interrupted(
    tmp_path: Path, number: int, times: int
) -> None:
    """The first stops at once; further ones come while the end of the run is written."""
    process = Process(OPENS, *SWEEP, "--out", "out", cwd=tmp_path)
    children = [psutil.Process(int(word)) for word in process.line().split()]
    assert process.line() == "opens" and len(children) == 1
    assert run_of(tmp_path)["status"] == "running"
    process.send(number)
    assert process.line() == "writes"
    for _ in range(times - 1):
        process.send(number)
    process.go_on()
    ended(*process.end(), number)
    content = run_of(tmp_path)
    assert (content["status"], content["problem"]) == (
        "interrupted",
        f"interrupted by {signal.Signals(number).name}",
    )
    assert psutil.wait_procs(children, timeout=900)[1] == [], "its children end with it"


RUN = f"""{HERE}
import pulsar_ml.campaign.local.session as session
trial = session.run_trial
def one(*arguments):
    here("runs")
    return trial(*arguments)
session.run_trial = one
{MAIN}"""


@NUMBERS
def test_a_run_on_real_threads_says_that_it_was_interrupted(tmp_path: Path, number: int) -> None:
    words = ("run", "refcount", "--seeds", "3", "--out", "out")
    process = Process(RUN, *words, cwd=tmp_path)
    assert process.line() == "runs"
    process.go_on()
    assert process.line() == "runs"
    process.send(number)
    status, printed = process.end()
    assert status == 128 + number and "Traceback" not in printed, printed
    assert run_of(tmp_path)["status"] == "interrupted"


# The function at which a command's work stops, and the words of the command.
WORK = {
    "doctor": ("pulsar_ml.cli.distribute.doctor.examine", ("doctor",)),
    "simulate": ("pulsar_ml.cli.cache.simulate.simulate", ("simulate", "tailing")),
    "compact": ("pulsar_ml.cli.distribute.compact.compact", ("compact", "out")),
    "collect": ("pulsar_ml.cli.distribute.collect.collect", ("collect", "out", "--into", "all")),
    "report": ("pulsar_ml.cli.understand.report.gather", ("report", "out")),
    "invariants": ("pulsar_ml.cli.understand.invariants.load_suites", ("invariants",)),
}


def stopping_at(place: str) -> str:
    module, name = place.rsplit(".", 1)
    return (
        f"{HERE}\nimport {module} as module\n"
        f"module.{name} = lambda *arguments, **named: here('works')\n{MAIN}"
    )


@pytest.mark.parametrize(("name", "number"), [*zip(WORK, [*SIGNALS, *SIGNALS], strict=False)])
def test_a_command_at_work_ends_with_the_signal_and_leaves_its_run_as_it_was(
    tmp_path: Path, name: str, number: int
) -> None:
    if "out" in WORK[name][1]:
        words = [*SWEEP, "--runner", "inline", "--out", str(tmp_path / "out")]
        assert CliRunner().invoke(main, words).exit_code == 0
    before = digest(tmp_path)
    process = Process(stopping_at(WORK[name][0]), *WORK[name][1], cwd=tmp_path)
    assert process.line() == "works"
    process.send(number)
    ended(*process.end(), number)
    assert digest(tmp_path) == before


def test_a_hangup_that_is_ignored_stays_so(tmp_path: Path) -> None:
    script = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + OPENS
    process = Process(script, *SWEEP, "--out", "out", cwd=tmp_path)
    process.line()
    assert process.line() == "opens"
    process.send(signal.SIGHUP)
    process.go_on()
    assert process.line() == "writes"
    process.go_on()
    assert process.end()[0] in (0, 3)
    assert run_of(tmp_path)["status"] == "finished"
