"""Guidance: meetings of a recorded execution, scouted programs, successors, equal rows of one seed.

Steering of executions by a tape is in test_steering.py.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from pulsar_ml.campaign.trial.controlled import input_of, load_checked, program_of, run_trial
from pulsar_ml.campaign.trial.guidance import (
    FLOOR,
    MOST_APART,
    PAIRS,
    SCOUTED,
    SEARCHED,
    Guide,
    unsteered,
)
from pulsar_ml.campaign.trial.trial import CHECKED, CONTROLLED, TrialOptions
from pulsar_ml.harness.engine import Explorer, meetings
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.subjects.program import CALL, Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.suites.registry import SUITES

SIZE = TrialOptions()


@pytest.fixture(scope="module")
def core() -> ModuleType:
    return load_checked(CHECKED)


def of_calls(subject: Subject, *threads: tuple[str, ...]) -> Program:
    base = Program.generate(subject, 0, threads=len(threads), operations=1, noise=False)
    arrays = []
    for names in threads:
        calls = np.zeros(len(names), CALL)
        for call, name in zip(calls, names, strict=True):
            call["code"] = subject.operation(name).code
            call["arguments"][0] = 1
        arrays.append(calls)
    return Program(base.subject, 0, base.settings, base.operations, tuple(arrays))


def met(subject: Subject, program: Program, executions: int = 30) -> set[int]:
    explorer = Explorer(subject, program, seed=1)
    found: set[int] = set()
    for number in range(executions):
        explorer.again(number)
        found.update(meetings(explorer).tolist())
    return found


def test_meetings_name_the_operations_that_met(core: ModuleType) -> None:
    subject = core.SUBJECTS["stamped_lock"]
    write, read = (subject.operation(name).code + 1 for name in ("write", "read_optimistic"))
    both = met(subject, of_calls(subject, ("write",), ("read_optimistic",)))
    pairs = {number for number in both if number < PAIRS}
    # A reader takes what the writer stored. An optimistic reader stores nothing.
    assert pairs == {write << 16 | read}
    writers = met(subject, of_calls(subject, ("write",), ("write",)))
    assert {number for number in writers if number < PAIRS} == {write << 16 | write}
    alone = met(subject, of_calls(subject, ("write", "read_optimistic")))
    assert not any(number < PAIRS for number in alone) and alone
    assert both == met(subject, of_calls(subject, ("write",), ("read_optimistic",)))


def test_locks_hand_over(core: ModuleType) -> None:
    """An acquire waits under the lock of the limiter that a release took before."""
    subject = core.SUBJECTS["inflight_limiter"]
    found = met(subject, of_calls(subject, ("acquire", "release"), ("acquire",)))
    assert any(number < PAIRS for number in found)


def run(
    core: ModuleType, suite: str, seed: int, programs: int
) -> list[tuple[Program, Exploration]]:
    subject = core.SUBJECTS[SUITES[suite].subject]
    guide = Guide(subject, SUITES[suite], seed, SIZE)
    done = []
    for number in range(programs):
        one = guide.next(number, guide.drawn(number))
        result = explore(
            subject, one.program, executions=64, seed=seed, look=guide.look, **one.steering
        )
        guide.learn(one.program)
        done.append((one.program, result))
    return done


def test_one_seed_gives_the_same_programs_and_classes(core: ModuleType) -> None:
    first, second = (run(core, "removal_queue", 3, 12) for _ in range(2))
    assert [program.digest() for program, _ in first] == [program.digest() for program, _ in second]
    for (_, one), (_, other) in zip(first, second, strict=True):
        assert one.executions == other.executions
        assert sorted(one.classes) == sorted(other.classes)


def test_a_floor_of_programs_is_drawn_without_guidance(core: ModuleType) -> None:
    subject = core.SUBJECTS["range_cache"]
    programs = [program for program, _ in run(core, "range_cache", 5, 12)]
    plain = [program_of(subject, SUITES["range_cache"], 5 + n, SIZE) for n in range(12)]
    equal = [one == other for one, other in zip(programs, plain, strict=True)]
    assert all(equal[::FLOOR]) and not any(equal[1::FLOOR])


@pytest.mark.parametrize("suite", ["mpsc_queue", "ack_state", "cache_manager"])
def test_successors_fit_their_subject(core: ModuleType, suite: str) -> None:
    """Exclusive roles stay with one thread, sizes and arguments within their ranges."""
    subject, size = core.SUBJECTS[SUITES[suite].subject], SUITES[suite].controlled
    guide = Guide(subject, SUITES[suite], 1, SIZE)
    for number in range(200):
        program = guide.next(number, guide.drawn(number)).program
        guide.met = {PAIRS + number}  # each program is new, and nothing runs
        guide.learn(program)
        assert Program.from_json(program.to_json()) == program
        players: dict[int, set[int]] = {}
        for thread, calls in enumerate(program.threads):
            assert len(calls) <= size.operations[1]
            for call in calls:
                operation = subject.operations[int(call["code"])]
                if operation.role:
                    players.setdefault(operation.role, set()).add(thread)
                for argument, value in zip(
                    operation.arguments, call["arguments"].tolist(), strict=False
                ):
                    assert argument.low <= value <= argument.high
        assert all(len(threads) == 1 for threads in players.values())


def test_pairs_that_never_met_are_put_together(core: ModuleType) -> None:
    subject = core.SUBJECTS["range_cache"]
    guide = Guide(subject, SUITES["range_cache"], 1, SIZE)
    put, get, remove = (subject.operation(name).code for name in ("put", "get", "remove_range"))
    guide.met = {(put + 1) << 16 | get + 1, (remove + 1) << 16 | remove + 1}
    guide.learn(guide.next(0, guide.drawn(0)).program)
    assert set(guide.pairs_apart()) == {(put, remove), (remove, get)}
    together = 0
    for number in range(1, 80, FLOOR):
        threads = guide.next(number, guide.drawn(number)).program.threads
        last = [int(calls[-1]["code"]) for calls in threads if len(calls)]
        together += (put in last and remove in last) or (remove in last and get in last)
    assert together >= 5


def test_energy_falls_with_successors(core: ModuleType) -> None:
    subject = core.SUBJECTS["refcount"]
    guide = Guide(subject, SUITES["refcount"], 1, SIZE)
    for number, new in enumerate((40, 1)):
        guide.met = {PAIRS + 100 * number + one for one in range(new)}
        assert guide.learn(program_of(subject, SUITES["refcount"], number, SIZE)) == new
    assert guide.learn(program_of(subject, SUITES["refcount"], 9, SIZE)) == 0
    rich, poor = guide.corpus
    assert rich.energy == 40 * poor.energy
    for number in range(1, 60, FLOOR):
        guide.next(number, guide.drawn(number))
    assert rich.successors > poor.successors and rich.energy < 40 * poor.energy


def test_a_known_program_ends_early(core: ModuleType) -> None:
    subject = core.SUBJECTS["refcount"]
    guide = Guide(subject, SUITES["refcount"], 1, SIZE)
    simple = of_calls(subject, ("read",), ("read",))
    assert explore(subject, simple, executions=500, look=guide.look).executions == 64
    assert explore(subject, simple, executions=500).executions == 500


def test_each_program_is_scouted_before_it_is_explored(core: ModuleType) -> None:
    subject = core.SUBJECTS["refcount"]
    guide = Guide(subject, SUITES["refcount"], 1, SIZE)
    plain = [program_of(subject, SUITES["refcount"], 1 + number, SIZE) for number in range(20)]
    found = list(guide.programs(20))
    assert [one.scouted for one in found] == [True] * 8 + [False] * 8 + [True] * 12 + [False] * 12
    assert [one.program for one in found if one.scouted] == plain
    assert [one.program for one in found if not one.scouted][::FLOOR] == plain[::FLOOR]
    assert {one.executions(200) for one in found if one.scouted} == {SCOUTED}
    assert {one.executions(200) for one in found if not one.scouted} == {200}
    assert {one.executions(10) for one in found} == {10}


def test_each_scouted_program_is_searched_where_the_guide_is_asked_to(core: ModuleType) -> None:
    subject = core.SUBJECTS["refcount"]
    guide = Guide(subject, SUITES["refcount"], 1, SIZE, searches=True)
    found = list(guide.programs(8))
    scouted, searched, explored = found[:16:2], found[1:16:2], found[16:]
    assert [one.program for one in scouted] == [one.program for one in searched]
    assert len(explored) == 8 and not any(one.scouted for one in explored)
    assert all(one.scouted for one in scouted + searched)
    assert {one.executions(200) for one in searched} == {SEARCHED}
    assert {one.steering.get("strategy") for one in searched} == {"preemptions"}
    assert {one.steering.get("strategy") for one in scouted + explored} == {None}


def test_successors_have_the_tape_of_an_execution_that_was_new(core: ModuleType) -> None:
    subject = core.SUBJECTS["range_cache"]
    guide = Guide(subject, SUITES["range_cache"], 1, SIZE)
    one = guide.next(0, guide.drawn(0))
    assert one.steering == unsteered()
    explore(subject, one.program, executions=64, seed=1, look=guide.look)
    guide.learn(one.program)
    tape = guide.corpus[0].tape
    assert len(tape.decisions) and len(tape.apart) == len(tape.numbers) > 0
    steering = guide.next(1, guide.drawn(1)).steering
    assert steering["decisions"] == tuple(map(tuple, tape.decisions.tolist()))
    # Only pairs that no execution has shown are made to meet.
    assert 0 < len(steering["apart"]) <= MOST_APART
    guide.seen.update(tape.numbers[:, 0].tolist())
    assert guide.next(3, guide.drawn(3)).steering["apart"] == ()


def test_trials_with_a_corpus_make_their_programs_from_it(core: ModuleType) -> None:
    """Odd seeds do; even ones are the floor, and each trial is decided by its seed and corpus."""
    suite = SUITES["range_cache"]
    plain = replace(SIZE, module=CHECKED, engine=CONTROLLED, executions=100)
    subject = core.SUBJECTS["range_cache"]
    options = replace(plain, corpus=(2, 4))
    for seed in (7, 8, 9):
        program, steering = input_of(subject, suite, seed, options)
        again, steered = input_of(subject, suite, seed, options)
        assert (program, steering) == (again, steered)
        drawn, nothing = input_of(subject, suite, seed, plain)
        assert (drawn, nothing) == (program_of(subject, suite, seed, plain), {})
        if seed == 8:
            assert (program, steering) == (drawn, {})
        else:
            assert program != drawn and steering["decisions"]
    results = [run_trial(suite, 7, options) for _ in range(2)]
    assert results[0].classes == results[1].classes and results[0].sketch == results[1].sketch
    assert results[0].sketch != run_trial(suite, 7, plain).sketch
