"""A strict build fails on a performance hint of Cython and on a warning of the C compiler."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.builds.project import run

pytestmark = pytest.mark.xdist_group("build")

CLEAN = "cdef int clean() noexcept nogil:\n    return 1\n\ndef call():\n    return clean()\n"
HINT = "cdef void slow() nogil:\n    pass\n\ndef call():\n    slow()\n"
WARNING = (
    'cdef extern from *:\n    """\n    static int nobody_calls_this(void) { return 1; }\n    """\n'
)


def build(home: Path, source: str, *, strict: bool) -> tuple[int, str]:
    """The project's own setup.py over one small module in the place of the core."""
    flags = Path("pulsar_ml", "harness", "building", "inlining.py")
    (home / flags).parent.mkdir(parents=True)
    for name in (Path("setup.py"), flags):
        shutil.copy(ROOT / name, home / name)
    (home / "pulsar_ml" / "__init__.py").write_text("")
    (home / "pulsar_ml" / "_core.pyx").write_text(source)
    done = run(
        sys.executable, "setup.py", "build_ext", "--inplace", cwd=home,
        PULSAR_ML_STRICT="1" if strict else "", CFLAGS="-O0",
    )  # fmt: skip
    return done.returncode, done.stdout


def test_a_clean_module_passes_a_strict_build(tmp_path: Path) -> None:
    code, output = build(tmp_path / "clean", CLEAN, strict=True)
    assert code == 0, output


def test_a_performance_hint_fails_a_strict_build(tmp_path: Path) -> None:
    code, output = build(tmp_path / "strict", HINT, strict=True)
    assert code != 0
    assert "a performance hint of Cython is an error in a strict build" in output
    assert "Exception check" in output


def test_a_compiler_warning_fails_a_strict_build(tmp_path: Path) -> None:
    code, output = build(tmp_path / "strict", WARNING, strict=True)
    assert code != 0
    assert "nobody_calls_this" in output
    assert "-Werror" in output


@pytest.mark.parametrize("source", [HINT, WARNING], ids=["hint", "warning"])
def test_a_build_for_users_says_so_and_goes_on(tmp_path: Path, source: str) -> None:
    code, output = build(tmp_path / "plain", source, strict=False)
    assert code == 0, output
    assert "performance hint" in output or "nobody_calls_this" in output


def test_an_unknown_sanitizer_is_one_clear_sentence(tmp_path: Path) -> None:
    shutil.copy(ROOT / "setup.py", tmp_path)
    done = run(sys.executable, "setup.py", "--version", cwd=tmp_path, PULSAR_ML_SANITIZE="memory")
    assert done.returncode != 0
    assert done.stdout.strip().splitlines()[-1] == (
        "PULSAR_ML_SANITIZE='memory' is not known; use one of: thread, address, undefined"
    )
