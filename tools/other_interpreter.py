"""The core built for another interpreter than the one that runs, and packages beside it.

Both are kept in a folder of the interpreter below ``build/interpreters``. The core is compiled from
the C sources that the checkout's own build translated.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRESS = ROOT / "tools" / "progress.py"
CORE = "pulsar_ml._core"
PIP = ("-m", "pip", "install", "--quiet", "--prefer-binary")
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".pxi", ".h", ".c"}
BUILD_TOOLS = ("cython>=3.3,<3.4", "setuptools>=77")
NOT_ITS = {
    "PYTHONDONTWRITEBYTECODE",  # the build tools are large
    "PULSAR_ML_STRICT",  # the core would be translated once more
    "CC", "CXX",  # it compiles as it was compiled: a sanitizer is that of one compiler
}  # fmt: skip


class OtherInterpreterError(Exception):
    """A package could not be installed for an interpreter, or the core not be compiled."""


@dataclass(frozen=True)
class OtherInterpreter:
    """An interpreter: its executable, words before it, and variables of its processes."""

    name: str
    executable: Path
    prefix: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return ROOT / "build" / "interpreters" / self.name

    @property
    def command(self) -> list[str]:
        """The command of its virtual environment's Python."""
        return [*self.prefix, str(self.folder / "venv" / "bin" / "python")]

    def environment(self, *paths: Path) -> dict[str, str]:
        """The environment of its processes, which import from these folders first."""
        # The working directory comes last: it may be the checkout, whose core is of another one.
        found = os.pathsep.join(map(str, (*paths, ROOT, Path.cwd())))
        variables = {**os.environ, **self.variables, "PYTHONPATH": found, "PYTHONSAFEPATH": "1"}
        return {name: value for name, value in variables.items() if name not in NOT_ITS}

    def run(self, label: str, command: list[str], **variables: str) -> None:
        """Runs a step with progress. Raises OtherInterpreterError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / f"{label}.log"
        # What shows the progress is this interpreter, which the variables of the other may end.
        own = [f"{name}={value}" for name, value in (self.variables | variables).items()]
        step = f"{self.name}, {label}"
        shown = [sys.executable, str(PROGRESS), step, str(log), "env", *own, *command]
        environment = {
            name: value for name, value in self.environment().items() if name not in self.variables
        }
        # What the command itself prints goes to the standard output alone.
        if subprocess.run(shown, cwd=ROOT, env=environment, stdout=2, check=False).returncode:
            raise OtherInterpreterError(
                f"{label} for {self.name} failed; the whole output is in {log}"
            )

    def install(self, *requirements: str) -> None:
        """Installs packages, and the build tools, unless they are there already."""
        wanted = [*BUILD_TOOLS, *requirements]
        stamp = self.folder / "installed.txt"
        if stamp.exists() and set(wanted) <= set(stamp.read_text().splitlines()):
            return
        # Its pip is that of the interpreter itself.
        make = ["-m", "venv", "--without-pip", "--system-site-packages", str(self.folder / "venv")]
        self.run("environment", [*self.prefix, str(self.executable), *make])
        self.run("packages", [*self.command, *PIP, *wanted])
        stamp.write_text("\n".join(wanted))

    def build_core(self, sanitizer: str = "") -> Path:
        """Builds the core where a source changed; returns the folder to import it from."""
        base = self.folder / "core"
        stamp = self.folder / "sources.txt"
        sources = "\n".join(sources_now())
        if not stamp.exists() or stamp.read_text() != sources:
            command = [*self.command, "setup.py", "-q", "build", "--build-base", str(base)]
            self.run("extension", command, PULSAR_ML_ONLY=CORE, PULSAR_ML_SANITIZE=sanitizer)
            stamp.write_text(sources)
        return next(base.glob("lib*"))


def sources_now() -> list[str]:
    """The names, sizes and times of the files of the package, and of those that build it."""
    files = [path for path in sorted((ROOT / "pulsar_ml").rglob("*")) if path.suffix in SUFFIXES]
    states = [(path, path.stat()) for path in (ROOT / "setup.py", *files)]
    return [f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in states]
