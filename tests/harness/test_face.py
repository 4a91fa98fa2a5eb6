"""``pulsar_ml.harness`` is the one place that users import from: complete, documented and cheap."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys

import pytest

from pulsar_ml import harness
from tests import ROOT

SOURCE = ROOT / "pulsar_ml" / "harness" / "__init__.py"
# Pages that users follow, and the code of theirs that stands in them or beside them.
USERS = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "docs" / "examples").rglob("*.py"),
    *(ROOT / "tests" / "third_party" / "checked").rglob("*.py"),
    *(ROOT / "tests" / "third_party" / "checked").rglob("*.pyx"),
]
IMPORT = re.compile(
    r"^\s*(?:from|import) (pulsar_ml\.harness[\w.]*)|cimport (pulsar_ml\.harness\S*)"
)
# A user reads the API page whole, and picks a name without a search; 20 was the aim. A name beyond
# this number is a reason to merge two.
MOST_NAMES = 29
# Parts of the product; a process that only imports the face needs none of them.
HEAVY = ("numpy", "pyarrow", "psutil", "click", "hypothesis", "pytest", "pulsar_ml.harness.engine")


@pytest.mark.parametrize("name", harness.__all__)
def test_a_name_is_there_and_has_a_docstring(name: str) -> None:
    value = getattr(harness, name)
    text = inspect.getdoc(value)
    assert text, f"{name} has no docstring"
    assert len(text.split()) >= 5, f"the docstring of {name} says too little: {text}"


def test_type_checkers_see_the_same_names() -> None:
    """The imports for type checkers, the table of modules and ``__all__`` agree."""
    block = next(node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If))
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            original = f":{alias.name}" if alias.asname else ""
            module = (node.module or "").removeprefix("pulsar_ml.harness.")
            seen[alias.asname or alias.name] = module + original
    assert seen == harness._HOMES
    assert sorted(seen) == sorted(harness.__all__)


def test_the_docstring_lists_each_name_once() -> None:
    """The API page of the documentation is this docstring."""
    listed = re.findall(r":(?:func|class|mod):`(\w+)`", inspect.getdoc(harness) or "")
    assert sorted(listed) == sorted(harness.__all__)


def test_there_are_few_names() -> None:
    assert len(harness.__all__) <= MOST_NAMES


def test_importing_it_loads_nothing_heavy() -> None:
    script = (
        "import sys, pulsar_ml.harness\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
        "pulsar_ml.harness.Program\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    before, after = done.stdout.splitlines()
    assert before == "[]"
    assert "numpy" in after  # so the first line could have said so


def test_dir_lists_the_names() -> None:
    assert set(harness.__all__) <= set(dir(harness))


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="no attribute 'interleav'; did you mean 'interleave'"):
        harness.interleav  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'zzz'$"):
        harness.zzz  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'build_extention'"):
        exec("from pulsar_ml.harness import build_extention")


def harness_imports(text: str) -> list[str]:
    found = [IMPORT.match(line) or IMPORT.search(line) for line in text.splitlines()]
    return [match[1] or match[2] for match in found if match]


def test_documentation_imports_from_the_face_alone() -> None:
    for path in USERS:
        deep = set(harness_imports(path.read_text())) - {"pulsar_ml.harness"}
        assert not deep, f"{path} imports {deep}; users import from pulsar_ml.harness"


def test_a_deep_import_would_be_noticed() -> None:
    deep = "from pulsar_ml.harness.building.load import load_checked\n"
    assert harness_imports(deep) == ["pulsar_ml.harness.building.load"]
    assert harness_imports("from pulsar_ml.harness.subjects.subject cimport PmlCall\n")
    assert harness_imports("    from pulsar_ml.harness import Call\n") == ["pulsar_ml.harness"]


def test_cython_names_are_in_the_face() -> None:
    """Whatever the helpers of table.pxd and the structs of subject.h are, the face has them."""
    face = set(re.findall(r"^    (\w+),$", SOURCE.with_suffix(".pxd").read_text(), re.MULTILINE))
    table = (SOURCE.parent / "subjects" / "table.pxd").read_text()
    helpers = re.findall(r"^cdef inline .*?(\w+)\(", table, re.MULTILINE)
    header = (SOURCE.parent / "subject.h").read_text()
    structs = re.findall(r"^} (\w+);", header, re.MULTILINE)
    constants = re.findall(r"^#define (PML_\w+)", header, re.MULTILINE)
    assert helpers and structs and constants
    assert face >= {*helpers, *structs, *constants, "SubjectTable", "Subject", "wrap_subject"}
