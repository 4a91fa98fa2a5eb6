"""Projects as people have them: CMake, Meson, setuptools and scikit-build-core, each built."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_ml.errors import BuildError, UsageError
from pulsar_ml.harness import InterleavingFailure, check, load_checked
from pulsar_ml.harness.building.project import backend_of, build_project
from tests import ROOT
from tests.commands import call
from tests.conftest import PROJECT_TOOLS

PROJECTS = Path(__file__).parent / "projects"
PAGE = ROOT / "docs" / "checked-builds.md"
FREQUENT = ("CMakeLists.txt", "meson.build", "setup.py", "pyproject.toml")


def program(name: str) -> str:
    """A program beside this Python, or on the path."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.is_file() else str(shutil.which(name))


@pytest.fixture
def project(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    name = str(request.param)
    folder = tmp_path / name
    shutil.copytree(PROJECTS / name, folder)
    if name in ("setuptools", "scikit"):
        shutil.copy(PROJECTS / "counter.c", folder)
    monkeypatch.chdir(folder)
    return folder


def explored(folder: Path) -> None:
    """Check the test file of a project: with the project's flags it compiles, and is clean."""
    done = call("check", "counter_test.cpp", "--executions", "300")
    assert done.code == 0, done.err
    assert "test_no_increment_is_lost  clean: 300 executions" in done.out


CONFIGURE = {
    "cmake": (program("cmake"), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={program('ninja')}",
              "-S", ".", "-B", "build"),
    "meson": (program("meson"), "setup", "build"),
}  # fmt: skip


@pytest.mark.parametrize(
    "project", [name for name in CONFIGURE if name in PROJECT_TOOLS], indirect=True
)
def test_flags_of_a_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINJA", program("ninja"))
    assert "limit.h" in call("check", "counter_test.cpp").err
    subprocess.run(CONFIGURE[project.name], check=True, capture_output=True)
    explored(project)


def functions_of(built: list[Path]) -> None:
    (path,) = built
    module = load_checked(path)
    (result,) = check(module.adds, executions=300)
    assert result.verdict == "clean"
    with pytest.raises(InterleavingFailure, match=r"AssertionError: 1 instead of 2") as caught:
        check(module.loses, executions=2_000)
    assert "counter.c:15" in str(caught.value)


@pytest.mark.parametrize("project", ["setuptools"], indirect=True)
def test_a_project_of_setuptools(project: Path) -> None:
    built = call("build", ".", "--checked", "--into", "out")
    assert built.code == 0, built.err
    functions_of([Path(line).resolve() for line in built.out.splitlines()])


@pytest.mark.parametrize(
    "project", [name for name in ("scikit",) if name in PROJECT_TOOLS], indirect=True
)
def test_a_project_of_scikit_build_core(project: Path) -> None:
    functions_of(build_project(project, into=project.parent / "out"))


@pytest.mark.parametrize("project", ["setuptools"], indirect=True)
def test_a_build_that_fails_is_in_the_compilers_words(project: Path) -> None:
    source = project / "counter.c"
    source.write_text(source.read_text().replace("atomic_int counter = 0;", ""))
    with pytest.raises(BuildError, match=r"(?s)counter.c:\d+.*counter.*undeclared"):
        build_project(project, into=project / "out")


def test_another_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it has no setup.py; a project of setuptools or"):
        backend_of(tmp_path)
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[build-system]\nbuild-backend = "hatchling.build"\n')
    with pytest.raises(UsageError, match="its build backend is 'hatchling.build'"):
        backend_of(tmp_path)


def test_the_page_has_the_files_of_the_projects() -> None:
    page = PAGE.read_text()
    for path in sorted(PROJECTS.rglob("*")):
        if path.name in FREQUENT and path.parent.name in ("cmake", "meson"):
            assert path.read_text().strip() in page
