"""The page of failures leads from red lines to lines of the source, as its commands print them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import HAS_FIBERS, HAS_GDB
from tests.pages import Reader, blocks, commands, prints, write
from tests.spark.session.one_jvm import OneJvm

PAGE = ROOT / "docs" / "failures.md"
WAY = re.compile(r"^### (.+)$", re.MULTILINE)
MOST_COMMANDS = 4


def ways() -> Iterator[tuple[str, list[str]]]:
    """Yield the title of each way of the page, and its commands."""
    text = PAGE.read_text().partition("\n## Changes")[0]
    titles = [(found[1], found.end()) for found in WAY.finditer(text)]
    ends = [*(text.rindex("\n###", 0, start) for _, start in titles[1:]), len(text)]
    for (title, start), end in zip(titles, ends, strict=True):
        yield title, re.findall(r"^\$ (.+)$", text[start:end], re.MULTILINE)


def is_possible(command: str) -> bool:
    """Return False for a command that this machine has no tool or interpreter for."""
    of_python = re.search(r"test_stack|Stack-|visits", command)
    return (HAS_GDB or "--gdb" not in command) and (HAS_FIBERS or of_python is None)


@pytest.mark.xdist_group("spark")
def test_the_page_prints_what_its_commands_print(tmp_path: Path, spark_jvm: OneJvm) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    reader = Reader(folder, spark_jvm)
    for block in blocks(PAGE):
        if block.file:
            write(block, folder)
        elif block.language == "console":
            for command, expected in commands(block):
                if is_possible(command):
                    printed = reader.run(command)
                    where = f"line {block.line}: {command}"
                    assert prints(expected, printed), "\n".join([where, *printed])


def test_seven_ways_have_at_most_four_commands_each() -> None:
    found = dict(ways())
    assert len(found) == 7
    shared = 1  # the check of the first four ways
    counts = [len(lines) + shared * (at < 4) for at, lines in enumerate(found.values())]
    assert max(counts) <= MOST_COMMANDS and min(counts) >= 2
    # The commands of each way say so: a replay without a guess at module or mutant.
    for lines in found.values():
        assert any(line.startswith("pulsar-ml replay ") for line in lines)
        assert not any("--mutant" in line for line in lines if " sweep " not in line)
