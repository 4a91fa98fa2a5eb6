"""Histories of Jepsen: events in EDN, in lines of a log, or in JSON Lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.histories.history import History, Operation, history_of
from pulsar_ml.input_files import one_line

# The event at the end of a line of a log: process, type, operation and value.
LOG_LINE = re.compile(r"(?:^|\s)(\d+)\s+:(invoke|ok|fail|info)\s+:([\w-]+)\s+(\S.*?)\s*$")


def plain_edn(value: Any) -> Any:
    """Return a value of EDN as one of JSON; keywords are their names."""
    import edn_format

    if isinstance(value, edn_format.Keyword):
        return value.name
    if isinstance(value, Mapping):
        return {plain_edn(key): plain_edn(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted((plain_edn(item) for item in value), key=repr)
    if isinstance(value, tuple | list) or type(value).__name__ == "ImmutableList":
        return [plain_edn(item) for item in value]
    return value


Numbered = tuple[int, Any]  # an event, with the number of its line or its own


def edn_events(text: str, name: str) -> Iterator[Numbered]:
    """Yield the events with their indices, which newer versions of Jepsen write, or places."""
    import edn_format

    edn_format.add_tag("jepsen.history.Op", lambda op: op)  # how newer versions print an event
    try:
        elements = [plain_edn(element) for element in edn_format.loads_all(text)]
    except Exception as error:
        raise BadRecordError(
            f"{name} is not EDN, so it is damaged or truncated: {one_line(error)}"
        ) from None
    if len(elements) == 1 and isinstance(elements[0], list):
        elements = elements[0]
    for place, event in enumerate(elements):
        index = event.get("index") if isinstance(event, Mapping) else None
        yield index if type(index) is int else place, event


def log_events(text: str, name: str) -> Iterator[Numbered]:
    """Yield the events of Jepsen's log with their lines; its other lines are passed over."""
    import edn_format

    for number, line in enumerate(text.splitlines(), 1):
        found = LOG_LINE.search(line)
        if found is None:
            continue
        process, kind, operation, value = found.groups()
        event: dict[str, Any] = {"process": int(process), "type": kind, "f": operation}
        if kind in ("invoke", "ok"):
            try:
                event["value"] = plain_edn(edn_format.loads_all(value)[0])
            except Exception as error:
                raise BadRecordError(
                    f"line {number} of {name} has a value that is not EDN, {value!r}: "
                    f"{one_line(error)}"
                ) from None
        yield number, event


def from_events(
    events: Iterable[Numbered],
    name: str,
    *,
    keyed: bool,
    failed_cas: bool = False,
    numbered: str = "line",
) -> History:
    """Return the history of Jepsen's events: invocations and their completions.

    A completion is ok, fail (the operation did not happen, and is left out) or info (it crashed).
    With ``failed_cas`` a failed cas has the result False. Stamps are the numbers of the events.
    Events of the nemesis are left out.
    """
    operations: list[Operation | None] = []
    under_way: dict[Any, tuple[int, Mapping[str, Any]]] = {}
    for time, (number, event) in enumerate(events):
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
            under_way[process] = (len(operations), {**event, "at": time, "number": number})
            operations.append(None)
        elif kind in ("ok", "fail", "info"):
            if process not in under_way:
                raise BadRecordError(
                    f"{name}: event {time} completes what process {process!r:.200} did not invoke"
                )
            place, begun = under_way.pop(process)
            if kind == "ok":
                operations[place] = finished(begun, event, time, process, keyed)
            elif kind == "fail" and failed_cas and begun["f"] == "cas":
                arguments = arguments_of(begun, keyed)
                operations[place] = Operation(
                    process, "cas", arguments, False, int(begun["at"]), time,
                    number=begun["number"],
                )  # fmt: skip
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
            [operation for operation in operations if operation is not None],
            source="jepsen",
            numbered=numbered,
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
    return Operation(
        thread, str(begun["f"]), arguments, result, int(begun["at"]), time, number=begun["number"]
    )


def left_open(begun: Mapping[str, Any], thread: int, keyed: bool, *, crashed: bool) -> Operation:
    return Operation(
        thread, str(begun["f"]), arguments_of(begun, keyed), None, int(begun["at"]), None, crashed,
        begun["number"],
    )  # fmt: skip
