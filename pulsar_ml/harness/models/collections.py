"""Models of collections: maps, sets, queues, stack."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import Call
from pulsar_ml.harness.models.cells import no_operation

Items = frozenset[tuple[Any, Any]]


class Pairs:
    """The text of the states of the models below that map keys to values."""

    def describe_state(self, state: Items) -> str:
        items = sorted((repr(key), repr(value)) for key, value in state)
        return "{" + ", ".join(f"{key}: {value}" for key, value in items) + "}"


def begins(whole: Any, part: Any) -> bool:
    """Return False only if ``whole`` is a string or list that does not begin with ``part``."""
    if type(whole) is not type(part) or not isinstance(whole, str | list | tuple):
        return True
    return len(whole) >= len(part) and whole[: len(part)] == part


class KeyValueMap(Pairs):
    """A map: get(key) -> value or None, put(key, value), append(key, value), delete(key).

    ``append`` adds to a string or a list, and puts the value of a missing key. Keys are
    independent.
    """

    description = "a key-value map"
    operations: ClassVar[Mapping[str, int]] = {"get": 1, "put": 2, "append": 2, "delete": 1}

    def init(self) -> Items:
        return frozenset()

    def step(self, state: Items, call: Call) -> Iterable[Items]:
        held = dict(state)
        key = call.arguments[0]
        if call.name == "get":
            return (state,) if call.pending or call.result == held.get(key) else ()
        if call.name == "delete":
            held.pop(key, None)
        elif call.name == "put":
            held[key] = call.arguments[1]
        elif call.name == "append":
            added: Any = call.arguments[1]
            held[key] = self.appended(held[key], added) if key in held else added
        else:
            raise no_operation(self, call.name, "get, put, append, delete")
        return (frozenset(held.items()),)

    def appended(self, held: Any, added: Any) -> Any:
        """Return the value after an append to an existing value."""
        try:
            return held + added
        except TypeError:
            raise UsageError(
                f"append() of {added!r} to {held!r}: a text takes a text, and a list a list"
            ) from None

    def partition(self, call: Call) -> Hashable:
        return call.arguments[0]

    def pure(self, call: Call) -> bool:
        return call.name == "get"

    def resets(self, call: Call) -> bool:
        return call.name in ("put", "delete")

    def leads(self, state: Items, call: Call) -> bool:
        held, seen = dict(state).get(call.arguments[0]), call.result
        if held is None:
            return True
        return seen is not None and begins(seen, held)


class EvictingMap(Pairs):
    """A cache that may forget any key at any moment.

    put(key, value) -> True if the key was free, get(key) -> value or None, remove(key) -> value or
    None, scan(low, high) -> values by ascending key. None is always a legal answer of get and
    remove, and a scan may have holes. A value that is answered was in the cache, and a forgotten
    key stays absent until the next put.
    """

    description = "a map that may forget"
    operations: ClassVar[Mapping[str, int]] = {"put": 2, "get": 1, "remove": 1, "scan": 2}

    def init(self) -> Items:
        return frozenset()

    def step(self, state: Items, call: Call) -> Iterable[Items]:
        held = dict(state)
        if call.name == "scan":
            return self.scan(state, call)
        key = call.arguments[0]
        rest = frozenset(item for item in state if item[0] != key)
        if call.name == "put":
            stored = rest | {(key, call.arguments[1])}
            if call.pending:
                return (stored, state) if key in held else (stored,)
            if not call.result:
                return (state,) if key in held else ()
            return (stored,)
        if call.name == "get":
            if call.pending:
                return (state, rest)
            if call.result is None:
                return (rest,)
            return (state,) if held.get(key) == call.result else ()
        if call.name == "remove":
            return (
                (rest,)
                if call.pending or call.result is None or held.get(key) == call.result
                else ()
            )
        raise no_operation(self, call.name, "put, get, remove, scan")

    def scan(self, state: Items, call: Call) -> Iterable[Items]:
        low, high = call.arguments
        inside = [item for item in sorted(state) if low <= item[0] <= high]
        seen: Any = call.result
        found = set()
        # Values may repeat, so every choice of keys with the values seen counts.
        for count in range(len(inside) + 1) if call.pending else (len(seen),):
            for chosen in itertools.combinations(inside, count):
                if call.pending or [value for _, value in chosen] == list(seen):
                    found.add(frozenset(state - set(inside)) | frozenset(chosen))
        return found

    def pure(self, call: Call) -> bool:
        return False


class Set:
    """A set: add(value), remove(value), contains(value) -> truth values.

    A result None of add and remove may stand for either. read() -> the members in any order.
    """

    description = "a set"
    operations: ClassVar[Mapping[str, int]] = {"add": 1, "remove": 1, "contains": 1, "read": 0}
    monitor = "set"

    def init(self) -> frozenset[Any]:
        return frozenset()

    def step(self, state: frozenset[Any], call: Call) -> Iterable[frozenset[Any]]:
        if call.name == "read":
            members: Any = call.result
            same = call.pending or (len(members) == len(state) and frozenset(members) == state)
            return (state,) if same else ()
        value = call.arguments[0]
        known = call.result in (True, False)
        if call.name == "contains":
            return (state,) if call.pending or call.result == (value in state) else ()
        if call.name == "add":
            return (state | {value},) if not known or call.result == (value not in state) else ()
        if call.name == "remove":
            return (state - {value},) if not known or call.result == (value in state) else ()
        raise no_operation(self, call.name, "add, remove, contains, read")

    def describe_state(self, state: frozenset[Any]) -> str:
        return "{" + ", ".join(sorted(map(repr, state))) + "}"

    def partition(self, call: Call) -> Hashable:
        return None if call.name == "read" else call.arguments[0]

    def pure(self, call: Call) -> bool:
        return call.name in ("contains", "read") or call.result is False


class Queue:
    """A queue: enqueue(value), dequeue() -> value, or None when the queue is empty."""

    description = "a queue"
    operations: ClassVar[Mapping[str, int]] = {"enqueue": 1, "dequeue": 0}
    monitor = "queue"
    put, take = "enqueue", "dequeue"
    end = 0  # the index at which values leave

    def init(self) -> tuple[Any, ...]:
        return ()

    def step(self, state: tuple[Any, ...], call: Call) -> Iterable[tuple[Any, ...]]:
        if call.name == self.put:
            return ((*state, call.arguments[0]),)
        if call.name != self.take:
            raise no_operation(self, call.name, f"{self.put}, {self.take}")
        left = state[1:] if self.end == 0 else state[:-1]
        if call.pending:
            return (left,)
        if call.result is None:
            return (state,) if not state else ()
        return (left,) if state and state[self.end] == call.result else ()

    def pure(self, call: Call) -> bool:
        return call.name == self.take and call.result is None

    def describe_state(self, state: tuple[Any, ...]) -> str:
        return str(list(state))

    def unit(self, call: Call) -> Hashable:
        if call.name == self.put:
            return ("value", call.arguments[0])
        return None if call.pending else ("value", call.result)


class Stack(Queue):
    """push(value), pop() -> value, or None when the stack is empty."""

    description = "a stack"
    operations: ClassVar[Mapping[str, int]] = {"push": 1, "pop": 0}
    monitor = "stack"
    put, take = "push", "pop"
    end = -1


class PriorityQueue(Queue):
    """A priority queue: insert(value), delete_min() -> the least value, or None when it is empty.

    Values can be compared with one another.
    """

    description = "a priority queue"
    operations: ClassVar[Mapping[str, int]] = {"insert": 1, "delete_min": 0}
    monitor = "priority-queue"
    put, take = "insert", "delete_min"

    def step(self, state: tuple[Any, ...], call: Call) -> Iterable[tuple[Any, ...]]:
        if call.name != self.put:
            return super().step(state, call)
        try:
            at = bisect.bisect_right(state, call.arguments[0])
        except TypeError:
            raise UsageError(
                f"{call}: the values of a priority queue can be compared with one another; "
                f"{state[0]!r} was inserted, too"
            ) from None
        return ((*state[:at], call.arguments[0], *state[at:]),)


class Multiset(Pairs):
    """A multiset: add(value), remove(value) -> True if it was there, contains(value), count(value).

    A result of remove other than True and False may stand for either. Values are independent.
    """

    description = "a multiset"
    operations: ClassVar[Mapping[str, int]] = {"add": 1, "remove": 1, "contains": 1, "count": 1}
    monitor = "multiset"

    def init(self) -> Items:
        return frozenset()

    def step(self, state: Items, call: Call) -> Iterable[Items]:
        if call.name not in self.operations:
            raise no_operation(self, call.name, ", ".join(self.operations))
        value = call.arguments[0]
        counts = dict(state)
        count = counts.pop(value, 0)
        if call.name in ("contains", "count"):
            seen = count > 0 if call.name == "contains" else count
            return (state,) if call.pending or call.result == seen else ()
        if call.name == "remove" and call.result in (True, False) and call.result != (count > 0):
            return ()
        after = count + 1 if call.name == "add" else max(0, count - 1)
        return (frozenset({**counts, value: after}.items() if after else counts.items()),)

    def partition(self, call: Call) -> Hashable:
        return call.arguments[0]

    def pure(self, call: Call) -> bool:
        return call.name in ("contains", "count") or (
            call.name == "remove" and call.result is False
        )
