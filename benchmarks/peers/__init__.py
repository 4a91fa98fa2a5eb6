"""Shuttle and loom on the benchmark programs of the engine, compiled by cargo at first use."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "build" / "peers"
WITHOUT_CARGO = (
    "cargo is not installed, so the rows beside Shuttle and loom are left out; "
    "install Rust 1.75 or later to see them"
)


def available() -> bool:
    """Returns true if cargo is there to compile the peers."""
    return shutil.which("cargo") is not None


@cache
def program() -> Path:
    """The compiled peers; the versions of all crates are those of Cargo.lock."""
    command = ["cargo", "build", "--release", "--locked", "--quiet"]
    subprocess.run(
        [*command, "--manifest-path", str(HERE / "Cargo.toml")],
        env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)},
        check=True,
    )
    return TARGET / "release" / "peers"


def rate(tool: str, name: str, executions: int) -> float:
    """Million executions per second of processor time.

    Args:
        tool: ``shuttle``, which samples, or ``loom``, which searches.
        name: a program of ``src/main.rs``.
        executions: at most so many; a search may end before.
    """
    count, seconds = counted(tool, name, executions)
    return count / seconds / 1e6


def counted(tool: str, name: str, executions: int) -> tuple[int, float]:
    """The executions that were made, and their seconds of processor time; see :func:`rate`."""
    done = subprocess.run(
        [str(program()), tool, name, str(executions)],
        capture_output=True,
        text=True,
        check=True,
    )
    count, seconds = done.stdout.split()[-2:]
    return int(count), float(seconds)
