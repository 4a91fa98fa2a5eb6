"""Names of the locations of a trace.

A location has the name that the code under test gave it (``pulsar_ml/check.h``), else that of its
static or local variable, else the place that allocated its block, with the member in each case:
``ring.head``, ``Node@stack.cpp:12.next``. Others are m0, m1, ... in order of their first use.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from pulsar_ml.harness.engine import locate
from pulsar_ml.harness.locations.debug_info import debug_info
from pulsar_ml.harness.search.symbols import describe_pc, own_pc, source_line

NO_LOCATION = ("call", "return", "choose", "note", "fence", "")
# What a line of the source allocates, in C, C++ and Cython.
ALLOCATES = re.compile(
    r"\bnew\s+(?:\([^)]*\)\s*)?(?:const\s+)?(?P<new>[\w:]+)"
    r"|\b(?:make|allocate)_(?:unique|shared)\w*\s*<\s*(?:const\s+)?(?P<made>[\w:]+)"
    r"|\bsizeof\s*\(?\s*(?:struct\s+)?(?P<sized>[A-Za-z_][\w:]*)"
)

Event = Mapping[str, Any]


class Names:
    """The names of the locations of one trace."""

    def __init__(self, trace: Sequence[Event]) -> None:
        self.trace = trace
        self.numbers: dict[int, str] = {}
        self.found: dict[int, str] = {}
        self.threads: dict[int, set[int]] | None = None
        self.blocks: Blocks | None = None

    def of(self, event: Event) -> str:
        """The name of the location that the event accessed."""
        address = int(event["address"])
        return self.known(event) or self.numbers.setdefault(address, f"m{len(self.numbers)}")

    def known(self, event: Event) -> str:
        """The name of that location, or "" when it has but a number."""
        address = int(event["address"])
        if event["op"] in NO_LOCATION:
            return ""
        if address not in self.found:
            name = self.search(event)
            others = sum(other.partition("#")[0] == name for other in self.found.values())
            self.found[address] = f"{name}#{others + 1}" if name and others else name
        return self.found[address]

    def search(self, event: Event) -> str:
        address = int(event["address"])
        if event["name"] is not None:
            name, distance = event["name"]
            return f"{name}+{distance}" if distance else str(name)
        if event["frame"] is not None:
            function, distance = event["frame"]
            found = locate(function)
            info = debug_info(found[0]) if found else None
            return info.local_at(found[1] - 1, distance) if found and info else ""
        if self.blocks is None:
            self.blocks = Blocks(self.trace)
        if name := self.blocks.name_at(address):
            return name
        found = locate(address)
        info = debug_info(found[0]) if found else None
        return info.variable_at(found[1]) if found and info else ""

    def shared(self, event: Event) -> bool:
        """Return True for a location of two threads; other plain accesses are not shown."""
        if self.threads is None:
            self.threads = {}
            for other in self.trace:
                if other["op"] not in NO_LOCATION:
                    self.threads.setdefault(int(other["address"]), set()).add(int(other["thread"]))
        return len(self.threads.get(int(event["address"]), ())) > 1


class Blocks:
    """The blocks of memory that the threads of a trace allocated."""

    def __init__(self, trace: Sequence[Event]) -> None:
        self.rows: dict[int, list[Event]] = {}
        for event in trace:
            if event["op"] == "allocate":
                self.rows.setdefault(int(event["address"]), []).append(event)
        self.starts = sorted(self.rows)
        self.of_site: dict[str, list[int]] = {}  # the blocks that were named, by allocation site

    def name_at(self, address: int) -> str:
        """The name of an address in a block; "" outside of blocks, and in reused memory."""
        at = bisect_right(self.starts, address)
        if at == 0:
            return ""
        start = self.starts[at - 1]
        (first, *others) = self.rows[start]
        offset, size = address - start, int(first["value"])
        if offset >= size or others:
            return ""
        pc = own_pc(first["frames"])
        place = describe_pc(pc).rpartition(" ")[2].rpartition("/")[2]
        match = ALLOCATES.search(source_line(pc))
        name = next(filter(None, match.groups()), "") if match else ""
        found = locate(pc)
        info = debug_info(found[0]) if name and found else None
        member = info.member_of(name, size, offset) if info else None
        rest = f"+{offset}" if offset else ""
        site = f"{name.rpartition('::')[2] or 'block'}@{place}"
        named = self.of_site.setdefault(site, [])
        if start not in named:
            named.append(start)
        number = f"#{named.index(start) + 1}" if named[0] != start else ""
        return f"{site}{number}{rest if member is None else member}"
