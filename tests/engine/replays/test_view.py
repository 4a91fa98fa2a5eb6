"""Replays show the essential steps, the failing check with its values, and the state at a step."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.exit_codes import USAGE, VIOLATION
from pulsar_ml.harness.replays.ending import values_of
from pulsar_ml.harness.replays.essence import essential, last_change
from pulsar_ml.harness.replays.view import View, guilty_event, view_text
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.shrink import shrink
from tests.commands import call
from tests.engine.programs.build_programs import program_of, programs
from tests.engine.replays.small import failure_of, record_of, subjects


def line_of(text: str) -> int:
    """The line of the source with this text."""
    from tests.engine.replays.small import SOURCE

    (found,) = (n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)
    return found


def test_a_failed_assertion_is_the_last_row_with_its_values_and_their_writers() -> None:
    failure = failure_of("test_price")
    again = failure.replay(subjects()["test_price"])
    text = view_text(failure, again, subjects()["test_price"], View())
    rows = text.splitlines()
    at = next(number for number, row in enumerate(rows) if row.startswith("= "))
    assert "assertion price.load" in rows[at]
    version, price = rows[at + 1 : at + 3]
    store = line_of("version.store")
    found = re.search(
        rf"^ *(\d+) .*version <- 1 relaxed  small_test.cpp:{store}$", text, re.MULTILINE
    )
    assert found is not None
    assert version == (
        f"  version was 1, written at step {found[1]} by thread 1 at small_test.cpp:{store}"
    )
    assert price == "  price was 0, which no step wrote; a newer value was there"


def test_an_execution_without_a_failure_has_no_such_row() -> None:
    """Without the decisions of the failure its program is right."""
    failure = failure_of("test_price")
    right = replace(failure, decisions=())
    again = right.replay(subjects()["test_price"])
    assert again.failure is None and values_of(right, again) == []
    assert "\n= " not in view_text(right, again, subjects()["test_price"], View())


def test_the_final_check_of_a_suite_names_what_it_read() -> None:
    subject = programs().SUBJECTS["counter"]
    found = explore(subject, program_of("counter"), executions=20_000, seed=11, mode="sc").failure
    assert found is not None
    failure = shrink(found, subject)
    again = failure.replay(subject)
    assert again.thread == -1 and again.checked
    (value, *_) = values_of(failure, again)
    written = again.trace[value.writer if value.writer is not None else 0]
    assert value.step is None and value.event["value"] == written["value"]
    text = view_text(failure, again, subject, View(sentence="all is counted"))
    assert re.search(r"^= the final check fails: .*\(all is counted\)", text, re.MULTILINE)
    assert re.search(r"^  .* was \d+, written at step \d+ by thread \d at ", text, re.MULTILINE)


def test_a_short_table_has_the_essential_steps_and_says_what_is_missing() -> None:
    failure, subject = failure_of("test_turns"), subjects()["test_turns"]
    again = failure.replay(subject)
    short = view_text(failure, again, subject, View())
    whole = view_text(failure, again, subject, View(all_steps=True))
    number = re.search(r"^  (\d+) steps of \d+ not shown: -v shows all$", short, re.MULTILINE)
    assert number is not None and "not shown" not in whole
    numbers = {text: set(re.findall(r"^ *(\d+)  ", text, re.MULTILINE)) for text in (short, whole)}
    assert len(numbers[whole] - numbers[short]) == int(number[1]) > 0
    # An addition that another thread's store does not see, that store, and the assertion's read.
    for text in ("turns.fetch_add", "turns.store", "== 18"):
        assert f"small_test.cpp:{line_of(text)}" in short


def test_essential_steps_are_the_stale_read_and_both_stores() -> None:
    failure = failure_of("test_price")
    trace = failure.replay(subjects()["test_price"]).trace
    (stale,) = (index for index, event in enumerate(trace) if event["stale"])
    newest = last_change(trace, trace[stale]["address"], stale)
    assert newest is not None and {stale, newest} <= essential(failure, trace)
    assert guilty_event(failure, trace) is None  # the assertion itself
    assert guilty_event(replace(failure, kind="wrong answers", where=()), trace) == stale


def test_a_smaller_step_goes_back(tmp_path: Path) -> None:
    record = str(record_of("test_price", tmp_path))
    store = line_of("version.store")
    whole = call("replay", record, "--trust").out
    found = re.search(r"^ *(\d+) .*version <- 1", whole, re.MULTILINE)
    assert found is not None
    step = int(found[1])
    after = call("replay", record, "--trust", "--to", str(step))
    assert after.code == VIOLATION
    assert f"  version = 1, written by step {step}, small_test.cpp:{store}" in after.out
    assert "\n= " not in after.out
    before = call("replay", record, "--trust", "--to", str(step - 1)).out
    assert "version = 1" not in before and f"behind step {step - 1} of" in before
    where = f"in code that the test started, at small_test.cpp:{store - 1}"
    assert f"thread 1 is {where}; goes on with step {step}" in before


def test_a_step_that_is_not_there_is_refused(tmp_path: Path) -> None:
    found = call("replay", str(record_of("test_hits", tmp_path)), "--trust", "--to", "1000")
    assert found.code == USAGE
    assert "the replay has no step 1000; it has the steps 1 to" in found.err
    failure, subject = failure_of("test_hits"), subjects()["test_hits"]
    with pytest.raises(UsageError):
        view_text(failure, failure.replay(subject), subject, View(to=0))


def test_the_next_commands_can_be_pasted(tmp_path: Path) -> None:
    record = record_of("test_hits", tmp_path)
    lines = call("replay", str(record), "--trust").out.partition("next:\n")[2].splitlines()
    commands = [line.partition(" # ")[0].split() for line in lines]
    assert len(commands) == 5
    for words in commands:
        at = words.index("pulsar_ml") if "pulsar_ml" in words else 0
        assert str(record) in words and "--trust" in words
        arguments = [word for word in words[at + 1 :] if word not in ("--gdb", "--to", "STEP")]
        assert call(*arguments).code == VIOLATION


def test_trace_is_the_old_name_of_replay_with_all_steps(tmp_path: Path) -> None:
    record = str(record_of("test_turns", tmp_path))
    assert call("trace", record, "--trust").out == call("replay", record, "-v", "--trust").out
