"""Automatic mutants: what a hunt reports, the score, and the file and page of the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_ml.campaign.trial.controlled import program_of, steps_of
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.trial import CHECKED, TrialOptions, load_native
from pulsar_ml.errors import BadRecordError
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.search.child import LostError
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.specs.ack_state import Model
from pulsar_ml.suites.registry import SUITES
from stress.mutants.automatic import hunting
from stress.mutants.automatic.allocations import OF_PLACE, chosen, failing_allocations
from stress.mutants.automatic.command import PAGE
from stress.mutants.automatic.hunting import (
    ENGINE,
    ENGINE_LIMITS,
    LINEAR,
    MODEL,
    ONE,
    Outcome,
    hunt,
    suites_of,
)
from stress.mutants.automatic.page import page
from stress.mutants.automatic.points import Point, points
from stress.mutants.automatic.results import (
    DATA,
    EQUIVALENT,
    HELD_OUT,
    HOLE,
    REASONS,
    Reading,
    Results,
    Score,
    readings,
    result_of,
    score,
)
from stress.mutants.hunting import mutants
from tests.harness.toys.build_toys import toys_path


def outcome_of(module: Any, mutant: str | None, suite: str, *, reached: bool = True) -> Outcome:
    """The hunt of a mutant of the catalogue, as if it were an automatic one."""
    stand_in: Any = SimpleNamespace(
        SUBJECTS=module.SUBJECTS,
        select_mutant=module.select_mutant,
        fail_allocation_after=module.fail_allocation_after,
        was_reached=lambda: reached,
    )
    point: Any = SimpleNamespace(id=mutant) if mutant else None
    return hunt(stand_in, point, (SUITES[suite],))


@pytest.mark.parametrize(
    ("mutant", "suite", "techniques"),
    [
        ("H01", "refcount", {ONE, ENGINE}),  # an invariant
        ("A02", "entry", {MODEL}),  # a wrong answer on one thread
        ("AS1", "stamped_lock", {LINEAR}),  # a wrong answer beside another call
    ],
)
def test_a_mutant_is_found_by_the_technique_that_can(
    mutant: str, suite: str, techniques: set[str]
) -> None:
    done = outcome_of(mutants(), mutant, suite)
    assert done.technique in techniques
    assert (done.suite, done.reached) == (suite, True)
    assert done.verdict and done.executions


@pytest.mark.parametrize(
    ("toy", "verdict"), [("made", ""), ("made_leaking", "leak"), ("made_careless", "crash")]
)
def test_worlds_are_refused_without_memory_and_leave_nothing(toy: str, verdict: str) -> None:
    module = load_checked(toys_path(checked=True, name="oracles"))
    subject = module.SUBJECTS[toy]
    program = Program.generate(subject, 0, threads=1, operations=2, noise=False)
    done: list[tuple[int, int, str]] = []

    def work(send: Callable[[Any], Any]) -> None:
        worlds = failing_allocations(subject, program, module.fail_allocation_after, 8, steps=1000)
        send((worlds.executions, worlds.refused, worlds.verdict))

    try:
        watch(work, done.append, limits=ENGINE_LIMITS)
    except LostError:
        done.append((0, 0, "crash"))
    assert done[0][2] == verdict
    if not verdict:
        assert done[0] == (5, 2, "")  # whole, two refused, and two behind the last allocation


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_the_true_core_is_silent_whichever_allocation_fails(suite: str) -> None:
    module = load_native(CHECKED)
    subject = module.SUBJECTS[SUITES[suite].subject]
    sizes = TrialOptions(threads=1, operations=10)
    for seed in range(2):
        program = program_of(subject, SUITES[suite], seed, sizes)
        done = failing_allocations(
            subject,
            program,
            module.fail_allocation_after,
            64,
            judge=judge_of(SUITES[suite].model),
            steps=steps_of(sizes),
        )
        assert done.verdict == "" and 0 < done.refused < done.executions


def test_a_wrong_answer_of_a_call_without_memory_is_reported() -> None:
    module = load_native(CHECKED)
    suite = SUITES["ack_state"]
    subject = module.SUBJECTS[suite.subject]
    sizes = TrialOptions(threads=1, operations=10)

    class Plentiful(Model):
        allocates = frozenset()

        def allocates_for(self, operation: str, arguments: Sequence[int]) -> bool:
            return False

    found = {
        failing_allocations(
            subject,
            program_of(subject, suite, seed, sizes),
            module.fail_allocation_after,
            64,
            judge=ModelJudge(Plentiful),
            steps=steps_of(sizes),
        ).verdict
        for seed in range(4)
    }
    assert WRONG_ANSWERS in found


def test_of_each_place_the_first_and_the_last_allocation_fail() -> None:
    places = ["world"] + ["entry"] * 40 + ["ring"] + ["entry"] * 40 + ["ring"]
    numbers = chosen(places, 64)
    assert {0, 1, 41, 81, 82} <= set(numbers)
    assert len(numbers) == 1 + 2 + OF_PLACE + 1


def test_the_true_core_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunting, "PROGRAMS", 3)
    done = outcome_of(load_native(CHECKED), None, "refcount", reached=False)
    assert (done.technique, done.verdict, done.reached) == ("", "", False)
    assert done.executions > 500


def test_the_suites_of_a_structure_begin_with_its_own() -> None:
    assert suites_of("structures/refcount.pxd")[0].name == "refcount"
    names = [suite.name for suite in suites_of("structures/map_pages.pxd")]
    assert names[0] == "position_map" and "range_cache" in names and "refcount" not in names


def outcome(technique: str) -> Outcome:
    return Outcome(technique, "refcount" if technique else "", "I12", 7, 0.25, True)


def test_a_result_is_kept_until_its_sources_change(tmp_path: Path) -> None:
    first, second, *_ = points()
    results = Results(tmp_path / "results.csv")
    results.add(result_of(first, outcome(ONE)))
    again = Results(results.path)
    assert again.of(first) == result_of(first, outcome(ONE))
    assert again.of(second) is None
    text = results.path.read_text()
    results.path.write_text(text.replace(result_of(first, outcome(ONE)).origin, "0" * 12))
    assert Results(results.path).of(first) is None


def test_an_equivalent_mutant_does_not_count_and_a_hole_does() -> None:
    some = points()[:4]
    tried = [
        result_of(point, outcome(ONE if number < 1 else "")) for number, point in enumerate(some)
    ]
    known = {
        some[1].key: Reading(EQUIVALENT, "Nobody can tell."),
        some[2].key: Reading(HOLE, "No."),
    }
    assert score(tried, known) == Score(1, 3, 1)
    text = page(tried, known)
    assert "1 of 3 found" in text
    assert "| Nobody can tell. |" in text and "## Survivors, not read" in text
    # A reason of a mutant that was found after all does not hide it.
    assert score(tried, {some[0].key: Reading(EQUIVALENT, "Wrong.")}) == Score(1, 4, 0)


@pytest.mark.parametrize(
    ("found", "tried", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (50, 100, 0.4038, 0.5962), (0, 0, 0.0, 1.0)],
)
def test_the_interval_is_wilsons(found: int, tried: int, low: float, high: float) -> None:
    assert Score(found, tried, 0).interval == pytest.approx((low, high), abs=1e-4)


def test_every_reason_belongs_to_a_mutant_that_survives() -> None:
    keys = {point.key for point in points()}
    found = {
        one.key
        for path in (DATA, *HELD_OUT.values())
        for one in Results(path).by_key.values()
        if one.found
    }
    for key in readings(REASONS):
        assert key in keys, f"no automatic mutant is {key}"
        assert key not in found, f"{key} was found"


def test_the_page_is_what_the_data_gives() -> None:
    held_out = {seed: Results(path).by_key.values() for seed, path in HELD_OUT.items()}
    text = page(Results().by_key.values(), readings(REASONS), held_out)
    assert all(held_out.values()) and text == PAGE.read_text(), (
        "run `python -m stress.mutants.automatic --page-only`"
    )
    assert text != page([*Results().by_key.values()][1:], readings(REASONS), held_out)
    assert text != page(
        Results().by_key.values(), readings(REASONS), {**held_out, 3: [*held_out[3]][1:]}
    )


@pytest.mark.parametrize(
    "text", ["[[survivor]]\nfile = 1\n", "survivor = 3\n", '[[survivor]]\nkind = "x"\n', "= ="]
)
def test_a_damaged_file_of_reasons_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "reasons.toml"
    path.write_text(text)
    with pytest.raises(BadRecordError, match=r"reasons\.toml is damaged"):
        readings(path)


def test_a_point_names_its_line() -> None:
    point: Point = points()[0]
    assert point.id.startswith(f"{point.file}:{point.mistake.statement.line}:")
