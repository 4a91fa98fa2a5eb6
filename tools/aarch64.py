"""Builds the extensions for aarch64 with a cross compiler, and runs tests of them by emulation.

    python -m tools.aarch64                       the bounded share of tests below
    python -m tools.aarch64 tests/engine/locks    these tests
    python -m tools.aarch64 --rows                the digest of tools/sweep_digest.py, there

Needs Debian with gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user, and an interpreter
with Debian's version (its bytecode and headers are the sysroot's) whose environment has the build
tools. The sysroot comes from Debian's arm64 packages, the Python packages from wheels; both stay in
``$XDG_CACHE_HOME/pulsar_ml/aarch64``. The build is a clone of the last commit below
``build/aarch64``. Emulation runs each instruction in order, so it shows none of the processor's
weak memory: docs/platforms.md. Exit codes: those of the tests; 2 a tool is missing; 4 a step
failed; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.interpreters import InterpreterError, cache, mirror_of_apt
from tools.interpreters import run as step

ROOT = Path(__file__).resolve().parents[1]
CLONE = ROOT / "build" / "aarch64"
HOME = cache().parent / "aarch64"
SYSROOT, PACKAGES, APT = HOME / "sysroot", HOME / "packages", HOME / "apt"
TRIPLE = "aarch64-linux-gnu"
VERSION = "{}.{}".format(*sys.version_info)
NEEDED = {f"{TRIPLE}-gcc": f"gcc-{TRIPLE}", "qemu-aarch64": "qemu-user", "dpkg-deb": "dpkg"}
# What the tests below import.
WHEELS = (
    "numpy>=2,<3", "psutil>=6,<8", "click>=8.2,<9", "rich>=13.9,<16", "pyarrow>=18,<27", "jinja2",
    "pyelftools>=0.31,<0.34", "javaproperties", "edn_format", "pytest>=9,<9.2", "pytest-xdist",
    "hypothesis>=6.150,<7", "cython>=3.3,<3.4", "setuptools>=77",
)  # fmt: skip
WHEEL_TAGS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
SHARE = (
    "tests/structures/test_refcount.py", "tests/structures/test_mpsc_queue.py",
    "tests/structures/test_stamped_lock.py", "tests/structures/test_range_cache.py",
    "tests/core/test_entry.py", "tests/core/test_range_cache.py", "tests/core/test_manager.py",
    "tests/core/test_reads.py", "tests/engine/test_litmus.py", "tests/engine/test_races.py",
    "tests/engine/test_detectors.py", "tests/engine/test_waiting.py",
    "tests/engine/test_partition.py",
)  # fmt: skip
WRAPPER = """#!/bin/sh
# The emulated interpreter; its processes find it by this name.
exec qemu-aarch64 -0 "$0" -L {sysroot} -E PYTHONHOME={sysroot}/usr \\
    -E PYTHONPATH={clone}:{packages} -E PYTHONDONTWRITEBYTECODE=1 \\
    {sysroot}/usr/bin/python{version} "$@"
"""


def apt_options() -> list[str]:
    """Options with which apt-get knows arm64 alone, and keeps its state in the cache folder."""
    settings = {
        "APT::Architecture": "arm64", "APT::Architectures": "arm64", "Debug::NoLocking": "1",
        "APT::Install-Recommends": "0", "APT::Sandbox::User": "", "Dir::State::lists": APT / "lists",
        "Dir::State::status": APT / "status", "Dir::Cache": APT / "cache",
        "Dir::Etc::sourcelist": APT / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
    }  # fmt: skip
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def codename() -> str:
    """The release of Debian that runs here, such as ``bookworm``."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")


def sysroot() -> None:
    """Unpacks the interpreter and the headers of the release into the sysroot, once."""
    if SYSROOT.exists():
        return
    for folder in ("lists/partial", "cache/archives/partial"):
        (APT / folder).mkdir(parents=True, exist_ok=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (APT / "status").write_text("")
    (APT / "sources.list").write_text(
        f"deb [signed-by={keys}] {mirror_of_apt()} {codename()} main\n"
    )
    step("list of packages", HOME / "update.log", ["apt-get", *apt_options(), "update"], HOME)
    wanted = [f"python{VERSION}", f"libpython{VERSION}-dev", "libc6-dev", "libgcc-s1", "libstdc++6"]
    command = ["apt-get", *apt_options(), "-y", "--download-only", "install", *wanted]
    step("arm64 packages", HOME / "download.log", command, HOME)
    target = SYSROOT.with_suffix(".new")
    for archive in (APT / "cache" / "archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, target], check=True)
    target.rename(SYSROOT)


def packages() -> None:
    """Installs the wheels of the Python packages into a folder, once."""
    if PACKAGES.exists():
        return
    tags = [word for tag in WHEEL_TAGS for word in ("--platform", tag)]
    target = PACKAGES.with_suffix(".new")
    command = [
        sys.executable, "-m", "pip", "install", "--progress-bar", "off", "--no-compile", "--target",
        str(target), *tags, "--python-version", VERSION, "--only-binary=:all:", *WHEELS,
    ]  # fmt: skip
    step("packages", HOME / "packages.log", command, HOME)
    target.rename(PACKAGES)


def settings() -> dict[str, str]:
    """The variables with which setup.py compiles for the sysroot's interpreter."""
    data = f"_sysconfigdata__{TRIPLE}"
    folder = HOME / "configuration"
    folder.mkdir(exist_ok=True)
    for path in (SYSROOT / "usr" / "lib" / f"python{VERSION}").glob(f"*{TRIPLE}.py"):
        shutil.copy(path, folder)
    headers = SYSROOT / "usr" / "include"
    return {
        "CC": f"{TRIPLE}-gcc", "LDSHARED": f"{TRIPLE}-gcc -shared", "PYTHONPATH": str(folder),
        "CFLAGS": f"-Werror -I{headers}/python{VERSION} -idirafter {headers}",
        "_PYTHON_HOST_PLATFORM": "linux-aarch64", "_PYTHON_SYSCONFIGDATA_NAME": data,
    }  # fmt: skip


def build() -> Path:
    """Compiles a clone of the last commit; returns the emulated interpreter."""
    if not CLONE.exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(CLONE)], check=True)
    fetch = ["git", "-C", str(CLONE), "pull", "-q", "--ff-only", str(ROOT), "HEAD"]
    subprocess.run(fetch, check=True)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    variables = [f"{name}={value}" for name, value in settings().items()]
    step("extensions", HOME / "build.log", ["env", *variables, *command], CLONE)
    wrapper = CLONE / "build" / "python3"
    wrapper.write_text(
        WRAPPER.format(sysroot=SYSROOT, clone=CLONE, packages=PACKAGES, version=VERSION)
    )
    wrapper.chmod(0o755)
    return wrapper


def emulated(wrapper: Path, arguments: Sequence[str]) -> int:
    """Runs the emulated interpreter in the clone; what tests compile is for aarch64, too."""
    compilers = {name: settings()[name] for name in ("CC", "LDSHARED", "CFLAGS")}
    command = [str(wrapper), *arguments]
    return subprocess.run(command, cwd=CLONE, env=os.environ | compilers, check=False).returncode


def missing() -> str | None:
    """A sentence about the first tool that is not here, and the package that has it."""
    for tool, package in NEEDED.items():
        if not shutil.which(tool):
            return f"there is no {tool}: install it (Debian: apt install {package})"
    question = [f"{TRIPLE}-gcc", "-print-file-name=crti.o"]
    if subprocess.run(question, capture_output=True, text=True, check=True).stdout == "crti.o\n":
        return (
            f"{TRIPLE}-gcc has no C library to compile with: install it "
            "(Debian: apt install libc6-dev-arm64-cross)"
        )
    return None


def main() -> int:
    """Builds, and runs what the arguments name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tests", nargs="*", help="files of tests (default: a bounded share)")
    parser.add_argument("--rows", action="store_true", help="print the digest of a sweep instead")
    options = parser.parse_args()
    if sentence := missing():
        parser.error(sentence)
    HOME.mkdir(parents=True, exist_ok=True)
    try:
        sysroot()
        packages()
        wrapper = build()
    except InterpreterError as error:
        print(error, file=sys.stderr)
        return 4
    if options.rows:
        return emulated(wrapper, ["-m", "tools.sweep_digest"])
    tests = options.tests or SHARE
    return emulated(wrapper, ["-m", "pytest", "-q", "-p", "no:cacheprovider", *tests])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
