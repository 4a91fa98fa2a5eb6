"""ModelChecker: a model prepared for searches, with numbered states and cached answers."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import History, Signature, decoder
from pulsar_ml.harness.linearize.search._answers import Answers
from pulsar_ml.harness.linearize.search._native import Checker

MEMORY = 1 << 30
ANY_CALL, AN_END, IDLE_END = range(3)  # the role of a call; see Role in table.pxd


class HashedState:
    """A state of a model with its own equality and hash functions."""

    __slots__ = ("model", "value")

    def __init__(self, model: Any, value: Any) -> None:
        self.model = model
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashedState) and bool(self.model.equal(self.value, other.value))

    def __hash__(self) -> int:
        return int(self.model.hash(self.value))


class ModelChecker(Answers):
    """The cached answers of one model for histories with equal signatures and values.

    The checker caches every answer of the model, and the verdict of every short history, so that a
    Python model is called only for new questions. ``memory`` bounds, in bytes, each of the model's
    states, its answers, a search, and the table of verdicts. Not thread-safe.
    """

    def __init__(
        self,
        model: Any,
        signatures: Sequence[Signature],
        values: Sequence[object] = (),
        *,
        memory: int = MEMORY,
    ) -> None:
        self.model = model
        self.signatures = tuple(signatures)
        self.values = values
        self.memory = memory
        self.decode = decoder(self.signatures, values)
        self.rows: dict[tuple[int, ...], int] = {}  # row -> symbol
        self.parts: list[int] = []  # the part of each symbol; -1: several parts
        self.part_numbers: dict[Hashable, int] = {}
        self.step = model.step
        self.is_pure = getattr(model, "pure", None)
        self.part_of = getattr(model, "partition", None)
        self.ends = getattr(model, "ends", None)
        self.key_of = model.key if hasattr(model, "key") else None
        if hasattr(model, "equal") and hasattr(model, "hash"):
            self.key_of = functools.partial(HashedState, model)
        self.looks_ahead = hasattr(model, "leads") and hasattr(model, "resets")
        self.native = Checker(
            self.learn,
            self.answer,
            self.leads if self.looks_ahead else None,
            by_thread=bool(getattr(model, "by_thread", False)),
            memory=memory,
        )
        self.start = self.number(model.init())

    def learn(self, symbol: int, row: tuple[int, ...]) -> tuple[bool, int, bool, int]:
        call = self.decode(row[0] >> 1, row[2:5], None if row[0] & 1 else row[5:], row[1])
        self.calls.append(call)
        self.rows[row] = symbol
        pure = self.is_pure is not None and bool(self.is_pure(call))
        self.pure.append(pure)
        part = 0
        if self.part_of is not None:
            key = self.part_of(call)
            part = -1 if key is None else self.part_numbers.setdefault(key, len(self.part_numbers))
            self.parts.append(part)
        role = ANY_CALL
        if self.ends is not None and self.ends(call):
            role = IDLE_END if self.model.over(call) else AN_END
        return pure, part, self.looks_ahead and bool(self.model.resets(call)), role

    def leads(self, state: int, symbol: int) -> bool:
        return bool(self.model.leads(self.states[state], self.calls[symbol]))

    def check_many(
        self, records: NDArray[np.void], *, most_steps: int = 1_000_000
    ) -> NDArray[np.int8]:
        """Checks each row of a two-dimensional array: 0 legal, 1 illegal, above: unknown.

        The verdicts of rows with at most 64 operations are cached.
        """
        return self.native.search_many(records, state=self.start, most_steps=most_steps)

    def split(self, symbols: NDArray[np.int32]) -> list[tuple[Hashable, NDArray[np.int32]]]:
        """Splits a history by the model's partition.

        The result is a single piece without a partition, or when a call concerns several keys.
        """
        whole: list[tuple[Hashable, NDArray[np.int32]]] = [
            (None, np.arange(len(symbols), dtype=np.int32))
        ]
        if not self.parts or len(symbols) == 0:
            return whole
        parts = np.array(self.parts, dtype=np.int64)[symbols]
        if parts.min() < 0:
            return whole
        order = np.argsort(parts, kind="stable").astype(np.int32)
        sorted_parts = parts[order]
        ends = np.flatnonzero(np.diff(sorted_parts)) + 1
        keys = list(self.part_numbers)
        pieces = np.split(order, ends)
        return [(keys[parts[piece[0]]], piece) for piece in pieces]

    def independent(self, symbols: NDArray[np.int32]) -> int:
        """The number of independent components of the state for calls of these symbols; 1: none."""
        if not self.parts or len(symbols) == 0:
            return 1
        if np.array(self.parts, dtype=np.int64)[symbols].min() < 0:
            return 1
        return len(self.part_numbers)

    def fits(self, history: History) -> bool:
        return history.signatures == self.signatures and history.values is self.values
