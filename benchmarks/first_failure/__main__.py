"""``python -m benchmarks.first_failure``: the way from an empty folder to the first failure.

Four small programs with one mistake each are written for pulsar-ml, Loom and Shuttle. Each repeat
installs each tool anew, runs each program, runs it again, and runs it after a change of the
structure. All processes share two processors. Nothing is downloaded while a clock runs: the wheels
and crates are fetched before.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.__main__ import machine
from benchmarks.peers import HERE as PEERS
from benchmarks.peers import WITHOUT_CARGO, available

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = {
    "ring": "a slot is published by a relaxed store",
    "lazy": "the first check of lazy initialisation is relaxed",
    "mailbox": "the wake-up may come before the wait",
    "stack": "a node is freed while another thread reads it",
}
CRATES = {"loom": "0.7.2", "shuttle": "0.8.1"}
PROCESSORS = 2
WHEELS = ROOT / "build" / "first_failure" / "wheels"

# A line of output, and what it says. The first that occurs counts.
FINDINGS = {
    "data race:": "data race",
    "deadlock": "deadlock",
    "use after free": "use after free",
    "Causality violation": "data race",
    "index out of bounds": "panic on freed memory",
    "test result: ok": "nothing",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of one program under one tool in one repeat.

    Attributes:
        install: the installation, which the programs of a repeat share.
        first: the first run after the installation, until the failure is printed.
        total: both together.
        processor: processor time of both together; the load of the machine does not change it.
        second: the same command again.
        changed: the command after a change of the structure.
    """

    program: str
    tool: str
    install: float
    first: float
    total: float
    processor: float
    second: float
    changed: float
    finding: str


def lines(path: Path) -> int:
    """Count lines of code: neither empty nor only a comment."""
    text = (line.strip() for line in path.read_text().splitlines())
    return sum(bool(line) and not line.startswith("//") for line in text)


def written(program: str, tool: str) -> tuple[int, int]:
    """Return the lines of the test, and those that the structure needs only for the tool."""
    folder = HERE / program
    if tool == "pulsar-ml":
        return lines(folder / f"{program}_test.cpp"), 0
    return lines(folder / f"{tool}_test.rs"), lines(folder / f"{tool}_sync.rs")


def finding(output: str) -> str:
    """Classify what a tool printed."""
    for text, name in FINDINGS.items():
        if text in output:
            return name
    raise RuntimeError(f"the output has no result that is known:\n{output[-4000:]}")


def timed(
    command: Sequence[str | Path], folder: Path, environment: dict[str, str]
) -> tuple[float, str, int]:
    """Run a command; return its seconds, its output and its exit code."""
    began = time.perf_counter()
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return time.perf_counter() - began, done.stdout, done.returncode


def processor_seconds() -> float:
    """Return the processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def succeed(command: Sequence[str | Path], folder: Path, environment: dict[str, str]) -> float:
    """Run a command that must end with 0; return its seconds."""
    seconds, output, code = timed(command, folder, environment)
    if code:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {code}:\n{output[-4000:]}")
    return seconds


def build_wheel(home: Path) -> Path:
    """Build the wheel of this checkout, and fetch the wheels of its dependencies."""
    environment = dict(os.environ)
    build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", home / "dist")
    succeed(build, ROOT, environment)
    (wheel,) = (home / "dist").iterdir()
    WHEELS.mkdir(parents=True, exist_ok=True)
    pip = (sys.executable, "-m", "pip", "-q", "download", "--only-binary", ":all:")
    fetch = (*pip, "-d", WHEELS, wheel)
    try:
        succeed((*fetch, "--no-index", "--find-links", WHEELS), home, environment)
    except RuntimeError:  # one is missing here
        succeed(fetch, home, environment)
    for older in WHEELS.glob("pulsar_ml-*"):
        older.unlink()
    return wheel


class PulsarMl:
    """The wheel in a fresh virtual environment, and ``pulsar-ml check``."""

    name = "pulsar-ml"

    def __init__(self, home: Path, wheel: Path) -> None:
        self.home = home
        self.wheel = wheel
        self.environment = {
            "PATH": f"{home / 'environment' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "CCACHE_DISABLE": "1",  # every compilation is a real one
        }

    def install(self) -> float:
        environment = self.home / "environment"
        seconds = succeed((sys.executable, "-m", "venv", environment), self.home, self.environment)
        pip = (environment / "bin" / "pip", "-q", "--disable-pip-version-check", "install")
        return seconds + succeed(
            (*pip, "--no-index", "--find-links", WHEELS, self.wheel), self.home, self.environment
        )

    def write(self, program: str) -> tuple[Path, Path]:
        """Write a program into an empty folder; return the folder and the structure's file."""
        folder = self.home / program
        folder.mkdir()
        for name in (f"{program}.hpp", f"{program}_test.cpp"):
            shutil.copy(HERE / program / name, folder)
        return folder, folder / f"{program}.hpp"

    def command(self, program: str) -> tuple[str, ...]:
        return ("pulsar-ml", "check", f"{program}_test.cpp")


MANIFEST = """\
[package]
name = "peer"
version = "0.0.0"
edition = "2021"

[target.'cfg({tool})'.dependencies]
{tool} = "={version}"

[lints.rust]
unexpected_cfgs = {{ level = "warn", check-cfg = ['cfg({tool})'] }}
"""


class Crate:
    """A tool of crates.io as its documentation says: a dependency under ``cfg``, ``cargo test``."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        self.home = home
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RUST", "CARGO")) or name in {"RUSTUP_HOME", "CARGO_HOME"}
        }
        self.environment |= {"CARGO_TARGET_DIR": str(home / "target"), "CARGO_NET_OFFLINE": "true"}
        self.environment["RUSTFLAGS"] = f"--cfg {name}"

    def project(self, folder: Path) -> None:
        (folder / "src").mkdir(parents=True)
        (folder / "tests").mkdir()
        manifest = MANIFEST.format(tool=self.name, version=CRATES[self.name])
        (folder / "Cargo.toml").write_text(manifest)
        shutil.copy(PEERS / "Cargo.lock", folder)

    def install(self) -> float:
        """Compile the crate and its dependencies for a project without code."""
        folder = self.home / "nothing"
        self.project(folder)
        (folder / "src" / "lib.rs").touch()
        (folder / "tests" / "first.rs").touch()
        return succeed((*self.command(""), "--no-run"), folder, self.environment)

    def write(self, program: str) -> tuple[Path, Path]:
        folder = self.home / program
        self.project(folder)
        source = HERE / program
        shutil.copy(source / f"{self.name}.rs", folder / "src" / "lib.rs")
        shutil.copy(source / f"{self.name}_sync.rs", folder / "src" / "sync.rs")
        shutil.copy(source / f"{self.name}_test.rs", folder / "tests" / "first.rs")
        return folder, folder / "src" / "lib.rs"

    def command(self, program: str) -> tuple[str, ...]:
        release = ("--release",) if self.name == "loom" else ()  # as its documentation says
        return ("cargo", "test", *release, "--test", "first")


Tool = PulsarMl | Crate


def samples_of(tool: Tool, programs: Sequence[str]) -> Iterator[Sample]:
    """Install a tool, and run the programs under it."""
    began = processor_seconds()
    install = tool.install()
    processor = processor_seconds() - began
    for program in programs:
        folder, structure = tool.write(program)
        command, environment = tool.command(program), tool.environment
        began = processor_seconds()
        first, output, _ = timed(command, folder, environment)
        spent = processor + processor_seconds() - began
        second, _, _ = timed(command, folder, environment)
        text = structure.read_text()
        structure.write_text(text + "\n// A change.\n")
        changed, again, _ = timed(command, folder, environment)
        if finding(again) != finding(output):
            raise RuntimeError(f"{tool.name} found another failure of {program} the second time")
        yield Sample(
            program,
            tool.name,
            install,
            first,
            total=install + first,
            processor=spent,
            second=second,
            changed=changed,
            finding=finding(output),
        )


def fetch_crates() -> None:
    """Fetch the crates for this machine, unless cargo has them."""
    version = subprocess.run(("rustc", "-vV"), capture_output=True, text=True, check=True).stdout
    (host,) = (line.split()[1] for line in version.splitlines() if line.startswith("host:"))
    manifest = str(PEERS / "Cargo.toml")
    fetch = ("cargo", "fetch", "--quiet", "--locked", "--target", host, "--manifest-path", manifest)
    subprocess.run(fetch, check=True)


def versions_of_tools() -> str:
    parts = [f"{name} {version}" for name, version in CRATES.items()]
    for command in (("c++", "--version"), ("rustc", "--version")):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        parts.append(done.stdout.splitlines()[0])
    return ", ".join(parts)


# A column of seconds, the attribute of a sample, and whether it is compared with pulsar-ml's.
COLUMNS = (
    ("install", "install", False),
    ("first run", "first", False),
    ("together", "total", True),
    ("processor", "processor", True),
    ("again", "second", True),
    ("after a change", "changed", True),
)


def table(samples: Sequence[Sample]) -> Table:
    """Medians of the repeats, each beside pulsar-ml's of the same program."""
    result = Table(box=box.MARKDOWN)
    for name in ("program", "tool", "found"):
        result.add_column(name)
    for name in ("lines", *(column[0] for column in COLUMNS)):
        result.add_column(name, justify="right")
    for program in dict.fromkeys(sample.program for sample in samples):
        for tool in dict.fromkeys(sample.tool for sample in samples):
            test, adapted = written(program, tool)
            found = next(s.finding for s in samples if (s.program, s.tool) == (program, tool))
            cells = []
            for _, attribute, compared in COLUMNS:
                mine = middle(samples, program, tool, attribute)
                text = f"{mine:.1f}"
                if compared and tool != "pulsar-ml":
                    text += f" ({mine / middle(samples, program, 'pulsar-ml', attribute):.1f}x)"
                cells.append(text)
            result.add_row(program, tool, found, f"{test} + {adapted}", *cells)
    return result


def middle(samples: Sequence[Sample], program: str, tool: str, attribute: str) -> float:
    """Return the median of the repeats."""
    seconds: list[float] = [
        getattr(sample, attribute)
        for sample in samples
        if (sample.program, sample.tool) == (program, tool)
    ]
    return statistics.median(seconds)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("programs", nargs=-1, type=click.Choice(sorted(PROGRAMS)))
@click.option("--repeats", default=3, show_default=True, type=click.IntRange(1))
@click.option("--json", "as_json", is_flag=True, help="Print every repeat as JSON.")
def main(programs: tuple[str, ...], repeats: int, as_json: bool) -> None:
    """Measure lines of test and seconds until the first failure of PROGRAMS, beside other tools.

    Loom and Shuttle are left out when cargo is not installed. Needs some minutes.
    """
    chosen = programs or tuple(PROGRAMS)
    note = Console(stderr=True)
    processors = sorted(os.sched_getaffinity(0))[-PROCESSORS:]
    os.sched_setaffinity(0, processors)
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="first-failure-") as name:
        home = Path(name)
        note.print("building the wheel")
        wheel = build_wheel(home)
        if available():
            fetch_crates()
        else:
            note.print(WITHOUT_CARGO)
        for repeat in range(repeats):
            place = home / str(repeat)
            tools: list[Tool] = [PulsarMl(place / "pulsar-ml", wheel)]
            if available():
                tools += [Crate(crate, place / crate) for crate in CRATES]
            for tool in tools:
                note.print(f"repeat {repeat + 1} of {repeats}: {tool.name}")
                tool.home.mkdir(parents=True)
                samples += samples_of(tool, chosen)
                shutil.rmtree(tool.home)
    if as_json:
        rows = [asdict(sample) for sample in samples]
        click.echo(json.dumps({"machine": machine(), "samples": rows}, indent=2))
        return
    console = Console(width=None if Console().is_terminal else 160)
    console.print(f"{machine()}; {len(processors)} of its processors")
    if available():
        console.print(versions_of_tools())
    console.print("Medians of seconds; in brackets, beside pulsar-ml. Lines: test + adaptation.")
    console.print(table(samples))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.first_failure")
