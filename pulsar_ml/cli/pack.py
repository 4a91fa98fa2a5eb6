"""Packs what executors need, for clusters without a shared file system: ``python -m spark.pack``."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

import click
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rich.console import Console

from pulsar_ml.cli.sweep import fail
from pulsar_ml.distributed.examine import Machine, examine
from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.sweep.run import CLEAN, FAILED, INTERRUPTED, USAGE

ROOT = Path(__file__).resolve().parents[2]
EXAMINE = "\nimport json; print(json.dumps(examine().to_data()))\n"
BESIDE = ("pandas",)  # what Spark's Arrow functions want beside what the wheel requires


class PackError(PulsarMlError, RuntimeError):
    """The environment could not be made; the message ends with what the failing command said."""


def build_wheel(into: Path) -> Path:
    """The wheel of this checkout."""
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        str(into),
        str(ROOT),
    ]
    called(command, "building the wheel")
    (wheel,) = into.glob("*.whl")
    return wheel


def make_environment(directory: Path, wheel: Path) -> None:
    """A virtual environment with the wheel and what it and a task import, without PySpark: Spark brings that.

    The packages are copies of the installed ones, so that executors run what the driver runs, and no
    registry is asked.
    """
    called(
        [sys.executable, "-m", "venv", "--without-pip", str(directory)],
        "making the virtual environment",
    )
    (site,) = directory.glob("lib/python*/site-packages")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
    ]
    called([*install, str(site), str(wheel)], "installing the wheel")
    (own,) = distributions(name="pulsar_ml", path=[str(site)])
    for package in needed([*(own.requires or ()), *BESIDE]):
        for file in package.files or ():
            if ".." not in file.parts:  # scripts, which nobody starts there
                target = site / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(package.locate_file(file)), target)


def needed(requirements: Iterable[str]) -> list[Distribution]:
    """The installed distributions that these requirements lead to. PackError when one is missing."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        if name in found or (asked.marker is not None and not asked.marker.evaluate({"extra": ""})):
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            raise PackError(f"{asked.name} is not installed here, and executors need it") from error
        waiting += [Requirement(text) for text in found[name].requires or ()]
    return [found[name] for name in sorted(found)]


def pack(environment: Path, target: Path) -> None:
    """One archive that works wherever it is unpacked, on machines with the same Python at the same path."""
    import venv_pack

    try:
        venv_pack.pack(prefix=str(environment), output=str(target), format="tar.gz", force=True)
    except venv_pack.VenvPackException as error:
        raise PackError(f"packing the environment failed: {error}") from error


def examined(archive: Path, scratch: Path) -> Machine:
    """What the doctor finds in the archive, unpacked at another place. PackError when it cannot run there."""
    with tarfile.open(archive) as file:
        file.extractall(scratch, filter="fully_trusted")  # this process made it a moment ago
    code = Path(examine.__code__.co_filename).read_text() + EXAMINE
    # Isolated, so that it is the archive's own package and not the one of this directory.
    told = called([str(scratch / "bin" / "python"), "-I", "-c", code], "trying the archive")
    found = Machine(**json.loads(told))
    if found.problems:
        raise PackError(f"the archive does not work: {'; '.join(found.problems)}")
    return found


def called(command: Sequence[str], what: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-5:]
        raise PackError(f"{what} failed with exit code {done.returncode}: {' | '.join(last)}")
    return done.stdout


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--out",
    default="dist/executors.tar.gz",
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The archive.",
)
@click.option(
    "--wheel",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Wheel of pulsar_ml. Default: built from this checkout.",
)
def main(out: Path, wheel: Path | None) -> None:
    """Pack what executors need into one archive: an environment with the compiled wheel and copies of the
    installed packages that a task imports. Suites and tasks, which are pure Python, travel with each sweep.

    The archive works wherever it is unpacked, on machines with the same Python at the same path and a C
    library that is not older. It is unpacked and tried before the command ends.

    \b
    Example:
      python -m spark.pack
      python -m spark.doctor --master spark://host:7077 --environment dist/executors.tar.gz
      python -m spark.sweep --master spark://host:7077 --environment dist/executors.tar.gz

    \b
    Exit codes: 0 packed, 2 usage error, 4 failed (no compiler, a package is missing, ...), 130 interrupted.
    """
    console = Console(stderr=True)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="pulsar_ml-pack-") as scratch,
            console.status("") as shown,
        ):
            work = Path(scratch)
            if wheel is None:
                shown.update("building the wheel")
                wheel = build_wheel(work / "wheel")
            shown.update(f"an environment with {wheel.name}")
            make_environment(work / "environment", wheel)
            shown.update(f"packing {out}")
            out.parent.mkdir(parents=True, exist_ok=True)
            pack(work / "environment", work / "archive.tar.gz")
            shown.update("trying the archive")
            found = examined(work / "archive.tar.gz", work / "unpacked")
            digest = hashlib.sha256((work / "archive.tar.gz").read_bytes()).hexdigest()
            shutil.move(work / "archive.tar.gz", out)
        click.echo(f"{out}: {out.stat().st_size / 1e6:.0f} MB, SHA-256 {digest}")
        click.echo(f"Python {found.python}, build {found.build}, known trace {found.trace}")
        code = CLEAN
    except UsageError as error:
        code = fail(f"Error: {error}", USAGE)
    except (PulsarMlError, OSError, ImportError) as error:
        code = fail(f"Failed: {error}", FAILED)
    except KeyboardInterrupt:
        code = fail("Interrupted", INTERRUPTED)
    sys.exit(code)
