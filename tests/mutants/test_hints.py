"""Hints at the causes of mutants: the place that a mutant changed is named, and the page agrees."""

from __future__ import annotations

import pytest

from stress.mutants import hints
from stress.mutants.catalogue import CATALOGUE
from stress.mutants.csv_rows import read_rows


@pytest.mark.parametrize(("name", "cause"), [("M01", hints.ORDER), ("H20", hints.LOCK)])
def test_the_changed_function_is_named_first(name: str, cause: str) -> None:
    mutant = next(one for one in CATALOGUE if one.id == name)
    result = hints.result_of(mutant, cause)
    assert result.right == 1, result


def test_a_hint_of_the_other_kind_is_not_right() -> None:
    mutant = next(one for one in CATALOGUE if one.id == "M01")
    assert hints.result_of(mutant, hints.LOCK).right == 0


def test_the_page_is_that_of_the_results_and_reaches_its_aims() -> None:
    results = read_rows(hints.DATA, hints.Result)
    assert hints.PAGE.read_text() == hints.page(results)
    for cause, ids in hints.CAUSES.items():
        own = [one for one in results if one.cause == cause]
        assert {one.mutant for one in own} == set(ids.split())
        assert sum(one.right > 0 for one in own) >= hints.TARGETS[cause] * len(own)
