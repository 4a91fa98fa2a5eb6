"""Automatic mutants of any suites: which are found, which are noticed, and by whom."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pulsar_ml.campaign.local.weakening import Weakening, WeakOrder
from pulsar_ml.campaign.trial.trial import CHECKED, load_native
from pulsar_ml.errors import UsageError
from pulsar_ml.suites.registry import SUITES
from tests.spark import contrary_suites

REFCOUNT = SUITES["refcount"]


def weakening(**changes: object) -> Weakening:
    all_defaults = Weakening(module=load_native(CHECKED), suites=[REFCOUNT], programs=6)
    return replace(all_defaults, **changes)  # type: ignore[arg-type]


def release() -> WeakOrder:
    """The exchange with which a reference is given back."""
    found = weakening(places="refcount_release").mutants()
    return next(mutant for mutant in found if mutant.op == "cas")


def test_mutants_are_one_step_weaker_at_every_executed_atomic() -> None:
    found = weakening().mutants()
    steps = {(mutant.op, mutant.order, mutant.weaker) for mutant in found}
    assert {("cas", "release", "relaxed"), ("load", "acquire", "relaxed")} <= steps
    assert all(mutant.order != mutant.weaker and mutant.pcs for mutant in found)
    kept = weakening(places="structures/refcount.pxd").mutants()
    assert (
        kept == [mutant for mutant in found if "structures/refcount.pxd" in mutant.place] != found
    )


def test_a_needed_order_is_noticed() -> None:
    result = weakening().result(release())
    assert (result.suite, result.verdict) == ("refcount", "data race")
    data = json.loads(json.dumps(result.as_data()))
    assert (data["order"], data["weaker"], data["suite"]) == ("release", "relaxed", "refcount")
    assert "pcs" not in data


def test_a_change_that_nothing_executes_is_not_noticed() -> None:
    result = weakening(programs=2, executions=50).result(replace(release(), pcs=(1,)))
    assert (result.executions, result.suite, result.verdict) == (100, "", "")


def test_suites_that_fail_without_a_mutant_are_refused() -> None:
    weakening(programs=2).check_unchanged()
    wrong = weakening(suites=[contrary_suites.SUITES["refcount"]])
    with pytest.raises(UsageError, match="reports wrong answers in the unchanged code"):
        wrong.check_unchanged()
