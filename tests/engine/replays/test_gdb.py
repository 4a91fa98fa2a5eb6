"""gdb stops a replay at a step, in the fiber of its thread, with lines of C++ and Cython."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.replays import debugger
from stress.mutants.build import build
from tests import ROOT
from tests.commands import call
from tests.engine.replays.small import SOURCE, record_of

# Clang keeps a path that is relative to the folder of the build, GCC makes it absolute.
FRAME = re.compile(r"^#\d+ .* at (?P<file>\S.*):(?P<line>\d+)$", re.MULTILINE)


def stopped(record: Path, *options: str, commands: str = "") -> str:
    """Return the output of gdb, which reads its commands from a pipe and ends where they do."""
    words = (sys.executable, "-m", "pulsar_ml", "replay", str(record), "--trust", "--gdb", *options)
    done = subprocess.run(
        words, cwd=ROOT, input=commands, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    return done.stdout


def place(text: str) -> tuple[Path, str]:
    """The file and the text of the line of the frame that gdb has selected."""
    found = FRAME.search(text)
    assert found is not None, text
    file = ROOT / found["file"]
    return file, file.read_text().splitlines()[int(found["line"]) - 1].strip()


def test_gdb_stops_at_the_access_of_a_race_in_its_thread(tmp_path: Path) -> None:
    text = stopped(record_of("test_hits", tmp_path), commands="backtrace\n")
    assert place(text) == (SOURCE, "std::thread other([] { hits++; });")
    assert "operator()" in text.partition("Breakpoint 1")[2]


def test_gdb_stops_at_a_step_that_is_named(tmp_path: Path) -> None:
    record = record_of("test_price", tmp_path)
    steps = call("replay", str(record), "--trust").out
    found = re.search(r"^ *(\d+) .*price <- 42", steps, re.MULTILINE)
    assert found is not None
    file, line = place(stopped(record, "--to", found[1]))
    assert (file, line) == (SOURCE, "price.store(42, std::memory_order_relaxed);")


@pytest.mark.xdist_group("mutants")
def test_gdb_knows_the_lines_of_cython_in_a_mutant(tmp_path: Path) -> None:
    module = str(build(checked=True))
    found = call(
        *("explore", "stamped_lock", "--module", module, "--mutant", "M01"),
        *("--records", str(tmp_path)),
    )
    assert found.code == 1
    (record,) = tmp_path.glob("*.json")
    file, line = place(stopped(record))
    assert file.name == "stamped_lock.pxd" and "u32_load_relaxed(lock)" in line


def test_what_gdb_cannot_stop_in_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="there is no gdb on the PATH; install it"):
        debugger.debugger()
