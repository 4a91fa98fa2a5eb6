"""A data race as a value: both accesses with their stacks in the order in which they were made, what
ordered their threads last, and whether they happen in the other order as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pulsar_ml.harness.engine import ORDERS, Campaign
from pulsar_ml.harness.search.symbols import describe_pc, of_engine
from pulsar_ml.harness.subjects.program import call_text

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
    """One access: its thread, the operation of the program in which it was made, what it was, and its
    stack from the inside out, as function and file:line."""

    thread: int
    operation: str
    what: str
    stack: tuple[str, ...]

    @property
    def place(self) -> str:
        return self.stack[0] if self.stack else "?"


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses that nothing orders.

    Attributes:
        first, second: in the order in which the execution made them.
        synchronised: what ordered their threads last before them; "": nothing did.
        other_order: what shows that ``first`` also happens right after ``second``: "data race", or "use
            after free" when ``second`` gives the memory back. "": an execution made again with the
            thread of ``first`` held in front of it did not come to ``second``.
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
        told = "" if self.other_order == "data race" else f", there as a {self.other_order}"
        lines.append(
            f"  seen in both orders{told}"
            if self.other_order
            else f"  seen in this order only: without the first access thread {self.second.thread} did not "
            "come to its own"
        )
        return lines

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Race:
        """From the JSON of a failure; KeyError, TypeError or ValueError when it is damaged."""
        accesses = []
        for name in ("first", "second"):
            fields = dict(data[name])
            stack = tuple(str(place) for place in fields.pop("stack"))
            if type(fields["thread"]) is not int:
                raise TypeError(f"a thread is a number, not {str(fields['thread'])[:60]!r}")
            if not isinstance(fields["operation"], str) or not isinstance(fields["what"], str):
                raise TypeError("what an access was is told in words")
            accesses.append(Access(stack=stack, **fields))
        return Race(accesses[0], accesses[1], str(data["synchronised"]), str(data["other_order"]))


def race_of(campaign: Campaign, number: int, raw: Mapping[str, Any]) -> Race | None:
    """The race with which execution ``number`` ended, which ``campaign.again`` made last; None when the
    trace does not hold both accesses, for lack of memory."""
    if raw["event"] < 0 or raw["other_event"] < 0:
        return None
    first = access_of(campaign.event(raw["other_event"]), campaign)
    second = access_of(campaign.event(raw["event"]), campaign)
    return Race(first, second, synchronisation(campaign, raw), campaign.reverse(number))


def access_of(event: Mapping[str, Any], campaign: Campaign) -> Access:
    what = WORDS.get(event["op"], str(event["op"]))
    if event["op"] not in (*PLAIN, "free"):
        order = ORDERS[event["order"]] + " " if event["order"] < len(ORDERS) else "atomic "
        what = order + what
    if event["width"]:
        what += f" of {event['width']} bytes"
    return Access(
        thread=event["thread"],
        operation=operation_of(event, campaign),
        what=what,
        stack=tuple(describe_pc(pc) for pc in event["frames"] if not of_engine(pc)),
    )


def operation_of(event: Mapping[str, Any], campaign: Campaign) -> str:
    thread = event["thread"]
    if thread >= len(campaign.program.threads):
        return "code that an operation started"
    return call_text(campaign.program, thread, event["call"], campaign.subject)


def synchronisation(campaign: Campaign, raw: Mapping[str, Any]) -> str:
    """The last time that one of the two threads learned something of the other before the race."""
    if raw["acquired"] < 0:
        return ""
    acquired = campaign.event(raw["acquired"])
    learned = f"thread {acquired['thread']} by {step_of(acquired)}"
    if raw["released"] < 0:
        pair = {raw["thread"], raw["other_thread"]} - {acquired["thread"]}
        return f"the end of thread {pair.pop()}, seen by {learned}"
    released = campaign.event(raw["released"])
    return f"thread {released['thread']} by {step_of(released)}, seen by {learned}"


def step_of(event: Mapping[str, Any]) -> str:
    """``release store at put file:12``."""
    order = ""
    if event["op"] in ("load", "store", "rmw", "cas", "fence", "buffer", "flush"):
        order = ORDERS[event["order"]] + " " if event["order"] < len(ORDERS) else ""
    return f"{order}{WORDS.get(event['op'], event['op'])} at {describe_pc(int(event['pc']))}"
