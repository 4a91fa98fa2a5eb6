"""EventReader: Jepsen's events in the lines of a file that grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.histories.jepsen import LOG_LINE, edn_events, log_events
from pulsar_ml.input_files import MOST_BYTES
from pulsar_ml.versioned_json import decode

FORMS = ("jsonl", "edn", "log")


class EventReader:
    """Turns pieces of a file into events, each with the number of its line, or, in EDN, its own.

    Every line holds whole events: one of JSON Lines or of a log, any number of EDN. ``form`` is one
    of FORMS, or "" for that of the first line.
    """

    def __init__(self, name: str, form: str = "") -> None:
        if form not in ("", *FORMS):
            raise UsageError(
                f"a file of the format {form} cannot be followed, because it is written at once; "
                f"formats that grow are {', '.join(FORMS)}"
            )
        self.name = name
        self.form = form
        self.rest = b""
        self.lines = 0
        self.events = 0

    @property
    def numbered(self) -> str:
        """The things that the numbers count."""
        return "event" if self.form == "edn" else "line"

    def feed(self, piece: bytes) -> Iterator[tuple[int, Any]]:
        """Yield the events of the lines that ``piece`` completes."""
        *lines, self.rest = (self.rest + piece).split(b"\n")
        if len(self.rest) > MOST_BYTES:
            raise BadRecordError(
                f"line {self.lines + 1} of {self.name} has more than {MOST_BYTES >> 20} MiB, so it "
                "is no event"
            )
        for line in lines:
            yield from self.read_line(line)

    def finish(self) -> Iterator[tuple[int, Any]]:
        """Yield the events of a last line that does not end, if they are whole."""
        line, self.rest = self.rest, b""
        try:
            found = list(self.read_line(line))
        except BadRecordError:
            return
        yield from found

    def read_line(self, line: bytes) -> Iterator[tuple[int, Any]]:
        self.lines += 1
        where = f"line {self.lines} of {self.name}"
        try:
            text = line.decode().strip()
        except UnicodeDecodeError:
            raise BadRecordError(f"{where} is not text, so it is damaged or no event") from None
        if not text:
            return
        self.form = self.form or self.form_of(text, where)
        if self.form == "jsonl":
            yield self.lines, self.event_of(decode(text, where), where)
        elif self.form == "log":
            for _, event in log_events(text, self.name, self.lines):
                yield self.lines, event
        else:
            yield from self.edn_of(text, where)

    def form_of(self, text: str, where: str) -> str:
        if LOG_LINE.search(text):
            return "log"
        if text.startswith(('{"', '{ "')):
            return "jsonl"
        if text.startswith(("{", "[", "#jepsen", ";")):
            return "edn"
        raise BadRecordError(
            f"{where} is no event; name the format with --format: {', '.join(FORMS)}"
        )

    def event_of(self, event: Any, where: str) -> Any:
        if isinstance(event, dict) and "type" not in event and {"operation", "kind"} & set(event):
            raise BadRecordError(
                f"{where} is an operation, which is written when it is over: a file that grows has "
                "to say what is under way, so it needs events (process, type, f, value)"
            )
        return event

    def edn_of(self, text: str, where: str) -> Iterator[tuple[int, Any]]:
        if text.startswith("["):
            raise BadRecordError(
                f"{where} begins a vector, whose end is not there while the file grows; a file "
                "that grows has whole events in each line"
            )
        for number, event in edn_events(text, where):
            index = event.get("index") if isinstance(event, dict) else None
            yield self.events if index is None else number, event
            self.events += 1
