"""Atomics and fences in the sources of the structures, and the reasons why some are never executed.

The engine weakens the orders that the suites execute
(:mod:`stress.mutants.faults.weakened_orders`). Orders that no suite executes are
listed here, each with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stress.mutants.faults.locks import FUNCTION

ORDERED = re.compile(
    r"\b(?:(?:u32|u64|i32|i64|ptr)_(?:load|store|exchange|fetch_\w+?|cas_\w+?)|fence)"
    r"_(?:acquire|release|acq_rel|seq_cst)\("
)
COMMENT = re.compile(r"#.*")

NOT_EXECUTED: Mapping[tuple[str, str, str], str] = {
    ("entry", "entry_hold_reads", "seen = u32_load_acquire(cell)"): (
        "Executed if a count is adopted away and given back between the previous load and "
        "retaining. The reason of that load holds for this one."
    ),
}


@dataclass(frozen=True, slots=True, order=True)
class OrderedStatement:
    """A statement with an atomic that is not relaxed, or with a fence.

    ``text`` is the line with the atomic. ``lines`` are all lines of the statement: debug
    information may name any of them.
    """

    file: str
    function: str
    text: str
    lines: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.function, self.text


def places_of(path: Path) -> list[OrderedStatement]:
    """The places of a file, from its beginning to its end."""
    return [
        OrderedStatement(path.stem, function, text, lines)
        for function, lines in statements(path.read_text())
        for text in lines
        if ORDERED.search(text)
    ]


def statements(source: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields the function and the lines of each statement, without comments and indents."""
    function = ""
    lines: list[str] = []
    for line in source.splitlines():
        if not lines and line and not line[0].isspace():
            head = FUNCTION.match(line)
            function = head["name"] if head else ""
        if code := COMMENT.sub("", line).strip():
            lines.append(code)
        whole = " ".join(lines)
        if sum(map(whole.count, "([{")) > sum(map(whole.count, ")]}")):
            continue
        if lines and function and not FUNCTION.match(lines[0]):
            yield function, tuple(lines)
        lines = []


def not_executed(
    places: Iterable[OrderedStatement], executed: Iterable[tuple[str, str, str]]
) -> list[OrderedStatement]:
    """The places that are not in ``executed``, which has file, function and line."""
    known = set(executed)
    return [
        place
        for place in places
        if not known & {(place.file, place.function, line) for line in place.lines}
    ]
