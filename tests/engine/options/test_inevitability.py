"""Continuations of a failure: how many fail behind each switch, and where that rises most."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.campaign.local.failures import curve_text, inevitability_of
from pulsar_ml.campaign.local.inevitability import (
    MARK,
    MOST_POINTS,
    Share,
    curve_lines,
    mark_of,
    most_points,
    shares,
    short_line,
    turning_point,
)
from pulsar_ml.cli.understand.replay import command as replay
from pulsar_ml.cli.understand.trace import command as trace
from pulsar_ml.harness.search.child import STUCK, Limits
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.shrink import shrink
from tests.engine.programs.build_programs import program_of, programs


def small_failure(name: str) -> Failure:
    subject = programs().SUBJECTS[name]
    found = explore(subject, program_of(name), executions=20_000, seed=11, mode="sc").failure
    assert found is not None
    return shrink(found, subject)


def test_the_curve_follows_from_the_failure_and_rises() -> None:
    """An update is lost behind a switch between the load and the store of one thread."""
    failure, subject = small_failure("counter"), programs().SUBJECTS["counter"]
    curve = shares(failure, subject, samples=30)
    assert curve == shares(failure, subject, samples=30) != ()
    values = [share.value for share in curve]
    assert all(share.judged == 30 for share in curve)
    assert None not in values and any(0 < (value or 0) < 1 for value in values)
    assert [share.event for share in curve] == sorted({share.event for share in curve})
    turn = turning_point(curve)
    assert turn is not None and mark_of(curve) == {turn.event: MARK}
    again = failure.replay(subject)
    text = failure.lane_table(again.trace, subject=subject, marks=mark_of(curve))
    assert text.count(MARK) == 1
    assert MARK not in failure.lane_table(again.trace, subject=subject)
    # The marked row stands in the column of the thread that goes on, before its first step.
    rows = text.splitlines()
    at = next(number for number, row in enumerate(rows) if MARK in row)
    indents = [len(row) - len(row.lstrip()) for row in rows[at - 1 : at + 2]]
    assert indents[0] != indents[1] == indents[2]


def test_an_execution_without_a_verdict_is_not_judged() -> None:
    failure, subject = small_failure("counter"), programs().SUBJECTS["counter"]
    assert shares(replace(failure, trace_hash=1), subject) == ()  # its replay differs
    assert shares(replace(failure, decisions=()), subject) == ()
    assert curve_lines(())[0].startswith("continuations: not judged")
    short = [share for share in shares(failure, subject, samples=4) if share.judged < 4]
    assert short == []


@pytest.mark.parametrize(
    ("values", "event"),
    [
        ([0, 1, 9], 2),  # the share rises most between the second and the third
        ([7, 7, 8], 3),  # and here behind the last one, where the execution failed
        ([0, None, 9], 1),  # what was not judged is left out
        ([10, 10, 10], None),  # it was inevitable before
    ],
)
def test_the_turning_point_is_before_the_largest_rise(
    values: list[int | None], event: int | None
) -> None:
    curve = [
        Share(at, 0, "f a.c:1", value or 0, 0 if value is None else 10)
        for at, value in enumerate(values, 1)
    ]
    turn = turning_point(curve)
    assert (turn and turn.event) == event
    lines = curve_lines(curve)
    assert sum(line.startswith("  >") for line in lines) == (event is not None)
    assert sum("not judged" in line for line in lines) == values.count(None)


def test_the_curve_in_one_line() -> None:
    curve = [Share(2, 0, "f a.c:1", 1, 10), Share(5, 1, "g a.c:2", 10, 10)]
    assert short_line(curve) == (
        "inevitable behind step 2, where thread 0 goes on at f a.c:1; tenths of continuations that "
        "fail, switch by switch: 1X"
    )
    assert "not known" in short_line(curve[1:])
    assert short_line([Share(1, 0, "", 0, 0), *curve]).endswith(": -1X")


def test_long_traces_have_fewer_points() -> None:
    """The cost of a curve is bounded: samples, switches and steps multiply."""
    assert most_points(10, 50) == MOST_POINTS
    assert most_points(40, 1000) == 50
    assert most_points(1000, 20_000) == 2


def test_the_same_curve_in_another_process_with_its_progress() -> None:
    failure, subject = small_failure("counter"), programs().SUBJECTS["counter"]
    seen: list[tuple[int, int]] = []
    curve = inevitability_of(
        failure, subject, None, Limits(), 5, lambda done, of: seen.append((done, of))
    )
    assert curve == shares(failure, subject, samples=5) != ()
    assert seen == [(at, len(curve)) for at in range(1, len(curve) + 1)]
    stuck = replace(failure, kind=STUCK)
    assert inevitability_of(stuck, subject, None, None, 5) is None
    assert curve_text(None).startswith("continuations: not judged")


def test_commands_show_where_a_failure_becomes_inevitable(tmp_path: Path) -> None:
    failure, subject = small_failure("counter"), programs().SUBJECTS["counter"]
    record = tmp_path / "failed.json"
    record.write_text(replace(failure, module=str(programs().__file__)).to_json())
    trusted = [str(record), "--module", str(programs().__file__)]
    short = CliRunner().invoke(replay, [*trusted, "--continuations", "10"])
    assert short.exit_code == 1, short.output
    assert short_line(shares(failure, subject, samples=10)) in short.output
    plain = CliRunner().invoke(replay, trusted)
    assert "inevitable" not in plain.output
    long = CliRunner().invoke(trace, [*trusted, "--no-sandbox", "--continuations", "10"])
    assert long.output.count(MARK) == 1
    assert "\n".join(curve_lines(shares(failure, subject, samples=10))) in long.output
