"""A full disk, a lost permission, a broken module: exit code 4 and one sentence with the place."""

from __future__ import annotations

import errno
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsar_ml.campaign.store.store import read_trials
from pulsar_ml.cli import main
from pulsar_ml.cli.command import explained
from pulsar_ml.cli.find import explore
from pulsar_ml.exit_codes import FAILED
from pulsar_ml.harness.building.disk import full_disk

SWEEP = ("sweep", "--runner", "inline", "--suite", "refcount", "--seeds", "4", "--out")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def sentence(done: Result) -> str:
    assert done.exit_code == 4, done.output
    assert "Traceback" not in done.output
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("Failed: "), done.stderr
    return last


@pytest.mark.parametrize("files", [1, 2, 4, 8])
def test_a_disk_that_becomes_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """After any number of files, as the disk says it: without a name."""
    left = [files]

    def fsync(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    done = run(*SWEEP, str(tmp_path / "out"), "--chunk-size", "1", "--wave-seconds", "0.001")
    said = sentence(done)
    assert str(tmp_path / "out") in said and "No space left on device; make room" in said
    assert "pulsar-ml sweep --resume RUN" in said


WRITING: dict[str, tuple[str, ...]] = {
    "compact": ("compact", "run"),
    "collect": ("collect", "run", "--into", "all"),
    "report": ("report", "run", "--out", "page.html"),
    "simulate": ("simulate", "tailing", "--plot", "plot.svg"),
    "explore": ("explore", "refcount", "--executions", "50", "--seeds", "1", "--out", "found"),
}


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file may become larger, as the kernel says it: a write of more fails.

    Python would leave the cut bytecode of a module that it imports meanwhile.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", WRITING)
def test_no_room_for_what_a_command_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    waves = ("--chunk-size", "1", "--wave-seconds", "0.001")
    assert run(*SWEEP, "run", *waves).exit_code == 0
    trials = read_trials(tmp_path / "run")
    with small_files(200):
        said = sentence(run(*WRITING[name]))
    # The place comes first.
    assert re.match(r"Failed: \S+: .*File too large; make room or choose another place$", said)
    assert trials.equals(read_trials(tmp_path / "run").slice(0, len(trials)))
    if name == "compact":
        done = run(*WRITING[name])
        assert done.exit_code == 0 and "4 waves in 1 file" in done.output, done.output
        assert trials.equals(read_trials(tmp_path / "run"))


def test_no_room_for_a_build(tmp_path: Path) -> None:
    """The C file is cut off; with room the build begins anew."""
    source = tmp_path / "one.pyx"
    source.write_text("def one() -> int:\n    return 1\n")
    words = ("build", str(source), "--into", str(tmp_path / "built"))
    with small_files(5000):
        said = sentence(run(*words))
    assert str(tmp_path / "built") in said
    assert said.endswith("File too large; make room or choose another place")
    done = run(*words)
    assert done.exit_code == 0, done.output


FULL = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (f"cc1: fatal error: error writing to /tmp/x.s: {FULL}", "/tmp/x.s"),
        (
            f"/tmp/x.s: Fatal error: can't write 8 bytes to section .text of /a/b.o: '{FULL}'",
            "/a/b.o",
        ),
        (f"/usr/bin/ld: final link failed: {FULL}", "home"),
        (f"OSError: [Errno 28] {FULL}: '/a/b.c'", "/a/b.c"),
        (f"OSError: [Errno 28] {FULL}", "home"),
        (f'  7 | puts("x: {FULL}");', None),
        ("x.c:7:1: error: expected ';'", None),
    ],
)
def test_the_place_where_a_compiler_found_no_room(line: str, place: str | None) -> None:
    found = full_disk(f"before\n{line}\nbehind", Path("home"))
    assert (None if found is None else found.filename) == place


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "; make room or choose another place"),
        (errno.EACCES, "; check the rights and the owner of this place"),
        (errno.EROFS, "; check the rights and the owner of this place"),
        (errno.ENOTDIR, ""),
    ],
)
def test_the_sentence_about_what_the_system_refuses(number: int, advice: str) -> None:
    message, code = explained(OSError(number, os.strerror(number), "a/b"))
    assert message.startswith(f"Failed: a/b: {os.strerror(number)}{advice}") and code == FAILED
    assert "None" not in explained(OSError("something"))[0]


def test_an_error_that_nobody_expected_shows_its_place_on_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*arguments: Any) -> None:
        raise KeyError("x\ny")

    monkeypatch.setattr(explore, "load_suites", broken)
    said = sentence(run("explore", "refcount"))
    assert said == "Failed: unexpected KeyError: 'x\\ny' (--traceback shows where)"
