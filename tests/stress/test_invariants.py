"""Every invariant is mapped to its checks, and the page is the mapping's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.cli.stress import cli
from pulsar_ml.errors import UsageError
from pulsar_ml.suites.registry import SUITES
from stress import invariants
from stress.invariants import DATA, PAGE, Invariant, complaints, page, read_invariants

HERE = Path(__file__).relative_to(invariants.ROOT).as_posix()
THIS = f"{HERE}::test_the_page_is_current"


def test_every_number_is_mapped() -> None:
    assert list(complaints(read_invariants(DATA.read_text()), SUITES)) == []


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == invariants.current_page(), "run python -m stress invariants --write"


def test_the_command_prints_the_page() -> None:
    done = CliRunner().invoke(cli, ["invariants"], standalone_mode=False)
    assert done.output == PAGE.read_text()


ONE = Invariant(1, "Reads", "it holds", "always")
LISTED = {"thing": Suite(name="thing", subject="thing", summary="", invariants={"I1": "It holds."})}


@pytest.mark.parametrize(
    ("invariant", "suites", "complaint"),
    [
        (ONE, {}, "I1 has no check and no reason"),
        (replace(ONE, tests=(f"{HERE}::test_nothing",)), {}, "which does not exist"),
        (replace(ONE, tests=("tests/none.py::test_nothing",)), {}, "which does not exist"),
        (replace(ONE, waits="thing"), LISTED, "which is there"),
        (replace(ONE, none="nobody can see it"), LISTED, "is checked"),
    ],
)
def test_a_wrong_mapping_is_noticed(
    invariant: Invariant, suites: dict[str, Suite], complaint: str
) -> None:
    (found,) = complaints([invariant], suites)
    assert complaint in found


@pytest.mark.parametrize(
    ("invariant", "suites"),
    [(ONE, LISTED), (replace(ONE, tests=(THIS,)), {}), (replace(ONE, waits="thing"), {}),
     (replace(ONE, none="nobody can see it"), {})],
)  # fmt: skip
def test_a_right_mapping_is_not(invariant: Invariant, suites: dict[str, Suite]) -> None:
    assert list(complaints([invariant], suites)) == []


def test_a_missing_number_is_noticed() -> None:
    text = DATA.read_text()
    with pytest.raises(UsageError, match="should be I1 to I105"):
        read_invariants(text[: text.index("[I105]")])


def test_a_change_of_a_suite_changes_the_page() -> None:
    assert "`thing`" in page([ONE], LISTED)
    assert "`thing`" not in page([ONE], {})
