"""Automatic mutants of one small suite: which are found, which are the operations' own, what is kept."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.trial import CHECKED, load_native
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.search.sandbox import explore_in_child
from pulsar_ml.suites.registry import SUITES
from stress.mutants.faults import NOTICED, Noticed, fault_tables, read, unexplained, write
from stress.mutants.overstrong import KNOWN
from stress.mutants.weakened import Fault, campaigns, faults, hunt, judge_for, notice
from tests.spark import contrary_suites

SUITE = SUITES["refcount"]


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


def test_answers_are_noticed_too() -> None:
    """A look at a size that does not acquire it may go on with an old time: only the model knows that."""
    module, suite = load_native(CHECKED), SUITES["active_cursors"]
    fault = next(one for one in faults(module, [suite]) if one.function == "registry_idle")
    noticed = hunt(module, fault, [suite])
    assert (fault.op, noticed.suite, noticed.verdict) == ("load", "active_cursors", "wrong answers")


def test_answers_that_the_model_refuses_of_the_true_core_too_are_not_noticed() -> None:
    wrong = contrary_suites.SUITES["refcount"]
    module, subject = load_native(CHECKED), load_native(CHECKED).SUBJECTS["refcount"]
    program, more = next(campaigns(module, wrong, own=True))
    done = explore_in_child(subject, program, judge=judge_of(wrong.model), **more)
    assert done.failure is not None and done.failure.kind == WRONG_ANSWERS
    made, suite, verdict = notice(module, [wrong])
    assert made > 0 and (suite, verdict) == ("", "")


def test_the_model_is_asked_only_about_calls_that_it_knows() -> None:
    suite = SUITES["range_cache"]
    subject = load_native(CHECKED).SUBJECTS["range_cache"]
    asked = {True: 0, False: 0}
    for program, _ in campaigns(load_native(CHECKED), suite, own=True):
        names = {
            subject.operations[int(code)].name
            for calls in program.threads
            for code in calls["code"]
        }
        judge = judge_for(suite, subject, program)
        assert (judge is None) == ("over_release" in names)
        asked[judge is not None] += 1
    assert all(asked.values())


def test_what_nothing_notices_is_listed_with_its_reason_or_without() -> None:
    # A fault at no place of the code at all changes nothing, so nothing can notice it.
    silent = replace(
        fault_of("refcount_publish", "store"), function="nowhere", text="none", pcs=(1,)
    )
    noticed = hunt(load_native(CHECKED), silent, [SUITE])
    assert not noticed.suite
    assert unexplained([noticed]) == [noticed]
    assert "**not explained**" in fault_tables([noticed])
    key = next(iter(KNOWN))
    assert KNOWN[key] in fault_tables([Noticed(*key, "", 1)])


def test_what_came_of_faults_is_kept(tmp_path: Path) -> None:
    some = [
        Noticed("b", "f", 'x, "y"', "relaxed", "0", 7, "b", "I1"),
        Noticed("a", "f", "x", "none", "0", 9),
    ]
    write(tmp_path / "faults.csv", some)
    assert read(tmp_path / "faults.csv") == sorted(some)


def test_every_fault_that_nothing_noticed_is_explained_and_every_reason_is_of_such_a_fault() -> (
    None
):
    kept = read(NOTICED)
    assert kept
    assert unexplained(kept) == []
    assert set(KNOWN) <= {one.key for one in kept if not one.suite}
