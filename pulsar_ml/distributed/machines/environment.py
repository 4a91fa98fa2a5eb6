"""Packs what executors need, for clusters without a shared file system."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

from pulsar_ml.distributed.machines.examine import Machine, examine
from pulsar_ml.errors import PulsarMlError
from pulsar_ml.extras import require

ROOT = Path(__file__).resolve().parents[3]
EXAMINE = "\nimport json; print(json.dumps(examine().to_data()))\n"


class PackError(PulsarMlError, RuntimeError):
    """The environment could not be made; the message ends with the failing command's output."""


def check_tools() -> None:
    """Raises an error when a package for packing is missing."""
    require("spark", "packaging", "venv_pack", purpose="pulsar-ml pack")


def in_checkout() -> bool:
    """True when pulsar_ml runs from its sources, of which a wheel can be built."""
    return (ROOT / "setup.py").is_file() and (ROOT / "pyproject.toml").is_file()


def build_wheel(into: Path) -> Path:
    """Builds the wheel of this checkout."""
    require("build", "build", "Cython", "setuptools", purpose="building the wheel")
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


def make_environment(directory: Path, wheel: Path | None) -> None:
    """Makes a virtual environment for executors, without PySpark, which Spark brings.

    It gets the wheel (None: a copy of the installed pulsar_ml) and copies of the installed packages
    that a task imports, so that executors run the driver's code and no registry is needed.
    """
    called(
        [sys.executable, "-m", "venv", "--without-pip", str(directory)],
        "making the virtual environment",
    )
    (site,) = directory.glob("lib/python*/site-packages")
    if wheel is None:
        copy_files(distribution("pulsar_ml"), site)
    else:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
        called([*pip, "--target", str(site), str(wheel)], "installing the wheel")
    (own,) = distributions(name="pulsar_ml", path=[str(site)])
    for package in needed(own.requires or ()):
        copy_files(package, site)


def copy_files(package: Distribution, site: Path) -> None:
    """Copies the installed files of a distribution, without its scripts."""
    for file in package.files or ():
        if ".." not in file.parts:
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(str(package.locate_file(file)), target)


def needed(requirements: Iterable[str]) -> list[Distribution]:
    """The installed distributions of these requirements, and of theirs in turn.

    Raises PackError for a missing one.
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name, marker = canonicalize_name(requirement.name), requirement.marker
        if name in found or (marker is not None and not marker.evaluate({"extra": ""})):
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            raise PackError(
                f"{requirement.name} is not installed here, and executors need it"
            ) from error
        waiting += [Requirement(text) for text in found[name].requires or ()]
    return [found[name] for name in sorted(found)]


def pack(environment: Path, target: Path) -> None:
    """Packs an environment into an archive that works on machines with the same Python."""
    import venv_pack

    try:
        venv_pack.pack(prefix=str(environment), output=str(target), format="tar.gz", force=True)
    except venv_pack.VenvPackException as error:
        raise PackError(f"packing the environment failed: {error}") from error


def examined(archive: Path, scratch: Path) -> Machine:
    """Unpacks the archive and examines its Python there. PackError when it cannot run sweeps."""
    with tarfile.open(archive) as file:
        file.extractall(scratch, filter="fully_trusted")  # this process made it
    code = Path(examine.__code__.co_filename).read_text(encoding="utf-8") + EXAMINE
    # Isolated, so that it is the archive's own package and not the one of this directory.
    printed = called([str(scratch / "bin" / "python"), "-I", "-c", code], "trying the archive")
    found = Machine(**json.loads(printed))
    if found.problems:
        raise PackError(f"the archive does not work: {'; '.join(found.problems)}")
    return found


def called(command: Sequence[str], what: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-5:]
        raise PackError(f"{what} failed with exit code {done.returncode}: {' | '.join(last)}")
    return done.stdout
