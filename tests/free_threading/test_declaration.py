"""Every extension declares that it needs no GIL, so that importing the package leaves it off."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from pulsar_ml import Entry, EntryCacheManager, RangeCache
from tests import ROOT

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
IMPORTS = """
import importlib, pkgutil, sys, pulsar_ml
names = [each.name for each in pkgutil.walk_packages(pulsar_ml.__path__, "pulsar_ml.")]
for name in names:
    spec = importlib.util.find_spec(name)
    if spec is not None and (spec.origin or "").endswith(".so"):
        importlib.import_module(name)
        print(name, getattr(sys, "_is_gil_enabled", lambda: True)())
"""


def extensions() -> list[str]:
    """The names of all extensions that the build makes."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    paths = (ROOT / "pulsar_ml").rglob(f"*{suffix}")
    return sorted(
        path.relative_to(ROOT).as_posix().removesuffix(suffix).replace("/", ".") for path in paths
    )


def declares(source: str) -> bool:
    """True if the C source of an extension says that it needs no GIL."""
    return bool(
        re.search(r"#define __Pyx_FREETHREADING_COMPATIBLE Py_MOD_GIL_NOT_USED", source)
        or "PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED)" in source
    )


def c_source(name: str) -> Path:
    path = ROOT / (name.replace(".", "/") + ".c")
    return path if path.exists() else path.parent / "native" / "module.c"


def test_importing_every_extension_leaves_the_gil_off() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, cwd=ROOT, check=True
    )
    seen = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert sorted(seen) == extensions()
    assert set(seen.values()) == {str(not FREE_THREADED)}, seen
    assert "RuntimeWarning" not in done.stderr


def test_every_extension_declares_it() -> None:
    names = extensions()
    assert len(names) >= 17
    assert [name for name in names if not declares(c_source(name).read_text())] == []


def test_an_extension_that_does_not_declare_it_is_noticed() -> None:
    source = c_source("pulsar_ml._core").read_text()
    assert not declares(source.replace("Py_MOD_GIL_NOT_USED", "Py_MOD_GIL_USED"))


def test_calls_of_a_method_do_not_count_references_to_it_where_python_can_do_that() -> None:
    deferred = FREE_THREADED and sys.version_info >= (3, 14)
    # References that are counted are few; deferred ones add a number that is never reached.
    for method in (RangeCache.get, Entry.release, EntryCacheManager.entry):
        assert (sys.getrefcount(method) > 2**40) == deferred
