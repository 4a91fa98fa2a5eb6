"""Automatic mutants: which mistakes a source gets, their names, and the switches around them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from stress.mutants.automatic.operators import OPERATORS, mistakes
from stress.mutants.automatic.points import PACKAGE, Point, points, sample, sources
from stress.mutants.automatic.schemata import pattern_flags, switched, weak_declarations
from stress.mutants.automatic.statements import Statement, statements

SOURCE = """\
cdef enum:
    MOST = 3 < 4

cdef inline uint32_t take(Pool* pool, uint32_t n) noexcept nogil:
    # a < b in a comment is no comparison
    cdef uint64_t seen = <uint64_t>n
    if n < MOST or pool is NULL:
        return 0
    if not grow(pool):
        n -= 1
    pool.used = (n
                 + 1)
    u32_store_release(&pool.cell, n)
    pool_give(&pool.rest, n)
    pause()
    return n
"""


def of(text: str, folder: Path) -> list[Statement]:
    path = folder / "source.pxd"
    path.write_text(text)
    return statements(path)


def test_each_kind_of_statement_has_its_mistakes(tmp_path: Path) -> None:
    found = [
        (one.statement.line, one.operator, one.change) for one in mistakes(of(SOURCE, tmp_path))
    ]
    give = "pool_give(&pool.rest, n)"
    assert found == [
        (7, "boundary", "< to <="),
        (7, "boundary", "is to is not"),
        (8, "return left out", "return 0"),
        (9, "status ignored", "the branch is not taken"),
        (10, "change left out", "n -= 1"),
        (10, "change doubled", "n -= 1"),
        (11, "step left out", "+ 1 to + 0"),
        (11, "step doubled", "+ 1 to + 2"),
        (11, "store left out", "pool.used = (n + 1)"),
        (13, "order relaxed", "u32_store_release"),
        (13, "store left out", "u32_store_release(&pool.cell, n)"),
        (14, "call left out", give),
        (14, "call doubled", give),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "x = <uint64_t>y",  # a cast is no comparison
        "x = (<Node*>y)",
        "pause()",  # a hint
        "return x",  # at the end of its function
        "cdef int64_t x",
        "x = y + 10",
    ],
)
def test_what_cannot_be_wrong_has_no_mistake(line: str, tmp_path: Path) -> None:
    head = "cdef inline void f(int64_t y) noexcept nogil:\n    "
    assert [*mistakes(of(f"{head}{line}\n", tmp_path))] == []
    assert [*mistakes(of(f"{head}x.y = 1\n", tmp_path))] != []


def test_switches_stand_around_the_changed_statements_alone(tmp_path: Path) -> None:
    found = [*mistakes(of(SOURCE, tmp_path))]
    chosen = [(7, found[0]), (8, found[3]), (9, found[6])]
    numbered = [(number, Point("source.pxd", one, 1, 1)) for number, one in chosen]
    text = switched(SOURCE, numbered)
    assert text.startswith("from pulsar_ml.sync.mutants cimport (pml_at)\n")
    condition = "n < MOST or pool is NULL"
    assert (
        f"((not not (n <= MOST or pool is NULL)) if pml_at(7) else (not not ({condition})))" in text
    )
    assert "((not not ((not grow(pool)) and False)) if pml_at(8)" in text
    assert "    if pml_at(9):\n        pool.used = (n + 0)\n    else:\n" in text
    unchanged = [line for line in SOURCE.splitlines() if line not in text.splitlines()]
    assert unchanged == [
        "    if n < MOST or pool is NULL:", "    if not grow(pool):", "    pool.used = (n",
        "                 + 1)",
    ]  # fmt: skip


def test_a_weak_twin_of_each_order_is_relaxed() -> None:
    header, declarations = weak_declarations()
    assert "_RELAXED" in header
    assert not {"_ACQUIRE", "_RELEASE", "_ACQ_REL"} & {*re.findall(r"_[A-Z_]+", header)}
    twins = {*re.findall(r"\bweak_\w+(?=\()", header)}
    assert twins == {*re.findall(r"\bweak_\w+(?=\()", declarations)}
    assert "weak_u32_load_acquire" in twins and "weak_ptr_cas_strong_acq_rel" in twins
    for point in points():
        if point.mistake.operator == "order relaxed":
            assert f"weak_{point.mistake.change}" in twins


def test_names_are_unique_and_the_same_each_time() -> None:
    every = points()
    assert len({point.id for point in every}) == len({point.key for point in every}) == len(every)
    points.cache_clear()
    assert points() == every
    assert {point.mistake.operator for point in every} == set(OPERATORS)
    with_code = {path for path in sources() if [*mistakes(statements(path))]}
    assert {PACKAGE / point.file for point in every} == with_code


def test_a_larger_sample_begins_with_a_smaller() -> None:
    small, large = sample(20, 1), sample(60, 1)
    assert large[:20] == small
    assert sample(60, 2) != large
    assert max(Counter(point.id for point in large).values()) == 1


def test_a_compiler_that_knows_no_pattern_gets_no_flag_for_it(tmp_path: Path) -> None:
    answers = {"knows": "exit 0", "refuses": 'case "$*" in *auto-var-init*) exit 1;; esac'}
    for name, line in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    flag = ["-ftrivial-auto-var-init=pattern"]
    assert pattern_flags([str(tmp_path / "knows")]) == flag
    assert pattern_flags([str(tmp_path / "refuses")]) == []
