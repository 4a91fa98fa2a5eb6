"""docs/checked-builds.md, followed by a stranger: checked twins of two extensions."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.builds.conftest import Built
from tests.builds.project import SUFFIX, run, succeed

pytestmark = pytest.mark.xdist_group("build")

PROJECT = ROOT / "tests" / "third_party" / "checked"
PAGE = (ROOT / "docs" / "checked-builds.md").read_text()
COMPILERS = {"gcc": {}, "clang": {"CC": "clang", "CXX": "clang++", "LDSHARED": "clang -shared",
                                  "LDCXXSHARED": "clang++ -shared"}}  # fmt: skip
FOUND = [name for name in COMPILERS if shutil.which(name)]
print(f"compilers found for third-party checked builds: {', '.join(FOUND)}")
BUILD = "setup_checked.py build --build-base checked"


@pytest.fixture(scope="module", params=FOUND)
def home(
    request: pytest.FixtureRequest, built: Built, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A copy of the stranger's project with both builds made."""
    home = tmp_path_factory.mktemp(request.param) / "project"
    shutil.copytree(PROJECT, home)
    assert f"python {BUILD}" in PAGE
    succeed(
        sys.executable,
        "-P",
        *BUILD.split(),
        cwd=home,
        path=built.installed,
        **COMPILERS[request.param],
    )
    plain = ("setup.py", "build_ext", "--inplace")
    succeed(
        sys.executable, "-P", *plain, cwd=home, path=built.installed, **COMPILERS[request.param]
    )
    return home


def search(
    built: Built, home: Path, module: str, *options: str, checked: bool = True
) -> tuple[int, str]:
    """The command of the page; what it returns and prints."""
    assert "python search.py MODULE " in PAGE
    (path,) = (
        (home / "checked").glob(f"lib*/{module}{SUFFIX}")
        if checked
        else home.glob(f"{module}{SUFFIX}")
    )
    done = run(sys.executable, "-P", "search.py", path, *options, cwd=home, path=built.installed)
    return done.returncode, done.stdout


@pytest.mark.parametrize("options", [("ring", "ring_relaxed"), ("measurement", "measurement_bare")])
def test_a_wrong_order_gives_a_wrong_value_in_mode_c11_only(
    built: Built, home: Path, options: tuple[str, str]
) -> None:
    code, output = search(built, home, *options, "c11")
    assert code == 1, output
    assert "invariant R1" in output or "invariant M1" in output
    code, output = search(built, home, *options, "sc")
    assert code == 0, output


@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
@pytest.mark.parametrize(
    "options", [("ring", "ring_release"), ("measurement", "measurement_fenced")]
)
def test_the_right_version_stays_silent(
    built: Built, home: Path, options: tuple[str, str], mode: str
) -> None:
    code, output = search(built, home, *options, mode)
    assert code == 0, output
    assert "clean after 20000 executions" in output


def test_a_module_that_is_not_checked_exercises_nothing(built: Built, home: Path) -> None:
    code, output = search(built, home, "ring", "ring_relaxed", checked=False)
    assert code == 3, output
    assert "nothing_exercised" in output
