"""The fast readers of JSON Lines and EDN: they read what the others read, or they read nothing.

Negative control: a line that the library refuses must not be among those that they read.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import edn_format
import pytest

from pulsar_ml.errors import BadRecordError
from pulsar_ml.harness.histories import files, jepsen
from pulsar_ml.harness.histories.files import load_lines, plain_lines, save_history
from pulsar_ml.harness.histories.history import History, history_of
from pulsar_ml.harness.histories.jepsen import edn_events, plain_edn, plain_events
from tests.linearize.test_files import HISTORIES

LINE = (
    '{"thread": 1, "operation": "put", "arguments": %s, "result": %s, "invoked": 1, "returned": 2}'
)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONG", 0)


def slowly(text: str) -> History | str:
    """Read a text with the reader that has sentences about mistakes."""
    longest, files.LONG = files.LONG, len(text) + 1
    try:
        return load_lines(text, "lines", keyed=False)
    except BadRecordError as error:
        return str(error)
    finally:
        files.LONG = longest


def parts(history: History) -> tuple[Any, ...]:
    return (
        history.records.tobytes(),
        list(map(repr, history.values)),
        history.signatures,
        history.numbers,
        history.threads,
        (history.source, history.subject, history.settings),
    )


def is_the_same(text: str) -> bool:
    """Compare both readers; return whether the fast one read the text."""
    try:
        quick = plain_lines(text, "lines")
    except BadRecordError as error:
        assert str(error) == slowly(text), text
        return False
    if quick is None:
        return False
    other = slowly(text)
    assert isinstance(other, History), (text, other)
    assert parts(quick) == parts(other), text
    return True


def written(name: str, folder: Path) -> str:
    path = folder / "history.jsonl"
    save_history(HISTORIES[name], path)
    return path.read_text()


@pytest.mark.parametrize("name", sorted(set(HISTORIES) - {"names"}))
def test_what_this_package_writes_is_plain(name: str, tmp_path: Path) -> None:
    assert is_the_same(written(name, tmp_path))


def test_names_of_threads_are_not_plain(tmp_path: Path) -> None:
    assert not is_the_same(written("names", tmp_path))


@pytest.mark.parametrize(
    "value",
    [
        *(
            "1",
            "-0",
            "0.0",
            "-0.0",
            "1e3",
            "1E400",
            "true",
            "false",
            "null",
            '""',
            '"\\u0061"',
            '"a"',
        ),
        *(
            "[]",
            "[1, [2.0, true]]",
            '"\\ud800"',
            '"ü€"',
            '"\\\\"',
            '"\\""',
            "123456789012345678901",
        ),
        *(" 1 ", "[ 1 ]", '["]", "[\\""]'),
    ],
)
def test_values_of_every_kind(value: str) -> None:
    first = LINE % (f"[{value}, 1, true]", value)
    second = (LINE % ("[ ]", "1.0")).replace('"thread": 1', '"thread": 7')
    assert is_the_same(first)
    assert is_the_same(f"{first} \r\n\n {second}\n")


@pytest.mark.parametrize(
    "line",
    [
        *(
            LINE % ("[1]", value)
            for value in ("tru", "NaN", "[NaN]", "01", '"\x01"', "[1", "1]", "'a'", "{}")
        ),
        *(LINE % (words, "1") for words in ("[1,]", "[,1]", "[1 2]", "1", "[1,2,3,4]", "null")),
        LINE.replace("1,", "1.5,") % ("[]", "1"),
        LINE.replace("put", "\x85") % ("[]", "1"),
        LINE.replace('"returned": 2', '"returned": 0') % ("[]", "1"),
        LINE.replace('"returned"', '"later"') % ("[]", "1"),
        LINE.replace('"thread": 1', '"thread": -1') % ("[]", "1"),
        LINE % ("[]", "1") + "x",
        LINE % ("[]", "1") + LINE % ("[]", "1"),
        LINE % ("[]", "1") + "\n" + LINE % ("[]", "1"),
        LINE % ("[]", '"\u2028"'),
        "\x0c" + LINE % ("[]", "1"),
        LINE % ("[]", "1") + "\r" + LINE % ("[]", "1"),
    ],
)
def test_other_shapes_are_left_to_the_other_reader(line: str) -> None:
    assert plain_lines(line, "lines") is None


def test_changed_files_are_read_alike(tmp_path: Path) -> None:
    draw, read = random.Random(7), 0
    texts = [written(name, tmp_path) for name in ("values", "answers", "flags")]
    for _ in range(600):
        text = list(draw.choice(texts))
        for _ in range(draw.randint(1, 2)):
            place, sign = draw.randrange(len(text)), draw.choice('01-.,:"[]{}\\ \n\rent')
            text[place : place + draw.randint(0, 1)] = sign * draw.randint(0, 1)
        read += is_the_same("".join(text))
    assert read > 50


def test_a_header_with_another_number_of_operations_is_refused(tmp_path: Path) -> None:
    text = written("values", tmp_path).replace('"operations": 4', '"operations": 5')
    assert plain_lines(text, "lines") is None
    assert "is truncated" in str(slowly(text))


EVENTS = """{:process 0, :type :invoke, :f :write, :value 1, :time 1}
{:process 1 :type :invoke, :f :cas, :value [1 2]}
#jepsen.history.Op{:index 5, :process :nemesis, :type :info, :f :start, :value nil, :error "a b"}
{:process 2, :type :ok, :f :read, :value -12, :ends true}
"""


def test_changed_events_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, read = random.Random(3), 0
    quick = list(edn_events(EVENTS, "events"))
    monkeypatch.setattr(jepsen, "plain_events", lambda _: None)
    assert quick == list(edn_events(EVENTS, "events"))
    for _ in range(600):
        text = list(EVENTS)
        place = draw.randrange(len(text))
        text[place : place + draw.randint(0, 1)] = draw.choice('01-.,:"[]{}\\ nN#;\tM/')
        if (plain := plain_events("".join(text))) is not None:
            read += 1
            assert plain == [plain_edn(one) for one in edn_format.loads_all("".join(text))], text
    assert read > 50


def test_an_empty_line_before_the_header() -> None:
    assert plain_lines("\n" + json.dumps({"kind": "x"}) + "\n", "lines") is None
    assert len(history_of([])) == 0
