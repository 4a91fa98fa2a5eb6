"""Copies of the project to build in, and commands run beside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests import ROOT

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def copy_project(target: Path) -> Path:
    """The sources that a build needs, with the files that were compiled from them already.

    Times are kept, so that the build commands compile what is out of date and nothing else.
    """
    target.mkdir(parents=True)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy2(ROOT / name, target / name)
    ignored = shutil.ignore_patterns("__pycache__", "*.tmp")
    shutil.copytree(ROOT / "pulsar_ml", target / "pulsar_ml", ignore=ignored)
    # Apps, tests and pages are there, as in the checkout, to be left out of the wheel.
    for folder in ("stress", "spark", "tests", "docs", "benchmarks"):
        (target / folder).mkdir()
        (target / folder / "__init__.py").write_text("")
    kind = f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    library = target / "build" / f"lib.{kind}"
    for compiled in (target / "pulsar_ml").rglob("*" + SUFFIX):
        place = library / compiled.relative_to(target)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(compiled, place)
    objects = target / "build" / f"temp.{kind}"
    objects.mkdir()
    for flags in (ROOT / "build" / objects.name).glob("*.flags"):
        shutil.copy2(flags, objects / flags.name)
    return target


def run(
    *command: str | Path, cwd: Path, path: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command with ``path`` alone on PYTHONPATH; its output is one text."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PULSAR_ML_")
    }
    environment |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}
    environment.pop("PYTHONPATH", None)
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def succeed(*command: str | Path, cwd: Path, path: Path | None = None, **variables: str) -> str:
    done = run(*command, cwd=cwd, path=path, **variables)
    assert done.returncode == 0, f"{command} in {cwd} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def python(
    code: str, *, cwd: Path, path: Path | None = None, interpreter: str = sys.executable
) -> str:
    """The output of a Python program that sees neither its working directory nor the checkout."""
    return succeed(interpreter, "-P", "-c", code, cwd=cwd, path=path).strip()
