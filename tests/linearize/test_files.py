"""Histories in files: round trips, foreign formats, and a sentence for each damaged file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.histories.files import load_history, save_history
from pulsar_ml.harness.histories.generated import Cell, Members, simulate
from pulsar_ml.harness.histories.history import (
    CRASHED,
    NEVER,
    PENDING,
    RECORD,
    UNKNOWN,
    History,
    Operation,
    Signature,
    history_of,
    overlap,
)
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, check
from pulsar_ml.harness.models import CasRegister, Register
from pulsar_ml.harness.models.model import Keyed

VALUES = history_of(
    [
        Operation(0, "write", ("x", (1, 2.5, None)), None, 0, 5),
        Operation(1, "read", (), True, 1, 3),
        Operation(1, "read", (), 1, 4, None),
        Operation(2, "read", (), None, 5, None, True),
    ]
)
NAMED = history_of(
    [Operation("a", "read", (), 1, 0.25, 0.5), Operation("b", "read", (), 1, 0.5, 0.75)]
)
RESULTS = np.zeros(2, RECORD)
RESULTS["result"] = [[1, -2, 3, -4, 5], [0, 0, 0, 0, 0]]
RESULTS["arguments"][:, 0] = [7, -(2**63)]
RESULTS["invoked"] = [0, 4]
RESULTS["returned"] = [4, 9]
RECORDED = History((Signature("take", 1, "answer"),), RESULTS, (), "threads", "thing", {"limit": 3})
HISTORIES = {
    "values": VALUES,
    "names": NAMED,
    "answers": RECORDED,
    "words": simulate(Cell(), seed=1, clients=3, operations=50, crashes=0.1),
    "flags": simulate(Members(), seed=1, clients=3, operations=50),
    "empty": history_of([]),
}


def content(history: History) -> list[Any]:
    records = history.records
    return [
        (
            history.call(index),
            *(int(records[name][index]) for name in ("invoked", "returned", "ending")),
        )
        for index in range(len(history))
    ]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_comes_back_as_it_was(name: str, ending: str, tmp_path: Path) -> None:
    history = HISTORIES[name]
    path = tmp_path / f"history.{ending}"
    save_history(history, path)
    again = load_history(path)
    assert content(again) == content(history)
    assert (again.signatures, again.threads) == (history.signatures, history.threads)
    assert (again.source, again.subject, again.settings) == (
        history.source,
        history.subject,
        history.settings,
    )


def test_the_parts_of_a_call() -> None:
    assert VALUES.call(0).arguments == ("x", (1, 2.5, None))
    assert VALUES.call(1).result is True and VALUES.call(1).result != 2
    assert VALUES.call(2).result is UNKNOWN and VALUES.call(2).pending
    assert VALUES.records["ending"].tolist() == [0, 0, PENDING, CRASHED]
    assert VALUES.records["returned"].tolist() == [5, 3, NEVER, NEVER]
    assert RECORDED.call(0).result == (1, (-2, 3, -4, 5))
    assert overlap(VALUES) == 3


JEPSEN = """
; a comment
{:process 0, :type :invoke, :f :write, :value 1, :time 1}
{:process 1, :type :invoke, :f :cas, :value [1 2]}
{:process 0, :type :ok, :f :write, :value 1}
{:process 1, :type :ok, :f :cas, :value [1 2]}
{:process :nemesis, :type :info, :f :start, :value nil}
{:process 2, :type :invoke, :f :read, :value nil}
{:process 2, :type :ok, :f :read, :value READ}
{:process 3, :type :invoke, :f :cas, :value [7 8]}
{:process 3, :type :fail, :f :cas, :value [7 8], :error :mismatch}
{:process 4, :type :invoke, :f :write, :value 4}
{:process 4, :type :info, :f :write, :value 4}
{:process 5, :type :invoke, :f :write, :value 5}
"""


@pytest.mark.parametrize("tag", ["", "#jepsen.history.Op"])
@pytest.mark.parametrize("brackets", [("", ""), ("[", "]")])
def test_jepsens_edn_is_read(brackets: tuple[str, str], tag: str, tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    first, last = brackets
    path.write_text(first + JEPSEN.replace("READ", "2").replace("{", tag + "{") + last)
    history = load_history(path)
    assert [str(history.call(index)) for index in range(len(history))] == [
        "write(1)", "cas(1, 2)", "read() -> 2", "write(4) -> ?", "write(5) -> ?",
    ]  # fmt: skip
    assert history.records["ending"].tolist() == [0, 0, 0, CRASHED, PENDING]
    assert check(history, CasRegister()).answer == LEGAL
    path.write_text(first + JEPSEN.replace("READ", "1") + last)
    assert check(load_history(path), CasRegister()).answer == ILLEGAL


def test_keys_of_jepsens_independent_tests(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(
        "{:process 0 :type :invoke :f :write :value [:a 1]} "
        "{:process 0 :type :ok :f :write :value [:a 1]}\n"
        "{:process 0 :type :invoke :f :read :value [:b nil]}\n"
        "{:process 0 :type :ok :f :read :value [:b nil]}\n"
    )
    history = load_history(path, keyed=True)
    assert [history.call(index).arguments for index in range(2)] == [("a", 1), ("b",)]
    assert check(history, Keyed(Register())).answer == LEGAL


def test_events_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    events = [
        {"process": 0, "type": "invoke", "f": "get", "key": "k", "value": None},
        {"process": 0, "type": "ok", "f": "get", "key": "k", "value": "v"},
    ]
    path.write_text("\n".join(json.dumps(event) for event in events))
    assert str(load_history(path).call(0)) == "get('k') -> 'v'"


def test_operations_of_others_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    line = {
        "thread": 3,
        "operation": "read",
        "arguments": [],
        "result": 5,
        "invoked": 1,
        "returned": 2,
    }
    path.write_text(json.dumps(line) + "\n")
    assert str(load_history(path).call(0)) == "read() -> 5"


HEAD = {
    "kind": "pulsar_ml history", "version": 1, "source": "", "subject": "", "settings": {},
    "signatures": [["read", 0, "word"]], "operations": 0,
}  # fmt: skip
LINE = {"thread": 0, "operation": "read", "arguments": [], "result": 5, "invoked": 1, "returned": 2}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("h.jsonl", "", "h.jsonl is empty"),
        ("h.jsonl", '{"kind": "pulsar',
         "line 1 of h.jsonl is not JSON, so it is damaged or truncated"),
        ("h.jsonl", json.dumps({**HEAD, "version": 2}),
         "has version 2, this release reads up to 1"),
        ("h.jsonl", json.dumps({**HEAD, "kind": "a song"}),
         'kind is "a song"; it should be "pulsar_ml history"'),
        ("h.jsonl", json.dumps({**HEAD, "operations": 3}),
         "is truncated: it should have 3 operations, it has 0"),
        ("h.jsonl", json.dumps({"kind": HEAD["kind"], "version": 1, "operations": 0}),
         "source is missing; it should be a text"),
        ("h.jsonl",
         json.dumps({**HEAD, "operations": 1}) + "\n" + json.dumps({**LINE, "operation": "dig"}),
         "operation 'dig' is not among the signatures"),
        ("h.jsonl", json.dumps({"thread": 0}),
         "line 1 of h.jsonl: operation 0 should be an object with thread"),
        ("h.jsonl", json.dumps({**LINE, "invoked": None}),
         "invoked is null; it should be a number"),
        ("h.jsonl", json.dumps({**LINE, "returned": "0"}),
         'returned is "0"; it should be a number or null'),
        ("h.jsonl", json.dumps({**LINE, "thread": 0.5}),
         "thread is 0.5; it should be an integer or a name"),
        ("h.jsonl", json.dumps({**LINE, "operation": 7}), "operation is 7; it should be a text"),
        ("h.jsonl", json.dumps({**LINE, "returned": 0}),
         "returned at 0, before it was invoked at 1"),
        ("h.edn", "{:process 0", "h.edn is not EDN, so it is damaged or truncated"),
        ("h.edn", "{:a 1}", "event 0 should be a map with process, type and f"),
        ("h.edn", "{:process 0 :type :ok :f :read}", "completes what process 0 did not invoke"),
        ("h.edn", "{:process 0 :type :maybe :f :read}",
         "has type 'maybe'; it should be invoke, ok, fail or info"),
        ("h.parquet", "PAR1 and then nothing",
         "h.parquet is damaged, truncated or no parquet file"),
        ("h.arrow", "nothing", "h.arrow is damaged, truncated or no arrow file"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_sentence(
    name: str, text: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadRecordError) as caught:
        load_history(path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_of_something_else_is_foreign(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "h.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(BadRecordError, match="is not a history: its metadata has no"):
        load_history(path)


def test_a_truncated_table_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "h.parquet"
    save_history(HISTORIES["words"], path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadRecordError, match="damaged, truncated"):
        load_history(path)


def test_names_that_are_no_history(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a,b\n")
    with pytest.raises(UsageError, match=r"not named like a history \(\.parquet"):
        load_history(tmp_path / "h.csv")
    with pytest.raises(UsageError, match="cannot be read"):
        load_history(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="cannot be read"):
        load_history(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="can be written as"):
        save_history(VALUES, tmp_path / "h.edn")


def test_values_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(UsageError, match="is no value of a history"):
        history_of([Operation(0, "write", ({1: 2},), None, 0, 1)])
    with pytest.raises(UsageError, match="has 4 arguments; the most is 3"):
        history_of([Operation(0, "write", (1, 2, 3, 4), None, 0, 1)])


def test_what_is_no_operation_is_refused() -> None:
    five: Any = 5
    row: Any = (0, "write", (1,), None, 0, 1)
    for operation, message in (
        (row, "operation 0 is (0, 'write', (1,), None, 0, 1); it should be an Operation"),
        (Operation(0, five, (1,), None, 0, 1), "operation 0 has the name 5; it should be a text"),
        (Operation(0, "write", five, None, 0, 1), "has the arguments 5; they should be a tuple"),
    ):
        with pytest.raises(UsageError, match=re.escape(message)):
            history_of([operation])


def test_a_path_may_be_a_text(tmp_path: Path) -> None:
    save_history(VALUES, f"{tmp_path}/history.jsonl")
    assert len(load_history(f"{tmp_path}/history.jsonl")) == len(VALUES)


def lines(*changes: dict[str, Any]) -> str:
    return "".join(json.dumps({**LINE, **change}) + "\n" for change in changes)


def event(process: Any, kind: str, name: str, value: Any = None) -> dict[str, Any]:
    return {"process": process, "type": kind, "f": name, "value": value}


def events(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


WRITE = event(0, "invoke", "write", 1)


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        (lines({}, {"invoked": 1.5}), {},
         "operation 1 (line 2), read, of thread 0 was invoked at 1.5, before operation 0 (line 1), "
         "read, of that thread returned at 2; a thread is inside one operation at a time"),
        (lines({}, {"invoked": None}), {}, "operation 1 (line 2) of h.jsonl: invoked is null"),
        (lines({}) + "\n" + lines({"returned": 0}), {},
         "operation 1 (line 3), read, returned at 0, before it was invoked at 1"),
        (lines({"invoked": float("nan")}), {}, "operation 0 (line 1), read, was invoked at nan"),
        (lines({}) + '{"thread": 1}\n', {}, "line 2 of h.jsonl: operation 1 should be an object"),
        (lines({"arguments": [1, 2, 3, 4]}), {}, "operation 0 (line 1), read, has 4 arguments"),
        (events(WRITE, WRITE), {}, "h.jsonl: line 2 invokes write while process 0 is inside write, "
         "which line 1 invoked"),
        (events(WRITE, event(0, "ok", "read", 1)), {}, "h.jsonl: line 2 completes read, but line 1 "
         "invoked write of process 0"),
        (events(WRITE, event(1, "ok", "write", 1)), {},
         "h.jsonl: line 2 completes what process 1 did not invoke"),
        (events(event(0.5, "invoke", "write", 1)), {},
         "h.jsonl: line 1 has process 0.5; it should be an integer or a name"),
        (events(WRITE), {"keyed": True},
         "h.jsonl: line 1: the value 1 of write is no pair of a key and a value"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(
    text: str, arguments: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(text)
    with pytest.raises(BadRecordError) as caught:
        load_history(path, **arguments)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_a_line_of_edn_that_is_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    path.write_text("{:process 0 :type :invoke :f :read}\n\n{:process 0 :type :ok\n")
    with pytest.raises(BadRecordError, match="^line 3 of h.edn is not EDN, so it is damaged"):
        load_history(path)
    path.write_text("[{:process 0\n :type :invoke :f :read}\n")
    with pytest.raises(BadRecordError, match="^h.edn is not EDN, so it is damaged"):
        load_history(path)


def test_calls_of_one_thread_that_overlap_in_a_table(tmp_path: Path) -> None:
    records = RESULTS.copy()
    records["invoked"][1] = 3
    history = History((Signature("take", 1, "answer"),), records)
    for ending in ("parquet", "arrow"):
        path = tmp_path / f"h.{ending}"
        save_history(history, path)
        with pytest.raises(
            BadRecordError, match="operations 0 and 1 of thread 0 overlap; a thread"
        ):
            load_history(path)


def test_threads_have_names_and_operations_any_order(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(lines(
        {"thread": "b", "invoked": 5, "returned": 6, "result": 7},
        {"thread": "a", "operation": "write", "arguments": [7], "invoked": 1, "returned": 2},
    ))  # fmt: skip
    history = load_history(path)
    assert [history.thread_name(int(one)) for one in history.records["thread"]] == ["b", "a"]
    assert (history.place(0), history.place(1)) == ("line 1", "line 2")
    assert check(history, Register()).answer == LEGAL
    path.write_text(events(
        event("client a", "invoke", "write", 1), event("nemesis", "info", "start"),
        event("client a", "ok", "write", 1),
    ))  # fmt: skip
    history = load_history(path)
    assert (len(history), history.thread_name(0)) == (1, "client a")


def test_the_order_of_events_is_that_of_the_file(tmp_path: Path) -> None:
    """Times and indices of events tell where they are, and change nothing."""
    path = tmp_path / "h.edn"
    path.write_text(
        "{:process 0 :type :invoke :f :read :value nil :index 9 :time 99}\n"
        "{:process 0 :type :ok :f :read :value nil :index 8 :time 1}\n"
    )
    history = load_history(path)
    assert history.place(0) == "event 9"
    assert history.records["invoked"].tolist() == [0]
    assert history.records["returned"].tolist() == [1]


def test_an_operation_that_failed_did_not_happen(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    failed = event(0, "fail", "write", 1)
    read = (event(0, "invoke", "read"), event(0, "ok", "read", None))
    path.write_text(events(WRITE, failed, *read))
    assert shown(load_history(path)) == shown(load_history(path, failed_cas=True)) == ["read()"]
    # After a time-out the same process may go on, beside the operation that crashed.
    path.write_text(events(WRITE, event(0, "info", "write", 1), *read))
    history = load_history(path)
    assert shown(history) == ["write(1) -> ?", "read()"]
    assert history.records["ending"].tolist() == [CRASHED, 0]
    assert check(history, Register()).answer == LEGAL


LOG = """\
INFO [2026-01-01 10:00:00,001] jepsen worker 0 - jepsen.util 0\t:invoke\t:write\t1
INFO  jepsen.core - Worker 1 starting
INFO [2026-01-01 10:00:00,002] jepsen worker 1 - jepsen.util 1\t:invoke\t:cas\t[2 3]
INFO [2026-01-01 10:00:00,003] jepsen worker 0 - jepsen.util 0\t:ok\t:write\t1
INFO  jepsen.util - :nemesis\t:info\t:start\tnil
INFO [2026-01-01 10:00:00,004] jepsen worker 1 - jepsen.util 1\t:fail\t:cas\t[2 3]
INFO [2026-01-01 10:00:00,005] jepsen worker 0 - jepsen.util 0\t:invoke\t:read\tnil
INFO [2026-01-01 10:00:00,006] jepsen worker 1 - jepsen.util 1\t:invoke\t:write\t5
INFO [2026-01-01 10:00:00,007] jepsen worker 0 - jepsen.util 0\t:ok\t:read\t1
INFO [2026-01-01 10:00:00,008] jepsen worker 1 - jepsen.util 1\t:info\t:write\t:timed-out
"""


def shown(history: History) -> list[str]:
    return [str(history.call(index)) for index in range(len(history))]


def test_a_log_of_jepsen_is_read_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "jepsen.log"
    path.write_text(LOG)
    calls = ["write(1)", "read() -> 1", "write(5) -> ?"]
    assert shown(load_history(path)) == shown(load_history(path, form="log")) == calls
    history = load_history(path, failed_cas=True)
    assert shown(history) == ["write(1)", "cas(2, 3) -> False", *calls[1:]]
    path.write_text(LOG.replace("[2 3]", "[2 3"))
    with pytest.raises(BadRecordError, match="line 3 of jepsen.log has a value that is not EDN"):
        load_history(path)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_a_history_of_any_name_is_known_by_its_content(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"history.{ending}"
    save_history(VALUES, path)
    other = path.rename(tmp_path / "history.data")
    assert shown(load_history(other)) == shown(VALUES)
    assert shown(load_history(other, form=ending)) == shown(VALUES)


def test_edn_of_any_name_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "history.txt"
    event = "{:process 0 :type :%s :f :read :value %s}\n"
    path.write_text(event % ("invoke", "nil") + event % ("ok", "1"))
    assert shown(load_history(path)) == ["read() -> 1"]
