"""A data race as a value: both accesses with their stacks, and how their threads synchronised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulsar_ml.harness.engine import ORDERS, Explorer
from pulsar_ml.harness.search.symbols import (
    describe_pc,
    library_frame,
    look_up_pcs,
    of_engine,
    of_interpreter,
    own_pc,
)
from pulsar_ml.harness.subjects.program import call_text
from pulsar_ml.wording import counted

PLAIN = ("read", "write")
WORDS = {
    "buffer": "store",
    "flush": "buffered store",
    "cas": "compare-exchange",
    "rmw": "read-modify-write",
    "free": "release of the memory",
}


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a data race.

    Attributes:
        thread: its thread.
        operation: the call of the program that accessed the memory.
        what: the kind and width of the access, in words.
        stack: function and file:line, from the inside out.
    """

    thread: int
    operation: str
    what: str
    stack: tuple[str, ...]

    @property
    def place(self) -> str:
        return self.stack[0] if self.stack else "?"


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses without a happens-before order.

    Attributes:
        first, second: the accesses in the order of the execution.
        synchronised: the last synchronisation of the two threads before them; "" if there was none.
        other_order: the failure when ``second`` comes before ``first``: "data race", or "use after
            free" when ``second`` frees the memory. "" when that order was not reached: an execution
            that held the first thread back never came to ``second``.
    """

    first: Access
    second: Access
    synchronised: str
    other_order: str

    def lines(self) -> list[str]:
        lines = []
        for when, access in (("first", self.first), ("then", self.second)):
            lines.append(f"  {when}, thread {access.thread} in {access.operation}: {access.what}")
            lines += [f"    at {place}" for place in access.stack]
        lines.append(f"  last synchronisation of the two: {self.synchronised or 'none'}")
        other = "" if self.other_order == "data race" else f", there as a {self.other_order}"
        lines.append(
            f"  seen in both orders{other}"
            if self.other_order
            else f"  the other order was not reached: thread {self.second.thread} needs the first access "
            "to happen"
        )
        return lines


def race_of(explorer: Explorer, number: int, raw: Mapping[str, Any]) -> Race | None:
    """Return the race in which execution ``number``, the last of ``explorer.again``, ended.

    None when the engine had no memory to keep both accesses in its trace.
    """
    if raw["event"] < 0 or raw["other_event"] < 0:
        return None
    first = access_of(explorer.event(raw["other_event"]), explorer)
    second = access_of(explorer.event(raw["event"]), explorer)
    return Race(first, second, synchronisation(explorer, raw), explorer.reverse(number))


def places_of_race(explorer: Explorer, raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the places of both accesses, the later one first; () where :func:`race_of` is None."""
    if raw["event"] < 0 or raw["other_event"] < 0:
        return ()
    events = (explorer.event(raw[name]) for name in ("event", "other_event"))
    return tuple(access_of(event, explorer).place for event in events)


def access_of(event: Mapping[str, Any], explorer: Explorer) -> Access:
    what = WORDS.get(event["op"], str(event["op"]))
    if event["op"] not in (*PLAIN, "free"):
        order = ORDERS[event["order"]] + " " if event["order"] < len(ORDERS) else "atomic "
        what = order + what
    if event["width"]:
        what += f" of {counted(event['width'], 'byte')}"
    return Access(
        thread=event["thread"],
        operation=operation_of(event, explorer),
        what=what,
        stack=stack_of(event["frames"]),
    )


def stack_of(frames: Sequence[int]) -> tuple[str, ...]:
    """The places of a stack from the inside out; without libraries' frames, if there are others."""
    look_up_pcs(frames)
    called = [pc for pc in frames if not of_engine(pc)]
    own = [pc for pc in called if not library_frame(pc)]
    return tuple(dict.fromkeys(describe_pc(pc) for pc in own or called))


def operation_of(event: Mapping[str, Any], explorer: Explorer) -> str:
    thread = event["thread"]
    if thread >= len(explorer.program.threads):
        whom = "the test" if explorer.program.is_test else "an operation"
        return f"code that {whom} started"
    return call_text(explorer.program, thread, event["call"], explorer.subject)


def synchronisation(explorer: Explorer, raw: Mapping[str, Any]) -> str:
    """Describe the last synchronisation of the two threads before the race; "" without one."""
    if raw["acquired"] < 0:
        return ""
    acquired = explorer.event(raw["acquired"])
    learned = f"thread {acquired['thread']} by {step_of(acquired)}"
    if raw["released"] < 0:
        pair = {raw["thread"], raw["other_thread"]} - {acquired["thread"]}
        return f"the end of thread {pair.pop()}, seen by {learned}"
    released = explorer.event(raw["released"])
    sent = f"thread {released['thread']} by {step_of(released)}"
    if released["op"] == "spawn":
        return f"{sent}, which started thread {acquired['thread']}"
    return f"{sent}, seen by {learned}"


def step_of(event: Mapping[str, Any]) -> str:
    """Describe a step: ``release store at put file:12``."""
    order = ""
    if event["op"] in ("load", "store", "rmw", "cas", "fence", "buffer", "flush"):
        order = ORDERS[event["order"]] + " " if event["order"] < len(ORDERS) else ""
    pc = own_pc(event["frames"])
    place = "in code of the interpreter" if of_interpreter(pc) else f"at {describe_pc(pc)}"
    return f"{order}{WORDS.get(event['op'], event['op'])} {place}"
