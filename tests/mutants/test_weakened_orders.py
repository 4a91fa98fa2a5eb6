"""Automatic mutants of one small suite: which are found, and the file of their results."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from pulsar_ml.campaign.local.weakening import judge_for, notice
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.trial import CHECKED, load_native
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.suites.registry import SUITES
from stress.mutants.faults.results import (
    FAULTS,
    FaultResult,
    fault_tables,
    read,
    reasons,
    unexplained,
    write,
)
from stress.mutants.faults.run import executed_by
from stress.mutants.faults.weakened_orders import Fault, campaigns, faults, hunt
from tests.spark import contrary_suites

SUITE = SUITES["refcount"]
NOWHERE = ("", "", "", "")  # an origin that nothing has


@cache
def found() -> tuple[Fault, ...]:
    return tuple(faults(load_native(CHECKED), [SUITE]))


def test_the_faults_are_those_of_the_structure() -> None:
    assert {(fault.file, fault.function, fault.op, fault.order) for fault in found()} == {
        ("structures/refcount.pxd", "refcount_publish", "store", "release"),
        ("structures/refcount.pxd", "refcount_retain", "cas", "acquire"),
        ("structures/refcount.pxd", "refcount_release", "cas", "release"),
        ("structures/refcount.pxd", "refcount_release", "load", "acquire"),
    }


def fault_of(function: str, op: str) -> Fault:
    return next(fault for fault in found() if (fault.function, fault.op) == (function, op))


def test_a_needed_order_is_found() -> None:
    noticed = hunt(load_native(CHECKED), fault_of("refcount_release", "cas"), [SUITE])
    assert (noticed.suite, noticed.verdict) == ("refcount", "data race")
    assert "| refcount, refcount_release |" in fault_tables([noticed])
    assert not unexplained([noticed])


def test_faults_of_a_suite_are_hunted_in_all_suites_that_execute_them() -> None:
    """A run for one suite replaces a row by what all suites see, not by what this one misses."""
    entry, refcount = SUITES["entry"], SUITES["refcount"]
    every = faults(load_native(CHECKED), [entry, refcount])
    chosen = executed_by(every, ["entry"])
    assert {name for fault in chosen for name in fault.suites} == {"entry", "refcount"}
    assert len(executed_by(every, ["stamped_lock"])) == 0 < len(chosen)
    assert executed_by(every, []) == every


def test_answers_are_noticed_too() -> None:
    """A relaxed read of a size may continue with an old time, which only the model can tell."""
    module, suite = load_native(CHECKED), SUITES["active_cursors"]
    fault = next(one for one in faults(module, [suite]) if one.function == "registry_idle")
    noticed = hunt(module, fault, [suite])
    assert (fault.op, noticed.suite, noticed.verdict) == ("load", "active_cursors", "wrong answers")


def test_answers_that_the_model_refuses_of_the_true_core_too_are_not_noticed() -> None:
    wrong = contrary_suites.SUITES["refcount"]
    module, subject = load_native(CHECKED), load_native(CHECKED).SUBJECTS["refcount"]
    program, more = next(campaigns(module, wrong, True))
    done = explore(subject, program, isolated=True, judge=judge_of(wrong.model), **more)
    assert done.failure is not None and done.failure.kind == WRONG_ANSWERS
    executions, suite, verdict = notice(module, [wrong], partial(campaigns, module))
    assert executions > 0 and (suite, verdict) == ("", "")


def test_the_model_judges_only_calls_that_it_knows() -> None:
    suite = SUITES["range_cache"]
    subject = load_native(CHECKED).SUBJECTS["range_cache"]
    judged = {True: 0, False: 0}
    for program, _ in campaigns(load_native(CHECKED), suite, True):
        names = {
            subject.operations[int(code)].name
            for calls in program.threads
            for code in calls["code"]
        }
        judge = judge_for(suite, subject, program)
        assert (judge is None) == ("over_release" in names)
        judged[judge is not None] += 1
    assert all(judged.values())


def test_unnoticed_faults_are_listed_with_their_reason_or_without() -> None:
    # A fault at no instruction changes nothing, so nothing can notice it.
    silent = replace(
        fault_of("refcount_publish", "store"), function="nowhere", text="none", pcs=(1,)
    )
    noticed = hunt(load_native(CHECKED), silent, [SUITE])
    assert not noticed.suite
    assert unexplained([noticed]) == [noticed]
    assert "**not explained**" in fault_tables([noticed])
    key = next(iter(reasons()))
    assert reasons()[key] in fault_tables([FaultResult(*key, *NOWHERE, 1)])


def test_results_of_faults_are_kept(tmp_path: Path) -> None:
    some = [
        FaultResult("b", "f", 'x, "y"', "relaxed", *NOWHERE, 7, "b", "I1"),
        FaultResult("a", "f", "x", "none", *NOWHERE, 9),
    ]
    write(tmp_path / "faults.csv", some)
    assert read(tmp_path / "faults.csv") == sorted(some)


def test_every_fault_that_nothing_noticed_is_explained_and_every_reason_is_of_such_a_fault() -> (
    None
):
    kept = read(FAULTS)
    assert kept
    assert unexplained(kept) == []
    assert set(reasons()) <= {one.key for one in kept if not one.suite}
