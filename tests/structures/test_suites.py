from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.cli import main
from pulsar_ml.operations import _native
from pulsar_ml.suites.registry import SUITES
from tests import ROOT

STRUCTURES = [
    "refcount",
    "stamped_lock",
    "object_pool",
    "mpsc_queue",
    "read_count",
    "entry",
    "position_map",
    "inflight_limiter",
]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_suite_names_the_invariants_that_its_operations_report(structure: str) -> None:
    operations = ROOT / "pulsar_ml" / "operations"
    files = [operations / f"{structure}.pxd", operations / f"{structure}_world.pxd"]
    source = "".join(file.read_text() for file in files if file.exists())
    reported = set(re.findall(r'(?:violate|expect_equal)\(violation, b"([^"]+)"', source))
    assert (
        set(importlib.import_module(f"pulsar_ml.suites.{structure}").SUITE.invariants) == reported
    )


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_page_explains_the_invariants_of_its_suite(structure: str) -> None:
    page = (ROOT / "docs" / "structures" / f"{structure}.md").read_text()
    for invariant in importlib.import_module(f"pulsar_ml.suites.{structure}").SUITE.invariants:
        assert re.search(rf"\b{invariant}\b", page), (
            f"the page of {structure} does not mention {invariant}"
        )


@pytest.mark.parametrize("structure", STRUCTURES)
def test_settings_of_a_suite_lie_within_those_of_its_subject(structure: str) -> None:
    ranges = {
        setting.name: (setting.low, setting.high)
        for setting in _native.SUBJECTS[structure].settings
    }
    for name, (low, high) in importlib.import_module(
        f"pulsar_ml.suites.{structure}"
    ).SUITE.settings.items():
        assert ranges[name][0] <= low <= high <= ranges[name][1]


def test_threads_meet_in_the_programs_of_every_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least nine of ten programs as they are by default are exercised under the engine."""
    monkeypatch.chdir(tmp_path)
    words = ("explore", "all", "--seeds", "20", "--executions", "20", "--json")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    idle = {each["suite"]: each["idle"] for each in json.loads(done.stdout)["suites"]}
    assert idle.keys() == SUITES.keys()
    assert {name: number for name, number in idle.items() if number > 2} == {}


def test_the_product_has_no_mutants() -> None:
    assert _native.MUTANTS == ()
    _native.select_mutant(None)
    with pytest.raises(ValueError, match="no mutant 'H01'"):
        _native.select_mutant("H01")
