"""Ignored locks: switches around the calls that take a lock and give it back.

The engine sees the atomics of a lock, not the lock. So the mutants' build puts a switch into its
copy of the sources, one for each function and lock. A lock that one function takes and another
gives back has one switch.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ENTER = ("stamped_lock_write", "stamped_lock_read", "monitor_enter", "condition_enter")
LEAVE = ("stamped_unlock_write", "stamped_unlock_read", "monitor_leave", "condition_leave")
CALL = re.compile(
    rf"^(?P<indent> +)(?P<call>(?P<verb>{'|'.join(ENTER + LEAVE)})\((?P<lock>&[\w.]+)\))$",
    re.MULTILINE,
)
FUNCTION = re.compile(r"^cdef inline .*?(?P<name>\w+)\(", re.MULTILINE)

Place = tuple[str, str]  # function, lock


@dataclass(frozen=True, slots=True, order=True)
class Lock:
    """A lock in a function. If several functions take the lock, ``function`` gives it back."""

    file: str
    function: str
    lock: str

    @property
    def id(self) -> str:
        return f"lock:{self.file}:{self.function}:{self.lock.removeprefix('&')}"


def calls(source: str) -> Iterator[tuple[re.Match[str], Place]]:
    starts = [(match.start(), match["name"]) for match in FUNCTION.finditer(source)]
    for call in CALL.finditer(source):
        name = [name for start, name in starts if start < call.start()][-1]
        yield call, (name, call["lock"])


def places(stem: str, source: str) -> Mapping[Place, Lock]:
    """The lock at each place of a file."""
    verbs: dict[Place, set[bool]] = defaultdict(set)
    for call, place in calls(source):
        verbs[place].add(call["verb"] in ENTER)
    found = {}
    for (function, lock), kinds in verbs.items():
        name = function
        if len(kinds) == 1:
            name = next(one for (one, its), has in verbs.items() if its == lock and has == {False})
        found[function, lock] = Lock(stem, name, lock)
    return found


def locks_of(path: Path) -> list[Lock]:
    return sorted(set(places(path.stem, path.read_text()).values()))


def with_switches(stem: str, text: str, source: str, numbers: Mapping[Lock, int]) -> str:
    """Puts a switch around each call of a lock in ``text``, which is ``source`` with mutants."""
    known = places(stem, source)
    for call, place in reversed(list(calls(text))):
        if place in known:
            guarded = f"{call['indent']}if pml_mutant != {numbers[known[place]]}: {call['call']}"
            text = text[: call.start()] + guarded + text[call.end() :]
    return text
