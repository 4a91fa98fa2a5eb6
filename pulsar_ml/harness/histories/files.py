"""Histories on disk: Parquet or Arrow with one row an operation, JSON Lines, and Jepsen's EDN to read.

    .parquet, .arrow   the records, with signatures and values in the schema's metadata
    .jsonl             a first line that says what it is, then a line for each operation
    .edn               Jepsen's: a line or an element for each invocation and each completion

JSON Lines from elsewhere have no first line of ours: either operations, or events as Jepsen's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.histories.history import (
    CRASHED,
    RECORD,
    RESULTS,
    RETURNED,
    VALUE,
    History,
    Operation,
    Signature,
    as_value,
    frozen,
    history_of,
)
from pulsar_ml.input_files import bounded_text, one_line, plain

KIND = "pulsar_ml history"
VERSION = 1
MOST_BYTES = 1 << 30  # of a history in text
FORMATS = (".parquet", ".arrow", ".jsonl", ".edn")


def save_history(history: History, path: Path) -> None:
    """Write ``history`` in the format that the name ends with; UsageError for another one."""
    writers = {".parquet": save_table, ".arrow": save_table, ".jsonl": save_lines}
    if path.suffix not in writers:
        raise UsageError(f"a history can be written as {', '.join(writers)}, not as {path.name!r}")
    writers[path.suffix](history, path)


def load_history(path: Path, *, keyed: bool = False) -> History:
    """The history in a file. Raises UsageError when it cannot be opened or has another ending, and
    BadRecordError, with one sentence, when it is damaged, truncated, foreign or of a newer version.

    ``keyed``: values of Jepsen's events are pairs of a key and a value, as its independent tests write them.
    """
    if path.suffix not in FORMATS:
        raise UsageError(
            f"{path.name!r} is not named like a history; it should end with {', '.join(FORMATS)}"
        )
    try:
        if path.suffix in (".parquet", ".arrow"):
            os.close(plain(str(path), os.O_RDONLY))
            return load_table(path)
    except OSError as error:
        raise UsageError(f"the history {path} cannot be read: {error.strerror or error}") from error
    text = bounded_text(path, "the history", most=MOST_BYTES)
    if path.suffix == ".edn":
        return from_events(edn_events(text, path.name), path.name, keyed=keyed)
    return load_lines(text, path.name, keyed=keyed)


def header(history: History) -> dict[str, Any]:
    return {
        "kind": KIND,
        "version": VERSION,
        "source": history.source,
        "subject": history.subject,
        "settings": dict(history.settings),
        "signatures": [list(signature) for signature in history.signatures],
        "values": list(history.values),
    }


def check_header(content: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise BadRecordError(f"{name} is not a history: it should say that its kind is {KIND!r}")
    if content.get("version") != VERSION:
        raise BadRecordError(
            f"{name} has version {content.get('version')!r:.80} of the format, this harness reads {VERSION}"
        )
    return content


def made(content: Mapping[str, Any], records: Any, name: str) -> History:
    """The history of a header and its records; BadRecordError when they do not fit."""
    try:
        signatures = tuple(
            Signature(str(one), int(count), str(result))
            for one, count, result in content["signatures"]
        )
        history = History(
            signatures,
            frozen(records),
            tuple(as_value(value) for value in content["values"]),
            str(content["source"]),
            str(content["subject"]),
            {str(key): int(value) for key, value in content["settings"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadRecordError(f"{name} is damaged: {one_line(error)}") from None
    check_records(history, name)
    return history


def check_records(history: History, name: str) -> None:
    records = history.records
    wrong = None
    if any(result not in RESULTS for _, _, result in history.signatures):
        wrong = "it has a signature with an unknown kind of result"
    elif len(records):
        codes, endings = records["operation"], records["ending"]
        if codes.min() < 0 or codes.max() >= len(history.signatures):
            wrong = "it names an operation that it does not describe"
        elif endings.min() < RETURNED or endings.max() > CRASHED:
            wrong = "it has an unknown ending"
        elif np.any(records["returned"] < records["invoked"]):
            wrong = "an operation returned before it was invoked"
        elif VALUE in {signature.result for signature in history.signatures}:
            words = np.append(
                records["arguments"].ravel(), records["result"][endings == RETURNED, 0]
            )
            if words.max(initial=-1) >= len(history.values):
                wrong = "it refers to a value that it does not have"
    if wrong:
        raise BadRecordError(f"{name} is damaged: {wrong}")


# Parquet and Arrow -----------------------------------------------------------------------------------

COLUMNS = tuple(name for name in RECORD.names or () if name != "moment")


def save_table(history: History, path: Path) -> None:
    arrays: dict[str, pa.Array] = {}
    for name in COLUMNS:
        column = history.records[name]
        if column.ndim == 1:
            arrays[name] = pa.array(np.ascontiguousarray(column))
        else:
            flat = pa.array(np.ascontiguousarray(column).ravel())
            arrays[name] = pa.FixedSizeListArray.from_arrays(flat, column.shape[1])
    table = pa.table(arrays).replace_schema_metadata({KIND: json.dumps(header(history))})
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)


def load_table(path: Path) -> History:
    try:
        if path.suffix == ".parquet":
            table = pq.read_table(path)
        else:
            with pa.ipc.open_file(path) as reader:
                table = reader.read_all()
    except (pa.ArrowException, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # it cannot be read at all
        kind = path.suffix.removeprefix(".")
        first = one_line(error)
        raise BadRecordError(
            f"{path.name} is damaged, truncated or no {kind} file: {first}"
        ) from None
    text = (table.schema.metadata or {}).get(KIND.encode())
    if text is None:
        raise BadRecordError(f"{path.name} is not a history: its metadata has no {KIND!r}")
    content = check_header(decoded(text.decode(errors="replace"), path.name), path.name)
    records = np.zeros(len(table), RECORD)
    try:
        for name in COLUMNS:
            column = table.column(name).combine_chunks()
            if pa.types.is_fixed_size_list(column.type):
                column = column.flatten()
            values = column.to_numpy(zero_copy_only=False)
            records[name] = values.reshape(records[name].shape)
    except (KeyError, ValueError, pa.ArrowException) as error:
        raise BadRecordError(f"{path.name} is damaged: {one_line(error)}") from None
    return made(content, records, path.name)


# JSON Lines ------------------------------------------------------------------------------------------


def save_lines(history: History, path: Path) -> None:
    """Operations by name and value, for anybody to read."""
    first = {**header(history), "operations": len(history)}
    del first["values"]
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(first) + "\n")
        for index in range(len(history)):
            call, record = history.call(index), history.records[index]
            ended = record["ending"] == RETURNED
            line = {
                "thread": int(record["thread"]),
                "operation": call.name,
                "arguments": call.arguments,
                "result": call.result if ended else None,
                "invoked": int(record["invoked"]),
                "returned": int(record["returned"]) if ended else None,
            }
            if record["ending"] == CRASHED:
                line["crashed"] = True
            file.write(json.dumps(line) + "\n")


def decoded(line: str, name: str, number: int = 0) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        where = f"{name}, line {number}," if number else name
        raise BadRecordError(
            f"{where} is not JSON, so it is damaged or truncated: {error}"
        ) from None


def load_lines(text: str, name: str, *, keyed: bool) -> History:
    lines = [
        decoded(line, name, number)
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    if not lines:
        raise BadRecordError(f"{name} is empty; a history has at least a first line")
    if isinstance(lines[0], dict) and "kind" in lines[0]:
        content = check_header(lines[0], name)
        if content.get("operations") != len(lines) - 1:
            raise BadRecordError(
                f"{name} is truncated: it should have {content.get('operations')} operations, it has "
                f"{len(lines) - 1}"
            )
        return restored(content, from_operations(lines[1:], name), name)
    if isinstance(lines[0], dict) and "type" in lines[0]:
        return from_events(lines, name, keyed=keyed)
    return from_operations(lines, name)


def restored(content: Mapping[str, Any], plain: History, name: str) -> History:
    """With the words that the signatures of the header ask for."""
    from pulsar_ml.harness.histories.words import with_signatures

    try:
        signatures = [
            Signature(str(one), int(count), str(result))
            for one, count, result in content["signatures"]
        ]
        records, values = with_signatures(plain, signatures)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise BadRecordError(f"{name} is damaged: {one_line(error)}") from None
    return made({**content, "values": values}, records, name)


def from_operations(lines: Iterable[Any], name: str) -> History:
    operations = []
    for number, line in enumerate(lines):
        try:
            operations.append(
                Operation(
                    thread=int(line["thread"]),
                    name=str(line["operation"]),
                    arguments=tuple(line["arguments"]),
                    result=line["result"],
                    invoked=int(line["invoked"]),
                    returned=None if line["returned"] is None else int(line["returned"]),
                    crashed=bool(line.get("crashed", False)),
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BadRecordError(
                f"{name}: operation {number} should be an object with thread, operation, arguments, result, "
                f"invoked and returned; {one_line(error)}"
            ) from None
    try:
        return history_of(operations, source="file")
    except (UsageError, OverflowError) as error:
        raise BadRecordError(f"{name} is damaged: {error}") from None


# Jepsen's events -------------------------------------------------------------------------------------


def edn_events(text: str, name: str) -> Iterator[Mapping[str, Any]]:
    import edn_format

    def plain(value: Any) -> Any:
        if isinstance(value, edn_format.Keyword):
            return value.name
        if isinstance(value, Mapping):
            return {plain(key): plain(item) for key, item in value.items()}
        if isinstance(value, frozenset | set):
            return sorted((plain(item) for item in value), key=repr)
        if isinstance(value, tuple | list) or type(value).__name__ == "ImmutableList":
            return [plain(item) for item in value]
        return value

    edn_format.add_tag("jepsen.history.Op", lambda op: op)  # how newer versions print an event
    try:
        elements = [plain(element) for element in edn_format.loads_all(text)]
    except Exception as error:  # noqa: BLE001 - the library raises its own, its lexer's and its parser's
        raise BadRecordError(
            f"{name} is not EDN, so it is damaged or truncated: {one_line(error)}"
        ) from None
    if len(elements) == 1 and isinstance(elements[0], list):
        elements = elements[0]
    yield from elements


def from_events(events: Iterable[Any], name: str, *, keyed: bool) -> History:
    """Invocations with their completions: ok, fail (it did not happen, and is left out), info (it crashed).

    An event's place is its time. What the nemesis did is left out.
    """
    operations: list[Operation | None] = []
    under_way: dict[Any, tuple[int, Mapping[str, Any]]] = {}
    threads: dict[Any, int] = {}
    for time, event in enumerate(events):
        if not isinstance(event, Mapping) or not {"process", "type", "f"} <= set(event):
            raise BadRecordError(
                f"{name}: event {time} should be a map with process, type and f: {event!r}"
            )
        process, kind = event["process"], event["type"]
        if not isinstance(process, int):
            continue
        if kind == "invoke":
            if process in under_way:
                raise BadRecordError(
                    f"{name}: event {time} invokes while process {process} is inside an operation"
                )
            under_way[process] = (len(operations), {**event, "at": time})
            operations.append(None)
        elif kind in ("ok", "fail", "info"):
            if process not in under_way:
                raise BadRecordError(
                    f"{name}: event {time} completes what process {process} did not invoke"
                )
            place, begun = under_way.pop(process)
            thread = threads.setdefault(process, len(threads))
            if kind == "ok":
                operations[place] = finished(begun, event, time, thread, keyed)
            elif kind == "info":
                operations[place] = left_open(begun, thread, keyed, crashed=True)
        else:
            raise BadRecordError(
                f"{name}: event {time} has type {kind!r}; it should be invoke, ok, fail or info"
            )
    for process, (place, begun) in under_way.items():
        operations[place] = left_open(
            begun, threads.setdefault(process, len(threads)), keyed, crashed=False
        )
    try:
        return history_of(
            [operation for operation in operations if operation is not None], source="jepsen"
        )
    except (UsageError, OverflowError) as error:
        raise BadRecordError(f"{name} is damaged: {error}") from None


def split_value(event: Mapping[str, Any], keyed: bool) -> tuple[tuple[Any, ...], Any]:
    """(key or nothing, value) of an event."""
    value = event.get("value")
    if "key" in event:
        return (event["key"],), value
    if keyed:
        if not isinstance(value, list) or len(value) != 2:
            raise UsageError(f"the value {value!r} of {event['f']} is no pair of a key and a value")
        return (value[0],), value[1]
    return (), value


def given(begun: Mapping[str, Any], keyed: bool) -> tuple[Any, ...]:
    key, value = split_value(begun, keyed)
    if value is None:
        return key
    return (*key, *value) if isinstance(value, list) else (*key, value)


def finished(
    begun: Mapping[str, Any], event: Mapping[str, Any], time: int, thread: int, keyed: bool
) -> Operation:
    arguments = given(begun, keyed)
    _, asked = split_value(begun, keyed)
    _, answered = split_value(event, keyed) if event.get("value") is not None else ((), None)
    # Jepsen repeats what was asked for when an operation has nothing to answer.
    result = None if asked is not None and answered == asked else answered
    return Operation(thread, str(begun["f"]), arguments, result, int(begun["at"]), time)


def left_open(begun: Mapping[str, Any], thread: int, keyed: bool, *, crashed: bool) -> Operation:
    return Operation(
        thread, str(begun["f"]), given(begun, keyed), None, int(begun["at"]), None, crashed
    )
