"""Paths whose bytes are not UTF-8: code under test is refused in a sentence, reports are made."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest

from pulsar_ml.campaign.trial.signature import signature
from pulsar_ml.errors import UsageError
from pulsar_ml.harness import load_checked
from pulsar_ml.harness.engine import locate
from pulsar_ml.harness.functions.library import read_files, unit
from pulsar_ml.harness.functions.source import TestFunction, TestSource
from tests.commands import call
from tests.report.kit import failure_of

NO_TEXT = os.fsdecode(b"caf\xe9")
SHOWN = "caf\\udce9"
SENTENCE = "is a path that is not UTF-8, and reports name files in UTF-8"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / NO_TEXT
    path.mkdir()
    return path


@pytest.mark.parametrize("name", ["tests.c", "tests.cpp", "tests.pyx"])
def test_a_source_is_refused(name: str, folder: Path) -> None:
    (folder / name).write_text("def test_it():\n    pass\nvoid test_it(void) { }\n")
    done = call("check", str(folder / name))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"Error: {folder.parent}/{SHOWN}/{name} {SENTENCE}: ")
    assert done.err.count("\n") == 1


def test_a_checked_module_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=SENTENCE):
        load_checked(folder / "module.so")


def test_the_engine_names_no_code_there(folder: Path) -> None:
    spec = importlib.util.find_spec("pulsar_ml.harness.linearize.limits._memory")
    assert spec is not None and spec.origin is not None
    places = []
    for home in (folder, folder.parent):
        library = ctypes.CDLL(str(shutil.copy(spec.origin, home)))
        places.append(ctypes.cast(library.PyInit__memory, ctypes.c_void_p).value or 0)
    with pytest.raises(UsageError, match=SENTENCE):
        locate(places[0])
    found = locate(places[1])
    assert found is not None and Path(found[0]).parent == folder.parent


def test_names_of_a_rule_for_make_are_read(tmp_path: Path) -> None:
    rule = tmp_path / "tests.d"
    rule.write_bytes(b"tests.o: $$x/\\#1.c \\\n caf\xe9/a\\ b.h\n")
    assert read_files(rule) == ["$x/#1.c", f"{NO_TEXT}/a b.h"]


def test_a_source_is_included_by_its_name() -> None:
    source = TestSource(Path("/café/a #1.c"), "c", (TestFunction("test_it", 1),))
    assert unit(source, ["test_it"]).startswith('#include "/café/a #1.c"\n')


def test_a_failure_there_has_a_signature() -> None:
    one, other = (signature("a", "I1", "m", (f"at f {name}/a.py:3",)) for name in (NO_TEXT, "café"))
    assert one != other


def test_a_page_is_made_of_a_failure_there(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    place = {"where": [f"test_it {NO_TEXT}/tests.py:2"]}
    record.write_text(json.dumps(json.loads(failure_of("race_met").to_json()) | place))
    assert call("report", str(record)).code == 1
    assert record.with_suffix(".html").exists()
