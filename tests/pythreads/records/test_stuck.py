"""A thread that never gets to a step: the report names it, and where it stands."""

from __future__ import annotations

import os
import threading

import pytest

from pulsar_ml.cli.options import child_limits
from pulsar_ml.harness.pythreads.check import explore_python, replay_python
from pulsar_ml.harness.pythreads.points import PACKAGE
from pulsar_ml.harness.pythreads.stuck import PAGE, answer_stuck, places
from pulsar_ml.harness.search.child import STUCK, Limits

BUSY = Limits(wall=60, cpu=0.4)  # of processor time: the machine's load does not matter


def beside(function: object) -> None:
    """Run a function in a thread beside one that does nothing."""
    threads = [threading.Thread(target=each) for each in (function, str)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def spin(turns: int) -> None:
    while turns:
        turns += 1


def loop() -> None:
    spin(1)


def compute() -> None:
    sum(range(10**13))


def test_a_loop_without_a_step_is_named() -> None:
    def test() -> None:
        beside(loop)

    done, text = explore_python(test, limits=BUSY)
    failure = done.failure
    assert failure is not None
    assert failure.kind == STUCK
    assert failure.message.startswith(
        "no execution ended within 0.4 s of processor time: thread 1 took no scheduling point for "
    )
    assert "a long computation needs a larger bound: --patience" in failure.message
    functions = [place.partition(" ")[0] for place in failure.where]
    assert functions == ["spin", "loop"]
    assert "  at spin records/test_stuck.py:" in text
    again, _ = replay_python(test, failure, limits=BUSY)
    assert again.exact
    assert again.failure is not None
    assert again.failure.where[-1] == failure.where[-1]


def test_a_long_call_of_native_code_is_named_by_its_caller() -> None:
    done, _ = explore_python(lambda: beside(compute), limits=BUSY)
    assert done.failure is not None
    assert done.failure.where[0].startswith("compute records/test_stuck.py:")


def test_a_call_that_blocks_is_named() -> None:
    def waits() -> None:
        reader, _ = os.pipe()
        os.read(reader, 1)

    where: tuple[str, ...] = ()
    for seconds in (0.5, 5.0, 50.0):  # on a busy machine it takes longer until the call is made
        done, _ = explore_python(lambda: beside(waits), limits=Limits(wall=seconds, cpu=None))
        assert done.failure is not None
        where = tuple(done.failure.where)
        if where:
            break
    assert "test_a_call_that_blocks_is_named.waits records/" in where[0]


def test_a_loop_with_steps_is_cut_and_not_stuck() -> None:
    class Box:
        value = 0

    def test() -> None:
        box = Box()

        def turn() -> None:
            while True:
                box.value += 1

        beside(turn)

    done, _ = explore_python(test, limits=BUSY, executions=20, step_limit=2_000)
    assert done.failure is None or done.failure.kind != STUCK


def test_a_larger_bound_holds_for_processor_time_too() -> None:
    assert child_limits(Limits().wall) == Limits()
    assert child_limits(60.0) == Limits(wall=60.0, cpu=60.0)
    assert child_limits(2.0) == Limits(wall=2.0, cpu=2.0)


def test_frames_that_call_the_test_are_left_out() -> None:
    rows = (
        "7\touter.<locals>.inner\t/a/b/c.py\n"
        f"9\trun\t{threading.__file__}\n3\tcall\t{PACKAGE}/x.py\n4\t?\t?\n"
    )
    assert places(rows) == ["outer.inner b/c.py:7", "? ?:4"]


def test_the_page_of_an_answer_has_a_size() -> None:
    with pytest.raises(ValueError, match="the page has 8 bytes; it needs 4096"):
        answer_stuck(bytearray(8), 45)
    assert len(PAGE) >= 4096
