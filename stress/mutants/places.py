"""The atomics and fences of the structures as their sources have them, and why some are never made.

Faults are made where executions of the suites come (:mod:`stress.mutants.weakened`). Orders at places to
which no execution comes are tried by nobody; they are named here, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stress.mutants.locks import FUNCTION

ORDERED = re.compile(
    r"\b(?:(?:u32|u64|i32|i64|ptr)_(?:load|store|exchange|fetch_\w+?|cas_\w+?)|fence)"
    r"_(?:acquire|release|acq_rel|seq_cst)\("
)
COMMENT = re.compile(r"#.*")

AT_REST = "Made only when no thread runs: "
NOT_MADE: Mapping[tuple[str, str, str], str] = {
    ("entry", "entry_hold_reads", "seen = u32_load_acquire(cell)"): (
        "Made where a count is adopted away and given back between the load before it and retaining. What is "
        "said of that load holds for this one."
    ),
    ("map_directory", "directory_init", "ptr_store_release(&directory.installed, initial)"): (
        AT_REST + "the suites make their maps before their threads start."
    ),
    ("map_directory", "directory_destroy", "ptr_store_release(&directory.installed, NULL)"): (
        AT_REST + "a map is destroyed after them."
    ),
    (
        "map_directory",
        "directory_is_empty",
        "return i64_load_relaxed(&(<BranchArray*>ptr_load_acquire(&directory.installed)).count) == 0",
    ): AT_REST + "the check at the end asks.",
    (
        "object_pool",
        "pool_in_use",
        "cdef uint32_t handle = <uint32_t>u64_load_acquire(&pool.head)",
    ): (AT_REST + "the check at the end counts."),
    (
        "object_pool",
        "pool_in_use",
        "if ptr_load_acquire(&pool.chunks[handle >> pool.chunk_bits]) is NULL:",
    ): (AT_REST + "the check at the end counts."),
    ("monitor", "monitor_enter", "while u32_exchange_acquire(monitor, 2) != 0:"): (
        "Made after 64 tries with a pause behind each, which in the engine do not all fail. Threads that "
        "sleep at a monitor are for real threads."
    ),
    ("range_cache", "range_cache_new", "u32_store_release(&cache.open, 1)"): (
        AT_REST + "the suites make all caches before their threads start."
    ),
}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A statement with an atomic that is not relaxed, or with a fence.

    ``lines`` are those of the statement, any of which a debugger may name; ``text`` is that with the atomic.
    """

    file: str
    function: str
    text: str
    lines: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.function, self.text


def places_of(path: Path) -> list[Place]:
    """The places of a file, in its order."""
    return [
        Place(path.stem, function, text, lines)
        for function, lines in statements(path.read_text())
        for text in lines
        if ORDERED.search(text)
    ]


def statements(source: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The statements inside functions, with the function's name; lines without comments and indents."""
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


def not_made(places: Iterable[Place], made: Iterable[tuple[str, str, str]]) -> list[Place]:
    """The places that are none of ``made``: file, function and line of what the suites make."""
    known = set(made)
    return [
        place
        for place in places
        if not known & {(place.file, place.function, line) for line in place.lines}
    ]
