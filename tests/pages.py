"""Pages whose files, changes and commands a test follows, as a reader does.

A fenced block with a language and a name is that file, a ``diff`` block with a name changes it, and
the lines of a ``console`` block that start with ``$`` are commands, run one after the other. A
command must print the lines behind it. A line ``...`` in the page stands for any lines, and ``...``
within a line for any text: times, hashes, versions, and results of real threads.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, nullcontext
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from click.testing import CliRunner

from pulsar_ml.cli import main
from stress.mutants.build import build
from tests import ROOT
from tests.spark.session.one_jvm import OneJvm

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# How far a search has come, which a busy machine prints.
OF_SLOW = re.compile(r"\S+::\w+: [\d,]+ of [\d,]+")
PLAIN = re.compile(r"pulsar-ml (?:check|explain|explore|replay|sweep) [^|&;<>`\"']*")
MUTANTS = re.compile(r"\$\(python -m stress\.mutants( --checked)?\)")
OF_NATIVE = '"hash_seed": ""'  # in a record


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    file: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text()
    return [
        Block(found[1], found[2] or "", found[3], text.count("\n", 0, found.start()) + 1)
        for found in BLOCK.finditer(text)
    ]


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a console block with the lines that it should print."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *expected = part.replace("\\\n", " ").splitlines()
        yield command, expected


def write(block: Block, folder: Path) -> None:
    """Write the file of a block, or make the change of a ``diff`` block."""
    path = folder / block.file
    if block.language != "diff":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        return
    lines = block.text.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text()
    assert text.count(old) == 1, (
        f"line {block.line}: the lines to change occur {text.count(old)} times"
    )
    path.write_text(text.replace(old, new))


def prints(expected: list[str], printed: list[str]) -> bool:
    """Compare output with a page, in which ``...`` stands for anything."""
    if not expected:
        return not printed
    if expected[0].strip() == "...":
        return any(prints(expected[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    pattern = ".*".join(map(re.escape, expected[0].split("...")))
    return (
        bool(printed)
        and re.fullmatch(pattern, printed[0]) is not None
        and prints(expected[1:], printed[1:])
    )


class Reader:
    """Follows a page in ``folder``, with a shell that has this interpreter and this checkout.

    Sweeps on Spark use ``jvm``; without it they run in processes of their own.
    """

    def __init__(self, folder: Path, jvm: OneJvm | None = None) -> None:
        self.folder, self.jvm = folder, jvm
        # The console command of an installed package, for a checkout that is not installed.
        command = folder.parent / "bin" / "pulsar-ml"
        command.parent.mkdir(exist_ok=True)
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pulsar_ml "$@"\n')
        command.chmod(0o755)
        self.code = 0
        inherited = (
            *("HOME", "LANG", "TMPDIR", "CC", "CXX", "LD_LIBRARY_PATH", "JAVA_HOME"),
            "PYTHON_GIL",  # pandas turns the GIL on elsewhere, with a warning
        )
        self.environment = {name: os.environ[name] for name in inherited if name in os.environ}
        self.environment |= {
            "PATH": os.pathsep.join(
                (
                    str(command.parent),
                    str(Path(sys.executable).parent),
                    os.environ.get("PATH", os.defpath),
                )
            ),
            "PYTHONPATH": str(ROOT),
            # An installed package brings its plugin by itself.
            "PYTEST_PLUGINS": "pulsar_ml.harness.testing.pytest_plugin",
            "COLUMNS": "100",
        }

    def run(self, command: str) -> list[str]:
        if (words := self.words_here(command)) is not None:
            with chdir(self.folder), self.jvm.sessions() if self.jvm else nullcontext():
                called = CliRunner().invoke(
                    main, words, env=self.environment, catch_exceptions=False
                )
            self.code = called.exit_code
            return called.output.splitlines()
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.code}); {command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.code = done.returncode
        return [line for line in done.stdout.splitlines() if not OF_SLOW.fullmatch(line)]

    def words_here(self, command: str) -> list[str] | None:
        """The arguments of a command that this process can run as well as a new one, or None.

        That is one of ``pulsar-ml`` about native code, without a pipe and without modules of the
        page: a command about code of Python starts again under the hash seed of its record.
        """
        if PLAIN.fullmatch(command) is None:
            return None
        text = MUTANTS.sub(lambda found: str(build(checked=bool(found[1]))), command)
        words: list[str] = []
        for word in shlex.split(text)[1:]:
            words += sorted(glob(word, root_dir=self.folder)) if "*" in word else [word]
        files = [self.folder / word for word in words if word.endswith(".json")]
        strange = "--suites" in words or any(
            word.partition("::")[0].endswith((".py", ".pyx")) for word in words
        )
        if "$" in text or strange or any(OF_NATIVE not in file.read_text() for file in files):
            return None
        if words[0] == "sweep" and "--runner" not in words and self.jvm is None:
            return None
        return words

    def follow(self, page: Path) -> None:
        """Follow a page; AssertionError shows the first output that differs."""
        for block in blocks(page):
            if block.file:
                write(block, self.folder)
            elif block.language == "console":
                for command, expected in commands(block):
                    printed = self.run(command)
                    assert prints(expected, printed), (
                        f"{page.name}, line {block.line}: {command}\n" + "\n".join(printed)
                    )
