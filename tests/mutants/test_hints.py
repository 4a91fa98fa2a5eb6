"""Hints at the causes of mutants: the place that a mutant changed is named, and the page agrees."""

from __future__ import annotations

import pytest

from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.trial import find_subject
from pulsar_ml.harness.causes.why import why
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.suites.registry import SUITES
from stress.mutants import hints
from stress.mutants.catalogue import CATALOGUE
from stress.mutants.csv_rows import read_rows
from stress.mutants.hunting import hunt, mutants


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


def sentences_on(name: str, *, judged: bool = True) -> tuple[str, ...]:
    """The sentences on the failure of a mutant."""
    mutant = next(one for one in CATALOGUE if one.id == name)
    module, suite = mutants(), SUITES[mutant.suite]
    subject, judge = find_subject(module, suite), judge_of(suite.model)
    module.select_mutant(mutant.id)
    try:
        found = hunt(module, mutant, seed=0, mode=mutant.mode or "c11", budget=20_000).failure
        assert found is not None
        failure = shrink(found, subject, budget=hints.SHRINKING, judge=judge)
        again = failure.replay(subject, judge)
        assert again.exact
        rule = suite.invariants.get(failure.rule, "")
        return why(failure, subject, again.trace, judge=judge if judged else None, rule=rule)
    finally:
        module.select_mutant(None)


def test_wrong_answers_end_the_longest_legal_order() -> None:
    order, blocked = sentences_on("A01")
    assert order.startswith("the longest order of the calls that gives these answers: take() -> ")
    assert blocked.startswith("behind it, take() -> ") and blocked.endswith("has no legal place")
    assert sentences_on("A01", judged=False) == ()


def test_a_broken_invariant_has_its_sentence_and_the_orders_of_its_reads() -> None:
    said = sentences_on("M01")
    assert said[0] == "I9 says: Key, value and owner that a read used come from one write section"
    assert any("missed" in each for each in said)
    assert any("releases and the load at" in each and "is relaxed" in each for each in said)
