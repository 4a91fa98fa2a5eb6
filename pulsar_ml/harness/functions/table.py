"""Options of test files in ``pyproject.toml``, for those who keep them out of the sources.

::

    [tool.pulsar_ml.check."check_*.cpp"]
    std = "c++20"
    include = ["include"]

    [tool.pulsar_ml.check."check_ring.cpp::test_push"]
    mode = "tso"
    executions = 2000

A key is a pattern of names of files, or of paths below the folder of ``pyproject.toml``; behind
``::`` stands a pattern of tests. A comment in the file overrides the table.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.building.pyproject import NAME, read_pyproject


@dataclass(frozen=True, slots=True)
class Row:
    """The options of one pattern.

    Attributes:
        tests: the pattern of tests, "" for all tests of a file.
        words: the options, as a comment in the file has them.
        place: the table, for messages.
        folder: the folder of ``pyproject.toml``.
    """

    tests: str
    words: str
    place: str
    folder: Path


def rows_for(source: Path) -> list[Row]:
    """The rows of the nearest ``pyproject.toml`` for a file, as they stand there.

    Raises BadRecordError for a file that is no TOML, and UsageError for a wrong table.
    """
    for folder in source.resolve().parents:
        if (folder / NAME).is_file():
            return read_rows(folder / NAME, source.resolve())
        if (folder / ".git").exists():
            break
    return []


def read_rows(path: Path, source: Path) -> list[Row]:
    table: Any = read_pyproject(path)
    for key in ("tool", "pulsar_ml", "check"):
        table = table.get(key, {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: [tool.pulsar_ml.check] should be a table")
    rows = []
    for key, options in table.items():
        place = f'{path.name} [tool.pulsar_ml.check."{key}"]'
        if not isinstance(options, dict):
            raise UsageError(f"{place}: this should be a table of options, not {options!r}")
        files, _, tests = key.partition("::")
        if matches(files, source, path.parent):
            rows.append(Row(tests, words_of(options), place, path.parent))
    return rows


def matches(pattern: str, source: Path, folder: Path) -> bool:
    below = source.relative_to(folder).as_posix()
    return fnmatchcase(source.name, pattern) or fnmatchcase(below, pattern)


def words_of(options: dict[str, Any]) -> str:
    """The options as words of a comment: ``mode=tso executions=2000``."""
    words: list[str] = []
    for key, value in options.items():
        values = value if isinstance(value, list) and key == "include" else [value]
        words += (f"{key}={text_of(key, each)}" for each in values)
    return shlex.join(words)


def text_of(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        texts = [str(each) for each in value]
        return shlex.join(texts) if key == "flags" else ",".join(texts)
    return str(value)
