"""docs/testing-your-own.md, as a reader follows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.harness.build import build_extension

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"
PAGE = (ROOT / "docs" / "testing-your-own.md").read_text()

WRONG = """\
    if seen >= permits.limit:
        return False
    i64_store_relaxed(&permits.taken, seen + 1)
    return True
"""
MENDED = """\
    while seen < permits.limit:
        if i64_cas_weak_acquire(&permits.taken, &seen, seen + 1):
            return True
    return False
"""


def stress(module: Path, records: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "stress",
        "--suites",
        "permits_suites",
        "run",
        "permits",
        "--module",
        str(module),
        "--programs",
        "20",
        "--records",
        str(records),
    ]
    assert " ".join(command[1:7]) + " --module PATH --programs 20" in PAGE
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(EXAMPLES), str(ROOT)))}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def built(source: Path, into: Path) -> Path:
    return build_extension(source, into=into)


@pytest.mark.xdist_group("tutorial")
def test_the_mistake_is_reported_with_a_command_that_replays_it(tmp_path: Path) -> None:
    done = stress(built(EXAMPLES / "permits.pyx", tmp_path / "build"), tmp_path / "records")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "permits are held, the limit is" in done.stdout or "permits are taken," in done.stdout
    assert "python -m stress --suites permits_suites replay" in done.stdout


@pytest.mark.xdist_group("tutorial")
def test_the_mended_structure_is_clean(tmp_path: Path) -> None:
    source = (EXAMPLES / "permits.pyx").read_text()
    assert source.count(WRONG) == 1
    assert MENDED in PAGE
    mended = tmp_path / "permits.pyx"
    mended.write_text(source.replace(WRONG, MENDED))
    done = stress(built(mended, tmp_path / "build"), tmp_path / "records")
    assert done.returncode == 0, done.stdout + done.stderr
