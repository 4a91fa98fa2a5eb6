"""The steps of a failing execution with their names, and what each thread knew of the others.

A clock of a step says how far its thread knows each thread. A thread's own number grows whenever it
releases something, so a step is known to another thread from the release behind it on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from pulsar_ml.harness.causes.reads_from import PLAIN, READS, WRITES, Event, source_of
from pulsar_ml.harness.engine import ORDERS
from pulsar_ml.harness.locations.names import Names
from pulsar_ml.harness.search.lanes import Places, signed
from pulsar_ml.harness.search.race import WORDS
from pulsar_ml.harness.search.symbols import (
    FIRST_INTERPRETED,
    describe_pc,
    interpreted_value,
)

ACCESSES = (*READS, *WRITES, *PLAIN, "free")
ACQUIRES = ("acquire", "acq_rel", "seq_cst", "consume")
RELEASES = ("release", "acq_rel", "seq_cst")
ATOMIC = (*READS, *WRITES, "fence", "flush")
NAMED = (*ACCESSES, "allocate", "flush", "lock", "unlock", "wait", "wake")


class Steps:
    """The steps of one execution, by number."""

    def __init__(self, events: Sequence[dict[str, Any]]) -> None:
        self.events = events
        self.names = Names(events)
        self.places = Places(events)

    @cached_property
    def own(self) -> dict[int, list[int]]:
        """The steps of each thread."""
        found: dict[int, list[int]] = {}
        for number, event in enumerate(self.events):
            found.setdefault(int(event["thread"]), []).append(number)
        return found

    @cached_property
    def previous(self) -> dict[int, int]:
        """The step of the same thread before each step that has one."""
        return {
            later: before for numbers in self.own.values() for before, later in pairwise(numbers)
        }

    def thread(self, number: int) -> int:
        return int(self.events[number]["thread"])

    def between(self, first: int, last: int, thread: int) -> Iterator[int]:
        """The thread's steps behind ``first`` and before ``last``."""
        return (number for number in self.own.get(thread, ()) if first < number < last)

    # Knowledge ----------------------------------------------------------------------------

    def knows(self, number: int, thread: int) -> int:
        """How far the thread of a step knows another one, that step included."""
        clock = self.events[number]["clock"]
        return int(clock[thread]) if 0 <= thread < len(clock) else 0

    def time(self, number: int) -> int:
        """The own clock of the step's thread at the step, before a release there."""
        thread = self.thread(number)
        before = self.previous.get(number)
        return 1 if before is None else self.knows(before, thread)

    def known(self, number: int, later: int) -> bool:
        """True if a step happens before ``later``, a step behind it in the execution."""
        return self.time(number) <= self.knows(later, self.thread(number))

    def last_learned(self, reader: int, writer: int, before: int) -> int | None:
        """The last step before ``before`` by which ``reader`` came to know more of ``writer``."""
        for number in reversed(list(self.between(-1, before + 1, reader))):
            earlier = self.previous.get(number)
            known = 0 if earlier is None else self.knows(earlier, writer)
            if self.knows(number, writer) > known:
                return number
        return None

    def released(self, writer: int, time: int, before: int) -> int | None:
        """The step with which the writer's clock left ``time``: all that is known up to it."""
        for number in self.between(-1, before, writer):
            if self.time(number) == time < self.knows(number, writer):
                return number
        return None

    def start_of(self, thread: int) -> int | None:
        """The step that started the thread; None for a thread of the program."""
        return next(
            (
                number
                for number, event in enumerate(self.events)
                if event["op"] == "spawn" and int(event["value"]) == thread
            ),
            None,
        )

    def held(self, thread: int, before: int) -> dict[int, int]:
        """The locks that the thread holds before a step: address and the step that took each."""
        taken: dict[int, list[int]] = {}
        for number in self.between(-1, before, thread):
            event = self.events[number]
            address = int(event["address"])
            if event["op"] == "lock" and not event["failed"]:
                taken.setdefault(address, []).append(number)
            elif event["op"] == "unlock" and taken.get(address):
                taken[address].pop()
        return {address: numbers[0] for address, numbers in taken.items() if numbers}

    # Orders -------------------------------------------------------------------------------

    def order(self, number: int) -> str:
        """The memory order of an atomic step; "" of others, and of one that did not happen."""
        event = self.events[number]
        order = int(event["order"])
        return ORDERS[order] if event["op"] in ATOMIC and order < len(ORDERS) else ""

    def fenced(self, first: int, last: int, orders: Sequence[str]) -> bool:
        """True if the thread of ``last`` makes a fence of these orders between both steps."""
        return any(
            self.events[number]["op"] == "fence" and self.order(number) in orders
            for number in self.between(first, last, self.thread(last))
        )

    def source(self, number: int) -> int | None:
        """The store that a step read, or the store that left the buffer; None for no store."""
        return source_of(self.events, number)

    # Words --------------------------------------------------------------------------------

    def at(self, number: int) -> str:
        """The place of a step in the source, short."""
        return self.places.of(self.events[number])

    def at_pc(self, pc: int) -> str:
        """The place of a code address, short where steps have the same file."""
        place = describe_pc(pc).rpartition(" ")[2]
        file, _, line = place.rpartition(":")
        for full, short in zip(self.places.full.values(), self.places.short.values(), strict=True):
            if full.rpartition(":")[0] == file:
                return f"{short.rpartition(':')[0]}:{line}"
        return place

    def value(self, number: int) -> str:
        """The value that a step read or wrote, in words."""
        return self.value_of(self.events[number])

    def value_of(self, event: Event) -> str:
        if int(event["pc"]) >= FIRST_INTERPRETED:
            return interpreted_value(int(event["value"])) if int(event["value"]) else "?"
        return self.names.value(signed(event["value"]))

    def name(self, number: int) -> str:
        """The name of the step's location; "" if it has none."""
        event = self.events[number]
        if event["op"] not in NAMED:
            return ""
        if event["op"] in ("allocate", "free"):
            block = self.names.blocks.at(int(event["address"]))
            return block.name if block is not None else ""
        return self.names.known(event)

    def name_at(self, address: int, pc: int) -> str:
        """The name of a location that code at ``pc`` accesses; "" if it has none."""
        known = (event for event in self.events if int(event["address"]) == address)
        of_step = (self.names.known(event) for event in known if event["op"] in NAMED)
        unseen = {"address": address, "op": "wait", "name": None, "frame": None, "frames": (pc,)}
        return next(of_step, "") or self.names.known({**unseen, "pc": pc})

    def kind(self, number: int) -> str:
        op = str(self.events[number]["op"])
        if op == "free":
            return "release"
        return {"spawn": "start", "wake": "wake-up"}.get(op, WORDS.get(op, op))

    def text(self, number: int, *, order: bool = False) -> str:
        """A step in words: ``the relaxed store of ready at queue.h:130``."""
        strength = f"{self.order(number)} " if order and self.order(number) else ""
        name = self.name(number)
        of = f" of {name}" if name else ""
        return f"the {strength}{self.kind(number)}{of} at {self.at(number)}"
