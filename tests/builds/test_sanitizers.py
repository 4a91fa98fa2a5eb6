"""The suites under the compiler's sanitizers, as ``make stress SANITIZE=...`` runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.harness.building.build import build_extension
from tests import ROOT

HERE = Path(__file__).resolve().parent
REPORTED = 66


def sanitized(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "sanitized.py"), *arguments]
    # Half of the usual build's time is optimisation, and a strict one translates everything again.
    environment = {**os.environ, "PULSAR_ML_OPTIMIZE": "0", "PULSAR_ML_STRICT": ""}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.xdist_group("sanitizers")
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_all_suites_are_clean(sanitizer: str, tmp_path: Path) -> None:
    done = sanitized(sanitizer, "run", "all", "--seeds", "22", "--records", str(tmp_path))
    # 3: on a busy processor short programs may not overlap, which is no report.
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    assert "Sanitizer" not in done.stdout + done.stderr


@pytest.mark.xdist_group("sanitizers")
def test_a_plain_race_is_reported(tmp_path: Path) -> None:
    module = build_extension(
        HERE / "plain_race.pyx", into=tmp_path, flags=["-fsanitize=thread", "-g", "-Wno-tsan"]
    )
    done = sanitized(
        "thread", "run", "plain_race", "--suites", "tests.builds.race_suites",
        "--module", str(module), "--seeds", "20", "--records", str(tmp_path / "records"),
    )  # fmt: skip
    assert done.returncode == REPORTED, done.stdout + done.stderr
    assert "data race" in done.stderr
    assert "plain_race" in done.stderr


def test_an_unknown_sanitizer_is_said() -> None:
    done = sanitized("memory", "run", "all")
    assert done.returncode == 1
    assert "thread|address|undefined" in done.stderr
