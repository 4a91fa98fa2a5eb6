"""The invariants: one table has their sentences, and everything else names their ids.

``invariants.toml`` has the general invariants, I1 to I105, and each structure's own, such as MQ-1.
Suites take their sentences from here; headers of structures and pages are written from the table.
"""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulsar_ml.errors import UsageError

DATA = Path(__file__).with_name("invariants.toml")
LAST = 105


@dataclass(frozen=True, slots=True)
class Invariant:
    """A general invariant: what must hold, and what checks it beside the suites that name it.

    Attributes:
        when: "always", "quiet" (while no operation is under way) or "progress" (in the end).
        tests: tests that check it, as file::function.
        note: how a suite reports a breach when it names other invariants instead.
        waits: the structure whose suite or tests will check it.
        none: the reason why nothing checks it.
    """

    id: str
    group: str
    text: str
    when: str
    tests: tuple[str, ...] = ()
    note: str = ""
    waits: str = ""
    none: str = ""


@dataclass(frozen=True, slots=True)
class OwnInvariant:
    """An invariant of one structure, and the general invariants ``of`` which it is a part."""

    id: str
    structure: str
    text: str
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """The whole table; ``pages`` has the parts that a structure's page describes with it."""

    general: tuple[Invariant, ...]
    own: tuple[OwnInvariant, ...]
    pages: dict[str, tuple[str, ...]]

    def sentences(self) -> dict[str, str]:
        """Every invariant's sentence by its id, with a capital letter and a full stop."""
        every: list[Invariant | OwnInvariant] = [*self.general, *self.own]
        return {each.id: sentence(each.text) for each in every}


def sentence(text: str) -> str:
    # A name in backticks or with an underscore keeps its spelling.
    begins_with_name = re.match(r"[`_]|\w*_", text)
    return (text if begins_with_name else text[0].upper() + text[1:]) + "."


def read_table(text: str) -> Table:
    """The table of a data file. UsageError for ids that are missing, out of order or unknown."""
    data = tomllib.loads(text)
    pages = {name: tuple(parts) for name, parts in data.pop("pages", {}).items()}
    general = [Invariant(id=id, **tuples(row)) for id, row in data.items() if is_general(id)]
    own = [OwnInvariant(id=id, **tuples(row)) for id, row in data.items() if not is_general(id)]
    ids = [each.id for each in general]
    if ids != [f"I{number}" for number in range(1, LAST + 1)]:
        raise UsageError(f"the general invariants are {ids}; they should be I1 to I{LAST} in order")
    for each in own:
        if unknown := set(each.of) - set(ids):
            raise UsageError(f"{each.id} is of {sorted(unknown)}, which are no general invariants")
    return Table(tuple(general), tuple(own), pages)


def is_general(id: str) -> bool:
    return re.fullmatch(r"I\d+", id) is not None


def tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}


@functools.cache
def table() -> Table:
    return read_table(DATA.read_text("utf-8"))


def named(ids: str) -> dict[str, str]:
    """The sentences of the ids that the words of ``ids`` are. UsageError for an unknown id."""
    known = table().sentences()
    if unknown := [id for id in ids.split() if id not in known]:
        raise UsageError(f"no invariants {', '.join(unknown)} in {DATA.name}; add them there")
    return {id: known[id] for id in ids.split()}
