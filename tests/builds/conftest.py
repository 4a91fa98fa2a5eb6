"""The project built once for all tests of a run, also where several processes share the tests."""

from __future__ import annotations

import fcntl
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builds.project import copy_project, succeed


@dataclass(frozen=True, slots=True)
class Built:
    """A copy of the project after the build; tests that change it copy it first."""

    tree: Path
    wheel: Path
    installed: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    base = tmp_path_factory.getbasetemp()
    # The processes of pytest-xdist have folders of their own below one of the run.
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "built-project"
    home.mkdir(exist_ok=True)
    tree, dist, installed = home / "tree", home / "dist", home / "installed"
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "done").exists():
            pip = (sys.executable, "-m", "pip")
            copy_project(tree)
            succeed(*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", dist, tree, cwd=home)
            (wheel,) = dist.iterdir()
            succeed(*pip, "install", "--no-deps", "--target", installed, wheel, cwd=home)
            (home / "done").touch()
    (wheel,) = dist.iterdir()
    return Built(tree, wheel, installed)
