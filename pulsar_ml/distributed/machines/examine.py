"""Examines a machine of a cluster: a task does it there, and the driver here.

Only the standard library is imported at the top, so that a machine which lacks something says so.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("numpy", "pyarrow", "pyspark")
# The search whose trace must be the same everywhere; any subject with two threads would do.
SUBJECT, SEED, EXECUTIONS = "refcount", 20251121, 200


@dataclass(slots=True)
class Machine:
    """The machine of an executor, or of the driver.

    Attributes:
        host: its name, as it says itself.
        directory: where its process works; tells apart the executors of one host.
        python: version and interpreter.
        libc: the C library and its version.
        machine: instruction set and kernel.
        cores: processors that the process may use.
        memory_mib: memory of the machine.
        packages: versions of what a sweep needs beside pulsar_ml.
        build: the product's build id; "": there is none.
        checked_build: the checked module's, the same.
        trace: hash over every step of a known search under the engine; "": it could not run.
        addr2line: whether places in native code get file and line there.
        problems: what is missing, a sentence each.
    """

    host: str
    directory: str
    python: str
    interpreter: str
    libc: str
    machine: str
    cores: int
    memory_mib: int
    packages: dict[str, str]
    build: str = ""
    checked_build: str = ""
    trace: str = ""
    addr2line: bool = False
    problems: list[str] = field(default_factory=list)

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


def examine() -> Machine:
    """Examines this machine. Missing packages become problems and raise nothing."""
    found = Machine(
        host=socket.gethostname(),
        directory=os.getcwd(),
        python=platform.python_version(),
        interpreter=sys.executable,
        libc=" ".join(platform.libc_ver()),
        machine=f"{platform.machine()}, {platform.system()} {platform.release()}",
        cores=len(os.sched_getaffinity(0)),
        memory_mib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        packages={name: installed(name) for name in PACKAGES},
        addr2line=shutil.which("addr2line") is not None,
    )
    for name in ("numpy", "pyarrow"):
        if not found.packages[name]:
            found.problems.append(f"{name} is not installed")
    try:
        from pulsar_ml.operations._native import BUILD_ID

        found.build = BUILD_ID
    except ImportError as error:
        found.problems.append(f"pulsar_ml cannot be imported: {error}")
        return found
    try:
        found.checked_build, found.trace = known_trace()
    except Exception as error:
        found.problems.append(f"the engine does not run: {type(error).__name__}: {error}")
    return found


def known_trace() -> tuple[str, str]:
    """Build id of the checked module, and the hash of a search that is the same on every machine.

    RuntimeError when the module has no hooks.
    """
    from pulsar_ml.harness.engine import Explorer  # isort: skip  (before the module that calls it)
    from pulsar_ml.harness.subjects.program import Program
    from pulsar_ml.operations._checked import BUILD_ID, SUBJECTS

    subject = SUBJECTS[SUBJECT]
    program = Program.generate(subject, SEED, threads=2, operations=4, noise=False)
    explorer = Explorer(subject, program, seed=SEED, mode="c11", strategy="random")
    known = 0
    for number in range(EXECUTIONS):
        explorer.run(number, 1)
        steps, _ = explorer.hashes()
        known = (known * 0x100000001B3 ^ steps) & (1 << 64) - 1
    if not explorer.statistics()["hooks"]:
        raise RuntimeError("the checked module has no hooks: it was built without instrumentation")
    return BUILD_ID, f"{known:016x}"


def examine_here(_: Iterable[int]) -> Iterator[dict[str, Any]]:
    """The function of a doctor's task."""
    yield examine().to_data()


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
