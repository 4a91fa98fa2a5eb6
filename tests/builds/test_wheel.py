"""The ways to install: a wheel, in place, editable; and a stranger's extension."""

from __future__ import annotations

import runpy
import shutil
import site
import sys
import zipfile
from pathlib import Path

import pytest

from tests import ROOT
from tests.builds.conftest import Built
from tests.builds.project import SUFFIX, python, succeed

pytestmark = pytest.mark.xdist_group("build")

COMPILED = runpy.run_path(str(ROOT / "setup.py"), run_name="not_the_build")["COMPILED"]

USE_THE_CACHE = """
import pulsar_ml
with pulsar_ml.EntryCacheManager() as manager:
    cache = manager.range_cache("ledger")
    for i in range(200):
        cache.put((1, i), b"payload %d" % i)
    with cache.get((1, 7)) as entry:
        assert bytes(entry) == b"payload 7"
    assert len(cache.get_range((1, 10), (1, 99))) == 90
    assert manager.evict_bytes(100).bytes >= 100
print(pulsar_ml.__file__)
"""

USE_THE_STRANGER = """
import stranger
import pulsar_ml
counter = stranger.Counter()
for i in range(10):
    counter.add(i)
assert counter.value == 45
assert stranger.through_a_queue(range(1, 100)) == list(range(1, 100))
manager = pulsar_ml.EntryCacheManager()
cache = manager.range_cache("ledger")
for i in range(100):
    cache.put((1, i), b"x" * i)
assert stranger.cached_bytes(cache, 1, 0, 1000) == sum(range(100)) == cache.size
with cache.get((1, 5)) as entry:
    assert stranger.handle_of(entry) > 0
assert manager.objects_in_use()["entries"] == 100
try:
    stranger.cached_bytes("not a cache", 1, 0, 1)
except TypeError as error:
    assert "RangeCache" in str(error)
manager.close()
print(pulsar_ml.__file__)
"""


def test_an_installed_package_is_a_plugin_of_pytest(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert (
            "[pytest11]\npulsar_ml = pulsar_ml.harness.testing.pytest_plugin"
            in archive.read(name).decode()
        )


def test_the_wheel_holds_what_users_and_cython_need_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "pulsar_ml"
    for pattern in ("*.py", "*.pyx", "*.pxd", "*.pxi", "*.pyi", "*.h", "py.typed", "templates/*"):
        for source in package.rglob(pattern):
            assert source.relative_to(ROOT).as_posix() in names
    modules = {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)}
    sources = [*package.rglob("*.pyx"), package / "harness" / "pythreads" / "_fibers.pyi"]
    expected = {source.relative_to(ROOT).with_suffix("").as_posix() for source in sources}
    assert modules == expected | {name.replace(".", "/") for name in COMPILED}
    assert {name.split("/")[0] for name in names} == {"pulsar_ml"}
    suffixes = {
        ".py",
        ".pyx",
        ".pxd",
        ".pxi",
        ".pyi",
        ".h",
        ".ld",
        ".so",
        ".typed",
        ".toml",
        ".html",
        ".css",
        ".svg",
        ".js",
    }
    sources_in_c = {name for name in names if name.endswith(".c")}
    written = {
        source
        for source in package.rglob("*.c")
        if not any(source.with_suffix(suffix).exists() for suffix in (".pyx", ".py"))
    }
    assert sources_in_c == {source.relative_to(ROOT).as_posix() for source in written}
    assert {Path(name).suffix for name in names - sources_in_c} == suffixes


def test_an_installed_wheel_works_from_another_directory(built: Built, tmp_path: Path) -> None:
    found = python(USE_THE_CACHE, cwd=tmp_path, path=built.installed)
    assert found == str(built.installed / "pulsar_ml" / "__init__.py")


def test_a_wheel_asks_for_its_dependencies(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(name).decode()
    assert "Requires-Python: >=3.11" in metadata
    assert "Provides-Extra: spark" in metadata
    assert "Requires-Dist: numpy" in metadata
    assert "License-Expression: Apache-2.0" in metadata
    for name in ("LICENSE", "NOTICE"):
        assert f"License-File: {name}" in metadata


def test_a_stranger_builds_and_runs_against_the_installed_wheel(
    built: Built, tmp_path: Path
) -> None:
    home = tmp_path / "stranger"
    home.mkdir()
    for name in ("setup.py", "stranger.pyx"):
        shutil.copy(ROOT / "tests" / "third_party" / name, home)
    build = (sys.executable, "-P", "setup.py", "build_ext", "--inplace")
    output = succeed(*build, cwd=home, path=built.installed)
    assert "warning:" not in output
    (module,) = home.glob("stranger*" + SUFFIX)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(module, elsewhere)
    code = f"import sys; sys.path.append({str(elsewhere)!r})\n" + USE_THE_STRANGER
    found = python(code, cwd=tmp_path, path=built.installed)
    assert found == str(built.installed / "pulsar_ml" / "__init__.py")


def test_an_in_place_build_works(built: Built, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(built.tree, tree)
    succeed(sys.executable, "setup.py", "build_ext", "--inplace", cwd=tree)
    # One module is compiled here; the others show that nothing is built twice.
    gone = tree / "pulsar_ml" / "harness" / "linearize" / "limits" / ("_memory" + SUFFIX)
    for copy in tree.rglob("_memory" + SUFFIX):
        copy.unlink()
    others = {path: path.stat().st_mtime_ns for path in (tree / "pulsar_ml").rglob("*" + SUFFIX)}
    succeed(sys.executable, "setup.py", "build_ext", "--inplace", cwd=tree)
    assert gone.exists()
    assert {path: path.stat().st_mtime_ns for path in others} == others
    assert python(USE_THE_CACHE, cwd=tmp_path, path=tree) == str(tree / "pulsar_ml" / "__init__.py")
    memory = "import pulsar_ml.harness.linearize.limits._memory"
    assert python(memory, cwd=tmp_path, path=tree) == ""


def test_an_editable_install_works_from_another_directory(built: Built, tmp_path: Path) -> None:
    """An editable build compiles in a folder of its own; one small module shows it."""
    tree = tmp_path / "tree"
    shutil.copytree(built.tree, tree)
    module = "pulsar_ml.harness.linearize.limits._memory"
    home = tmp_path / "environment"
    succeed(sys.executable, "-m", "venv", "--without-pip", home, cwd=tmp_path)
    interpreter = home / "bin" / "python"
    [library] = home.glob("lib/python3*/site-packages")  # python3.14t has no GIL
    # What the build needs comes from the environment that runs the tests.
    (library / "tests.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    succeed(
        sys.executable, "-m", "pip", "--python", interpreter, "install", "--no-build-isolation", "--no-deps",
        "--ignore-installed", "-e", tree, cwd=tmp_path, PULSAR_ML_OPTIMIZE="0",
        PULSAR_ML_ONLY=module,
    )  # fmt: skip
    use = f"import {module} as module; print(module.__file__)"
    found = Path(python(use, cwd=tmp_path, interpreter=str(interpreter)))
    assert found.name == f"_memory{SUFFIX}"
    assert tmp_path in found.parents and found.parent.name == "limits"
