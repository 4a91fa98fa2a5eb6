"""The commands of an installed wheel, without the checkout, for a stranger's suite.

The subject is the ticket lock of docs/testing-your-own.md with its mistake. The engine finds the
mistake with the same seed every time.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import ROOT
from tests.builds.conftest import Built
from tests.builds.project import succeed

pytestmark = pytest.mark.xdist_group("build")

SUITES = '''
"""The suite of the ticket lock."""

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite

SUITE = Suite(
    name="ticket",
    subject="ticket",
    summary="Threads add under the lock.",
    threads=2,
    operations=20,
    invariants={"COUNT": "The counter is the number of additions."},
    controlled=ControlledSize(threads=(2, 2), operations=(2, 3)),
)
SUITES = {"ticket": SUITE}
'''
# A ticket that two threads took, and one that each took once.
TWICE = [(0, 0, 0, 4), (1, 0, 2, 6)]
ONCE = [(0, 0, 0, 4), (1, 1, 2, 6)]


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment with the wheel, and a folder with the stranger's files."""

    home: Path
    folder: Path
    module: str

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs the environment's ``pulsar-ml`` in the folder."""
        dropped = ("SPARK_", "PYSPARK_", "PULSAR_ML_", "PYTHON")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(dropped)}
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return subprocess.run(
            [str(self.home / "bin" / "pulsar-ml"), *arguments],
            cwd=self.folder,
            env={**kept, "PATH": path, **variables},
            capture_output=True,
            text=True,
        )

    def on_ticket(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(name, "--suites", "my_suites", *arguments, "--module", self.module)


def packages(*names: str) -> set[str]:
    """The directories of installed distributions and of those that they require."""
    found: dict[str, str] = {}
    waiting = [Requirement(name) for name in names]
    while waiting:
        requirement = waiting.pop()
        marker = requirement.marker
        if requirement.name in found or (marker and not marker.evaluate({"extra": ""})):
            continue
        try:
            one = distribution(requirement.name)
        except PackageNotFoundError:
            continue
        found[requirement.name] = str(one.locate_file(""))
        waiting += [Requirement(text) for text in one.requires or ()]
    return set(found.values())


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    home = tmp_path_factory.mktemp("wheel") / "environment"
    succeed(sys.executable, "-m", "venv", "--without-pip", home, cwd=home.parent)
    interpreter = home / "bin" / "python"
    (library,) = home.glob("lib/python*/site-packages")
    # The packages that the wheel and its extras require, without the checkout.
    needed = packages("numpy", "click", "rich", "pyarrow", "pyspark", "cython", "pip")
    (library / "packages.pth").write_text("\n".join(sorted(needed)) + "\n")
    install = (sys.executable, "-m", "pip", "--python", interpreter, "install")
    succeed(*install, "--no-deps", "--no-index", built.wheel, cwd=home.parent)
    folder = home.parent / "ticket"
    folder.mkdir()
    (folder / "my_suites.py").write_text(SUITES)
    page = (ROOT / "docs" / "testing-your-own.md").read_text()
    found = re.search(r"^```cython ticket\.pyx\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    (folder / "ticket.pyx").write_text(found[1])
    environment = Installed(home, folder, "")
    done = environment.run("build", "ticket.pyx", "--checked")
    assert done.returncode == 0, done.stdout + done.stderr
    return Installed(home, folder, f"./{done.stdout.strip()}")


def test_the_package_is_the_wheels(installed: Installed) -> None:
    code = "import pulsar_ml, sys; print(pulsar_ml.__file__)"
    python = str(installed.home / "bin" / "python")
    place = succeed(python, "-c", code, cwd=installed.folder).strip()
    assert place.startswith(str(installed.home))


def test_a_failure_is_found_traced_replayed_and_shrunk(installed: Installed) -> None:
    options = ("--seeds", "3", "--executions", "500", "--records", "records")
    found = installed.on_ticket("explore", "ticket", *options)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "data race" in found.stdout
    (command,) = re.findall(r"step by step: (pulsar-ml replay .*)", found.stdout)
    traced = installed.run(*command.split()[1:])
    assert traced.returncode == 1, traced.stdout + traced.stderr
    assert "the failure was made again, step by step" in traced.stdout
    assert "ticket.pyx:23" in traced.stdout
    (record,) = (installed.folder / "records").iterdir()
    replayed = installed.run("replay", str(record), "--trust", "--suites", "my_suites")
    assert replayed.returncode == 1, replayed.stdout + replayed.stderr
    shrunk = installed.run("shrink", str(record), "--trust", "--suites", "my_suites")
    assert shrunk.returncode == 1, shrunk.stdout + shrunk.stderr


SEARCH = ("--engine", "controlled", "--executions", "500", "--seeds", "4", "--chunk-size", "2")


@pytest.mark.parametrize(
    "runner",
    [
        pytest.param(("--runner", "pool", "--workers", "2"), id="pool"),
        pytest.param(("--runner", "spark", "--master", "local-cluster[1,2,1024]"), id="spark"),
    ],
)
def test_sweeps_find_it_and_are_reported(installed: Installed, runner: tuple[str, ...]) -> None:
    out = f"run-{runner[1]}"
    swept = installed.on_ticket("sweep", *SEARCH, *runner, "--out", out)
    assert swept.returncode == 1, swept.stdout + swept.stderr
    assert "4 of 4 trials" in swept.stdout
    (command, *_) = [line for line in swept.stdout.splitlines() if "pulsar-ml replay" in line]
    replayed = installed.run(*command.split()[1:])
    assert replayed.returncode == 1, replayed.stdout + replayed.stderr
    reported = installed.run("report", out, "--format", "json")
    assert reported.returncode == 1, reported.stdout + reported.stderr
    assert json.loads(reported.stdout)["verdict"] == "violation"
    page = installed.run("report", out)
    assert page.returncode == 1 and (installed.folder / out / "report.html").is_file()


@pytest.mark.parametrize(("tickets", "code"), [(TWICE, 1), (ONCE, 0)], ids=["twice", "once"])
def test_histories_are_checked(
    installed: Installed, tickets: list[tuple[int, int, int, int]], code: int
) -> None:
    lines = [
        json.dumps(
            {
                "thread": thread, "operation": "get_and_add", "arguments": [1], "result": ticket,
                "invoked": invoked, "returned": returned,
            }
        )
        for thread, ticket, invoked, returned in tickets
    ]  # fmt: skip
    path = installed.folder / "history.jsonl"
    path.write_text("\n".join(lines) + "\n")
    done = installed.run("linearize", "history.jsonl", "--model", "counter")
    assert done.returncode == code, done.stdout + done.stderr


def test_lists_of_a_strangers_suites(installed: Installed) -> None:
    listed = installed.run("list", "--suites", "my_suites")
    assert listed.returncode == 0 and "Threads add under the lock." in listed.stdout
    checked = installed.run("invariants", "--suites", "my_suites", "--json")
    assert json.loads(checked.stdout) == [
        {"id": "COUNT", "text": "The counter is the number of additions.", "suites": ["ticket"]}
    ]
