"""The pages for those who test a structure of their own print what their commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import ROOT
from tests.pages import Block, Reader, blocks, commands, prints, write

TUTORIAL = ROOT / "docs" / "testing-your-own.md"
FUNCTIONS = ROOT / "docs" / "functions.md"
PYTHON = ROOT / "docs" / "python-threads.md"
REFERENCE = ROOT / "docs" / "pytest-and-hypothesis.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "ticket"
    path.mkdir()
    return path


def test_from_an_empty_folder_to_a_correct_lock(folder: Path) -> None:
    Reader(folder).follow(TUTORIAL)


def test_from_a_function_to_a_clean_ring(folder: Path) -> None:
    Reader(folder).follow(FUNCTIONS)


def test_from_a_python_function_to_a_deadlock(folder: Path) -> None:
    Reader(folder).follow(PYTHON)


def test_the_reference_page(folder: Path) -> None:
    for block in blocks(TUTORIAL):
        if block.file:
            write(block, folder)
    Reader(folder).follow(REFERENCE)


@pytest.mark.parametrize(
    "page", [TUTORIAL, FUNCTIONS, PYTHON, REFERENCE], ids=lambda page: page.stem
)
def test_no_command_of_a_page_is_left_out(page: Path) -> None:
    text = page.read_text()
    found = blocks(page)
    assert text.count("```") == 2 * len(found), "each fence is one of a block that is read"
    assert all(block.file or block.language == "console" for block in found)
    assert sum(len(list(commands(block))) for block in found) == len(
        re.findall(r"^\$ ", text, re.MULTILINE)
    )


def test_a_mistake_of_a_page_is_noticed(folder: Path) -> None:
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
