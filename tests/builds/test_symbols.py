"""The product's compiled code contains no harness, no fault injection and no mutants."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pulsar_ml._core
import pulsar_ml.operations._native

FOREIGN = {
    "fault injection": rb"pml_fault|pml_fail_allocation|PML_FAULTS|fail_allocation",
    "harness": rb"Pml(Subject|Call|Violation|Operation)|harness",
    "operations": rb"pulsar_ml[./]operations|_10operations_",
    "mutants": rb"[Mm]utant",
    "sanitizer": rb"__(tsan|asan|ubsan)_",
}


def foreign_parts(module: Path) -> dict[str, list[bytes]]:
    """Symbols and strings of the file, debug information included, that a product must not have."""
    content = module.read_bytes()
    found = {
        name: re.findall(rb"\w*(?:" + pattern + rb")\w*", content)
        for name, pattern in FOREIGN.items()
    }
    return {name: sorted(set(names)) for name, names in found.items() if names}


def symbols(module: Path) -> set[str]:
    listed = subprocess.run(
        ["nm", "-a", str(module)], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[-1] for line in listed.splitlines() if line.split()}


CORE = Path(pulsar_ml._core.__file__)
NATIVE = Path(pulsar_ml.operations._native.__file__)


def test_the_product_holds_nothing_foreign() -> None:
    assert foreign_parts(CORE) == {}


@pytest.mark.parametrize("part", ["fault injection", "harness", "operations", "mutants"])
def test_the_same_search_finds_them_in_the_module_that_has_them(part: str) -> None:
    assert foreign_parts(NATIVE)[part]


def test_a_sanitizer_would_be_found(tmp_path: Path) -> None:
    from pulsar_ml.harness.building.build import build_extension

    source = tmp_path / "instrumented.pyx"
    source.write_text("cdef int value = 0\ndef bump():\n    global value\n    value += 1\n")
    built = build_extension(source, into=tmp_path / "built", flags=["-fsanitize=thread", "-O0"])
    assert foreign_parts(built)["sanitizer"]


def test_the_symbol_table_is_there_to_be_read() -> None:
    """A stripped module has no names, so it would pass the search above."""
    assert any(name.endswith("evict_bytes") for name in symbols(CORE))
    assert {name for name in symbols(NATIVE) if "pml_fault" in name}
    assert not {name for name in symbols(CORE) if "pml_fault" in name}


def test_importing_the_product_loads_neither_harness_nor_apps() -> None:
    code = (
        "import sys, pulsar_ml\n"
        "apart = ('pulsar_ml.harness', 'pulsar_ml.operations', 'pulsar_ml.campaign', 'pulsar_ml.specs', "
        "'stress', 'spark', 'pyspark', 'numpy', 'click', 'rich', 'pyarrow', 'psutil')\n"
        "print(sorted(name for name in sys.modules if name.startswith(apart)))\n"
    )
    root = str(Path(pulsar_ml.__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {root!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_product_has_no_test_switches_in_its_face() -> None:
    names = set(vars(pulsar_ml._core))
    assert {"fail_allocation_after", "MUTANTS", "SUBJECTS"} & names == set()
    assert {"fail_allocation_after", "MUTANTS", "SUBJECTS"} <= set(
        vars(pulsar_ml.operations._native)
    )
