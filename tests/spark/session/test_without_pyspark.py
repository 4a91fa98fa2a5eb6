"""Every ``--help`` and the pool runner work where PySpark is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.harness.toys.build_toys import toys_path

# Finders of modules are asked in order; this one refuses PySpark.
WITHOUT = """\
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusing())
"""
HELP = """\
from click.testing import CliRunner
from pulsar_ml.cli import COMMANDS, main
for name in COMMANDS:
    done = CliRunner().invoke(main, [name, "--help"])
    assert done.exit_code == 0, (name, done.output, done.exception)
    assert "Exit codes:" in done.output, name
loaded = [name for name in sys.modules if name.partition(".")[0] in ("pyspark", "py4j")]
assert not loaded, loaded
print(len(COMMANDS))
"""
RUN = "from pulsar_ml.cli import main\nmain(sys.argv[1:])\n"


def python(code: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + code, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_pyspark_is_refused() -> None:
    """The control: in these processes PySpark cannot be imported."""
    done = python("import pyspark\n")
    assert done.returncode == 1 and "No module named 'pyspark'" in done.stderr


def test_every_help_works() -> None:
    done = python(HELP)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


def test_the_pool_runs_and_is_resumed(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    options = ["--suite", "counter", "--seeds", "4", "--threads", "1", "--module", str(toys_path())]
    options += ["--suites", "tests.spark.sweep_suites", "--runner", "pool", "--workers", "1"]
    done = python(RUN, "sweep", *options, "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    again = python(RUN, "sweep", "--resume", out)
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["sweep", "--suite", "refcount", "--seeds", "1"],
        ["doctor"],
        ["scale"],
        ["cluster", "start"],
        ["simulate", "tailing", "--grid", "default"],
    ],
    ids=lambda words: words[0],
)
def test_what_needs_spark_says_how_to_install_it(arguments: list[str], tmp_path: Path) -> None:
    done = python(RUN, *arguments, cwd=tmp_path)
    assert done.returncode == 4, done.stdout + done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("Failed: ")]
    assert "needs the package pyspark: pip install 'pulsar_ml[spark]'" in sentence
    assert list(tmp_path.iterdir()) == []
