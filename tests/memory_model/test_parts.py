"""Parts of a search with reduction: disjoint, and together the classes of the uncut search."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pulsar_ml.errors import NondeterminismError, UsageError
from pulsar_ml.harness.engine import Explorer, part_words
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.partition import ADVANCE, Part, ReducedPart, divided
from tests import ROOT
from tests.engine.programs.build_programs import program_of, programs
from tests.memory_model.compare import FAULTY
from tests.memory_model.engine import SPIN_BOUND, cells
from tests.memory_model.engine import program_of as cells_program_of
from tests.memory_model.generator import program_of_seed

AnyPart = Part | ReducedPart
Cut = Callable[[AnyPart], list[AnyPart]]
MODES = ("sc", "tso", "c11")
# More than one execution a class comes from loops; the others have one.
NAMES = ("increments_4", "exchanges_4", "readers_4", "ticket_2_fixed")


def in_three(rest: AnyPart) -> list[AnyPart]:
    """Cut a part, by way of the text that a trial's row holds."""
    return divided([Part.of(str(rest))], 3)


def searched(name: str, cut: Cut, budget: int, **options: Any) -> tuple[Counter[str], set[int]]:
    """Search a program in parts; return the sums of their counts, and the classes."""
    sums: Counter[str] = Counter()
    classes: set[int] = set()
    waiting: list[AnyPart] = [Part()]
    while waiting:
        done = explore(
            programs().SUBJECTS[name],
            program_of(name),
            executions=budget,
            strategy="exhaust",
            part=waiting.pop(),
            **options,
        )
        assert done.failure is None
        sums.update({key: done.statistics[key] for key in ("complete", "blocked", "executions")})
        classes |= set(done.classes.tolist())
        sums["parts"] += 1
        if done.rest is None:
            assert done.exhausted
        else:
            waiting += cut(done.rest)
    return sums, classes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_the_parts_visit_each_class_as_often_as_the_uncut_search(name: str, mode: str) -> None:
    whole, classes = searched(name, in_three, 1_000_000, mode=mode, reuse="mixed")
    assert whole["parts"] == 1
    for budget in (1, 7):
        sums, found = searched(name, in_three, budget, mode=mode, reuse="mixed")
        assert (sums["complete"], found) == (whole["complete"], classes)
        assert sums["parts"] > 1


@pytest.mark.parametrize("mode", ["sc", "c11"])
def test_the_parts_of_a_bounded_search_have_its_classes(mode: str) -> None:
    name, options = "treiber_two_do_both", {"mode": mode, "preemptions": 1}
    whole, classes = searched(name, in_three, 1_000_000, **options)
    sums, found = searched(name, in_three, 7, **options)
    assert sums["parts"] > 1 and found == classes and sums["complete"] == whole["complete"]


def test_a_search_that_goes_on_makes_the_same_executions() -> None:
    whole, classes = searched("exchanges_5", in_three, 1_000_000, mode="c11")
    for budget in (1, 10):
        sums, found = searched("exchanges_5", lambda rest: [rest], budget, mode="c11")
        assert found == classes and sums["parts"] > 1
        assert [sums[key] for key in ("complete", "blocked")] == [
            whole[key] for key in ("complete", "blocked")
        ]


def test_a_part_that_was_lost_is_missed() -> None:
    whole, classes = searched("increments_5", in_three, 1_000_000, mode="sc")
    sums, found = searched("increments_5", lambda rest: in_three(rest)[:1], 20, mode="sc")
    assert found < classes and sums["complete"] < whole["complete"]


def test_parts_that_overlap_make_more() -> None:
    """The control: the part with the path forgets that the rest was given away."""

    def overlapping(rest: AnyPart) -> list[AnyPart]:
        if rest.cut is None or rest != rests.setdefault(0, rest):
            return [rest]
        return [rest, rest.halves()[1]]

    rests: dict[int, AnyPart] = {}
    whole, classes = searched("increments_5", in_three, 1_000_000, mode="sc")
    sums, found = searched("increments_5", overlapping, 20, mode="sc")
    assert found == classes and sums["complete"] > whole["complete"]


def classes_of(seed: int, mode: str, budget: int) -> tuple[set[int], int] | None:
    """Search a random program in parts; return its classes, and the number of parts.

    None where the program is not reduced, or too long.
    """
    litmus = program_of_seed(seed)
    module = cells()
    module.set_faulty(True)
    found: set[int] = set()
    waiting: list[AnyPart] = [Part()]
    parts = 0
    while waiting:
        runs = Explorer(
            module.SUBJECTS["cells"],
            cells_program_of(litmus),
            mode=mode,
            strategy="exhaust",
            faults=FAULTY,
            spins=SPIN_BOUND,
            **waiting.pop().begin,
        )
        done, more = 0, True
        while done < budget and more:
            done += runs.run(done, budget - done)
            if runs.failed():
                assert runs.end() == "deadlock"
                more = runs.skip()
            more = more and not runs.statistics()["exhausted"]
        found |= set(runs.classes().tolist())
        parts += 1
        if runs.statistics()["unreduced"] or parts > 60 or done > 2_000:
            return None
        if more:
            waiting += in_three(ReducedPart(tuple(part_words(runs).tolist())))
    return found, parts


@pytest.mark.parametrize("mode", MODES)
def test_random_programs_with_faults_have_the_same_classes_in_parts(mode: str) -> None:
    compared = 0
    for seed in range(40):
        if program_of_seed(seed).has("spawn"):
            continue
        whole = classes_of(seed, mode, 2_000)
        cut = whole and classes_of(seed, mode, max(3, len(whole[0]) // 8))
        if whole and cut:
            assert cut[0] == whole[0], f"program {seed}"
            compared += cut[1] > 1
    assert compared > 6


def test_another_process_goes_on_where_this_one_stopped() -> None:
    """There the program lies at other addresses."""
    name = "exchanges_5"
    options: dict[str, Any] = {"mode": "c11", "strategy": "exhaust"}
    subject, program = programs().SUBJECTS[name], program_of(name)
    whole = explore(subject, program, executions=1_000, **options)
    begun = explore(subject, program, executions=30, **options)
    code = (
        "import sys; from tests.memory_model.test_parts import *\n"
        f"done = explore(programs().SUBJECTS[{name!r}], program_of({name!r}), executions=1_000,"
        f" part=Part.of(sys.argv[1]), **{options!r})\n"
        "print(json.dumps([done.statistics['complete'], done.classes.tolist()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(begun.rest)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    complete, classes = json.loads(done.stdout)
    assert begun.statistics["complete"] + complete == whole.statistics["complete"]
    assert set(begun.classes.tolist()) | set(classes) == set(whole.classes.tolist())


def test_a_part_that_gives_the_reduction_up_leaves_the_whole() -> None:
    """Its loop yields again and again in some executions only; a part has only some of them."""
    name = "exchanges_4"
    options: dict[str, Any] = {"mode": "c11", "strategy": "exhaust"}
    subject, program = programs().SUBJECTS[name], program_of(name)
    begun = explore(subject, program, executions=3, **options).rest
    assert isinstance(begun, ReducedPart)
    done = explore(subject, program, executions=100, part=begun, races=False, **options)
    assert done.statistics["unreduced"] and done.executions == 0 and not done.exhausted
    assert done.rest is not None and not isinstance(done.rest, ReducedPart)
    again = Part.of(str(done.rest))
    assert isinstance(again, Part) and again.unreduced and not again.path
    rest = explore(subject, program, executions=100_000, part=again, **options)
    assert rest.exhausted and "searched without reduction" in " ".join(rest.remarks)


def test_damaged_parts_are_refused() -> None:
    name = "exchanges_5"
    options: dict[str, Any] = {"mode": "c11", "strategy": "exhaust"}
    subject, program = programs().SUBJECTS[name], program_of(name)
    rest = explore(subject, program, executions=20, **options).rest
    assert isinstance(rest, ReducedPart)
    for text in ("r", "r1", "rx", str(rest).rsplit(",", 1)[0], "r" + "0," * 9 + "0", f"{rest},1"):
        with pytest.raises(UsageError, match="part of a search"):
            Part.of(text)
    with pytest.raises(UsageError, match="damaged, or of another program"):
        explore(subject, program, executions=20, part=rest, **{**options, "mode": "sc"})
    for at in range(len(rest.words)):
        for word in (0, 1, (1 << 64) - 1, rest.words[at] ^ 1, rest.words[at] ^ 1 << 33):
            words = (*rest.words[:at], word, *rest.words[at + 1 :])
            try:
                part = Part.of(str(ReducedPart(words)))
                for each in (part, *(part.halves() if part.cut is not None else ())):
                    explore(subject, program, executions=3, part=each, **options)
            except (UsageError, NondeterminismError):
                pass


def test_a_part_that_did_not_begin_is_not_divided() -> None:
    name = "increments_5"
    subject, program = programs().SUBJECTS[name], program_of(name)
    rest = explore(subject, program, executions=10, mode="sc", strategy="exhaust").rest
    assert isinstance(rest, ReducedPart)
    _, later = rest.halves()
    assert later.words[ADVANCE] and later.cut is None
    with pytest.raises(ValueError, match="cannot be divided"):
        later.halves()
