"""Sources that changed come first: by what they contain and include, not by their times."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_ml.harness.budgets.changed import (
    NAME,
    changed_first,
    digest,
    read_digests,
    write_digests,
)

FILES = {
    "a_test.cpp": '#include <atomic>\n#include "deep/a.h"\n',
    "deep/a.h": '#  include "b.h"\n',
    "deep/b.h": "int b;\n",
    "b_test.pyx": "from parts.one cimport thing\ninclude 'two.pxi'\n",
    "parts/one.pxd": "cdef int thing\n",
    "two.pxi": "x = 1\n",
    "check_c.py": "import os, helper as h\n",
    "helper.py": "from . import other\n",
    "alone.c": "int main(void);\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a_test.cpp", "a_test.cpp"),
        ("a_test.cpp", "deep/b.h"),
        ("b_test.pyx", "parts/one.pxd"),
        ("b_test.pyx", "two.pxi"),
        ("check_c.py", "helper.py"),
    ],
)
def test_a_change_of_a_file_that_is_read_is_seen(folder: Path, source: str, changed: str) -> None:
    before = digest(folder / source)
    (folder / changed).write_text(FILES[changed])  # another time, the same contents
    assert digest(folder / source) == before
    (folder / changed).write_text(FILES[changed] + "// more\n")
    assert digest(folder / source) != before
    assert digest(folder / "alone.c") == digest(folder / "alone.c")


def test_a_header_in_a_folder_of_the_command_line_counts(folder: Path) -> None:
    (folder / "alone.c").write_text('#include "b.h"\n')
    without, within = digest(folder / "alone.c"), digest(folder / "alone.c", [folder / "deep"])
    (folder / "deep/b.h").write_text("long b;\n")
    assert digest(folder / "alone.c") == without
    assert digest(folder / "alone.c", [folder / "deep"]) != within


def test_changed_sources_come_first_and_the_others_keep_their_order(folder: Path) -> None:
    sources = [Path(name) for name in ("a_test.cpp", "b_test.pyx", "check_c.py", "alone.c")]
    order, digests = changed_first(sources, folder)
    assert order == [0, 1, 2, 3]  # nothing is known, so all are new
    write_digests(folder / "build", digests)
    (folder / "deep/a.h").write_text("int a;\n")
    (folder / "helper.py").write_text("a = 1\n")
    order, digests = changed_first([*sources[1:], sources[0]], folder / "build")
    assert order == [1, 3, 0, 2]
    write_digests(folder / "build", {"a_test.cpp": digests["a_test.cpp"]})
    assert changed_first(sources, folder / "build")[0] == [2, 0, 1, 3]


def test_a_damaged_file_of_digests_counts_as_none(folder: Path) -> None:
    for text in ("", "{", "[1]", "\udcff", "[" * 100_000):
        (folder / NAME).write_text(text, errors="surrogateescape")
        assert read_digests(folder) == {}
