"""Timelines of executions: happens-before arrows, stale reads, and the accesses at fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.search.shrink import Shrinker
from pulsar_ml.harness.search.timeline import (
    BEFORE,
    FIRST_ROWS,
    MOST_ROWS,
    READS,
    Arrow,
    Timeline,
    learned,
    timeline,
)
from tests.engine.programs.build_programs import program_of, programs
from tests.report.kit import failure_of


def drawn(failure: Failure) -> Timeline:
    subject = programs().SUBJECTS[failure.subject]
    again = failure.replay(subject)
    assert again.exact
    return timeline(failure, again.trace, subject=subject)


def event(thread: int, *clock: int, op: str = "store") -> dict[str, Any]:
    return {"thread": thread, "clock": clock, "op": op}


def test_news_come_from_the_step_that_gave_them_away() -> None:
    trace = [
        event(0, 1),
        event(0, 2),  # a release increments the clock
        event(0, 2),
        event(1, 1, 1, op="load"),  # an acquire that read the release
    ]
    assert learned(trace) == [Arrow(1, 3, BEFORE)]


def test_a_thread_that_gave_nothing_away_tells_by_its_end() -> None:
    assert learned([event(0, 1), event(0, 1), event(1, 1, 1)]) == [Arrow(1, 2, BEFORE)]


def test_news_through_a_third_thread_have_one_arrow() -> None:
    trace = [event(0, 2), event(1, 1, 2), event(2, 1, 1, 1)]
    assert learned(trace) == [Arrow(0, 1, BEFORE), Arrow(1, 2, BEFORE)]


def test_threads_that_know_nothing_of_each_other_have_no_arrow() -> None:
    assert learned([event(0, 1), event(1, 0, 1), event(0, 2), event(1, 0, 2)]) == []


def test_a_release_read_by_an_acquire_is_an_arrow_between_their_rows() -> None:
    drawing = drawn(failure_of("use_after_free"))
    arrows = [arrow for arrow in drawing.arrows if arrow.kind == BEFORE]
    assert arrows
    assert all(drawing.steps[arrow.start].lane != drawing.steps[arrow.end].lane for arrow in arrows)
    assert all(arrow.start < arrow.end for arrow in drawing.arrows)


def test_a_stale_read_is_marked_and_points_at_the_store_that_it_read() -> None:
    drawing = drawn(failure_of("seqlock_fences"))
    stale = [index for index, step in enumerate(drawing.steps) if step.mark == "stale"]
    assert stale
    assert all("old)" in drawing.steps[index].text for index in stale)
    sources = {
        arrow.end: drawing.steps[arrow.start] for arrow in drawing.arrows if arrow.kind == READS
    }
    assert all(
        sources[index].kind in ("store", "rmw", "cas") for index in stale if index in sources
    )


def test_both_accesses_of_a_race_are_marked_with_their_source_lines() -> None:
    drawing = drawn(failure_of("race_met"))
    marked = {step.mark: step for step in drawing.steps if step.mark}
    assert set(marked) == {"first", "second"}
    assert marked["first"].lane != marked["second"].lane
    for step in marked.values():
        assert step.place.startswith("races.h:")
        assert step.source, "the line is in the folder of the tests"


def test_the_access_that_failed_is_marked() -> None:
    failure = failure_of("use_after_free")
    drawing = drawn(failure)
    marks = [step for step in drawing.steps if step.mark in ("failed", "second")]
    assert len(marks) == 1
    assert failure.where[0].endswith("/" + marks[0].place)


def test_the_step_of_no_return_is_marked() -> None:
    failure = failure_of("counter")
    trace = failure.replay(programs().SUBJECTS["counter"]).trace
    steps = [step for step in trace if int(step["thread"]) >= 0]
    turn = next(at for at in range(1, len(steps)) if steps[at]["thread"] != steps[at - 1]["thread"])
    drawing = timeline(failure, trace, turn=turn)
    (marked,) = [step for step in drawing.steps if step.mark == "turn"]
    assert marked.lane == steps[turn]["thread"]
    assert all(step.mark != "turn" for step in timeline(failure, trace).steps)


def test_lines_of_a_changed_source_are_left_out() -> None:
    failure = failure_of("race_met")
    again = failure.replay(programs().SUBJECTS["race_met"])
    drawing = timeline(failure, again.trace, sources=False)
    assert all(step.source == "" for step in drawing.steps)


def test_a_long_execution_is_cut_in_front_of_its_end() -> None:
    failure = failure_of("race_met")
    trace = failure.replay(programs().SUBJECTS["race_met"]).trace
    # The values differ, so that no two turns of the loop are equal.
    plain = next(one for one in trace if one["op"] == "call")
    first = [
        {**plain, "op": "store", "order": 0, "value": number, "stale": 0} for number in range(3_000)
    ]
    drawing = timeline(failure, [*first, *trace])
    assert len(drawing.steps) == MOST_ROWS + 1
    assert drawing.steps[FIRST_ROWS].kind == "gap"
    assert {"first", "second"} <= {step.mark for step in drawing.steps}
    assert all(arrow.end < len(drawing.steps) for arrow in drawing.arrows)


def test_turns_of_a_loop_are_drawn_once() -> None:
    failure = failure_of("race_met")
    trace = failure.replay(programs().SUBJECTS["race_met"]).trace
    call = next(one for one in trace if one["op"] == "call")
    turn = [{**call, "op": "store", "order": 0, "value": number, "stale": 0} for number in range(2)]
    drawing = timeline(failure, [*turn * 50, *trace])
    assert [step.text for step in drawing.steps if step.kind == "gap"] == ["the same 49 times more"]


@pytest.mark.parametrize("name", ["use_after_free"])
def test_a_failure_that_shrinking_searched_anew_has_its_own_decisions(name: str) -> None:
    """The shrinker keeps the decisions of the execution that failed, not of the other order."""
    subject = programs().SUBJECTS[name]
    search = Shrinker(subject, replace(failure_of(name), decisions=()))
    assert search.attempt(program_of(name), ()) is None, "so that it has to search"
    found = search.attempt(program_of(name), (), fresh=400)
    assert found is not None
    assert found.replay(subject).exact
