"""The table of packages: tests of the standard library, and the rows that the page prints."""

from __future__ import annotations

import re

import pytest

from tests import ROOT
from tests.pythreads.packages.__main__ import expected
from tests.pythreads.packages.cases import BUG, CASES, Case
from tests.pythreads.packages.versions import explore_case

PAGE = ROOT / "docs" / "python-packages.md"
EXECUTIONS = 300
LIBRARY = [case for case in CASES if not case.requirement]


@pytest.mark.parametrize("case", LIBRARY, ids=lambda case: f"{case.test}-{case.semantics}")
def test_the_standard_library(case: Case) -> None:
    outcome, _, text = explore_case(case, EXECUTIONS, seed=0)
    assert outcome == expected(case), text


def cells(line: str) -> list[str]:
    return [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]


def test_the_page_has_the_rows_of_the_table() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| (`|standard)", line)]
    known = [case.known or ("no report found" if case.expected == BUG else "") for case in CASES]
    assert [cells(line) for line in lines] == [
        [case.requirement or "standard library", case.expected, case.semantics, case.finding, note]
        for case, note in zip(CASES, known, strict=True)
    ]
