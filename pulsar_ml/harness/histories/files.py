"""Histories on disk: Parquet, Arrow or JSON Lines; EDN and logs of Jepsen can be read.

    .parquet, .arrow   a row for each operation; signatures and values in the schema's metadata
    .jsonl             a header, then a line for each operation
    .edn               of Jepsen: a line or an element for each invocation and each completion
    any other          by content; a log of Jepsen has lines like ``... 0 :invoke :write 3``

JSON Lines of other programs have no header, and hold operations, or events like those of Jepsen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.histories.headers import (
    KIND,
    LINES_KEYS,
    OPTIONAL,
    VERSION,
    header,
    history_with,
)
from pulsar_ml.harness.histories.history import (
    CRASHED,
    MOST_ARGUMENTS,
    RETURNED,
    VALUE,
    History,
    Operation,
    Signature,
    frozen,
    history_of,
)
from pulsar_ml.input_files import bounded_text, one_line, plain
from pulsar_ml.versioned_json import check_keys, check_object, decode, mismatch

MOST_BYTES = 1 << 30  # length of a history in text
LONG = 1 << 16  # length of a text for which another reader is loaded
TABLES = (".parquet", ".arrow")
FORMATS = (".parquet", ".arrow", ".jsonl", ".edn")
FORMS = ("parquet", "arrow", "jsonl", "edn", "log")


def save_history(history: History, path: str | os.PathLike[str]) -> None:
    """Write ``history`` to a file: ``.parquet``, ``.arrow`` or ``.jsonl``.

    Raises UsageError for another ending.
    """
    path = Path(path)
    if path.suffix == ".jsonl":
        save_lines(history, path)
    elif path.suffix in TABLES:
        from pulsar_ml.harness.histories.tables import save_table

        save_table(history, path)
    else:
        written = ", ".join((*TABLES, ".jsonl"))
        raise UsageError(f"a history can be written as {written}, not as {path.name!r}")


def load_history(
    path: str | os.PathLike[str], *, keyed: bool = False, form: str = "", failed_cas: bool = False
) -> History:
    """Read a history from a file: ``.parquet``, ``.arrow``, ``.jsonl``, or Jepsen's ``.edn``, log.

    ``keyed``: values of Jepsen's events are pairs of a key and a value, as its independent tests
    write them. ``form``: one of FORMS; "": that of the file's ending, or else of its content.
    ``failed_cas``: a compare-and-set that failed found another value (result False); otherwise it
    is left out, as each operation that failed. Raises UsageError when the file cannot be opened,
    and BadRecordError when it is damaged, truncated, no history, or of a newer version.
    """
    path = Path(path)
    try:
        form = form or form_of(path)
        if form in ("parquet", "arrow"):
            os.close(plain(str(path), os.O_RDONLY))
            from pulsar_ml.harness.histories.tables import load_table

            return load_table(path, form)
    except OSError as error:
        raise UsageError(f"the history {path} cannot be read: {error.strerror or error}") from error
    text = bounded_text(path, "the history", most=MOST_BYTES)
    if form in ("edn", "log"):
        from pulsar_ml.harness.histories.jepsen import edn_events, from_events, log_events

        if form == "edn":
            events, numbered = edn_events(text, path.name), "event"
        else:
            events, numbered = log_events(text, path.name), "line"
        return from_events(events, path.name, keyed=keyed, failed_cas=failed_cas, numbered=numbered)
    return load_lines(text, path.name, keyed=keyed, failed_cas=failed_cas)


def form_of(path: Path) -> str:
    """Return the format of a file: by its ending, or else by its first bytes."""
    if path.suffix in FORMATS:
        return path.suffix.removeprefix(".")
    descriptor = plain(str(path), os.O_RDONLY)
    try:
        first = os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
    if first[:4] == b"PAR1":
        return "parquet"
    if first[:6] == b"ARROW1":
        return "arrow"
    from pulsar_ml.harness.histories.jepsen import LOG_LINE

    text = first.decode(errors="replace").lstrip()
    if LOG_LINE.search(text.partition("\n")[0]):
        return "log"
    if text.startswith(('{"', '{ "')):
        return "jsonl"
    if text.startswith(("{", "[", "#jepsen")):
        return "edn"
    raise UsageError(
        f"{path.name!r} is not named like a history ({', '.join(FORMATS)}), and its content is none; "
        f"name its format with --format: {', '.join(FORMS)}"
    )


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


def load_lines(text: str, name: str, *, keyed: bool, failed_cas: bool = False) -> History:
    if (plain := plain_lines(text, name)) is not None:
        return plain
    numbered = [
        (number, decode(line, f"line {number} of {name}"))
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    ]
    lines = [line for _, line in numbered]
    if not lines:
        raise BadRecordError(f"{name} is empty; a history has at least a first line")
    if isinstance(lines[0], dict) and "kind" in lines[0]:
        content = described_by(lines[0], name)
        if content["operations"] != len(lines) - 1:
            raise BadRecordError(
                f"{name} is truncated: it should have {content['operations']} operations, it has "
                f"{len(lines) - 1}"
            )
        return with_words(content, from_operations(numbered[1:], name), name)
    if isinstance(lines[0], dict) and "type" in lines[0]:
        from pulsar_ml.harness.histories.jepsen import from_events

        return from_events(numbered, name, keyed=keyed, failed_cas=failed_cas)
    return from_operations(numbered, name)


def plain_lines(text: str, name: str) -> History | None:
    """Return the history of lines of the plain shape; None for others, or with a mistake."""
    if len(text) < LONG or any(sign in text for sign in "\x85\u2028\u2029"):
        return None
    first, _, _ = text.partition("\n")
    if len(first.splitlines()) != 1:
        return None
    try:
        content = json.loads(first)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or "type" in content:
        return None
    from pulsar_ml.harness.histories._lines import operations

    described = "kind" in content
    begin, number = (len(first.encode()) + 1, 2) if described else (0, 1)
    found = operations(text, begin, number)
    if found is None or (described and content.get("operations") != len(found[0])):
        return None
    records, values, names, numbers = found
    signatures = tuple(Signature(name, MOST_ARGUMENTS, VALUE) for name in names)
    history = History(signatures, frozen(records), tuple(values), "file", numbers=tuple(numbers))
    return with_words(described_by(content, name), history, name) if described else history


def described_by(line: Any, name: str) -> dict[str, Any]:
    """Return what the first line of a file says about its operations."""
    first = check_object(line, name, kind=KIND, versions=(VERSION,))
    return check_keys(first, LINES_KEYS, name, optional=OPTIONAL)


def with_words(content: Mapping[str, Any], history: History, name: str) -> History:
    """Return ``history`` with its values encoded as the signatures of the header say."""
    from pulsar_ml.harness.histories.words import with_signatures

    try:
        signatures = [Signature(*signature) for signature in content["signatures"]]
        records, values = with_signatures(history, signatures)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise BadRecordError(f"{name} is damaged: {one_line(error)}") from None
    content = {**content, "values": values, "threads": history.threads}
    return replace(history_with(content, records, name), numbers=history.numbers)


def from_operations(lines: Iterable[tuple[int, Any]], name: str) -> History:
    """Return the history of operations; each comes with the number of its line."""
    operations = []
    for index, (number, line) in enumerate(lines):
        try:
            operation = Operation(
                thread=line["thread"],
                name=line["operation"],
                arguments=tuple(line["arguments"]),
                result=line["result"],
                invoked=line["invoked"],
                returned=line["returned"],
                crashed=bool(line.get("crashed", False)),
                number=number,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise BadRecordError(
                f"line {number} of {name}: operation {index} should be an object with thread, operation, "
                f"arguments, result, invoked and returned; {one_line(error)}"
            ) from None
        check_operation(operation, f"operation {index} (line {number}) of {name}")
        operations.append(operation)
    try:
        return history_of(operations, source="file")
    except (UsageError, OverflowError) as error:
        raise BadRecordError(f"{name} is damaged: {error}") from None


def check_operation(operation: Operation, what: str) -> None:
    """Raise BadRecordError for values of other types.

    Written out, because files have a line for each of up to millions of operations.
    """
    thread, name, _, _, invoked, returned, *_ = operation
    if type(thread) is not int and type(thread) is not str:
        raise mismatch(what, "thread", thread, "an integer or a name")
    if type(name) is not str:
        raise mismatch(what, "operation", name, "a text")
    if type(invoked) is not int and type(invoked) is not float:
        raise mismatch(what, "invoked", invoked, "a number, for example of nanoseconds")
    if returned is not None and type(returned) is not int and type(returned) is not float:
        raise mismatch(what, "returned", returned, "a number or null")
