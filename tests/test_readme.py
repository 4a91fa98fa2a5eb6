"""The README prints what its commands print, and shows the picture that the report draws."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests import ROOT
from tests.pages import Block, Reader, blocks, commands, prints
from tests.spark.session.one_jvm import OneJvm
from tools.race_image import IMAGE, draw

README = ROOT / "README.md"


def console(start: str) -> Block:
    """Return the console block whose first command starts so."""
    (block,) = [
        block
        for block in blocks(README)
        if block.language == "console" and block.text.startswith("$ " + start)
    ]
    return block


def follow(block: Block, folder: Path, jvm: OneJvm | None = None) -> None:
    reader = Reader(folder, jvm)
    for command, expected in commands(block):
        printed = reader.run(command)
        assert prints(expected, printed), f"{command}\n" + "\n".join(printed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "reader"
    path.mkdir()
    return path


def test_the_first_example_finds_the_bug(folder: Path) -> None:
    (test,) = [block for block in blocks(README) if block.file]
    (folder / test.file).write_text(test.text)
    follow(console("pulsar-ml check"), folder)


def test_the_picture_is_drawn_from_the_sources(tmp_path: Path) -> None:
    assert draw(tmp_path) == IMAGE.read_text()
    assert f"]({IMAGE.relative_to(ROOT)})" in README.read_text()


def test_the_interpreters_are_those_of_the_classifiers() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    *others, last = re.findall(r"Python :: (3[.]\d+)", "\n".join(classifiers))
    assert f"CPython {', '.join(others)} and {last} with the GIL" in README.read_text()


@pytest.mark.xdist_group("spark")
def test_a_sweep_prints_what_the_readme_shows(folder: Path, spark_jvm: OneJvm) -> None:
    follow(console("pulsar-ml sweep --suite range_cache --suite removal_queue"), folder, spark_jvm)


@pytest.mark.xdist_group("spark")
def test_a_known_bug_is_found_as_the_readme_shows(folder: Path, spark_jvm: OneJvm) -> None:
    follow(console("pulsar-ml sweep --suite range_cache --seeds"), folder, spark_jvm)


@pytest.mark.xdist_group("spark")
def test_the_engine_finds_what_the_readme_shows(folder: Path) -> None:
    follow(console("pulsar-ml explore"), folder)


def test_the_example_of_the_cache_runs() -> None:
    (example,) = [
        block for block in blocks(README) if block.text.startswith("from pulsar_ml import")
    ]
    names: dict[str, object] = {}
    exec(compile(example.text, str(README), "exec"), names)
    assert bytes(names["view"]) == b"payload"  # type: ignore[call-overload]


def test_every_console_block_is_followed() -> None:
    followed = len(re.findall(r"follow[(]\s*console[(]", Path(__file__).read_text()))
    assert followed == sum(block.language == "console" for block in blocks(README))
