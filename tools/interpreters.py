"""Builds interpreters of CPython that distributions do not install, free-threaded ones among them.

    python tools/interpreters.py 3.14t 3.13t     build them in the cache folder, print their paths
    python tools/interpreters.py --list          names, versions, and those that are built

A name that ends in ``t`` is built without the GIL, and one with ``-thread`` with the thread
sanitizer of the C compiler as well: see ``tools/thread_sanitizer.py``. Sources are Debian's copies
of the published archives, compared with the digests below. The cache folder is
``$XDG_CACHE_HOME/pulsar_ml/interpreters``; a folder that was begun and not ended has no ``bin``,
and is built again. Needs the standard library, a C compiler, ``make`` and the headers of OpenSSL,
libffi, zlib and liblzma. Exit codes: 0 done; 2 a name that is not known; 4 a download or a build
failed; 130 interrupted.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path

PROGRESS = Path(__file__).with_name("progress.py")
FAILED = 4


class InterpreterError(Exception):
    """A download or a build failed."""


@dataclass(frozen=True)
class Source:
    """An archive of CPython's sources: its version and its SHA-256."""

    version: str
    digest: str

    def address(self, mirror: str) -> str:
        package = "python" + ".".join(self.version.split(".")[:2])
        return f"{mirror}/pool/main/p/{package}/{package}_{self.version}.orig.tar.xz"


PYTHON_3_13 = Source("3.13.15", "1e66a7945a48390ee4c2a4268a0e4185884059a13c4aab6d148aa208deea4a76")
PYTHON_3_14 = Source("3.14.7", "3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81")

INTERPRETERS: dict[str, tuple[Source, tuple[str, ...]]] = {  # with the options of configure
    "3.13t": (PYTHON_3_13, ("--disable-gil",)),
    "3.14": (PYTHON_3_14, ()),
    "3.14t": (PYTHON_3_14, ("--disable-gil",)),
    # Little optimisation: a call that was inlined has no frame, which suppressions name.
    "3.14t-thread": (
        PYTHON_3_14,
        ("--disable-gil", "--with-thread-sanitizer", "OPT=-g1 -O1 -Wall -Wno-tsan"),
    ),
}
# CPython's list of reports that its developers know; the interpreter's folder gets a copy.
SUPPRESSIONS = "Tools/tsan/suppressions_free_threading.txt"


def cache() -> Path:
    """The folder of all interpreters."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "pulsar_ml" / "interpreters"


def home_of(name: str) -> Path:
    """The folder of an interpreter, built or not."""
    return cache() / f"{name}-{INTERPRETERS[name][0].version}"


def executable(name: str) -> Path:
    """The path of an interpreter's executable, built or not."""
    return home_of(name) / "bin" / "python3"


def is_sanitized(name: str) -> bool:
    """True for an interpreter that is built with the thread sanitizer."""
    return name.endswith("-thread")


def suppressions(name: str) -> Path:
    """The copy of CPython's list that a sanitized interpreter has in its folder."""
    return home_of(name) / Path(SUPPRESSIONS).name


def built() -> dict[str, Path]:
    """The executables that are there, by name, without those of a sanitizer."""
    names = [name for name in INTERPRETERS if not is_sanitized(name)]
    return {name: executable(name) for name in names if executable(name).exists()}


def mirror_of_apt() -> str:
    """The Debian mirror that apt is set up with. Raises InterpreterError when there is none."""
    question = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    try:
        sites = subprocess.run(question, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        sites = []
    for site in sites:
        if site.endswith("/debian"):
            return site
    raise InterpreterError("apt knows no mirror of Debian; name one with --mirror ADDRESS")


def download(source: Source, target: Path, mirror: str) -> None:
    """Writes an archive to a file. Raises InterpreterError, also for another digest."""
    address = source.address(mirror)
    try:
        with urllib.request.urlopen(address, timeout=60) as answer, target.open("wb") as out:
            shutil.copyfileobj(answer, out)
    except (ValueError, OSError) as error:
        raise InterpreterError(f"cannot fetch {address}: {error}") from error
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    if digest != source.digest:
        raise InterpreterError(
            f"{address} has the SHA-256 {digest}, and not {source.digest}: another file is "
            "served under this name; nothing was built"
        )


def without_randomisation() -> list[str]:
    """The command before another one whose addresses the sanitizer's shadow memory must suit."""
    return ["setarch", "-R"] if shutil.which("setarch") else []


def run(
    label: str, log: Path, command: list[str], folder: Path, *, sanitized: bool = False
) -> None:
    """Runs a step of a build with progress. Raises InterpreterError."""
    environment = dict(os.environ)
    if sanitized:
        # The build runs the interpreter; what it does then is not looked at.
        environment["TSAN_OPTIONS"] = "report_bugs=0"
        command = [*without_randomisation(), *command]
    shown = [sys.executable, str(PROGRESS), label, str(log), *command]
    if subprocess.run(shown, cwd=folder, env=environment, check=False).returncode != 0:
        raise InterpreterError(f"{label} failed; the whole output is in {log}")


def build(name: str, mirror: str | None = None) -> Path:
    """Builds an interpreter, unless it is there; returns its executable."""
    source, flags = INTERPRETERS[name]
    home = home_of(name)
    if executable(name).exists():
        return executable(name)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    logs = cache()
    with tempfile.TemporaryDirectory(prefix="python-", dir=cache()) as scratch:
        archive = Path(scratch, "source.tar.xz")
        print(f"{name}: fetching the sources of {source.version}", flush=True)
        download(source, archive, mirror or mirror_of_apt())
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        [folder] = (path for path in Path(scratch).iterdir() if path.is_dir())
        # The tests of CPython are left out; packages are for those that use the interpreter.
        configure = ["./configure", "-q", f"--prefix={home}", "--disable-test-modules", *flags]
        processors = len(os.sched_getaffinity(0))
        steps = [
            ("configuration", "configure", configure),
            ("compilation", "make", ["make", "-s", f"-j{processors}"]),
            ("installation", "install", ["make", "-s", "install"]),
        ]
        if is_sanitized(name):
            shutil.copy2(folder / SUPPRESSIONS, suppressions(name))
        for label, log, command in steps:
            path = logs / f"{name}-{log}.log"
            run(f"{name}, {label}", path, command, folder, sanitized=is_sanitized(name))
    return executable(name)


def main() -> int:
    """Builds what the arguments name."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0],
        epilog=f"Names: {', '.join(INTERPRETERS)}.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="an interpreter to build")
    parser.add_argument("--mirror", help="a mirror of Debian (default: the one that apt uses)")
    parser.add_argument("--list", action="store_true", help="print names, versions and paths")
    options = parser.parse_args()
    if options.list:
        for name, (source, _) in INTERPRETERS.items():
            path = executable(name)
            print(f"{name:13} {source.version:10} {path if path.exists() else 'not built'}")
        return 0
    unknown = [name for name in options.names if name not in INTERPRETERS]
    if unknown or not options.names:
        wrong = f"there is no interpreter {unknown[0]!r}" if unknown else "name an interpreter"
        parser.error(f"{wrong}; there are {', '.join(INTERPRETERS)}")
    for name in options.names:
        try:
            print(build(name, options.mirror))
        except InterpreterError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return FAILED
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
