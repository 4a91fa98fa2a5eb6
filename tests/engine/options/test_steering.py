"""Executions that depart from a tape: pairs that are made to meet, exact replays, the floor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pulsar_ml.campaign.trial.controlled import load_checked, program_of
from pulsar_ml.campaign.trial.trial import CHECKED, TrialOptions
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import Explorer, meetings, pairs_apart
from pulsar_ml.harness.search.child import STUCK, Heart, LostError
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.sandbox import lost_failure
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.suites.registry import SUITES
from tests.engine.programs.build_programs import program_of as engine_program
from tests.engine.programs.build_programs import programs

DEPARTED = "portfolio"  # the strategy of an execution that departs from a tape
RECORDED = 300
Tape = tuple[tuple[int, int, int, int], ...]


class Recorded:
    """A program of range_cache, one of its executions, and the pairs that it left apart."""

    def __init__(self) -> None:
        self.subject: Subject = load_checked(CHECKED).SUBJECTS["range_cache"]
        self.program = program_of(self.subject, SUITES["range_cache"], 2, TrialOptions())
        explorer = self.explorer()
        explorer.again(3)
        self.tape: Tape = explorer.decisions_made()
        self.apart, self.numbers = pairs_apart(explorer)

    def explorer(self, apart: Sequence[tuple[int, ...]] = (), tape: Tape = ()) -> Explorer:
        return Explorer(self.subject, self.program, seed=6, decisions=tape, apart=apart)

    def steered(self) -> Explorer:
        return self.explorer(self.apart.tolist(), self.tape)


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return Recorded()


def shows(explorer: Explorer, numbers: NDArray[np.uint64]) -> bool:
    """Return True if the execution last made again shows a pair with these numbers."""
    return not set(meetings(explorer).tolist()).isdisjoint(numbers.tolist())


def test_pairs_that_sampling_hardly_shows_are_made_to_meet(recorded: Recorded) -> None:
    """The negative control is the same program without a pair: 300 executions of samplers."""
    explorer = recorded.explorer()
    counts: Counter[int] = Counter()
    for number in range(RECORDED):
        explorer.again(number)
        counts.update(set(meetings(explorer).tolist()))
    rare = [
        (pair, numbers)
        for pair, numbers in zip(recorded.apart.tolist(), recorded.numbers, strict=True)
        if sum(counts[number] for number in numbers.tolist()) <= RECORDED // 100
    ]
    shown = []
    for pair, numbers in rare[:40]:
        explorer = recorded.explorer([pair], recorded.tape)
        shown.append(0)
        for number in range(60):
            explorer.again(number)
            assert explorer.end() == "complete"  # a hold is bounded
            shown[-1] += shows(explorer, numbers)
    # At most 1 % of the executions showed each. Some pairs are impossible, others are easy now.
    assert sum(count >= 4 for count in shown) >= 3
    assert shown.count(0) >= 3


def test_an_execution_that_departs_is_repeated_by_number_and_by_its_decisions(
    recorded: Recorded,
) -> None:
    explorer = recorded.steered()
    departed = 0
    for number in range(60):
        explorer.run(number, 1)
        first = explorer.hashes()
        explorer.again(number)
        assert explorer.hashes() == first
        if explorer.used()[0] != DEPARTED:
            continue
        departed += 1
        again = Explorer(
            recorded.subject,
            recorded.program,
            strategy="replay",
            reuse=explorer.used()[2],
            decisions=explorer.decisions_made(),
        )
        again.again(0)
        assert again.hashes() == first
    assert departed >= 20


def test_half_of_the_executions_leave_the_tape_alone(recorded: Recorded) -> None:
    explorer, plain = recorded.steered(), recorded.explorer()
    used: Counter[str] = Counter()
    for number in range(200):
        explorer.again(number)
        used[explorer.used()[0]] += 1
    assert 80 <= used[DEPARTED] <= 120
    assert set(used) >= {"pct", "pos", "surw", "random"}
    for number in range(20):  # the negative control: without a tape none departs
        plain.again(number)
        assert plain.used()[0] != DEPARTED


def test_a_tape_without_changes_leads_to_its_execution(recorded: Recorded) -> None:
    """Some departures follow the whole tape, or hardly leave it, and end in the class it shows."""
    explorer = recorded.explorer()
    explorer.again(3)
    target = explorer.hashes()[1]
    found = []
    for one in (recorded.explorer(tape=recorded.tape), recorded.explorer()):
        found.append(0)
        for number in range(1000, 1400):
            one.run(number, 1)
            found[-1] += one.hashes()[1] == target
    assert found[0] >= 3 and found[1] == 0


def test_other_strategies_have_no_use_for_a_tape(recorded: Recorded) -> None:
    for strategy in ("pct", "random"):
        steered = Explorer(
            recorded.subject,
            recorded.program,
            decisions=recorded.tape,
            apart=tuple(recorded.apart.tolist()),
            strategy=strategy,
            seed=2,
        )
        plain = Explorer(recorded.subject, recorded.program, strategy=strategy, seed=2)
        hashes = []
        for explorer in (steered, plain):
            explorer.run(0, 20)
            hashes.append(explorer.hashes())
        assert hashes[0] == hashes[1]


@pytest.mark.parametrize("pair", [(0, 5, 4, 1, 1, 1), (64, 1, 1, 1, 1, 1), (-1, 1, 1, 1, 1, 1)])
def test_pairs_that_cannot_be_are_refused(recorded: Recorded, pair: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="is no pair of steps"):
        recorded.explorer([pair])


def test_a_failure_of_a_departure_replays_step_by_step() -> None:
    subject, program = programs().SUBJECTS["counter"], engine_program("counter")
    silent = Explorer(subject, program, seed=11)
    number = 0
    silent.again(number)
    while silent.failed() or not silent.decisions_made():
        number += 1
        silent.again(number)
    tape, (apart, _) = silent.decisions_made(), pairs_apart(silent)
    found = None
    first = 0
    while found is None or found.strategy != DEPARTED:
        found = explore(
            subject,
            program,
            executions=2000,
            seed=11,
            first=first,
            decisions=tape,
            apart=tuple(apart.tolist()),
        ).failure
        assert found is not None
        first = found.execution + 1
    again = found.replay(subject)
    assert again.exact and again.failure is not None
    assert again.failure.decisions == found.decisions


def test_a_lost_process_names_the_tape_of_its_executions(recorded: Recorded) -> None:
    error = LostError(STUCK, "an execution took too long", Heart())
    apart = tuple(map(tuple, recorded.apart.tolist()))
    known = {"seed": 6, "decisions": recorded.tape, "apart": apart}
    failure = lost_failure(error, recorded.subject, recorded.program, known)
    assert (failure.decisions, failure.apart) == (recorded.tape, apart)
    assert Failure.from_text(failure.to_json()) == failure
