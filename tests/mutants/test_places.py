"""The list of automatic mutants is complete.

Every atomic, fence and lock of the sources is on it, or is listed as executed by no suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from pulsar_ml.campaign.trial.trial import CHECKED, load_native
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import ROOT, STRUCTURES
from stress.mutants.faults.ignored_locks import faults as locks_tried
from stress.mutants.faults.locks import locks_of
from stress.mutants.faults.places import (
    NOT_EXECUTED,
    OrderedStatement,
    not_executed,
    places_of,
    statements,
)
from stress.mutants.faults.weakened_orders import faults as orders_tried
from stress.mutants.markdown import row

# The programs of all suites, which execute the atomics, run once.
pytestmark = pytest.mark.xdist_group("places")

SOURCE = """\
cdef inline void link(Node* node,
                      Node* other) noexcept nogil:
    # ptr_store_release(&node.next, other) stands here only in a comment
    ptr_store_relaxed(&node.next, other)
    if (ptr_load_acquire(&node.next) is other
            and u32_cas_weak_acq_rel(
                &node.count, &seen, 1)):  # made once
        fence_release()


cdef struct Node:
    pml_ptr next
"""


@cache
def places() -> Sequence[OrderedStatement]:
    return [place for path in sorted(STRUCTURES.glob("*.pxd")) for place in places_of(path)]


@cache
def tried() -> frozenset[tuple[str, str, str]]:
    faults = orders_tried(load_native(CHECKED), SUITES.values())
    return frozenset((Path(fault.file).stem, fault.function, fault.text) for fault in faults)


def test_a_place_is_a_statement_with_an_order(tmp_path: Path) -> None:
    path = tmp_path / "node.pxd"
    path.write_text(SOURCE)
    assert [place.key for place in places_of(path)] == [
        ("node", "link", "if (ptr_load_acquire(&node.next) is other"),
        ("node", "link", "and u32_cas_weak_acq_rel("),
        ("node", "link", "fence_release()"),
    ]
    assert [lines for _, lines in statements(SOURCE)] == [
        ("ptr_store_relaxed(&node.next, other)",),
        (
            "if (ptr_load_acquire(&node.next) is other",
            "and u32_cas_weak_acq_rel(",
            "&node.count, &seen, 1)):",
        ),
        ("fence_release()",),
    ]


def test_every_atomic_of_the_sources_is_tried_or_executed_by_no_suite() -> None:
    assert {place.key for place in not_executed(places(), tried())} == set(NOT_EXECUTED)


def test_everything_tried_is_in_the_sources() -> None:
    lines = {(place.file, place.function, line) for place in places() for line in place.lines}
    assert tried() <= lines


def test_a_place_that_is_not_tried_is_noticed() -> None:
    some = next(place for place in places() if place.key in tried())
    assert some in not_executed(places(), tried() - {some.key})


def test_every_lock_of_the_sources_is_tried() -> None:
    every = {lock for path in STRUCTURES.glob("*.pxd") for lock in locks_of(path)}
    assert {fault.lock for fault in locks_tried(load_native(CHECKED), SUITES.values())} == every


def test_the_page_lists_orders_that_no_suite_executes() -> None:
    page = (ROOT / "docs" / "kill-table.md").read_text()
    for (file, function, text), why in NOT_EXECUTED.items():
        assert row(f"{file}, {function}", f"`{text}`", why) in page
