"""Histories that are checked while they are written: answers of each prefix, and what is kept."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.histories.jepsen import from_events
from pulsar_ml.harness.linearize import DEFAULT, ILLEGAL, LEGAL, UNKNOWN, Options
from pulsar_ml.harness.linearize.following.events import EventReader
from pulsar_ml.harness.linearize.following.follower import (
    Followed,
    Follower,
    describe_followed,
    follow,
)
from pulsar_ml.harness.linearize.following.windows import KEPT, Window
from pulsar_ml.harness.models import MODELS, KeyValueMap, Queue, Register
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.fuzz import DRAWS, drawn
from tests.linearize.oracle import oracle


class Pieces:
    """A source with these pieces; ``stop``: an interruption follows them."""

    def __init__(self, pieces: Iterable[bytes], *, stop: bool = False) -> None:
        self.pieces = list(pieces)
        self.stop = stop

    def read(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def wait(self) -> bool:
        if self.stop and not self.pieces:
            raise KeyboardInterrupt
        return bool(self.pieces)


def followed(
    text: str, model: Any, *, form: str = "", size: int = 1 << 16, options: Options = DEFAULT,
    keyed: bool = False, stop: bool = False, kept: int = KEPT,
) -> Followed:  # fmt: skip
    content = text.encode()
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    follower = Follower(model, "h", options=options, keyed=keyed, kept=kept)
    return follow(Pieces(pieces, stop=stop), EventReader("h", form), follower)


def event(process: Any, kind: str, name: str, value: Any = None) -> dict[str, Any]:
    return {"process": process, "type": kind, "f": name, "value": value}


def in_lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in events)


def events_of(history: History) -> list[dict[str, Any]]:
    """Return the events of a history; every other call that did not return crashes."""
    found: list[tuple[int, int, dict[str, Any]]] = []
    records = history.records
    for index in range(len(history)):
        call, thread = history.call(index), int(records["thread"][index])
        words = list(call.arguments)
        value: Any = words[0] if len(words) == 1 else words or None
        invoked = int(records["invoked"][index])
        found.append((invoked, 0, event(thread, "invoke", call.name, value)))
        if not call.pending:
            ok = event(thread, "ok", call.name, call.result)
            found.append((int(records["returned"][index]), 1, ok))
        elif index % 2:
            found.append((invoked + 1, 1, event(thread, "info", call.name)))
    return [one for *_, one in sorted(found, key=lambda one: one[:2])]


def wrong_prefixes(seeds: Iterable[int]) -> tuple[int, Counter[bool], int]:
    """Compare the answer of every prefix with all orders; also the number of windows dropped."""
    wrong, dropped = 0, 0
    answers: Counter[bool] = Counter()
    for seed in seeds:
        draw = random.Random(seed)
        name = sorted(DRAWS)[seed % len(DRAWS)]
        events = events_of(drawn(draw, name, False, draw.choice((4, 7))))
        follower = Follower(MODELS[name](), "h", kept=0)
        for number, one in enumerate(events, 1):
            follower.add(number, one)
            if draw.random() < 0.3 and number < len(events):
                continue
            found = follower.look(idle=True)
            prefix = from_events(list(enumerate(events[:number], 1)), "h", keyed=False)
            expected = not oracle(prefix, MODELS[name]())
            answers[expected] += 1
            wrong += found != expected
            if found:
                break
        dropped += any(window.begun for window in follower.windows.values())
    return wrong, answers, dropped


def test_the_answer_of_every_prefix_is_that_of_all_orders() -> None:
    wrong, answers, dropped = wrong_prefixes(range(100))
    assert wrong == 0
    assert answers[True] >= 15 and answers[False] >= 150 and dropped >= 40


def orders_of_two(first: str) -> Followed:
    """Two values are put at one time; ``first`` is taken first, after the past was dropped."""
    events = [event(0, "invoke", "enqueue", "a"), event(1, "invoke", "enqueue", "b")]
    events += [event(0, "ok", "enqueue", "a"), event(1, "ok", "enqueue", "b")]
    events += [event(0, "invoke", "dequeue"), event(0, "ok", "dequeue", first)]
    return followed(in_lines(*events), Queue(), size=80, kept=0)


def test_a_state_that_is_not_carried_over_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both orders of calls that overlapped are carried over; one alone gives a wrong answer."""
    assert [orders_of_two(first).answer for first in "abc"] == [LEGAL, LEGAL, ILLEGAL]
    drop_past = Window.drop_past
    monkeypatch.setattr(Window, "drop_past", lambda self, after: drop_past(self, after[:1]))
    assert {orders_of_two(first).answer for first in "ab"} == {LEGAL, ILLEGAL}


STALE = (
    event(0, "invoke", "write", "a"),
    event(0, "ok", "write", "a"),
    event("reader", "invoke", "read"),
    event(2, "invoke", "write", "b"),
    event("reader", "ok", "read", None),
    event(0, "invoke", "write", "c"),
)


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_an_illegal_prefix_is_told_before_the_rest(size: int) -> None:
    found = followed(in_lines(*STALE), Register(), size=size, stop=True)
    assert found.answer == ILLEGAL
    assert describe_followed(found, Register()).splitlines() == [
        "illegal: not linearizable, whatever follows (6 events, 4 operations)" if size > 100
        else "illegal: not linearizable, whatever follows (5 events, 3 operations)",
        "  what was read before its return is legal; then nothing leads to read() -> None, invoked "
        "by line 3",
        "  illegal by themselves: line 1, line 3",
        "",
        "thread 0       |- write('a') -|",
        "thread reader                  *- read() -> None -*",
    ]  # fmt: skip
    found = followed(in_lines(*STALE), Register(), size=size, kept=0)
    assert found.contradiction is not None and found.contradiction.states == ("'a'",)
    assert describe_followed(found, Register()).splitlines()[2:4] == [
        "  earlier calls lead to the state 'a'",
        "  illegal after these calls: line 3",
    ]


def long_history(count: int, *, wrong_at: int = -1) -> str:
    """Return operations of two clients; a moment without calls follows each pair of them."""
    events = []
    for at in range(count):
        events += [event(0, "invoke", "write", at), event(1, "invoke", "read")]
        events += [event(0, "ok", "write", at)]
        events += [event(1, "ok", "read", at - 2 if at == wrong_at else at - at % 2)]
    return in_lines(*events)


def test_what_is_kept_stays_small_and_the_past_counts() -> None:
    held = []
    follower = Follower(Register(), "h")
    text = long_history(1_000).encode()
    source = Pieces(text[at : at + 999] for at in range(0, len(text), 999))
    found = follow(
        source, EventReader("h"), follower, lambda one: held.append(one.held)
    )  # fmt: skip
    assert (found.answer, found.operations) == (LEGAL, 2_000)
    assert max(held) <= KEPT + 20
    found = followed(long_history(1_000, wrong_at=900), Register(), size=999)
    assert found.answer == ILLEGAL
    assert found.contradiction is not None and len(found.contradiction.history) <= KEPT + 20
    assert "line 3602" in describe_followed(found, Register())


def test_clients_that_are_always_busy_keep_the_past() -> None:
    """No moment is without a call here, so that nothing is dropped, and the answer is right."""
    events = [event(9, "invoke", "write", -1)]
    for at in range(50):
        events += [event(0, "invoke", "write", at), event(0, "ok", "write", at)]
    assert followed(in_lines(*events), Register(), kept=0).held == 51
    events += [event(1, "invoke", "read"), event(1, "ok", "read", 7)]
    assert followed(in_lines(*events), Register()).answer == ILLEGAL


def test_calls_that_crashed_may_take_effect_after_the_past_was_dropped() -> None:
    past = [event(0, "invoke", "write", 1), event(0, "info", "write", 1)]
    for at in range(2, 12):
        past += [event(1, "invoke", "write", at), event(1, "ok", "write", at)]
    reads = [event(1, "invoke", "read"), event(1, "ok", "read", 1)]
    found = followed(in_lines(*past, *reads), Register(), size=50, kept=0)
    assert (found.answer, found.held) == (LEGAL, 0)
    # It happens once only.
    again = [event(1, "invoke", "write", 5), event(1, "ok", "write", 5), *reads]
    assert followed(in_lines(*past, *reads, *again), Register(), size=50, kept=0).answer == ILLEGAL


def test_keys_are_followed_one_by_one() -> None:
    """Key x is quiet often, while a call of key y is under way all the time."""
    events = [event(0, "invoke", "write", ["y", 1])]
    for at in range(20):
        events += [event(1, "invoke", "write", ["x", at]), event(1, "ok", "write", ["x", at])]
    found = followed(in_lines(*events), Keyed(Register()), keyed=True, size=100, kept=0)
    assert (found.answer, found.held) == (LEGAL, 1)
    events += [event(1, "invoke", "read", ["x", None]), event(1, "ok", "read", ["x", 3])]
    found = followed(in_lines(*events), Keyed(Register()), keyed=True, size=100)
    assert (found.answer, found.key) == (ILLEGAL, "x")
    assert "  among the calls of key 'x'\n" in describe_followed(found, Keyed(Register()))
    together = Options(partition=False)
    found = followed(in_lines(*events), Keyed(Register()), keyed=True, options=together)
    assert (found.answer, found.key) == (ILLEGAL, None)
    puts = [event(0, "invoke", "put", ["k", 1]), event(0, "ok", "put", ["k", 1]),
            event(0, "invoke", "get", "k"), event(0, "ok", "get", 2)]  # fmt: skip
    assert followed(in_lines(*puts), KeyValueMap()).key == "k"
    with pytest.raises(UsageError, match=r"operation 0 \(line 1\), read\(\) -> \?, has 0 arg"):
        followed(in_lines(event(0, "invoke", "read")), Keyed(Register()))


def test_an_answer_that_needs_more_steps_is_unknown() -> None:
    events = [event(at, "invoke", "enqueue", at % 2) for at in range(16)]
    events += [event(at, "ok", "enqueue", at % 2) for at in range(15)]
    for at in range(12):
        events += [event(0, "invoke", "dequeue"), event(0, "ok", "dequeue", at % 3 % 2)]
    options = Options(most_steps=20, natively=False, monitors=False)
    found = followed(in_lines(*events), Queue(), options=options)
    assert found.answer == UNKNOWN and found.reason.startswith("out of steps")
    assert describe_followed(found, Queue()).startswith("unknown so far: out of steps")


FORMATS = {
    "jsonl": in_lines(*STALE[:2], *STALE[4:5]).replace(
        '"ok", "f": "read"', '"invoke", "f": "read"'
    ),
    "edn": "; Jepsen\n\n{:process 0 :type :invoke :f :write :value 1}\n"
    "{:process 0 :type :ok :f :write :value 1} {:process 1 :type :invoke :f :read :value nil}\n"
    "{:process :nemesis :type :info :f :start}\n{:process 1 :type :ok :f :read :value 7}\n",
    "log": "INFO starting\nINFO 0\t:invoke\t:write\t1\nINFO 0\t:ok\t:write\t1\n"
    "INFO 1\t:invoke\t:read\tnil\nINFO 1\t:ok\t:read\t7",
}


@pytest.mark.parametrize(("form", "operations"), [("jsonl", 2), ("edn", 2), ("log", 2)])
def test_formats_that_grow(form: str, operations: int) -> None:
    text = FORMATS[form]
    named = "log" if form == "log" else ""  # its first line may be any other line of a log
    found = followed(text, Register(), form=named, size=5)
    assert (found.operations, found.answer) == (operations, LEGAL if form == "jsonl" else ILLEGAL)
    if form != "jsonl":
        place = {"edn": "event 2", "log": "line 4"}[form]
        assert f"invoked by {place}" in describe_followed(found, Register())


@pytest.mark.parametrize(
    ("text", "form", "sentence"),
    [
        ("[{:process 0}\n", "", "line 1 of h begins a vector"),
        ('{"thread": 0, "operation": "read"}\n', "", "line 1 of h is an operation, which is written"),
        ('{"kind": "pulsar_ml history"}\n', "", "line 1 of h is an operation"),
        ("hello\n", "", "line 1 of h is no event; name the format with --format: jsonl, edn, log"),
        ("\n{:process 0\n", "edn", "line 2 of h is not EDN"),
        (in_lines(STALE[0]) + "{\n", "", "line 2 of h is not JSON"),
        (in_lines(STALE[0], STALE[0]), "", "h: line 2 invokes write while process 0 is inside"),
        (in_lines(STALE[1]), "", "h: line 1 completes what process 0 did not invoke"),
        ("\udcff", "", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_one_sentence(text: str, form: str, sentence: str) -> None:
    if not sentence:
        with pytest.raises(BadRecordError, match="line 1 of h is not text"):
            list(EventReader("h").feed(b"\xff\xfe\n"))
        return
    with pytest.raises(BadRecordError) as caught:
        followed(text, Register(), form=form)
    assert str(caught.value).startswith(sentence) and "\n" not in str(caught.value)


def test_a_table_does_not_grow() -> None:
    with pytest.raises(UsageError, match="a file of the format parquet cannot be followed"):
        EventReader("h", "parquet")


def test_a_line_without_an_end_is_refused() -> None:
    reader = EventReader("h", "jsonl")
    with pytest.raises(BadRecordError, match="line 1 of h has more than 64 MiB"):
        list(reader.feed(b" " * ((64 << 20) + 1)))
