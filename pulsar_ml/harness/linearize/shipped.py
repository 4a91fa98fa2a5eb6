"""Native searches for the models of this package: registers and maps.

Only the classes themselves qualify: a subclass may change the meaning of its calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import (
    ABSENT,
    FLAG,
    NEVER,
    NONE,
    PENDING,
    RETURNED,
    VALUE,
    WORD,
    History,
)
from pulsar_ml.harness.linearize.cells._cells import Cells
from pulsar_ml.harness.linearize.cells._maps import Maps
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL
from pulsar_ml.harness.models.cells import CasRegister, Register
from pulsar_ml.harness.models.collections import KeyValueMap
from pulsar_ml.harness.models.model import Keyed

KINDS = {"read": 0, "write": 1, "cas": 2}
MAP_KINDS = {"get": 0, "put": 1, "append": 2, "delete": 3}
OPERATIONS = {Register: ("read", "write"), CasRegister: ("read", "write", "cas")}
ARGUMENTS = {"read": 0, "write": 1, "cas": 2}


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
    try:
        return Maps(
            [MAP_KINDS[signature.name] for signature in history.signatures],
            history.values,
            memory=memory,
        )
    except UnicodeEncodeError:
        return None  # a string with a lone surrogate


def blocked_call(
    search: Callable[[NDArray[np.void]], tuple[str, list[int]]], records: NDArray[np.void]
) -> tuple[int, list[int]]:
    """Return the blocked call of illegal records, and the longest legal order up to its return.

    ``search`` returns an answer and an order. The call is -1 when a search reached a limit.
    """
    ended = np.flatnonzero(records["ending"] == RETURNED)
    order = ended[np.lexsort((ended, records["returned"][ended]))]
    ranks = np.full(len(records), len(records), np.int64)
    ranks[order] = np.arange(len(order))

    def until(place: int) -> tuple[str, list[int]]:
        """Search for an order of what had happened just before the return of a call."""
        chosen = np.flatnonzero(records["invoked"] <= records["returned"][order[place]])
        begun = records[chosen]
        open_ = (ranks[chosen] >= place) & (begun["ending"] == RETURNED)
        begun["ending"][open_] = PENDING
        begun["returned"][open_] = NEVER
        answer, way = search(begun)
        return answer, chosen[way].tolist()

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
