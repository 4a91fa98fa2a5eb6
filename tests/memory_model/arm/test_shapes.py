"""The shapes in which the structures use memory orders are safe on AArch64 and in C11."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import ROOT
from tests.memory_model.arm.a64 import TARGETS
from tests.memory_model.arm.page import orders, programs, rows_of_pairs
from tests.memory_model.arm.shapes import SHAPES, Shape, is_wrong, targets_of, verdicts, weakened

PAGE = ROOT / "docs" / "memory-ordering.md"
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


@each_shape
def test_neither_model_allows_the_wrong_reads(shape: Shape) -> None:
    assert targets_of(shape, shape.program) == ()
    for target in TARGETS:
        found = verdicts(shape, shape.program, target)
        assert found.agrees and found.arm and not is_wrong(shape, found.c11)


@each_shape
def test_a_weaker_order_allows_each_of_the_wrong_reads(shape: Shape) -> None:
    """The control: a shape whose reads nothing allows would hold no order."""
    assert any(row.c11 or row.arm for row in weakened(shape))
    for reads in shape.wrong:
        assert any(row.c11 or row.arm for row in weakened(only(shape, reads))), reads


def only(shape: Shape, reads: tuple[tuple[int, ...], ...]) -> Shape:
    return Shape(shape.name, shape.program, (reads,), shape.pairs, shape.depends)


def test_a_dependency_only_takes_away() -> None:
    for shape in SHAPES:
        for row in weakened(shape):
            assert set(row.dependent) <= set(row.arm)


def test_the_targets_show_the_same() -> None:
    """The page has one column for all of them."""
    for shape in SHAPES:
        for row in weakened(shape):
            assert row.arm in ((), TARGETS) and row.dependent in ((), TARGETS), row


def test_what_arm_alone_shows_is_load_buffering() -> None:
    alone = [row for shape in SHAPES for row in weakened(shape) if row.arm and not row.c11]
    assert alone and all(row.buffering for row in alone)


def tables() -> Iterator[str]:
    yield "\n".join(programs())
    yield "\n".join(orders())


def test_the_page_has_the_tables() -> None:
    text = PAGE.read_text()
    for table in tables():
        assert table in text, f"python -m tests.memory_model.arm.page\n{table}"


def test_each_pair_of_the_page_belongs_to_a_shape() -> None:
    pairs = {pair for shape in SHAPES for pair in shape.pairs}
    rows = rows_of_pairs(PAGE.read_text())
    assert len(rows) > 30 and pairs == set(rows)
