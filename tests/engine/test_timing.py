"""Virtual time: the earliest deadline comes first and sets the clock, and loops that poll a clock
end.
"""

from __future__ import annotations

import pytest

from tests.engine.programs.build_programs import explorer

RIGHT = (
    *("deadline_of_0_fixed", "deadline_of_1_fixed", "polls_fixed", "polls_and_counts_fixed"),
    *("clock_is_calm_fixed", "signal_for_the_waiting_fixed", "sleeps_for_data_fixed"),
)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("mode", ["sc", "tso", "c11"])
@pytest.mark.parametrize("strategy", ["portfolio", "random", "delays"])
def test_time_is_what_the_deadlines_say(name: str, mode: str, strategy: str) -> None:
    runs = explorer(name, mode=mode, strategy=strategy)
    runs.run(0, 3_000)
    assert not runs.failed(), runs.failure()["message"]
    assert runs.statistics()["cut"] == 0


def test_a_time_out_as_a_fault_comes_in_any_order() -> None:
    runs = explorer("deadline_of_0_fixed", mode="sc", faults=("timeout",))
    runs.run(0, 3_000)
    assert runs.failure()["message"] == "the later deadline came first"


def test_sleeps_are_taken_long_and_short() -> None:
    # The sleeper wakes before the data are there, and after.
    runs = explorer("sleeps_for_data", mode="sc", strategy="preemptions", bound=20)
    result = runs.run(0, 1_000)
    assert runs.failed() and result > 1
