"""The shipped objects once more, and all orders of calls: the judge of the fuzz.

Nothing here is shared with the package: neither its models nor its searches. A call is a plain
tuple, an object a function from a state and a call to all pairs of a result and a next state.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

Pairs = Iterator[tuple[Any, Any]]
Apply = Callable[[Any, str, tuple[Any, ...], int], Pairs]
ANY = object()  # a result that a call may not be asked for: any will do


class Row(NamedTuple):
    """One call of a history; ``returned`` is None for one that did not return."""

    thread: int
    name: str
    arguments: tuple[Any, ...]
    result: Any
    invoked: float
    returned: float | None


def cell(state: Any, name: str, args: tuple[Any, ...], thread: int) -> Pairs:
    if name == "read":
        yield state, state
    elif name == "write":
        yield ANY, args[0]
    elif state == args[0]:
        yield ("exchanged", args[1])
    else:
        yield False, state


def table(state: Any, name: str, args: tuple[Any, ...], thread: int) -> Pairs:
    """A map, as a sorted tuple of pairs."""
    held = dict(state)
    key = args[0]
    if name == "get":
        yield held.get(key), state
        return
    if name == "put":
        held[key] = args[1]
    elif name == "append":
        held[key] = held[key] + args[1] if key in held else args[1]
    else:
        held.pop(key, None)
    yield ANY, tuple(sorted(held.items()))


def forgetful(state: Any, name: str, args: tuple[Any, ...], thread: int) -> Pairs:
    """A map that may have lost any of its keys before the call."""
    for count in range(len(state) + 1):
        for left in itertools.combinations(state, count):
            held = dict(left)
            if name == "scan":
                yield [v for k, v in sorted(left) if args[0] <= k <= args[1]], left
            elif name == "get":
                yield held.get(args[0]), left
            elif name == "remove":
                value = held.pop(args[0], None)
                yield value, tuple(sorted(held.items()))
                yield None, tuple(sorted(held.items()))
            elif args[0] in held:
                yield False, left
            else:
                yield True, tuple(sorted({**held, args[0]: args[1]}.items()))


def members(state: Any, name: str, args: tuple[Any, ...], thread: int) -> Pairs:
    there = bool(args) and args[0] in state
    if name == "read":
        yield sorted(state), state
    elif name == "contains":
        yield there, state
    elif name == "add":
        yield not there, tuple(sorted({*state, args[0]}))
        yield None, tuple(sorted({*state, args[0]}))
    else:
        rest = tuple(value for value in state if value != args[0])
        yield there, rest
        yield None, rest


def bag(state: Any, name: str, args: tuple[Any, ...], thread: int) -> Pairs:
    count = state.count(args[0])
    if name == "contains":
        yield count > 0, state
    elif name == "count":
        yield count, state
    elif name == "add":
        yield ANY, tuple(sorted((*state, args[0])))
    else:
        rest = list(state)
        if count:
            rest.remove(args[0])
        yield count > 0, tuple(rest)
        yield None, tuple(rest)


def line(put: str, *, last: bool = False, least: bool = False) -> Apply:
    def apply(state: Any, name: str, args: tuple[Any, ...], thread: int) -> Pairs:
        if name == put:
            yield ANY, tuple(sorted((*state, args[0]))) if least else (*state, args[0])
        elif not state:
            yield None, state
        elif last:
            yield state[-1], state[:-1]
        else:
            yield state[0], state[1:]

    return apply


def number(state: Any, name: str, args: tuple[Any, ...], thread: int) -> Pairs:
    if name == "read":
        yield state, state
    elif name in ("increment", "decrement"):
        yield ANY, state + (1 if name == "increment" else -1)
    else:
        after = state + args[0]
        yield {"add": ANY, "add_and_get": after, "get_and_add": state}[name], after


def lock(state: Any, name: str, args: tuple[Any, ...], thread: int) -> Pairs:
    if name == "release":
        if state == thread:
            yield ANY, None
    elif state is None:
        yield (ANY if name == "acquire" else True), thread
    elif name == "try_acquire":
        yield False, state


# The first state and the steps of each model.
OBJECTS: dict[str, tuple[Any, Apply]] = {
    "register": (None, cell),
    "cas-register": (None, cell),
    "map": ((), table),
    "evicting-map": ((), forgetful),
    "set": ((), members),
    "multiset": ((), bag),
    "queue": ((), line("enqueue")),
    "stack": ((), line("push", last=True)),
    "priority-queue": ((), line("insert", least=True)),
    "counter": (0, number),
    "lock": (None, lock),
}
# Calls that never change a state, wherever they are legal, by their names and results.
PURE: dict[str, Callable[[str, Any], bool]] = {
    "register": lambda name, result: name == "read",
    "cas-register": lambda name, result: name == "read" or (name == "cas" and result is False),
    "map": lambda name, result: name == "get",
    "evicting-map": lambda name, result: False,
    "set": lambda name, result: name in ("contains", "read") or result is False,
    "multiset": lambda name, result: (
        name in ("contains", "count") or (name == "remove" and result is False)
    ),
    "queue": lambda name, result: name == "dequeue" and result is None,
    "stack": lambda name, result: name == "pop" and result is None,
    "priority-queue": lambda name, result: name == "delete_min" and result is None,
    "counter": lambda name, result: name == "read",
    "lock": lambda name, result: name == "try_acquire" and result is False,
}


def same(wanted: Any, found: Any) -> bool:
    """True when a call with the result ``wanted`` may have the result ``found``."""
    if found is ANY:
        return True
    if found == "exchanged":
        return wanted is not False
    if isinstance(found, list):
        return list(wanted) == found
    return bool(wanted == found and isinstance(wanted, bool) == isinstance(found, bool))


class Judge:
    """All orders of the calls of one history. ``keyed``: an object for each first argument."""

    def __init__(self, name: str, rows: Sequence[Row], *, keyed: bool = False) -> None:
        self.name = name
        self.rows = rows
        self.keyed = keyed
        self.initial, self.apply = OBJECTS[name]

    def first(self) -> frozenset[Any]:
        return frozenset([()] if self.keyed else [self.initial])

    def after(self, states: frozenset[Any], index: int) -> frozenset[Any]:
        row = self.rows[index]
        found = set()
        for state in states:
            inner, args, held = state, row.arguments, {}
            if self.keyed:
                held = dict(state)
                inner, args = held.get(args[0], self.initial), args[1:]
            for result, after in self.apply(inner, row.name, args, row.thread):
                if row.returned is None or same(row.result, result):
                    if self.keyed:
                        held[row.arguments[0]] = after
                        after = tuple(sorted(held.items(), key=repr))
                    found.add(after)
        return frozenset(found)

    def real_time(self, first: int, second: int) -> bool:
        end = self.rows[first].returned
        return end is not None and end < self.rows[second].invoked

    def program(self, first: int, second: int) -> bool:
        one, other = self.rows[first], self.rows[second]
        earlier = (one.invoked, first) < (other.invoked, second)
        return one.thread == other.thread and earlier and one.returned is not None

    def quiet(self, first: int, second: int) -> bool:
        """True when a moment without any call under way lies between the calls."""
        end, begin = self.rows[first].returned, self.rows[second].invoked
        if end is None or not end < begin:
            return False
        moments = [row.returned + 0.5 for row in self.rows if row.returned is not None]
        return any(
            end < moment < begin
            and not any(
                row.invoked <= moment and (row.returned is None or moment <= row.returned)
                for row in self.rows
            )
            for moment in moments
        )

    def legal(
        self,
        before: Callable[[int, int], bool] | None = None,
        chosen: Sequence[int] | None = None,
        spare: Sequence[int] = (),
        optional: Collection[int] = (),
        each_once: bool = False,
    ) -> bool:
        """True when the ``chosen`` calls have an order that keeps ``before``.

        Calls that did not return may be left out; ``spare`` calls take effect at any time, at most
        as many of them as there are; with ``each_once``, each at most once. ``optional`` calls may
        be left out; in the order they have their results.
        """
        before = before or self.real_time
        calls = list(range(len(self.rows))) if chosen is None else list(chosen)
        needed = {index for index in calls if self.rows[index].returned is not None}
        needed -= set(optional)
        kinds: dict[str, list[int]] = {}
        for index in spare:
            row = self.rows[index]
            kinds.setdefault(repr((row.thread, row[1:4], row.returned is None)), []).append(index)
        equal = list(kinds.values())
        seen = set()

        def extend(placed: frozenset[int], used: tuple[int, ...], states: frozenset[Any]) -> bool:
            if needed <= placed:
                return True
            key = placed, used, states
            if key in seen:
                return False
            seen.add(key)
            for index in calls:
                if index in placed or any(before(other, index) for other in needed - placed):
                    continue
                after = self.after(states, index)
                if after and extend(placed | {index}, used, after):
                    return True
            if sum(used) < len(spare):
                for kind, (index, *others) in enumerate(equal):
                    if each_once and used[kind] > len(others):
                        continue
                    after = self.after(states, index)
                    more = (*used[:kind], used[kind] + 1, *used[kind + 1 :])
                    if after and after != states and extend(placed, more, after):
                        return True
            return False

        return extend(frozenset(), (0,) * len(equal), self.first())

    def replays(self, order: Sequence[int], before: Callable[[int, int], bool]) -> bool:
        """True when the calls of ``order`` are legal one after the other, and keep ``before``."""
        states = self.first()
        for place, index in enumerate(order):
            if any(before(index, earlier) for earlier in order[:place]):
                return False
            states = self.after(states, index)
        return bool(states) and len(set(order)) == len(order)

    def pure(self, index: int) -> bool:
        row = self.rows[index]
        result = ANY if row.returned is None else row.result
        return PURE[self.name](row.name, result)
