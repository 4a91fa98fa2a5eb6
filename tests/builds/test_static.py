"""ruff and mypy --strict find nothing in the tree. Their settings are in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import ROOT

FOLDERS = ("pulsar_ml", "stress", "spark", "tests", "benchmarks", "tools", "setup.py")
CHECKS = {
    "ruff check": ["ruff", "check", "--no-cache"],
    "ruff format": ["ruff", "format", "--no-cache", "--check"],
    "mypy": ["mypy", "--cache-dir", "build/mypy"],
}
BREACHES = {
    "ruff check": "import os\n",
    "ruff format": "x = 'one'\n",
    "mypy": "def f(x): return x\n",
}


def run(check: str, *paths: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *CHECKS[check], *paths]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("check", CHECKS)
def test_the_tree_is_clean(check: str) -> None:
    ended = run(check, *FOLDERS)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]


@pytest.mark.parametrize("check", CHECKS)
def test_a_breach_is_noticed(check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("breach") / "breach.py"
    path.write_text(BREACHES[check])
    ended = run(
        check, "--config-file" if check == "mypy" else "--config", "pyproject.toml", str(path)
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
