"""The native runner: real threads, overlaps, stopping, and what it refuses."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest

from pulsar_ml.harness.subjects import threads as runner
from pulsar_ml.harness.subjects.program import CALL, Program, words
from pulsar_ml.harness.subjects.threads import (
    draw_program,
    further_seed,
    run_program,
    run_programs,
)
from pulsar_ml.operations._native import SUBJECTS as NATIVE
from pulsar_ml.suites.registry import SUITES


def program_of(toys: ModuleType, name: str, threads: list[list[tuple[int, int]]]) -> Program:
    """A program by hand: for each thread its (code, noise) pairs."""
    subject = toys.SUBJECTS[name]
    arrays = []
    for calls in threads:
        array = np.zeros(len(calls), CALL)
        array["code"] = [code for code, _ in calls]
        array["noise"] = [noise for _, noise in calls]
        arrays.append(array)
    names = tuple(operation.name for operation in subject.operations)
    return Program(name, 0, {"start": 0}, names, tuple(arrays))


def run_toy(toys: ModuleType, program: Program, **options: Any) -> Any:
    instance = toys.SUBJECTS[program.subject].create(
        threads=len(program.threads), settings=program.settings
    )
    return instance, run_program(instance, program, **options)


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
def test_all_operations_of_all_threads_are_done(toys: ModuleType, threads: Any) -> None:
    toys.select_mutant(None)
    program = Program.generate(toys.SUBJECTS["counter"], 1, threads=threads, operations=500)
    instance, result = run_toy(toys, program)
    assert result.operations == 500 * threads
    assert result.completed == (500,) * threads
    assert not result.violations and not result.stuck
    assert result.duration_ns > 0
    amounts = sum(int(calls["arguments"][calls["code"] == 0, 0].sum()) for calls in program.threads)
    assert instance.call("read").words[0] == amounts
    instance.check()


def test_threads_with_nothing_to_do_end(toys: ModuleType) -> None:
    _, result = run_toy(toys, program_of(toys, "counter", [[], [(0, 0)], []]))
    assert result.completed == (0, 1, 0)


def test_a_lost_update_is_found_when_all_is_quiet(toys: ModuleType) -> None:
    program = Program.generate(toys.SUBJECTS["racy"], 3, threads=2, operations=3000, noise=False)
    instance, result = run_toy(toys, program)
    assert not result.violations
    with pytest.raises(AssertionError, match="T1: the sum is"):
        instance.check()


def test_operations_that_must_overlap_are_seen_to(toys: ModuleType) -> None:
    hold, poke, free = 0, 1, 2
    _, result = run_toy(toys, program_of(toys, "meeting", [[(hold, 0)], [(poke, 0), (free, 0)]]))
    # free starts while hold waits for it.
    assert result.overlaps[free][hold] == 1
    assert result.overlaps[hold][free] == 0
    assert result.overlaps[free][poke] == result.overlaps[poke][poke] == 0


def test_one_thread_overlaps_with_nothing(toys: ModuleType) -> None:
    program = Program.generate(toys.SUBJECTS["counter"], 1, threads=1, operations=2000)
    _, result = run_toy(toys, program)
    assert not np.array(result.overlaps).any()


def test_every_noise_runs_and_the_caller_keeps_its_processors(toys: ModuleType) -> None:
    before = os.sched_getaffinity(0)
    noise = [0, 1, 1000, -1, -2, -3, -4, -258]
    _, result = run_toy(toys, program_of(toys, "counter", [[(0, kind) for kind in noise]] * 3))
    assert result.operations == 3 * len(noise)
    assert os.sched_getaffinity(0) == before


def test_a_violation_while_running_stops_all_threads(toys: ModuleType) -> None:
    program = Program.generate(
        toys.SUBJECTS["tattler"], 1, threads=4, operations=200_000, settings={"start": (50, 50)}
    )
    _, result = run_toy(toys, program)
    [violation] = result.violations
    assert violation.invariant == "T2"
    assert violation.message == "the number of the call is 50, expected -1"
    assert violation.call == result.completed[violation.thread] - 1
    assert result.operations < 4 * 200_000


def test_a_role_is_played_by_one_thread(toys: ModuleType) -> None:
    for seed in range(10):
        _, result = run_toy(
            toys, Program.generate(toys.SUBJECTS["owned"], seed, threads=5, operations=300)
        )
        assert not result.violations


def test_two_threads_in_one_role_are_noticed(toys: ModuleType) -> None:
    instance = toys.SUBJECTS["owned"].create(threads=2)
    instance.call("poll", thread=0)
    with pytest.raises(AssertionError, match="T3"):
        instance.call("poll", thread=1)


def left_behind() -> list[Any]:
    """Return the runs whose threads were left behind, which no stub names."""
    return list(vars(runner)["_left_behind"])


class Interrupter:
    """Sends this process SIGUSR1, whose handler raises, once the toys report that threads run."""

    def __init__(self, toys: ModuleType, times: int) -> None:
        self.toys, self.times = toys, times
        self.handled = threading.Semaphore(0)

    def __enter__(self) -> Interrupter:
        self.before = self.toys.begun()
        self.old = signal.signal(signal.SIGUSR1, self.handle)
        self.sender = threading.Thread(target=self.send, args=(threading.get_ident(),))
        self.sender.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.sender.join()
        signal.signal(signal.SIGUSR1, self.old)

    def handle(self, number: Any, frame: Any) -> None:
        self.handled.release()
        raise KeyboardInterrupt

    def send(self, main: int) -> None:
        while self.toys.begun() == self.before:
            os.sched_yield()
        for _ in range(self.times):
            signal.pthread_kill(main, signal.SIGUSR1)
            self.handled.acquire()


def test_an_interrupt_stops_threads_between_operations(toys: ModuleType) -> None:
    program = Program.generate(
        toys.SUBJECTS["slow"], 1, threads=2, operations=1_000_000, noise=False
    )
    with Interrupter(toys, 1), pytest.raises(KeyboardInterrupt):
        run_toy(toys, program)
    begun = toys.begun()
    # All threads have ended: nothing begins any more, and the runner can run again.
    run_toy(toys, Program.generate(toys.SUBJECTS["slow"], 1, threads=2, operations=1, noise=False))
    assert toys.begun() == begun + 2


def test_a_second_interrupt_leaves_hanging_threads_behind(toys: ModuleType) -> None:
    toys.hold()
    left = len(left_behind())
    program = Program.generate(toys.SUBJECTS["hang"], 1, threads=2, operations=1, noise=False)
    with Interrupter(toys, 2), pytest.raises(KeyboardInterrupt):
        run_toy(toys, program)
    assert len(left_behind()) == left + 1
    toys.let_go()


def test_threads_that_no_longer_move_are_reported(toys: ModuleType) -> None:
    toys.hold()
    program = Program.generate(toys.SUBJECTS["hang"], 1, threads=2, operations=2, noise=False)
    _, result = run_toy(toys, program, patience_ns=1)
    assert result.stuck
    [violation] = result.violations
    assert violation.invariant == "stuck"
    assert "no operation finished for 1e-09 s" in violation.message
    assert result.operations == 0
    toys.let_go()


def run_many(toys: ModuleType, name: str, seed: int = 1, **options: Any) -> Any:
    usual = {"threads": 2, "operations": 40, "inside_ns": 10**15, "most_ns": 10**15}
    return run_programs(toys.SUBJECTS[name], seed, **usual | options)


@pytest.mark.parametrize("threads", [1, 2, 11])
def test_each_of_many_runs_has_an_instance_of_its_own(toys: ModuleType, threads: int) -> None:
    toys.select_mutant(None)
    result = run_many(toys, "counter", threads=threads, most_runs=12)
    # The counter at quiescence compares the sum of its own run.
    assert result.runs == 12 and not result.violations and not result.broken
    assert all(12 * 40 <= calls <= 4 * 12 * 40 for calls in result.completed)
    assert result.core_time.inside > 0 and result.core_time.draw > 0


@pytest.mark.parametrize("bound", [{"inside_ns": 1}, {"most_ns": 0}])
def test_many_runs_end_behind_their_time(toys: ModuleType, bound: Any) -> None:
    assert run_many(toys, "counter", **bound).runs == 1


def test_the_first_broken_instance_ends_many_runs(toys: ModuleType) -> None:
    result = run_many(toys, "racy", operations=3000, noise=False, most_runs=500)
    assert result.runs < 500 and not result.violations
    assert {seen.invariant for seen in result.broken} == {"T1"}
    # Each program has two runs.
    assert (result.runs - 2) // 2 <= result.program <= (result.runs - 1) // 2


def test_a_violation_during_a_run_ends_many_runs(toys: ModuleType) -> None:
    result = run_many(toys, "tattler", operations=20_000, settings={"start": (50, 50)})
    assert (result.runs, result.program) == (1, 0)
    assert {seen.invariant for seen in result.violations} == {"T2"}


@pytest.mark.parametrize("seed", range(4))
def test_each_program_of_many_runs_has_two(toys: ModuleType, seed: int) -> None:
    subject = toys.SUBJECTS["tattler"]
    size: Any = {"threads": 1, "operations": 10}
    # A program fails at the call whose number its setting is.
    failing = next(
        number
        for number in range(1000)
        if draw_program(subject, further_seed(seed, number), **size).settings["start"] < 10
    )
    result = run_many(toys, "tattler", seed, **size)
    assert (result.program, result.runs) == (failing, 2 * failing + 1)


def test_many_runs_end_where_there_is_no_memory_for_an_instance(toys: ModuleType) -> None:
    toys.fail_allocation_after(3)
    with pytest.raises(MemoryError, match="no memory for an instance"):
        run_many(toys, "counter", threads=1)


def test_many_runs_that_no_longer_move_are_reported(toys: ModuleType) -> None:
    toys.hold()
    assert run_many(toys, "hang", patience_ns=1).stuck
    toys.let_go()


def test_an_interrupt_ends_many_runs(toys: ModuleType) -> None:
    with Interrupter(toys, 1), pytest.raises(KeyboardInterrupt):
        run_many(toys, "slow", noise=False)


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1, 2**64 - 1])
def test_a_program_drawn_without_python_is_the_generated_one(seed: int) -> None:
    subjects = [suite.subject for suite in SUITES.values()]
    for number, name in enumerate(subjects):
        size: Any = {"threads": 1 + number % 5, "operations": 30, "noise": number % 2 == 0}
        drawn = draw_program(NATIVE[name], seed, **size)
        generated = Program.generate(NATIVE[name], seed, **size)
        assert drawn == generated and drawn.settings == generated.settings
        assert [len(calls) for calls in drawn.threads] == [
            len(calls) for calls in generated.threads
        ]


def test_programs_drawn_without_python_reach_both_ends_of_all_numbers(toys: ModuleType) -> None:
    subject = toys.SUBJECTS["counter"]
    mix = {operation.name: 1 for operation in subject.operations[:1]}
    for low, high in ((-(2**31), 2**31 - 1), (7, 7)):
        ranges = {setting.name: (max(low, setting.low), min(high, setting.high))
                  for setting in subject.settings}  # fmt: skip
        size: Any = {"threads": 2, "operations": 9, "mix": mix, "settings": ranges}
        assert draw_program(subject, 5, **size) == Program.generate(subject, 5, **size)


def test_seeds_of_further_programs_differ() -> None:
    seeds = {further_seed(seed, number) for seed in (0, 2**64 - 1) for number in range(500)}
    assert len(seeds) == 1000 and max(seeds) < 2**63
    assert further_seed(3, 7) == int(words(3, 5, 29)[28]) >> 1


def test_a_program_for_something_else_is_refused(toys: ModuleType) -> None:
    instance = toys.SUBJECTS["counter"].create(threads=2)
    with pytest.raises(ValueError, match="the program is for subject 'racy'"):
        run_program(instance, Program.generate(toys.SUBJECTS["racy"], 1, threads=2, operations=5))
    with pytest.raises(
        ValueError, match="the program has 3 threads, the instance was created for 2"
    ):
        run_program(
            instance, Program.generate(toys.SUBJECTS["counter"], 1, threads=3, operations=5)
        )
    program = Program.generate(toys.SUBJECTS["counter"], 1, threads=2, operations=5)
    renamed = dataclasses.replace(program, operations=("read", "add"))
    with pytest.raises(ValueError, match="operations"):
        run_program(instance, renamed)


@pytest.mark.parametrize("code", [-1, 2])
def test_an_operation_that_does_not_exist_is_refused(toys: ModuleType, code: Any) -> None:
    instance = toys.SUBJECTS["counter"].create(threads=1)
    with pytest.raises(ValueError, match="operation code outside 0..1"):
        run_program(instance, program_of(toys, "counter", [[(code, 0)]]))


@pytest.mark.parametrize(
    "array", [np.zeros(4, np.int64), np.zeros((2, 2), CALL), np.zeros(8, CALL)[::2]]
)
def test_arrays_of_another_layout_are_refused(toys: ModuleType, array: Any) -> None:
    program = dataclasses.replace(program_of(toys, "counter", [[]]), threads=(array,))
    with pytest.raises(TypeError, match="contiguous array of program.CALL"):
        run_program(toys.SUBJECTS["counter"].create(threads=1), program)


def test_only_instances_are_run(toys: ModuleType) -> None:
    with pytest.raises(TypeError):
        run_program(cast(Any, None), program_of(toys, "counter", [[]]))
