"""Sentences about failures, and their missing orders: the facts, and nothing without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pulsar_ml.harness.causes.missing import UNORDERED, missing_order, race_steps
from pulsar_ml.harness.engine import ORDERS
from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.report.execution.sentence import MOST_CHARACTERS, sentence_of
from pulsar_ml.report.traces import draw
from tests.engine.programs.build_programs import program_of, programs
from tests.report.kit import failure_of


def sentence(name: str) -> str:
    failure = failure_of(name)
    drawn = draw(failure, programs().SUBJECTS[name], None)
    facts = {"location": drawn.location, "weak": drawn.weak, "stale": drawn.stale}
    return sentence_of(failure, failure.rule or failure.kind, failure.message, **facts)


def missing(name: str) -> tuple[str, str, list[str]]:
    """The words about the missing order, the weak accesses, and what its two steps are."""
    failure, subject = failure_of(name), programs().SUBJECTS[name]
    trace = failure.replay(subject).trace
    found = missing_order(trace, race_steps(failure, subject))
    if found is None:
        return "", "", []
    order, weak = found
    assert trace[order.start]["thread"] != trace[order.end]["thread"]
    return order.text, weak, [str(trace[step]["op"]) for step in (order.start, order.end)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "race_after",
            "Threads 0 and 1 race on one memory location: "
            "store relaxed at races.h:15 and load relaxed at races.h:16",
        ),
        (
            "message_relaxed",
            "Invariant Q: the flag without the data, after thread 1 read an old value at "
            "bugs.h:360: store relaxed at bugs.h:360 and load relaxed at bugs.h:360",
        ),
        (
            "double_free",
            "Thread 0 frees a block of bugs.h:493 at bugs.h:495: thread 1 freed it at bugs.h:495",
        ),
        ("leak", "Memory allocated at bugs.h:490 is never freed"),
        ("counter", "Invariant Q: an update was lost"),
        ("ab_ba", "Deadlock: thread 0 waits for mutex 1 held by thread 1"),
    ],
)
def test_a_sentence_says_what_happened_and_where(name: str, expected: str) -> None:
    assert sentence(name) == expected


def test_the_missing_order_joins_the_store_and_the_load_that_should_have_met() -> None:
    text, weak, ends = missing("message_relaxed")
    assert (text, ends) == (f"no synchronisation: {weak}", ["store", "load"])
    assert weak.count("relaxed") == 2


def test_threads_that_never_met_lack_an_order_of_the_two_accesses() -> None:
    assert missing("plain_race") == (UNORDERED, "", ["write", "write"])
    assert missing("store_buffering") == (
        "the store at bugs.h:371 is not seen",
        "",
        ["store", "load"],
    )


@pytest.mark.parametrize("name", ["counter", "ab_ba", "leak"])
def test_a_failure_of_ordered_steps_lacks_no_order(name: str) -> None:
    assert missing(name) == ("", "", [])


def test_a_side_that_synchronises_is_not_blamed() -> None:
    """With a release at the store only the load is weak, and with both nothing is missing."""
    failure, subject = failure_of("message_relaxed"), programs().SUBJECTS["message_relaxed"]
    trace = failure.replay(subject).trace
    found = missing_order(trace, None)
    assert found is not None
    order, _ = found

    def with_orders(store: int, load: int) -> Any:
        changed = [dict(event) for event in trace]
        changed[order.start]["order"], changed[order.end]["order"] = store, load
        return missing_order(changed, None)

    relaxed, acquire, release = map(ORDERS.index, ("relaxed", "acquire", "release"))
    again = with_orders(release, relaxed)
    assert again is not None and again[1].startswith("load relaxed")
    again = with_orders(release, acquire)
    assert again is None or again[1] == ""


def test_a_long_message_is_cut_and_stays_one_line() -> None:
    failure = replace(failure_of("counter"), message="many\nwords " * 200)
    text = sentence_of(failure, "Q", failure.message)
    assert len(text) == MOST_CHARACTERS and "\n" not in text


def test_a_record_that_cannot_be_read_has_the_words_of_its_row() -> None:
    assert sentence_of(None, "I1", "the count is 3; more") == "I1: the count is 3"


class Never:
    """A model that expects another answer of each call."""

    def __init__(self, settings: object, threads: object, **other: object) -> None:
        pass

    def step(self, name: str, arguments: object, *, thread: int) -> tuple[int, ...]:
        return (-1, -1)


def test_refused_answers_have_their_operations() -> None:
    subject = programs().SUBJECTS["counter"]
    judge = ModelJudge(Never)
    found = explore(subject, program_of("counter"), executions=1, seed=1, judge=judge).failure
    assert found is not None and found.kind == "wrong answers"
    history = draw(found, subject, judge).history
    assert history["operations"] and history["core"]
    assert str(history["title"]).startswith("No legal order leads to")
    assert not draw(failure_of("counter"), subject, judge).history, "of other failures none"
