"""Code of a checked module that the engine cannot see is named."""

from __future__ import annotations

import platform
import warnings
from pathlib import Path

import pytest

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.building.unseen import SIDECAR, UnseenCodeWarning, unseen_code
from tests import ROOT

HERE = Path(__file__).parent
FLAGS = ["-std=gnu11", "-Wno-unused"]
LOCKED, FENCE = {"x86_64": ("lock incq", "mfence"), "aarch64": ("ldaddal", "dmb")}[
    platform.machine()
]


def assembly(into: Path, *macros: str) -> Path:
    return build_extension(
        HERE / "inline_assembly.pyx",
        into=into,
        checked=True,
        flags=FLAGS,
        macros=dict.fromkeys(macros, "1"),
    )


def test_inline_assembly_is_named_with_its_line(tmp_path: Path) -> None:
    module = assembly(tmp_path, "WITH_ASSEMBLY")
    found = unseen_code(module)
    assert any(line.startswith("bump ") and f": {LOCKED} " in line for line in found)
    assert any(line.startswith("full_fence ") and f": {FENCE}" in line for line in found)
    assert all(".pyx:" in line or ".c:" in line for line in found)
    with pytest.warns(UnseenCodeWarning, match=LOCKED):
        load_checked(module)
    assert Path(f"{module}{SIDECAR}").exists()
    with pytest.warns(UnseenCodeWarning, match=LOCKED):  # from the file
        load_checked(module)


def test_instrumented_code_has_nothing_to_name(tmp_path: Path) -> None:
    module = assembly(tmp_path)
    assert unseen_code(module) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_checked(module)


def test_thread_locals_that_fibers_share_are_named(tmp_path: Path) -> None:
    found = unseen_code(assembly(tmp_path, "INITIAL_EXEC"))
    assert len(found) == 1
    assert "thread-local variable" in found[0]


def test_the_product_has_nothing_to_name() -> None:
    (module,) = (ROOT / "pulsar_ml" / "operations").glob("_checked.*.so")
    assert unseen_code(module) == []
