"""Answers of the released classes, stored, beside those of this cache."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

import pytest

from tests import ROOT
from tools.conformance.compare import Difference, difference, differences, minimised
from tools.conformance.listed import LISTED, right_answer
from tools.conformance.ours import answers
from tools.conformance.traces import SUBJECTS, trace_of

ROWS: list[tuple[str, list[str], list[str]]] = json.loads(
    (ROOT / "tests" / "conformance" / "stored.json").read_text()
)

RANK = ["new active", *(f"add {name} 1" for name in "abcd"), "rank a", "update d 2", "rank a"]
HEAP = [
    "new heap",
    *(f"add {name} {at}" for name, at in zip("abcdef", (1, 10, 2, 11, 12, 3), strict=False)),
]
SLOWEST = [*HEAP, "remove d", "update a 20", "update c 20", "slowest"]
BEHIND = [
    "new limiter 10 4 3 0",
    *("acquire 1 4", "acquire 2 3", "acquire 3 9", "pass 1", "acquire 4 5", "release 1", "pass 2"),
]
RESIZED = [
    "new manager 400 50 1 0 40 0",
    *("put 2 3 7 29 1 1", "put 0 4 9 35 3 2", "put 1 4 9 35 2 3", "resize 100 90 4"),
]
ONE_MORE = ["new acks 5 1 0 0", "ack 5 27", "ack 5 1", "store"]
ARRAYS = ["new acks 3 1 0 1", "ack 3 9", "ack 4 1", "store"]
ENTRIES = ["new acks 3 2 3 1", "ack 3 7", "ack 3 8", "ack 4 3", "store"]
LEDGERS = ["new acks 3 2 100 0", "ack 3 11", "ack 3 3", "ack 4 0", "restart"]
BATCHES = ["new acks 5 4 0 0", "index 5 1 0", "fits"]
TICK = ["new delayed 8 0 0 21", "set_tick 0", "add 26 16", "timer"]
CLEARED = [
    "new delayed 8 0 1 0",
    *("add 1 30", "add 2 12", "clear", "add 3 20", "should_pause"),
]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("version", ["4.2.4", "5.0.1"])
def test_every_answer_is_that_of_the_release_or_a_listed_difference(
    version: str, subject: str
) -> None:
    rows = [row for row in ROWS if row[0] == version and row[1][0].split(" ")[1] == subject]
    assert len(rows) >= 8
    found = [difference(version, trace, theirs) for _, trace, theirs in rows]
    assert [seen.text() for seen in found if seen is not None and seen.name is None] == []


def test_stored_traces_are_those_of_their_seeds() -> None:
    for subject in SUBJECTS:
        traces = [row[1] for row in ROWS if row[1][0].split(" ")[1] == subject]
        assert trace_of(subject, 0, 40) in traces


def test_stored_answers_say_something() -> None:
    seen = Counter(answer for _, _, theirs in ROWS for answer in theirs)
    assert len(seen) > 100
    assert seen["miss"] and seen["waits 0 "]
    assert not any(answer.startswith("raised") for answer in seen)


def test_an_unlisted_difference_is_found_and_cut_down() -> None:
    trace = trace_of("caches", 0, 60)

    def wrong(lines: Sequence[str]) -> list[str]:
        """Answers of a release whose caches count one byte too many."""
        found: list[str] = []
        start = 0
        for end in [*(i for i, line in enumerate(lines) if i and line[:4] == "new "), len(lines)]:
            found += answers(lines[start:end], "5.0.1")
            start = end
        return [
            str(int(answer) + 1) if line.startswith("size ") else answer
            for line, answer in zip(lines, found, strict=True)
        ]

    (seen,) = differences("5.0.1", [trace], wrong)
    assert seen.name is None
    assert len(minimised(seen, wrong).trace) == 2


@pytest.mark.parametrize(
    ("version", "trace", "theirs", "name"),
    [
        ("4.2.4", RANK, "4", "active-rank"),
        ("5.0.1", RANK, "4", None),
        ("5.0.1", SLOWEST, "3:10", "heap-slowest"),
        ("5.0.1", SLOWEST[:-1], "3:2 3:10", "heap-slowest"),
        ("5.0.1", [*HEAP, "slowest"], "3:1", None),
        ("4.2.4", BEHIND, "done 7 3=failed", "limiter-behind-failed"),
        ("5.0.1", BEHIND, "done 7 3=failed", "limiter-behind-failed"),
        ("5.0.1", BEHIND, "done 7 4=5", None),
        ("5.0.1", ["new limiter 10 4 3 1", *BEHIND[1:]], "done 7 3=failed", None),
        ("4.2.4", RESIZED, "done 99 35 35 29 3 0 0", "manager-resize"),
        ("5.0.1", RESIZED, "done 99 35 35 29 3 0 0", "manager-resize"),
        ("5.0.1", RESIZED, "done 99 35 35 29 3 0 1", None),
        ("5.0.1", RESIZED, "done 98 35 35 28 3 0 0", None),
        ("5.0.1", ["new manager 400 50 1 0 40 1", *RESIZED[1:]], "done 99 35 35 29 3 0 0", None),
        ("4.2.4", ONE_MORE, "5:-1 5:1-1 5:27-27", "acks-one-more"),
        ("5.0.1", ONE_MORE, "5:-1 5:1-1 5:27-27", None),
        ("4.2.4", ARRAYS, "3:-1 3:9-9 4:1-1", "acks-long-arrays"),
        ("5.0.1", ARRAYS, "3:-1 3:9-9 4:1-1", None),
        ("5.0.1", ENTRIES, "3:-1 3:7-8", "acks-long-arrays"),
        ("5.0.1", ENTRIES, "3:-1", None),
        ("5.0.1", LEDGERS, "3:-1 3:3-3 3:11-11", "acks-ledger-ends"),
        ("5.0.1", LEDGERS, "3:-1 3:11-11 4:0-0", None),
        ("4.2.4", BATCHES, "true", "acks-fit-batches"),
        ("5.0.1", BATCHES, "true", None),
        ("5.0.1", TICK, "at 11 1", "delayed-smaller-tick"),
        ("5.0.1", TICK, "at 12 1", None),
        ("4.2.4", CLEARED, "false 1", "delayed-clear"),
        ("5.0.1", CLEARED, "false 1", None),
    ],
)
def test_a_listed_difference_has_its_release_and_the_right_answer(
    version: str, trace: list[str], theirs: str, name: str | None
) -> None:
    ours = answers(trace, version)[-1]
    assert Difference(version, tuple(trace), ours, theirs).name == name


def test_our_answers_to_the_listed_traces_are_right() -> None:
    assert answers(RANK, "4.2.4")[-1] == right_answer(RANK) == "3"
    assert answers(SLOWEST, "5.0.1")[-1] == right_answer(SLOWEST) == "3:3"


def test_a_wrong_answer_of_ours_is_no_listed_difference() -> None:
    assert Difference("4.2.4", tuple(ONE_MORE), "5:-1 5:27-27", "5:-1 5:1-1 5:27-27").name is None
    assert Difference("4.2.4", tuple(BATCHES), "true", "false").name is None
    assert Difference("4.2.4", tuple(TICK), "at 19 1", "at 11 1").name is None
    assert Difference("4.2.4", tuple(RANK), "5", "4").name is None
    assert Difference("5.0.1", tuple(SLOWEST), "3:4", "3:10").name is None


def test_the_page_has_the_list() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text()
    section = page.split("\n## Listed differences\n", 1)[1]
    assert tuple(re.findall(r"^### ([\w-]+)$", section, re.MULTILINE)) == LISTED
