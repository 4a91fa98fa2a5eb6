"""Names of the locations of a trace.

A location has the name that the code under test gave it (``pulsar_ml/check.h``), else that of its
static or local variable, else the place that allocated its block, with the member in each case:
``ring.head``, ``Node@stack.cpp:12.next``; a member of an object of Cython that its line names alone
is ``self.head``. Others are m0, m1, ... in order of their first use.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from pulsar_ml.harness.engine import locate
from pulsar_ml.harness.locations.debug_info import (
    STRUCTURE,
    DebugInfo,
    Located,
    debug_info,
    distance_text,
)
from pulsar_ml.harness.search.symbols import (
    describe_pc,
    interpreted_name,
    library_file,
    look_up_pcs,
    own_pc,
    source_line,
)

OF_BLOCKS = ("allocate", "free")
LEAST_ADDRESS = 1 << 16  # smaller numbers are no addresses
NO_LOCATION = ("call", "return", "choose", "note", "fence", "spawn", "join", "refuse", "")
# What a line of the source allocates, in C, C++ and Cython.
ALLOCATES = re.compile(
    r"\bnew\s+(?:\([^)]*\)\s*)?(?:const\s+)?(?P<new>[\w:]+)"
    r"|\b(?:make|allocate)_(?:unique|shared)\w*\s*<\s*(?:const\s+)?(?P<made>[\w:]+)"
    r"|\bsizeof\s*\(?\s*(?:struct\s+)?(?P<sized>[A-Za-z_][\w:]*)"
    r"|\b(?P<declared>[A-Za-z_]\w*)\s*\*\s*(?:const\s+)?\w+\s*=\s*(?:\([^()]*\)\s*)?\w*alloc\w*\s*\("
    r"|\(\s*(?:struct\s+)?(?P<cast>[A-Za-z_]\w*)\s*\*\s*\)\s*\w*alloc\w*\s*\("
)
OF_SELF = re.compile(r"\bself\.(\w+)")
ATOMIC = re.compile(
    r"&self\.(\w+)\s*[,)]"
    r"|\bself\.(\w+)\.(?:load|store|exchange|fetch_\w+|compare_exchange_\w+)\("
)
ELSEWHERE = re.compile(
    r"[\[(&*]|\w\.\w+\.|(?<!\bself)\.[A-Za-z_]"
)  # other memory than the member's
# The header of std::thread, which allocates what it hands over to the new thread.
STARTS_THREAD = re.compile(r"/(std_thread\.h|thread)$")

Event = Mapping[str, Any]


def info_at(pc: int) -> DebugInfo | None:
    """The debug information of the checked module with this code."""
    module, _ = locate(pc) or ("", 0)
    return debug_info(module) if module else None


def member_of_self(event: Event) -> str:
    """The member of ``self`` that the event's line in Cython accesses; "" for other lines."""
    pc = own_pc(event["frames"])
    place, _, _ = describe_pc(pc).rpartition(":")
    if not place.endswith(".pyx"):
        return ""
    return member_in(source_line(pc), atomic=event["op"] not in ("read", "write"))


def member_in(line: str, *, atomic: bool) -> str:
    """The only member of ``self`` that a line can access, by an atomic operation or a plain access.

    An item, a member behind a member, and an argument of a call may be in other memory.
    """
    if atomic:
        members = {name for names in ATOMIC.findall(line) for name in names if name}
    else:
        members = set() if ELSEWHERE.search(line) else set(OF_SELF.findall(line))
    return f"self.{members.pop()}" if len(members) == 1 else ""


def type_of(allocation: re.Match[str]) -> str:
    return next(filter(None, allocation.groups()), "")


class Names:
    """The names of the locations of one trace."""

    def __init__(self, trace: Sequence[Event]) -> None:
        self.trace = trace
        self.numbers: dict[int, str] = {}
        self.found: dict[int, str] = {}
        self.used: set[str] = set()
        self.threads: dict[int, set[int]] | None = None
        self.latest: dict[int, int] | None = None  # the last change of a location
        self.begun: dict[int, int] = {}  # where a thread is started
        self.blocks = Blocks(trace)

    def of(self, event: Event) -> str:
        """The name of the location that the event accessed."""
        address = int(event["address"])
        if event["op"] in OF_BLOCKS and (block := self.blocks.at(address)) is not None:
            return block.name
        return self.known(event) or self.numbers.setdefault(address, f"m{len(self.numbers)}")

    def known(self, event: Event) -> str:
        """The name of that location, or "" when it has but a number."""
        address = int(event["address"])
        if event["op"] in NO_LOCATION:
            return ""
        if address not in self.found:
            self.found[address] = self.distinct(self.search(event))
        return self.found[address]

    def distinct(self, name: str) -> str:
        """The name, with a number if another location of the trace has it."""
        if not name:
            return ""
        numbered, number = name, 1
        while numbered in self.used:
            number += 1
            numbered = f"{name}#{number}"
        self.used.add(numbered)
        return numbered

    def search(self, event: Event) -> str:
        if name := interpreted_name(int(event["address"])):
            return name
        found = self.located(event)
        if event["name"] is None:
            return str(found or member_of_self(event))
        name, size, distance = event["name"]
        if found is not None and (found.size, found.offset) == (size, distance):
            return f"{name}{found.member}"
        if found is None and (member := self.member_of_structure(event, size, distance)):
            return f"{name}{member}"
        return f"{name}{distance_text(distance)}"

    def member_of_structure(self, event: Event, size: int, distance: int) -> str:
        """The member of the structure that generated operations work on, or ""."""
        info = info_at(int(event["pc"]))
        return (info.member_of(STRUCTURE, size, distance) or "") if info else ""

    def located(self, event: Event) -> Located | None:
        """The variable or the block of memory around the location."""
        address = int(event["address"])
        if event["frame"] is not None:
            function, distance = event["frame"]
            module, offset = locate(function) or ("", 0)
            info = debug_info(module) if module else None
            return info.local_at(offset - 1, distance) if info else None
        if (block := self.blocks.around(address)) is not None:
            return block.located(address)
        module, offset = locate(address) or ("", 0)
        info = debug_info(module) if module else None
        return info.variable_at(offset) if info else None

    def value(self, value: int) -> str:
        """A number in words: the name of the block that begins there, or the number."""
        block = self.blocks.at(value)
        if block is not None:
            return f"&{block.name}"
        if value >= LEAST_ADDRESS and (found := locate(value)) is not None:
            info = debug_info(found[0])
            variable = info.variable_at(found[1]) if info else None
            if variable is not None and variable.offset == 0:
                return f"&{variable.name}"
        return str(value)

    def constant(self, event: Event) -> bool:
        """Return True for a location that nobody changed once a second thread could see it.

        The changes were made before the threads that read them were started.
        """
        if self.latest is None:
            self.latest = {}
            self.begun = {}
            for at, other in enumerate(self.trace):
                if other["op"] == "spawn":
                    self.begun[int(other["value"])] = at
                elif other["op"] not in (*NO_LOCATION, "read", "load", "allocate"):
                    self.latest[int(other["address"])] = at
        address = int(event["address"])
        if address not in self.latest:
            return True
        self.shared(event)
        threads = (self.threads or {}).get(address, set())
        changed = self.latest[address]
        by = int(self.trace[changed]["thread"])
        return all(self.begun.get(each, -1) > changed for each in threads - {by})

    def shared(self, event: Event) -> bool:
        """Return True for a location of two threads; other plain accesses are not shown."""
        if self.threads is None:
            self.threads = {}
            for other in self.trace:
                if other["op"] not in NO_LOCATION:
                    self.threads.setdefault(int(other["address"]), set()).add(int(other["thread"]))
        return len(self.threads.get(int(event["address"]), ())) > 1

    def hands_over(self, event: Event) -> bool:
        """True for memory in which std::thread keeps what it hands over to a new thread."""
        block = self.blocks.around(int(event["address"]))
        return block is not None and block.of_thread


class Block:
    """A block of memory that a thread of a trace allocated."""

    def __init__(self, event: Event) -> None:
        self.start, self.size = int(event["address"]), int(event["value"])
        self.pc = own_pc(event["frames"])
        self.of_thread = STARTS_THREAD.search(library_file(int(event["pc"]))) is not None
        found = [] if self.of_thread else list(ALLOCATES.finditer(source_line(self.pc)))
        # A line may allocate several blocks: the first type that fits this one, or is not known.
        match = next(filter(self.fits, found), None) or next(filter(self.unknown, found), None)
        self.type_name = type_of(match) if match else ""
        self.counted = match is not None and bool(match["made"])
        place = describe_pc(self.pc).rpartition(" ")[2]
        self.name = f"{self.type_name.rpartition('::')[2] or 'block'}@{place.rpartition('/')[2]}"

    def fits(self, match: re.Match[str]) -> bool:
        info = info_at(self.pc)
        counted = bool(match["made"])
        found = info and info.member_of(type_of(match), self.size, 0, counted=counted)
        return found is not None

    def unknown(self, match: re.Match[str]) -> bool:
        info = info_at(self.pc)
        return info is None or not info.knows(type_of(match))

    def located(self, address: int) -> Located:
        offset = address - self.start
        info = info_at(self.pc) if self.type_name else None
        member = None
        if info is not None:
            member = info.member_of(self.type_name, self.size, offset, counted=self.counted)
        return Located(
            self.name, self.size, offset, distance_text(offset) if member is None else member
        )


class Blocks:
    """The blocks of memory that the threads of a trace allocated; without reused memory."""

    def __init__(self, trace: Sequence[Event]) -> None:
        rows: dict[int, list[Event]] = {}
        for event in trace:
            if event["op"] == "allocate":
                rows.setdefault(int(event["address"]), []).append(event)
        self.rows = {start: events[0] for start, events in rows.items() if len(events) == 1}
        self.starts = sorted(self.rows)
        self.named: dict[int, Block] | None = None

    def at(self, address: int) -> Block | None:
        """The block that begins at ``address``, or None."""
        return self.all()[address] if address in self.rows else None

    def around(self, address: int) -> Block | None:
        """The block that holds ``address``, or None."""
        at = bisect_right(self.starts, address) - 1
        if at < 0 or address - self.starts[at] >= max(int(self.rows[self.starts[at]]["value"]), 1):
            return None
        return self.at(self.starts[at])

    def all(self) -> dict[int, Block]:
        """All blocks by address; those of one site are numbered in the order of allocation."""
        if self.named is None:
            look_up_pcs(int(event["pc"]) for event in self.rows.values())
            self.named = {start: Block(event) for start, event in self.rows.items()}
            counts: dict[str, int] = {}
            for block in self.named.values():
                number = counts[block.name] = counts.get(block.name, 0) + 1
                block.name += f"#{number}" if number > 1 else ""
        return self.named
