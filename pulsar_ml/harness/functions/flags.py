"""Flags of the compiler as projects keep them: pkg-config and ``compile_commands.json``."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.input_files import bounded_text

MOST_BYTES = 256 << 20  # length of a compilation database
NAME = "compile_commands.json"
# Flags that decide what code means. Optimisation, warnings and debug information are the build's.
WITH_VALUE = ("-I", "-D", "-U", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
ALONE = ("-std=", "-f", "-m", "-stdlib=", "-pthread", "-W,")
PATHS = ("-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
LEFT_OUT = ("-fsanitize", "-fPIC", "-fpic", "-fPIE", "-fpie", "-flto", "-fdiagnostics", "-fcolor")


def package_flags(names: Sequence[str]) -> list[str]:
    """The flags of packages by ``pkg-config``. UsageError for an unknown one."""
    if not names:
        return []
    tool = shutil.which("pkg-config") or shutil.which("pkgconf")
    if tool is None:
        raise UsageError(f"--pkg-config {names[0]}: the program pkg-config is not installed")
    done = subprocess.run(
        [tool, "--cflags", "--libs", *names], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UsageError(f"--pkg-config: {done.stderr.strip().splitlines()[0]}")
    return shlex.split(done.stdout)


def find_database(source: Path) -> Path | None:
    """The ``compile_commands.json`` in a folder above ``source``, or in its folder ``build``."""
    for folder in source.resolve().parents:
        for candidate in (folder / NAME, folder / "build" / NAME):
            if candidate.is_file():
                return candidate
        if (folder / ".git").exists():
            break
    return None


def database_flags(database: Path, source: Path) -> list[str]:
    """The flags of ``source`` in a compilation database; empty if that does not have the file.

    Paths are made absolute. Raises BadRecordError for a file that is no compilation database.
    """
    try:
        entries = json.loads(bounded_text(database, "the compilation database", most=MOST_BYTES))
        rows = [(row, Path(row["directory"])) for row in entries]
        for row, folder in rows:
            if Path(os.path.normpath(folder / row["file"])) == Path(os.path.normpath(source)):
                return list(kept_flags(arguments_of(row), folder))
    except (ValueError, KeyError, TypeError) as error:
        raise BadRecordError(f"{database} is no compilation database: {error!r}") from None
    return []


def arguments_of(row: dict[str, Any]) -> list[str]:
    return list(row["arguments"]) if "arguments" in row else shlex.split(row["command"])


def kept_flags(arguments: Sequence[str], folder: Path) -> Iterator[str]:
    words = iter(arguments[1:])
    for word in words:
        flag = next((flag for flag in WITH_VALUE if word.startswith(flag)), None)
        if flag is not None:
            value = word[len(flag) :] or next(words, "")
            yield flag
            yield os.path.normpath(folder / value) if flag in PATHS else value
        elif word.startswith(ALONE) and not word.startswith(LEFT_OUT):
            yield word
