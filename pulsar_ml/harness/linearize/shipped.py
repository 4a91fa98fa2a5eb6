"""Native searches for the models of this package.

Only the classes themselves qualify: a subclass may change the meaning of its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import (
    ABSENT,
    FLAG,
    NEVER,
    NONE,
    RETURNED,
    VALUE,
    WORD,
    History,
)
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL
from pulsar_ml.harness.models.cells import CasRegister, Counter, Lock, Register
from pulsar_ml.harness.models.collections import (
    KeyValueMap,
    Multiset,
    PriorityQueue,
    Queue,
    Set,
    Stack,
)
from pulsar_ml.harness.models.model import Keyed

if TYPE_CHECKING:  # each native module is imported for its own models
    from pulsar_ml.harness.linearize.cells._cells import Cells
    from pulsar_ml.harness.linearize.cells._maps import Maps
    from pulsar_ml.harness.linearize.objects._objects import Objects

MOST_OPERATIONS = 16
KINDS = {"read": 0, "write": 1, "cas": 2}
MAP_KINDS = {"get": 0, "put": 1, "append": 2, "delete": 3}
OPERATIONS = {Register: ("read", "write"), CasRegister: ("read", "write", "cas")}
ARGUMENTS = {"read": 0, "write": 1, "cas": 2}
MEMBERS = {"add": "add", "remove": "remove", "contains": "contains"}
OF_REGISTER = {"read": "read", "write": "write", "cas": "cas"}
# The kind of each model, and the actions of its operations.
NATIVE: dict[type, tuple[str, dict[str, str]]] = {
    Queue: ("queue", {"enqueue": "put", "dequeue": "take"}),
    Stack: ("stack", {"push": "put", "pop": "take"}),
    PriorityQueue: ("priority queue", {"insert": "put", "delete_min": "take"}),
    Set: ("set", MEMBERS),
    Multiset: ("multiset", {**MEMBERS, "count": "count"}),
    KeyValueMap: ("map", {"get": "read", "put": "write", "delete": "delete"}),
    Counter: (
        "counter",
        {
            "read": "read",
            "add": "adds",
            "add_and_get": "add_and_get",
            "get_and_add": "get_and_add",
            "increment": "increment",
            "decrement": "decrement",
        },
    ),
    Lock: (
        "lock",
        {"acquire": "acquire", "try_acquire": "try_acquire", "release": "release"},
    ),
    Register: ("register", OF_REGISTER),
    CasRegister: ("register", OF_REGISTER),
}
NO_NUMBER = ABSENT  # of a value that a counter cannot have
MOST_NUMBER = 1 << 40
MOST_COUNT = 1 << 30


def cells_for(model: Any, history: History) -> Cells | None:
    """The native search for a register, or for a register for each key; None for other models."""
    keyed = type(model) is Keyed
    inner = model.model if keyed else model
    names = OPERATIONS.get(type(inner))
    signatures = history.signatures
    if names is None or not all(signature.name in names for signature in signatures):
        return None
    kinds = [KINDS[signature.name] for signature in signatures]
    if any(signature.result == VALUE for signature in signatures):
        return of_values(inner, history, kinds, keyed)
    if not all(
        signature.result in (NONE, WORD, FLAG)
        and signature.arguments == keyed + ARGUMENTS[signature.name]
        for signature in signatures
    ):
        return None
    initial = inner.initial
    if initial is not None and type(initial) is not int:
        return None
    if any(signature.name == "read" and signature.result != WORD for signature in signatures):
        return None
    from pulsar_ml.harness.linearize.cells._cells import Cells

    failed = [0 if signature.result == FLAG else None for signature in signatures]
    return Cells(kinds, failed, None, ABSENT if initial is None else initial, keyed=keyed)


def of_values(model: Any, history: History, kinds: list[int], keyed: bool) -> Cells | None:
    """The native search for registers of Python values; equal values, like True and 1, are one."""
    if not all(signature.result == VALUE for signature in history.signatures):
        return None
    numbers: dict[Any, int] = {}
    try:
        classes = [numbers.setdefault(value, len(numbers)) for value in history.values]
        initial = numbers.setdefault(model.initial, len(numbers))
    except TypeError:
        return None
    from pulsar_ml.harness.linearize.cells._cells import Cells

    no = next((index for index, value in enumerate(history.values) if value is False), None)
    return Cells(kinds, [no] * len(kinds), classes, initial, keyed=keyed)


def maps_for(model: Any, history: History, memory: int) -> Maps | None:
    """The native search for histories of a map of strings; None for others."""
    if type(model) is not KeyValueMap:
        return None
    if not all(
        signature.name in MAP_KINDS and signature.result == VALUE
        for signature in history.signatures
    ):
        return None
    from pulsar_ml.harness.linearize.cells._maps import Maps

    try:
        return Maps(
            [MAP_KINDS[signature.name] for signature in history.signatures],
            history.values,
            memory=memory,
        )
    except UnicodeEncodeError:
        return None  # a string with a lone surrogate


def objects_for(model: Any, history: History, memory: int) -> Objects | None:
    """The native search for the other models of this package; None for histories it cannot take."""
    keyed = type(model) is Keyed
    inner = model.model if keyed else model
    kind, actions = NATIVE.get(type(inner), ("", {}))
    signatures = history.signatures
    if not kind or len(signatures) > MOST_OPERATIONS:
        return None
    from pulsar_ml.harness.linearize.objects._objects import ACTIONS, RESULTS, Objects
    from pulsar_ml.harness.linearize.objects._objects import KINDS as OBJECTS

    if not all(one.name in actions and one.result in RESULTS for one in signatures):
        return None
    if not all(one.name in inner.operations for one in signatures):
        return None
    if not all_have_arguments(history, inner, keyed):
        return None
    of_values = any(one.result == VALUE for one in signatures)
    if of_values and not all(one.result == VALUE for one in signatures):
        return None
    initial = getattr(inner, "initial", None)
    try:
        numbers = numbered(history.values, kind) if of_values else None
        first = first_number(initial, kind, history.values, numbers)
    except (TypeError, ValueError):
        return None
    ordered = None
    if kind == "priority queue" and not of_values:
        records = history.records
        words = np.concatenate([records["arguments"][:, int(keyed)], records["result"][:, 0]])
        ordered = sorted(set(words.tolist()))
    try:
        return Objects(
            OBJECTS.index(kind),
            [ACTIONS.index(actions[one.name]) for one in signatures],
            [RESULTS.index(one.result) for one in signatures],
            numbers,
            [truth(one, kind) for one in history.values],
            [int(one is False) for one in history.values],
            none=history.values.index(None) if None in history.values else -1,
            ordered=ordered,
            initial=first,
            keyed=keyed,
            memory=memory,
        )
    except MemoryError:
        return None  # the limit is below the first states: the search with the model says so


def truth(value: Any, kind: str) -> int:
    """Return 1 for True, 0 for False, and -1 for others; of a multiset, the count, if it is one."""
    if kind == "multiset" and isinstance(value, int | float) and 0 <= value < MOST_COUNT:
        return int(value) if value == int(value) else -1
    return 1 if value == True else 0 if value == False else -1  # noqa: E712


def all_have_arguments(history: History, model: Any, keyed: bool) -> bool:
    """Return True if each call has the number of arguments that the model expects."""
    counts = [keyed + model.operations[one.name] for one in history.signatures]
    if not len(history):
        return True
    if history.signatures[0].result != VALUE:
        return counts == [one.arguments for one in history.signatures]
    expected = np.array(counts)[history.records["operation"]]
    return bool(np.all((history.records["arguments"] >= 0).sum(axis=1) == expected))


def numbered(values: Sequence[Any], kind: str) -> list[int]:
    """Return a number for each value, which equal values share.

    The numbers of a priority queue are in the order of the values; those of a counter are the
    values themselves. Raises TypeError or ValueError for values without such numbers.
    """
    if any(one != one for one in values):
        raise ValueError("a value that is not equal to itself has no number")
    if kind == "counter":
        return [as_number(one) for one in values]
    if kind == "priority queue":
        kept = sorted({one for one in values if one is not None})
        ranks = {one: rank for rank, one in enumerate(kept)}
        return [len(kept) if one is None else ranks[one] for one in values]
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(one, len(numbers)) for one in values]


def as_number(value: Any) -> int:
    """Return the integer that is equal to ``value``, or NO_NUMBER."""
    if isinstance(value, int | float) and abs(value) < MOST_NUMBER and value == int(value):
        return int(value)
    if isinstance(value, int | float) and abs(value) >= MOST_NUMBER:
        raise ValueError(f"{value} is too large")
    if isinstance(value, float):
        raise ValueError(f"{value} is no integer")
    return NO_NUMBER


def first_number(
    initial: Any, kind: str, values: Sequence[Any], numbers: Sequence[int] | None
) -> int:
    """Return the number of the first value of an object."""
    if kind == "counter":
        number = as_number(initial)
        if number == NO_NUMBER:
            raise ValueError(f"{initial!r} is no integer")
        return number
    if kind not in ("register", "map"):
        return 0
    if numbers is None:
        if initial is not None and type(initial) is not int:
            raise ValueError(f"{initial!r} is no word")
        return ABSENT if initial is None else initial
    found = dict(zip(values, numbers, strict=True)).get(initial)
    return len(values) if found is None else found


def order_before(
    search: Callable[[NDArray[np.void]], tuple[str, list[int]]],
    records: NDArray[np.void],
    call: int,
) -> tuple[str, list[int]]:
    """Search for an order of what had happened just before the return of a call."""
    end = records["returned"][call]
    chosen = np.flatnonzero(records["invoked"] <= end)
    begun = records[chosen]
    later = (begun["returned"] > end) | ((begun["returned"] == end) & (chosen >= call))
    begun["returned"][later & (begun["ending"] == RETURNED)] = NEVER
    answer, way = search(begun)
    return answer, chosen[way].tolist()


def blocked_call(
    search: Callable[[NDArray[np.void]], tuple[str, list[int]]], records: NDArray[np.void]
) -> tuple[int, list[int]]:
    """Return the blocked call of illegal records, and the longest legal order up to its return.

    ``search`` returns an answer and an order. The call is -1 when a search reached a limit. Calls
    that return later may be left out; those in the order have their results.
    """
    ended = np.flatnonzero(records["ending"] == RETURNED)
    order = ended[np.lexsort((ended, records["returned"][ended]))]

    def until(place: int) -> tuple[str, list[int]]:
        return order_before(search, records, int(order[place]))

    low, high = 0, len(order) - 1  # legal until the return of ``low``; the whole is illegal
    longest: list[int] = []
    while low < high:
        middle = (low + high + 1) // 2
        answer, way = until(middle)
        if answer == LEGAL:
            low, longest = middle, way
        elif answer == ILLEGAL:
            high = middle - 1
        else:
            return -1, longest
    if not longest:
        _, longest = until(low)
    return int(order[low]), longest
