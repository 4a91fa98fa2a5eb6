"""The pages for those who test a structure of their own, as a reader follows them.

In an empty folder: a fenced block with a language and a name is that file, a ``diff`` block with a name
changes it, and the lines of a ``console`` block that start with ``$`` are run, one after the other. What a
command prints is what the page says. A line ``...`` in the page stands for any lines, and ``...`` within a
line for any text: times, hashes, versions, and what real threads decide.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TUTORIAL = "testing-your-own.md"
REFERENCE = "pytest-and-hypothesis.md"


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    file: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    text = (DOCS / page).read_text()
    return [
        Block(found[1], found[2] or "", found[3], text.count("\n", 0, found.start()) + 1)
        for found in BLOCK.finditer(text)
    ]


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block with the lines that it should print."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *expected = part.splitlines()
        yield command, expected


def write(block: Block, folder: Path) -> None:
    """The file of a block, or the change that a block makes to it."""
    path = folder / block.file
    if block.language != "diff":
        path.write_text(block.text)
        return
    lines = block.text.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    new = "".join(line[1:] for line in lines if line[0] in " +")
    text = path.read_text()
    assert text.count(old) == 1, (
        f"line {block.line}: what is to be changed is there {text.count(old)} times"
    )
    path.write_text(text.replace(old, new))


def prints(expected: list[str], printed: list[str]) -> bool:
    """Whether ``printed`` is what the page says, with ``...`` for anything."""
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
    """Follows a page in ``folder``, with a shell that has this interpreter and this checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = 0
        kept = ("HOME", "LANG", "TMPDIR", "CC", "CXX", "LD_LIBRARY_PATH")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ}
        self.environment |= {
            "PATH": os.pathsep.join(
                (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
            ),
            "PYTHONPATH": str(ROOT),
            "PYTEST_PLUGINS": "pulsar_ml.harness.testing.pytest_plugin",  # an installed package brings it by itself
            "COLUMNS": "100",
        }

    def run(self, command: str) -> list[str]:
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
        return done.stdout.splitlines()

    def follow(self, page: str) -> None:
        for block in blocks(page):
            if block.file:
                write(block, self.folder)
            elif block.language == "console":
                for command, expected in commands(block):
                    printed = self.run(command)
                    assert prints(expected, printed), (
                        f"{page}, line {block.line}: {command}\n" + "\n".join(printed)
                    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ticket"
    made.mkdir()
    return made


def test_from_an_empty_folder_to_a_mended_lock(folder: Path) -> None:
    Reader(folder).follow(TUTORIAL)


def test_the_reference_page(folder: Path) -> None:
    for block in blocks(TUTORIAL):
        if block.file:
            write(block, folder)
    Reader(folder).follow(REFERENCE)


@pytest.mark.parametrize("page", [TUTORIAL, REFERENCE])
def test_no_command_of_a_page_is_left_out(page: str) -> None:
    text = (DOCS / page).read_text()
    found = blocks(page)
    assert text.count("```") == 2 * len(found), "each fence is one of a block that is read"
    assert all(block.file or block.language == "console" for block in found)
    assert sum(len(list(commands(block))) for block in found) == len(
        re.findall(r"^\$ ", text, re.MULTILINE)
    )


def test_what_a_page_gets_wrong_is_noticed(folder: Path) -> None:
    assert prints(["a ... c", "...", "z"], ["a b c", "x", "y", "z"])
    assert not prints(["a ... c", "z"], ["a b c", "y", "z"])
    assert not prints(["a"], ["a", "b"])
    assert not prints(["a", "b"], ["a"])
    (folder / "file").write_text("one\ntwo\n")
    write(Block("diff", "file", " one\n-two\n+three\n", 1), folder)
    assert (folder / "file").read_text() == "one\nthree\n"
    with pytest.raises(AssertionError, match="0 times"):
        write(Block("diff", "file", "-two\n", 1), folder)
    reader = Reader(folder)
    assert reader.run(
        "python -c 'import pulsar_ml, sys; print(pulsar_ml.__file__); sys.exit(3)'"
    ) == [str(ROOT / "pulsar_ml" / "__init__.py")]
    assert reader.run("echo $?") == ["3"]
