"""An extension is compiled again when its flags or its compiler are others, and only then."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from setuptools import Distribution, Extension

from tests import ROOT

COMMAND = runpy.run_path(str(ROOT / "setup.py"), run_name="not_the_build")["BuildExtensions"]


def built(*flags: str, number: str = "1") -> tuple[int, bool]:
    """The time of the module of this folder, and whether it was optimized."""
    macros = [("PML_BUILD_ID", number)]
    module = Extension("level", ["level.c"], extra_compile_args=[*flags], define_macros=macros)
    command = COMMAND(Distribution({"ext_modules": [module]}))
    command.build_lib, command.build_temp = "library", "objects"
    command.ensure_finalized()
    command.run()
    path = Path(command.get_ext_fullpath("level"))
    return path.stat().st_mtime_ns, b"it was optimized" in path.read_bytes()


def test_other_flags_make_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("level.c").write_text('#ifdef __OPTIMIZE__\nchar *text = "it was optimized";\n#endif\n')
    first = built("-O1")
    assert first[1]
    assert built("-O1") == first
    assert built("-O1", "-Werror", number="2") == first, "neither changes the code"
    assert not built("-O0")[1]
    monkeypatch.setenv("CFLAGS", "-O0 -DANOTHER")
    third = built("-O1")
    assert third[1]
    monkeypatch.setenv("CFLAGS", "-O0")
    assert built("-O1") > third
