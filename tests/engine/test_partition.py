"""Parts of an exhaustive search: disjoint, and together the whole, however it is cut."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.errors import NondeterminismError, UsageError
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.partition import Part, ReducedPart, divided, proved
from tests.engine.programs.build_programs import explorer, program_of, programs

SUMMED = ("executions", "steps", "complete", "cut", "pruned", "stale")
CASES = [
    ("ticket_2_fixed", "sc", "preemptions", 2),
    ("ticket_2_fixed", "sc", "delays", 2),
    ("sb_acq_rel", "c11", "preemptions", 20),
    ("iriw_acq_rel", "c11", "preemptions", 20),
    ("seven_stores", "tso", "delays", 20),
]
# Of thousands of executions each is not a part of its own: the smaller searches show that.
BUDGETED = [
    (*case, budget) for case in CASES for budget in (1, 7, 25) if case != CASES[-1] or budget > 1
]
AnyPart = Part | ReducedPart
Cut = Callable[[AnyPart], list[AnyPart]]


def explored(name: str, part: AnyPart | None, executions: int, **options: Any) -> Exploration:
    subject, program = programs().SUBJECTS[name], program_of(name)
    return explore(subject, program, executions=executions, part=part, **options)


def in_parts(name: str, cut: Cut, budget: int, **options: object) -> tuple[Counter[str], int, str]:
    """The sums over all parts, of which each is searched for a while and its rest is cut again, how
    many there were, and what they prove."""
    sums: Counter[str] = Counter()
    bounds: set[str] = set()
    waiting: list[AnyPart] = [Part()]
    parts = 0
    while waiting:
        done = explored(name, waiting.pop(), budget, **options)
        assert done.failure is None
        sums.update({key: done.statistics[key] for key in SUMMED})
        bounds.update(done.bounds)
        parts += 1
        if done.rest is None:
            assert done.exhausted
        else:
            waiting += cut(done.rest)
    return sums, parts, proved(sorted(bounds))


@pytest.mark.parametrize(("name", "mode", "strategy", "bound", "budget"), BUDGETED)
def test_the_parts_are_the_whole(
    name: str, mode: str, strategy: str, bound: int, budget: int
) -> None:
    options = {"mode": mode, "strategy": strategy, "bound": bound, "reuse": "mixed"}
    whole = explored(name, None, 1_000_000, **options)
    assert whole.exhausted
    sums, parts, proof = in_parts(name, lambda rest: divided([rest], 3), budget, **options)
    assert dict(sums) == {key: whole.statistics[key] for key in SUMMED}
    assert parts > 2
    assert proof == whole.exhausted


def test_parts_that_overlap_are_not_the_whole() -> None:
    """The control: a cut that forgets to raise the floor of its first half searches the second one
    twice.
    """

    def overlapping(rest: AnyPart) -> list[AnyPart]:
        assert isinstance(rest, Part)
        if rest.cut is None or rest.floor:
            return [rest]
        first, second = rest.halves()
        assert isinstance(first, Part)
        return [Part(first.path, first.options, first.floor - 1), second]

    options = {"mode": "sc", "strategy": "preemptions", "bound": 2}
    whole = explored("ticket_2_fixed", None, 1_000_000, **options)
    sums, *_ = in_parts("ticket_2_fixed", overlapping, 20, **options)
    assert sums["executions"] > whole.statistics["executions"]


def test_a_part_that_was_lost_is_missed() -> None:
    """The other control: the whole has what the parts but one do not."""
    options = {"mode": "sc", "strategy": "preemptions", "bound": 2}
    whole = explored("ticket_2_fixed", None, 1_000_000, **options)
    sums, *_ = in_parts("ticket_2_fixed", lambda rest: divided([rest], 2)[:1], 20, **options)
    assert sums["executions"] < whole.statistics["executions"]


def test_a_failure_is_in_one_of_the_parts() -> None:
    """The bug that one search finds is found by exactly those parts that hold its executions."""
    runs = explorer("ticket_2_fixed", mode="sc", strategy="preemptions", bound=1)
    assert runs.path() == ((), (), 0)
    options = {"mode": "sc", "strategy": "preemptions", "bound": 3}
    name = "ticket_2"
    first = explored(name, None, 1_000_000, **options)
    assert first.failure is not None and first.rest is None
    start = explored(name, None, 1, **options).rest
    assert start is not None
    found = [explored(name, part, 1_000_000, **options) for part in divided([start], 12)]
    failed = [done.failure.signature for done in found if done.failure is not None]
    assert first.failure.signature in failed
    assert any(done.failure is None and done.exhausted for done in found)


def test_the_path_of_another_program_is_refused() -> None:
    with pytest.raises(
        NondeterminismError, match="path of the search goes on where the execution has no choice"
    ):
        explored("sb_acq_rel", Part((0,) * 500, (0,) * 500), 10, mode="sc", strategy="preemptions")
    with pytest.raises(NondeterminismError, match="the same choices led to different ones"):
        explored("sb_acq_rel", Part((9,), (0,)), 10, mode="sc", strategy="preemptions")
    with pytest.raises(
        UsageError, match="a path is for the exhaustive strategies, not for 'random'"
    ):
        explored("sb_acq_rel", Part((1,), (2,)), 10, mode="sc", strategy="random")


trees = st.recursive(
    st.none(), lambda below: st.lists(below, min_size=1, max_size=4), max_leaves=60
)


@given(trees, st.integers(1, 9), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_tree_is_divided_without_gap_or_overlap(
    tree: list[object] | None, count: int, seed: int
) -> None:
    """On trees of choices that are not a program's: the same walk as the engine's, by parts in any
    order.
    """
    draw = random.Random(seed)
    leaves: Counter[tuple[int, ...]] = Counter()
    waiting: list[AnyPart] = [Part()]
    while waiting:
        part = waiting.pop(draw.randrange(len(waiting)))
        assert isinstance(part, Part)
        for _ in range(draw.randint(1, 5)):
            path, options = walked(tree, part.path)
            leaves[path] += 1
            rest = advanced(path, options, part.floor)
            if rest is None:
                break
            part = rest
        else:
            waiting += divided([Part.of(str(part))], count)
    assert set(leaves.values()) == {1}
    assert len(leaves) == count_leaves(tree)


def walked(
    tree: list[object] | None, path: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    taken: list[int] = []
    options: list[int] = []
    at: object = tree
    while at is not None:
        assert isinstance(at, list)
        chosen = path[len(taken)] if len(taken) < len(path) else 0
        taken.append(chosen)
        options.append(len(at))
        at = at[chosen]
    return tuple(taken), tuple(options)


def advanced(path: tuple[int, ...], options: tuple[int, ...], floor: int) -> Part | None:
    for at in reversed(range(floor, len(path))):
        if path[at] + 1 < options[at]:
            return Part((*path[:at], path[at] + 1), options[: at + 1], floor)
    return None


def count_leaves(tree: Any) -> int:
    return 1 if tree is None else sum(count_leaves(below) for below in tree)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "1:",
        "0:1/1",
        "0:3/2",
        "2:0/2",
        "0:99999/0",
        "0:1/2,",
        "-1:0/2",
        "0:1/2\n",
        "9" * 9 + ":",
    ],
)
def test_a_text_that_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="part of a search"):
        Part.of(text)
