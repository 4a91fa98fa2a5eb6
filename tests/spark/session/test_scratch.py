"""Scratch directories: gone at the end, and after a kill at the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.distributed.scratch import OWNER, PREFIX, scratch_directory
from tests import ROOT

HOLDER = """
import signal
from pulsar_ml.distributed.scratch import scratch_directory
with scratch_directory("spark") as directory:
    (directory / "home").mkdir()
    print(directory, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def holder() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=ROOT, env=os.environ, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_gone_at_the_end(tmp_path: Path) -> None:
    with scratch_directory("pack") as directory:
        assert directory.parent == tmp_path and directory.name.startswith(f"{PREFIX}pack-")
    assert list(tmp_path.iterdir()) == []


def test_one_of_a_killed_process_goes_at_the_next_start_and_others_stay(tmp_path: Path) -> None:
    processes, directories = zip(*(holder() for _ in range(2)), strict=True)
    killed, living = directories
    try:
        processes[0].kill()
        processes[0].wait()
        mine = tmp_path / f"{PREFIX}spark-of-mine"
        mine.mkdir()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / OWNER).touch()
        (tmp_path / f"{PREFIX}pack-link").symlink_to(elsewhere)
        assert killed.exists()
        with scratch_directory("scale"):
            assert not killed.exists()
            assert living.exists() and mine.exists() and (elsewhere / OWNER).exists()
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.communicate()
