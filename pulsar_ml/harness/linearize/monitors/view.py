"""The ground of all monitors: a history in columns, the judgement, and sorted arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import (
    ABSENT,
    ANSWER,
    FLAG,
    RETURNED,
    VALUE,
    WORD,
    History,
    ranks,
)

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer of a monitor; ``witness`` has calls that are illegal by themselves."""

    legal: bool
    witness: tuple[int, ...] = ()


LEGAL = Judgement(True)


class NotDistinct(Exception):
    """Raised for a history that does not qualify for a monitor."""


class View:
    """A history in columns: arguments and results as one number each, times as ranks."""

    def __init__(self, history: History) -> None:
        kinds = {signature.result for signature in history.signatures}
        if ANSWER in kinds or len(set(history.values)) != len(history.values):
            raise NotDistinct  # no monitor for models of answers; 1 and 1.0 have two numbers
        self.history = history
        self.names = {signature.name: code for code, signature in enumerate(history.signatures)}
        self.operation = history.records["operation"]
        self.argument = self.coded(history.records["arguments"][:, 0].copy(), {VALUE})
        self.result = self.coded(history.records["result"][:, 0].copy(), kinds)
        self.second = self.coded(history.records["arguments"][:, 1].copy(), {VALUE})
        self.invoked, self.returned = ranks(history)
        self.ended = history.records["ending"] == RETURNED
        self.flags = FLAG in kinds or WORD in kinds

    def coded(self, words: Ints, kinds: set[str]) -> Ints:
        if VALUE in kinds and None in self.history.values:
            words[words == self.history.values.index(None)] = ABSENT
        return words

    def code(self, value: object) -> int:
        """The number of a value."""
        if value is None:
            return ABSENT
        if self.history.values:
            return self.history.values.index(value) if value in self.history.values else -2
        return int(value) if isinstance(value, int) else -(2**62)

    def of(self, name: str) -> Bools:
        return np.asarray(self.operation == self.names.get(name, -1))

    def order(self, calls: Ints) -> Ints:
        """The ranks of the first arguments of calls, in the order of the values."""
        words = self.argument[calls]
        if not self.history.values:
            return words
        found = [self.history.values[word] for word in words.tolist()]
        try:
            places = sorted(range(len(found)), key=found.__getitem__)
        except TypeError:
            raise NotDistinct from None
        rank = np.empty(len(found), np.int64)
        rank[places] = np.arange(len(found))
        return rank

    def known(self, *names: str) -> None:
        """Raises NotDistinct for operations other than these."""
        if not set(self.names) <= set(names):
            raise NotDistinct

    def true(self) -> Bools:
        if self.flags:
            return np.asarray(self.result == 1)
        return np.asarray(self.result == (self.code(True) if True in self.history.values else -3))

    def denied(self) -> Bools:
        """The calls with the result False, and no other that is equal to it."""
        if any(one.name == "cas" and one.result == FLAG for one in self.history.signatures):
            return np.asarray(self.result == 0)
        values = self.history.values
        return np.asarray(
            self.result == next((at for at, one in enumerate(values) if one is False), -3)
        )

    def false(self) -> Bools:
        if self.flags:
            return np.asarray(self.result == 0)
        return np.asarray(self.result == (self.code(False) if False in self.history.values else -3))


def found_in(sorted_values: Ints, wanted: Ints) -> Ints:
    """The index of each wanted value in the sorted values; -1 for a missing one."""
    if len(sorted_values) == 0:
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(sorted_values, wanted), len(sorted_values) - 1)
    return np.where(sorted_values[at] == wanted, at, -1)


def sorted_distinct(values: Ints) -> Ints:
    """The order that sorts the values; NotDistinct for a repeated value."""
    order = np.argsort(values, kind="stable")
    if np.any(np.diff(values[order]) == 0):
        raise NotDistinct
    return order


def extreme(count: int, at: Ints, values: Ints, indices: Ints, *, least: bool) -> tuple[Ints, Ints]:
    """The least or greatest value of each of ``count`` non-empty groups, and its index."""
    order = np.lexsort((values if least else -values, at))
    first = np.searchsorted(at[order], np.arange(count))
    return values[order][first], indices[order][first]
