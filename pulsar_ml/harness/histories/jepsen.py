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

# An event of EDN that is a map of plain values on one line, and one key of it with its value.
PLAIN_LINE = re.compile(r"\s*(?:#jepsen\.history\.Op\s*)?\{([^{}]*)\}\s*")
PLAIN_VALUE = re.compile(
    r"""[\s,]*:([A-Za-z][\w-]*)[\s,]+"""
    r"""(-?(?:0|[1-9]\d{0,17})|:[A-Za-z][\w-]*|nil|true|false|"[^"\\]*"|\[[\w\s:,-]*\])(?=[\s,]|$)""",
    re.ASCII,
)

WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)

NEMESIS = "nemesis"  # the process that breaks things, whose events are no operations


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


class Texts:
    """The values that texts of EDN mean; each different text is parsed once."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}

    def value(self, text: str) -> Any:
        if WHOLE.fullmatch(text):
            return int(text)
        if text not in self.known:
            import edn_format

            self.known[text] = plain_edn(edn_format.loads_all(text)[0])
        return self.known[text]


def plain_events(text: str) -> list[Any] | None:
    """Return the events of a text whose lines are maps of plain values; None for others."""
    texts, events = Texts(), []
    for line in text.split("\n"):
        found = PLAIN_LINE.fullmatch(line)
        if found is None:
            if line.strip():
                return None
            continue
        event: dict[str, Any] = {}
        inner, at = found[1], 0
        while (part := PLAIN_VALUE.match(inner, at)) is not None:
            if part[1] in event:
                return None
            try:
                event[part[1]] = texts.value(part[2])
            except Exception:  # whatever it is, the other reader has a sentence about it
                return None
            at = part.end()
        if inner[at:].strip(" ,\t"):
            return None
        events.append(event)
    return events


def edn_events(text: str, name: str) -> Iterator[Numbered]:
    """Yield the events with their indices, which newer versions of Jepsen write, or places."""
    import edn_format

    edn_format.add_tag("jepsen.history.Op", lambda op: op)  # how newer versions print an event
    try:
        elements = plain_events(text)
        if elements is None:
            elements = [plain_edn(element) for element in edn_format.loads_all(text)]
    except Exception as error:
        raise BadRecordError(
            f"{first_wrong_line(text)}{name} is not EDN, so it is damaged or truncated: "
            f"{one_line(error)}"
        ) from None
    if len(elements) == 1 and isinstance(elements[0], list):
        elements = elements[0]
    for place, event in enumerate(elements):
        index = event.get("index") if isinstance(event, Mapping) else None
        yield index if type(index) is int else place, event


def first_wrong_line(text: str) -> str:
    """Return "line N of " when the lines before it are EDN by themselves, and it is none; or ""."""
    import edn_format

    for number, line in enumerate(text.splitlines(), 1):
        try:
            edn_format.loads_all(line)
        except Exception:
            # The first line of several may begin what the others go on with.
            return f"line {number} of " if number > 1 else ""
    return ""


def log_events(text: str, name: str, first: int = 1) -> Iterator[Numbered]:
    """Yield the events of Jepsen's log with their lines; its other lines are passed over.

    ``first``: the number of the first line.
    """
    texts = Texts()
    for number, line in enumerate(text.splitlines(), first):
        found = LOG_LINE.search(line)
        if found is None:
            continue
        process, kind, operation, value = found.groups()
        event: dict[str, Any] = {"process": int(process), "type": kind, "f": operation}
        if kind in ("invoke", "ok"):
            try:
                event["value"] = texts.value(value)
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
    operations: dict[int, Operation | None] = {}
    pairing = Pairing(name, keyed=keyed, failed_cas=failed_cas, numbered=numbered)
    for number, event in events:
        found = pairing.add(number, event)
        if found is not None:
            operations[found[0]] = found[1]
    try:
        return history_of(
            [operation for operation in operations.values() if operation is not None],
            source="jepsen",
            numbered=numbered,
        )
    except (UsageError, OverflowError) as error:
        raise BadRecordError(f"{name} is damaged: {error}") from None


class Pairing:
    """Pairs the completions of Jepsen's events with their invocations, one event after another."""

    def __init__(
        self, name: str, *, keyed: bool, failed_cas: bool = False, numbered: str = "line"
    ) -> None:
        self.name = name
        self.keyed = keyed
        self.failed_cas = failed_cas
        self.numbered = numbered
        self.events = self.operations = 0
        self.under_way: dict[int | str, tuple[int, Mapping[str, Any]]] = {}

    def add(self, number: int, event: Any) -> tuple[int, Operation | None] | None:
        """Return the number of the operation that the event begins or ends, and the operation.

        The operation is None when it did not happen. The whole answer is None for an event that
        belongs to no operation, as of the nemesis. Raises BadRecordError for an event that cannot
        come next.
        """
        where = f"{self.name}: {self.numbered} {number}"
        time = self.events
        self.events += 1
        if not isinstance(event, Mapping) or not {"process", "type", "f"} <= set(event):
            raise BadRecordError(
                f"{where} should be a map with process, type and f: {event!r:.200}"
            )
        process, kind = event["process"], event["type"]
        if process == NEMESIS:
            return None
        if type(process) is not int and type(process) is not str:
            raise BadRecordError(
                f"{where} has process {process!r:.200}; it should be an integer or a name"
            )
        if kind not in ("invoke", "ok", "fail", "info"):
            raise BadRecordError(
                f"{where} has type {kind!r:.200}; it should be invoke, ok, fail or info"
            )
        try:
            if kind == "invoke":
                return self.invoked(where, process, {**event, "at": time, "number": number})
            return self.completed(where, process, kind, event, time)
        except UsageError as error:
            raise BadRecordError(f"{where}: {error}") from None

    def invoked(
        self, where: str, process: int | str, begun: Mapping[str, Any]
    ) -> tuple[int, Operation | None]:
        if process in self.under_way:
            place, other = self.under_way[process]
            raise BadRecordError(
                f"{where} invokes {begun['f']!s:.200} while process {process!r:.200} is inside "
                f"{other['f']!s:.200}, which {self.numbered} {other['number']} invoked"
            )
        place, self.operations = self.operations, self.operations + 1
        self.under_way[process] = (place, begun)
        return place, left_open(begun, process, self.keyed, crashed=False)

    def completed(
        self, where: str, process: int | str, kind: str, event: Mapping[str, Any], time: int
    ) -> tuple[int, Operation | None]:
        if process not in self.under_way:
            raise BadRecordError(f"{where} completes what process {process!r:.200} did not invoke")
        place, begun = self.under_way.pop(process)
        if event["f"] != begun["f"]:
            raise BadRecordError(
                f"{where} completes {event['f']!s:.200}, but {self.numbered} {begun['number']} "
                f"invoked {begun['f']!s:.200} of process {process!r:.200}"
            )
        if kind == "ok":
            return place, finished(begun, event, time, process, self.keyed)
        if kind == "info":
            return place, left_open(begun, process, self.keyed, crashed=True)
        if self.failed_cas and begun["f"] == "cas":
            arguments = arguments_of(begun, self.keyed)
            return place, Operation(
                process, "cas", arguments, False, int(begun["at"]), time, number=begun["number"]
            )
        return place, None


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
    begun: Mapping[str, Any], event: Mapping[str, Any], time: int, thread: int | str, keyed: bool
) -> Operation:
    arguments = arguments_of(begun, keyed)
    _, requested = split_value(begun, keyed)
    _, answered = split_value(event, keyed) if event.get("value") is not None else ((), None)
    # Jepsen repeats the arguments when an operation has no result.
    result = None if requested is not None and answered == requested else answered
    return Operation(
        thread, str(begun["f"]), arguments, result, int(begun["at"]), time, number=begun["number"]
    )


def left_open(
    begun: Mapping[str, Any], thread: int | str, keyed: bool, *, crashed: bool
) -> Operation:
    return Operation(
        thread, str(begun["f"]), arguments_of(begun, keyed), None, int(begun["at"]), None, crashed,
        begun["number"],
    )  # fmt: skip
