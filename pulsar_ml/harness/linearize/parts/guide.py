"""A guide: a model of this package that proposes orders for the model of a user.

A user's model often has the operations of a register, a map or a queue. The native search for that
object is much faster than one that calls Python, so it is run first. An order that it finds is a
proposal: it counts only when the user's model allows each of its calls. "Illegal" is a hint which
part to search first. So a guide that is wrong about the model costs time, and changes no answer.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import MOST_ARGUMENTS, NEVER, VALUE, History
from pulsar_ml.harness.linearize.cells._cells import Cells
from pulsar_ml.harness.linearize.cells._parts import Parts
from pulsar_ml.harness.linearize.effort import Effort
from pulsar_ml.harness.linearize.search._answers import StatesFull, first_words
from pulsar_ml.harness.linearize.searches import Searches, answer_named
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL
from pulsar_ml.harness.models.cells import CasRegister, Counter
from pulsar_ml.harness.models.collections import (
    KeyValueMap,
    Multiset,
    PriorityQueue,
    Queue,
    Set,
    Stack,
)
from pulsar_ml.harness.models.model import Keyed

GUIDES = (CasRegister, KeyValueMap, Queue, Stack, PriorityQueue, Set, Multiset, Counter)
EASY_STEPS = (1, 8, 32)  # for each call, without looking ahead
MORE_STEPS = (128, 512)  # like them, of parts for which they are no more than MOST_STEPS
MOST_STEPS = 1_000_000
PLAIN_STEPS = 2  # for each call of all parts, without looking ahead
FEW_STEPS = 64  # like them, of a part with few calls
MOST_STATES = 1_000  # to which an order may lead


class Suspect(NamedTuple):
    """A part that is probably illegal.

    Attributes:
        call: one of its calls; -1: there is no such part.
        steps: the steps that refute it; 0: not known.
        until: the return that they cannot get past; later calls do not matter.
    """

    call: int = -1
    steps: int = 0
    until: int = NEVER


class Proposal(NamedTuple):
    """An order of all calls to try, or the calls of a part that ``native`` finds illegal.

    ``refuted`` is that part where it was refuted as your model's search would refute it.
    """

    order: list[int] | None = None
    suspect: NDArray[np.int32] | None = None
    native: Parts | None = None
    refuted: Suspect = Suspect()


class Guide:
    """The guide of one check; it searches again only while it found nothing."""

    def __init__(self, searches: Searches) -> None:
        self.searches = searches
        self.proposal = Proposal()

    def ask(self, steps: int) -> Proposal:
        """Return the proposal, found with so many steps for each call; 0: without a search."""
        if steps and self.proposal.order is None and self.proposal.suspect is None:
            self.proposal = proposal(self.searches, steps)
        return self.proposal

    def suspect(self, steps: int) -> int:
        """Return a call of the part that is probably illegal; -1: unknown."""
        suspect = self.ask(steps).suspect
        return -1 if suspect is None else int(suspect[0])

    @property
    def alike(self) -> NDArray[np.int32] | None:
        """A number for each call, equal for those that differ in their thread at most."""
        native = self.proposal.native
        return None if native is None else native.symbols(self.searches.records)

    def easiest(self, most: int) -> Suspect:
        """Return the part that is probably refuted first.

        ``most`` is the limit of steps for each call in which the guide looks for illegal parts
        besides the one that it found.
        """
        _, suspect, native, refuted = self.proposal
        if suspect is None or native is None:
            return Suspect()
        # The guide looks ahead as your model does or does not, so its steps are the same.
        ahead = self.searches.checker.looks_ahead
        # Where the first part is illegal, others probably are, and the shortest is the easiest one.
        # Those before a later one are legal, or hard, unless this one was searched first because
        # of a wrong read.
        first, guessed = suspect[0] == 0, native.likely >= 0
        all_alike = (first or guessed) and len(suspect) > FEW_STEPS
        if ahead and not all_alike:
            return Suspect(int(suspect[0]))
        few = EASY_STEPS[0 if first or all_alike else 1]
        if 0 < refuted.steps <= max(few * len(suspect), FEW_STEPS):
            return refuted
        at_first = [suspect] if not refuted.steps and (guessed or not all_alike) else []
        if found := self.first_refuted(at_first, few, ahead):
            return found
        pieces = sorted(native.pieces(self.searches.records), key=len)
        others = [one for one in pieces if one[0] > suspect[0] or (guessed and one[0] < suspect[0])]
        parts = pieces if all_alike else others
        for few in EASY_STEPS + MORE_STEPS:
            if few in MORE_STEPS:
                parts = [one for one in parts if few * len(one) <= MOST_STEPS]
            if found := self.first_refuted(parts, few, ahead):
                return found
            if ahead:
                break
            if few == EASY_STEPS[0]:
                illegal = [one for one in others if self.steps_for(native, one, most, ahead=True)]
                parts = [suspect, *illegal]
        return Suspect(int(suspect[0]))

    def first_refuted(
        self, parts: list[NDArray[np.int32]], most: int, ahead: bool
    ) -> Suspect | None:
        """Return the first of the parts that ``most`` steps for each call refute; None: none."""
        native = self.proposal.native
        assert native is not None
        for part in parts:
            if steps := self.steps_for(native, part, most, ahead=ahead):
                return Suspect(int(part[0]), steps, NEVER if ahead else native.blocked_at)
        return None

    def steps_for(
        self, native: Parts, part: NDArray[np.int32], most: int, *, ahead: bool = False
    ) -> int:
        """Return the steps that refute a part; 0: it is legal, or takes ``most`` for each call.

        It is 0, too, when the limit of the whole check is met.
        """
        effort = self.searches.effort
        answer, _, steps, _ = native.search_part(
            self.searches.records,
            part,
            ahead=ahead,
            most_steps=min(max(most * len(part), FEW_STEPS), effort.left),
        )
        effort.add(steps, 0)
        return steps if answer_named(answer) == ILLEGAL else 0

    def order(self, steps: int) -> tuple[int, ...] | None:
        """Return an order of all calls that the model allows; None: not found."""
        return self.allowed(self.ask(steps).order)

    def order_of(self, calls: NDArray[np.int32]) -> tuple[int, ...] | None:
        """Return the proposed order of some calls when the model allows it; None otherwise."""
        order = self.proposal.order
        if order is None:
            return None
        own = set(calls.tolist())
        return self.allowed([call for call in order if call in own])

    def allowed(self, order: list[int] | None) -> tuple[int, ...] | None:
        if order is None or not follows(self.searches, order):
            return None
        return tuple(order)


def proposal(searches: Searches, steps: int) -> Proposal:
    """Return what a native search for an object with the same operations finds.

    ``steps`` is its limit of steps for each call.
    """
    model, history, effort = searches.model, searches.history, searches.effort
    if not searches.options.natively or hasattr(model, "ends") or not len(history):
        return Proposal()
    guide = guide_for(model, history)
    if guide is None:
        return Proposal()
    options = searches.options
    if not options.partition:
        options = dataclasses.replace(options, partition=True)
    own = Searches(history, guide, options, Effort(steps * len(history), effort.deadline_ns))
    native = own.cells if own.cells is not None and type(guide) is not Keyed else own.all_parts()
    if native is None:
        return Proposal()
    records = history.records
    # Short parts are refuted as fast without looking ahead, and as your model's search will do it.
    plain = not searches.checker.looks_ahead
    if plain and isinstance(native, Parts) and len(history) <= FEW_STEPS * native.parts:
        most = min(PLAIN_STEPS * len(history), effort.left)
        answer, way, taken, _ = native.search(records, most_steps=most, ahead=False)
        effort.add(taken, 0)
        found = proposed(native, history, answer, way)
        if found.suspect is not None:
            refuted = Suspect(int(found.suspect[0]), native.spent, native.blocked_at)
            return found._replace(refuted=refuted)
        if found.order is not None:
            return found
    most = min(steps * len(history), effort.left)
    answer, way, taken, _ = native.search(records, most_steps=most)
    effort.add(taken, 0)
    return proposed(native, history, answer, way)


def proposed(native: Parts | Cells, history: History, answer: int, way: list[int]) -> Proposal:
    """Return what a search found."""
    name = answer_named(answer)
    if name == LEGAL:
        return Proposal(way)
    if name == ILLEGAL and isinstance(native, Parts):
        calls = native.calls_of_part(history.records)
        if calls is not None and len(calls):
            return Proposal(None, calls, native)
    return Proposal()


def guide_for(model: Any, history: History) -> Any:
    """Return a model of this package with the operations of the history; None: there is none."""
    keyed = type(model) is Keyed
    inner = model.model if keyed else model
    used = operations(history)
    for kind in GUIDES:
        if type(inner) is not kind and used.items() <= arguments_of(kind, keyed).items():
            guide = kind(inner.init()) if kind is CasRegister else kind()
            return Keyed(guide) if keyed else guide
    if keyed and used.items() <= dict(KeyValueMap.operations).items():
        return KeyValueMap()  # a map is a text, or another value, for each key
    return None


@cache
def arguments_of(kind: type[Any], keyed: bool) -> dict[str, int]:
    """Return the number of arguments of each operation of a guide."""
    return {name: count + keyed for name, count in kind.operations.items()}


def operations(history: History) -> dict[str, int]:
    """Return the number of arguments of each operation in a history."""
    found = {}
    for number, words in first_words(history.records, len(history.signatures)):
        name, arguments, result = history.signatures[number]
        found[name] = words if result == VALUE else min(arguments, MOST_ARGUMENTS)
    return found


def follows(searches: Searches, order: list[int]) -> bool:
    """Return True if the user's model allows the calls in this order.

    False, too, when they lead to too many states, when a call of one of several parts leads to
    several, or when a limit of memory or time is reached.
    """
    checker, effort, records = searches.checker, searches.effort, searches.records
    effort.add(len(order), 0)
    first = checker.states[checker.start]
    followed = checker.follow(records, order, first, checker.native.by_thread, effort.deadline_ns)
    if followed >= 0:
        return followed == len(order)
    try:
        symbols = checker.native.symbols(np.ascontiguousarray(records[order]))
        if checker.independent(symbols) > 1:
            return False
        states = [checker.start]
        for symbol in symbols.tolist():
            found = [after for state in states for after in checker.answer(state, symbol)]
            states = list(dict.fromkeys(found))
            if not 0 < len(states) <= MOST_STATES or effort.late:
                return False
    except StatesFull:
        return False
    return True
