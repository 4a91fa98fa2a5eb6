"""Weakened atomics of one small suite: which are found, which are the operations' own, which order is
needed."""

from __future__ import annotations

from functools import cache

from pulsar_ml.campaign.trial import CHECKED, load_native
from stress.mutants.weakened import Fault, Noticed, faults, hunt, table
from stress.registry import SUITES

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
    assert "| refcount.pxd:" in table([noticed])


def test_what_nothing_notices_is_listed_with_its_reason_or_without() -> None:
    # A fault at no place of the code at all changes nothing, so nothing can notice it.
    fault = fault_of("refcount_publish", "store")
    silent = Fault(
        fault.file, fault.line, fault.op, fault.order, fault.weaker, "nowhere", "none", (1,), fault.suites
    )
    noticed = hunt(load_native(CHECKED), silent, [SUITE])
    assert noticed == Noticed(silent, noticed.executions)
    assert "**not explained**" in table([noticed])
