"""The steps of a failing execution: its accesses by thread, and the addresses of their code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from pulsar_ml.harness.causes.changes import Fence, Order
from pulsar_ml.harness.causes.reads_from import PLAIN, Event
from pulsar_ml.harness.engine import ORDERS
from pulsar_ml.harness.search.race import WORDS
from pulsar_ml.harness.search.symbols import describe_pc, look_up_pcs, own_pc

ATOMICS = ("load", "store", "rmw", "cas", "buffer")


class Trace:
    """The steps of one execution, and the code that other executions of its program reached.

    ``events`` are those of ``Explorer.trace()`` in the order of the execution. ``others`` are the
    traces of more executions: one place of the source may be compiled into several functions.
    """

    def __init__(self, events: Sequence[Event], others: Iterable[Sequence[Event]]) -> None:
        self.events = events
        self.others = tuple(others)
        self.pcs: dict[tuple[str, str], set[int]] = {}
        self.orders: dict[tuple[str, str], str] = {}
        every = [event for trace in self.every for event in trace if event["pc"]]
        look_up_pcs(int(event["pc"]) for event in every)
        for event in every:
            key = place_of(event), str(event["op"])
            self.pcs.setdefault(key, set()).add(int(event["pc"]))
            if order_of(event) and not event["failed"]:
                self.orders[place_of(event), event["op"]] = order_of(event)

    def order_at(self, event: Event) -> str:
        """The order in the source, which a failed compare-exchange does not show."""
        return self.orders.get((place_of(event), event["op"]), "relaxed")

    def code_of(self, event: Event) -> tuple[int, ...]:
        return tuple(sorted(self.pcs[place_of(event), event["op"]]))

    @property
    def every(self) -> tuple[Sequence[Event], ...]:
        """The steps of all known executions, the failing one first."""
        return self.events, *self.others

    @cached_property
    def accesses(self) -> tuple[int, ...]:
        """The accesses to memory of the program's threads, as numbers of events."""
        return tuple(number for number, event in enumerate(self.events) if is_access(event))

    @cached_property
    def shared(self) -> frozenset[int]:
        """The addresses that two threads access, of which one writes."""
        threads: dict[int, set[int]] = {}
        written: set[int] = set()
        for number in self.accesses:
            event = self.events[number]
            threads.setdefault(event["address"], set()).add(event["thread"])
            if event["op"] not in ("load", "read"):
                written.add(event["address"])
        return frozenset(one for one in written if len(threads[one]) > 1)

    def before(self, number: int) -> int | None:
        """The access of the same thread before event ``number``."""
        return self.neighbour(number, -1)

    def after(self, number: int) -> int | None:
        """The access of the same thread behind event ``number``."""
        return self.neighbour(number, 1)

    def neighbour(self, number: int, step: int) -> int | None:
        own = [one for one in self.accesses if self.thread(one) == self.thread(number)]
        at = own.index(number) + step if number in own else -1
        return own[at] if 0 <= at < len(own) else None

    def thread(self, number: int) -> int:
        return int(self.events[number]["thread"])

    # What could be stronger ---------------------------------------------------------------

    def stronger(self, number: int, side: str) -> Order | None:
        """The atomic operation of event ``number`` with ``side``, "acquire" or "release", as well.

        None when its order has that side already, or the operation cannot have it.
        """
        event = self.events[number]
        now = self.order_at(event)
        if not has_side(event["op"], side) or side in now or now in ("acq_rel", "seq_cst"):
            return None
        both = now in ("acquire", "release") and event["op"] in ("rmw", "cas")
        return self.order(number, "acq_rel" if both else side)

    def of_seq_cst(self, number: int) -> Order | None:
        event = self.events[number]
        atomic = event["op"] in ATOMICS and self.order_at(event) != "seq_cst"
        return self.order(number, "seq_cst") if atomic else None

    def order(self, number: int, order: str) -> Order:
        event = self.events[number]
        return Order(
            self.code_of(event), place_of(event), what_of(event), self.order_at(event), order
        )

    def fence(self, number: int, order: str) -> Fence:
        """A fence before the access of event ``number``."""
        event = self.events[number]
        behind = self.before(number)
        name = ""
        if behind is not None and self.events[behind]["call"] == event["call"]:
            name = place_of(self.events[behind])
        return Fence(self.code_of(event), name, place_of(event), order)

    def fenced(self, first: int, last: int, side: str) -> bool:
        """True if the thread of both events makes a fence with ``side`` between them."""
        thread = self.thread(first)
        return any(
            event["op"] == "fence"
            and event["thread"] == thread
            and (side in order_of(event) or order_of(event) in ("acq_rel", "seq_cst"))
            for event in self.events[first:last]
        )


def is_access(event: Event) -> bool:
    kinds = (*ATOMICS, *PLAIN)
    return event["op"] in kinds and event["thread"] >= 0 and bool(event["pc"])


def what_of(event: Event) -> str:
    return "store" if event["op"] == "buffer" else WORDS.get(event["op"], str(event["op"]))


def order_of(event: Event) -> str:
    """The memory order; "" of an access at which the execution ended before it was made."""
    number = int(event["order"])
    return ORDERS[number] if number < len(ORDERS) else ""


def place_of(event: Event) -> str:
    """Function and file:line; the file alone for a lambda, whose name says nothing."""
    frames = event["frames"]
    return describe_pc(own_pc(frames) if frames else int(event["pc"])).removeprefix("operator() ")


def has_side(op: str, side: str) -> bool:
    of_load, of_store = op in ("load", "rmw", "cas"), op in ("store", "buffer", "rmw", "cas")
    return of_load if side == "acquire" else of_store
