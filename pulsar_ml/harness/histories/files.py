"""Histories on disk: Parquet, Arrow or JSON Lines; EDN of Jepsen can be read.

    .parquet, .arrow   a row for each operation; signatures and values in the schema's metadata
    .jsonl             a header, then a line for each operation
    .edn               of Jepsen: a line or an element for each invocation and each completion

JSON Lines of other programs have no header, and hold operations, or events like those of Jepsen.
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
from pulsar_ml.versioned_json import check_keys, check_object, decode, mismatch, read_object

KIND = "pulsar_ml history"
VERSION = 1
MOST_BYTES = 1 << 30  # length of a history in text
FORMATS = (".parquet", ".arrow", ".jsonl", ".edn")


def save_history(history: History, path: Path) -> None:
    """Write ``history`` to a file: ``.parquet``, ``.arrow`` or ``.jsonl``.

    Raises UsageError for another ending.
    """
    writers = {".parquet": save_table, ".arrow": save_table, ".jsonl": save_lines}
    if path.suffix not in writers:
        raise UsageError(f"a history can be written as {', '.join(writers)}, not as {path.name!r}")
    writers[path.suffix](history, path)


def load_history(path: Path, *, keyed: bool = False) -> History:
    """Read a history from a file: ``.parquet``, ``.arrow``, ``.jsonl`` or ``.edn`` of Jepsen.

    ``keyed``: values of Jepsen's events are pairs of a key and a value, as its independent tests
    write them. Raises UsageError when the file cannot be opened or has another ending, and
    BadRecordError when it is damaged, truncated, no history, or of a newer version.
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
    threads = {"threads": list(history.threads)} if history.threads else {}
    return {
        "kind": KIND,
        "version": VERSION,
        "source": history.source,
        "subject": history.subject,
        "settings": dict(history.settings),
        "signatures": [list(signature) for signature in history.signatures],
        "values": list(history.values),
        **threads,
    }


# The keys of a header; in JSON Lines the number of operations stands in place of the values.
KEYS: Mapping[str, Any] = {
    "source": str,
    "subject": str,
    "settings": Mapping[str, int],
    "signatures": tuple[tuple[str, int, str], ...],
    "threads": tuple[str, ...],
}
OPTIONAL = frozenset({"threads"})  # where numbers are the names of threads
TABLE_KEYS = {**KEYS, "values": list}
LINES_KEYS = {**KEYS, "operations": int}


def history_with(content: Mapping[str, Any], records: Any, name: str) -> History:
    """Return the history of a header and its records; BadRecordError when they do not fit."""
    try:
        values = tuple(as_value(value) for value in content["values"])
    except UsageError as error:
        raise BadRecordError(f"{name} is damaged: {error}") from None
    history = History(
        tuple(Signature(*signature) for signature in content["signatures"]),
        frozen(records),
        values,
        content["source"],
        content["subject"],
        content["settings"],
        content.get("threads", ()),
    )
    check_records(history, name)
    return history


def check_records(history: History, name: str) -> None:
    records = history.records
    wrong = None
    if any(result not in RESULTS for _, _, result in history.signatures):
        wrong = "it has a signature with an unknown kind of result"
    elif len(records):
        codes, endings = records["operation"], records["ending"]
        threads, names = records["thread"], len(history.threads)
        if codes.min() < 0 or codes.max() >= len(history.signatures):
            wrong = "it names an operation that it does not describe"
        elif names and (threads.min() < 0 or threads.max() >= names):
            wrong = "it names a thread that it does not describe"
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


# Parquet and Arrow
# -----------------------------------------------------------------------------------

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
    content = check_keys(
        read_object(text, path.name, kind=KIND, versions=(VERSION,)),
        TABLE_KEYS,
        path.name,
        optional=OPTIONAL,
    )
    records = np.zeros(len(table), RECORD)
    try:
        for name in COLUMNS:
            column = table.column(name).combine_chunks()
            if pa.types.is_fixed_size_list(column.type):
                column = column.flatten()
            if column.null_count or not pa.types.is_integer(column.type):
                raise ValueError(f"its column {name} should hold whole numbers")
            values = column.to_numpy(zero_copy_only=False)
            records[name] = values.reshape(records[name].shape)
    except (KeyError, ValueError, pa.ArrowException) as error:
        raise BadRecordError(f"{path.name} is damaged: {one_line(error)}") from None
    return history_with(content, records, path.name)


# JSON Lines
# ------------------------------------------------------------------------------------------


def save_lines(history: History, path: Path) -> None:
    """Write operations by name and value, readable without this package."""
    first = {**header(history), "operations": len(history)}
    del first["values"]
    first.pop("threads", None)  # the operations have the names
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(first) + "\n")
        for index in range(len(history)):
            call, record = history.call(index), history.records[index]
            ended = record["ending"] == RETURNED
            line = {
                "thread": thread_of(history, int(record["thread"])),
                "operation": call.name,
                "arguments": call.arguments,
                "result": call.result if ended else None,
                "invoked": int(record["invoked"]),
                "returned": int(record["returned"]) if ended else None,
            }
            if record["ending"] == CRASHED:
                line["crashed"] = True
            file.write(json.dumps(line) + "\n")


def thread_of(history: History, number: int) -> int | str:
    return history.threads[number] if history.threads else number


def load_lines(text: str, name: str, *, keyed: bool) -> History:
    lines = [
        decode(line, f"line {number} of {name}")
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    if not lines:
        raise BadRecordError(f"{name} is empty; a history has at least a first line")
    if isinstance(lines[0], dict) and "kind" in lines[0]:
        first = check_object(lines[0], name, kind=KIND, versions=(VERSION,))
        content = check_keys(first, LINES_KEYS, name, optional=OPTIONAL)
        if content["operations"] != len(lines) - 1:
            raise BadRecordError(
                f"{name} is truncated: it should have {content['operations']} operations, it has "
                f"{len(lines) - 1}"
            )
        return with_words(content, from_operations(lines[1:], name), name)
    if isinstance(lines[0], dict) and "type" in lines[0]:
        return from_events(lines, name, keyed=keyed)
    return from_operations(lines, name)


def with_words(content: Mapping[str, Any], history: History, name: str) -> History:
    """Return ``history`` with its values encoded as the signatures of the header say."""
    from pulsar_ml.harness.histories.words import with_signatures

    try:
        signatures = [Signature(*signature) for signature in content["signatures"]]
        records, values = with_signatures(history, signatures)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise BadRecordError(f"{name} is damaged: {one_line(error)}") from None
    content = {**content, "values": values, "threads": history.threads}
    return history_with(content, records, name)


def from_operations(lines: Iterable[Any], name: str) -> History:
    operations = []
    for number, line in enumerate(lines):
        try:
            operation = Operation(
                thread=line["thread"],
                name=line["operation"],
                arguments=tuple(line["arguments"]),
                result=line["result"],
                invoked=line["invoked"],
                returned=line["returned"],
                crashed=bool(line.get("crashed", False)),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise BadRecordError(
                f"{name}: operation {number} should be an object with thread, operation, "
                f"arguments, result, invoked and returned; {one_line(error)}"
            ) from None
        check_operation(operation, f"operation {number} of {name}")
        operations.append(operation)
    try:
        return history_of(operations, source="file")
    except (UsageError, OverflowError) as error:
        raise BadRecordError(f"{name} is damaged: {error}") from None


def check_operation(operation: Operation, what: str) -> None:
    """Raise BadRecordError for values of other types.

    Written out, because files have a line for each of up to millions of operations.
    """
    thread, name, _, _, invoked, returned, _ = operation
    if type(thread) is not int and type(thread) is not str:
        raise mismatch(what, "thread", thread, "an integer or a name")
    if type(name) is not str:
        raise mismatch(what, "operation", name, "a text")
    if type(invoked) is not int and type(invoked) is not float:
        raise mismatch(what, "invoked", invoked, "a number, for example of nanoseconds")
    if returned is not None and type(returned) is not int and type(returned) is not float:
        raise mismatch(what, "returned", returned, "a number or null")


# Jepsen's events
# -------------------------------------------------------------------------------------


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
    except Exception as error:
        raise BadRecordError(
            f"{name} is not EDN, so it is damaged or truncated: {one_line(error)}"
        ) from None
    if len(elements) == 1 and isinstance(elements[0], list):
        elements = elements[0]
    yield from elements


def from_events(events: Iterable[Any], name: str, *, keyed: bool) -> History:
    """Return the history of Jepsen's events: invocations and their completions.

    A completion is ok, fail (the operation did not happen, and is left out) or info (it crashed).
    Stamps are the numbers of the events. Events of the nemesis are left out.
    """
    operations: list[Operation | None] = []
    under_way: dict[Any, tuple[int, Mapping[str, Any]]] = {}
    for time, event in enumerate(events):
        if not isinstance(event, Mapping) or not {"process", "type", "f"} <= set(event):
            raise BadRecordError(
                f"{name}: event {time} should be a map with process, type and f: {event!r:.200}"
            )
        process, kind = event["process"], event["type"]
        if not isinstance(process, int):
            continue
        if kind == "invoke":
            if process in under_way:
                raise BadRecordError(
                    f"{name}: event {time} invokes while process {process!r:.200} is inside an "
                    "operation"
                )
            under_way[process] = (len(operations), {**event, "at": time})
            operations.append(None)
        elif kind in ("ok", "fail", "info"):
            if process not in under_way:
                raise BadRecordError(
                    f"{name}: event {time} completes what process {process!r:.200} did not invoke"
                )
            place, begun = under_way.pop(process)
            if kind == "ok":
                operations[place] = finished(begun, event, time, process, keyed)
            elif kind == "info":
                operations[place] = left_open(begun, process, keyed, crashed=True)
        else:
            raise BadRecordError(
                f"{name}: event {time} has type {kind!r:.200}; "
                "it should be invoke, ok, fail or info"
            )
    for process, (place, begun) in under_way.items():
        operations[place] = left_open(begun, process, keyed, crashed=False)
    try:
        return history_of(
            [operation for operation in operations if operation is not None], source="jepsen"
        )
    except (UsageError, OverflowError) as error:
        raise BadRecordError(f"{name} is damaged: {error}") from None


def split_value(event: Mapping[str, Any], keyed: bool) -> tuple[tuple[Any, ...], Any]:
    """Return the key of an event, as a tuple of none or one, and its value."""
    value = event.get("value")
    if "key" in event:
        return (event["key"],), value
    if keyed:
        if not isinstance(value, list) or len(value) != 2:
            raise UsageError(
                f"the value {value!r:.200} of {event['f']!s:.200} is no pair of a key and a value"
            )
        return (value[0],), value[1]
    return (), value


def arguments_of(begun: Mapping[str, Any], keyed: bool) -> tuple[Any, ...]:
    """Return the arguments of an invocation: its key, and its value or values."""
    key, value = split_value(begun, keyed)
    if value is None:
        return key
    return (*key, *value) if isinstance(value, list) else (*key, value)


def finished(
    begun: Mapping[str, Any], event: Mapping[str, Any], time: int, thread: int, keyed: bool
) -> Operation:
    arguments = arguments_of(begun, keyed)
    _, requested = split_value(begun, keyed)
    _, answered = split_value(event, keyed) if event.get("value") is not None else ((), None)
    # Jepsen repeats the arguments when an operation has no result.
    result = None if requested is not None and answered == requested else answered
    return Operation(thread, str(begun["f"]), arguments, result, int(begun["at"]), time)


def left_open(begun: Mapping[str, Any], thread: int, keyed: bool, *, crashed: bool) -> Operation:
    return Operation(
        thread, str(begun["f"]), arguments_of(begun, keyed), None, int(begun["at"]), None, crashed
    )
