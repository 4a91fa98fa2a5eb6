"""ModelChecker: a model prepared for searches, with numbered states and cached answers."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import UNKNOWN, Call, History, Signature, decoder
from pulsar_ml.harness.linearize.search._answers import Answers
from pulsar_ml.harness.linearize.search._native import Checker

MEMORY = 1 << 30


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

    ``by_key`` is for a :class:`Keyed` model and searches whose every state is that of one key: the
    states are those of the inner model, which all keys share.
    """

    def __init__(
        self,
        model: Any,
        signatures: Sequence[Signature],
        values: Sequence[object] = (),
        *,
        memory: int = MEMORY,
        by_key: bool = False,
    ) -> None:
        self.model = model
        self.signatures = tuple(signatures)
        self.values = values
        self.memory = memory
        self.decode_with(self.signatures, values, decoder(self.signatures, values), Call, UNKNOWN)
        self.part_of = getattr(model, "partition", None)
        self.keyed = by_key
        self.own = own = model.model if by_key else model
        self.step = own.step
        self.is_pure = getattr(own, "pure", None)
        self.ends = getattr(own, "ends", None)
        self.over = getattr(own, "over", None)
        self.key_of = own.key if hasattr(own, "key") else None
        if hasattr(own, "equal") and hasattr(own, "hash"):
            self.key_of = functools.partial(HashedState, own)
        self.looks_ahead = hasattr(own, "leads") and hasattr(own, "resets")
        self.resets = own.resets if self.looks_ahead else None
        self.known_rows: dict[tuple[int, ...], int] = {}  # row -> symbol
        self.native = Checker(
            self,
            leads=self.leads if self.looks_ahead else None,
            by_thread=bool(getattr(model, "by_thread", False)),
            memory=memory,
        )
        self.start = self.number(own.init())

    @property
    def rows(self) -> dict[tuple[int, ...], int]:
        """The symbol of each row of words."""
        for symbol in range(len(self.known_rows), len(self.calls)):
            self.known_rows[self.native.row(symbol)] = symbol
        return self.known_rows

    def leads(self, state: int, symbol: int) -> bool:
        return bool(self.own.leads(self.states[state], self.calls[symbol]))

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
        parts = self.parts_of(symbols)
        if parts.min() < 0:
            return whole
        order = np.argsort(parts, kind="stable").astype(np.int32)
        sorted_parts = parts[order]
        starts = [0, *(np.flatnonzero(sorted_parts[1:] != sorted_parts[:-1]) + 1).tolist()]
        keys = list(self.part_numbers)
        return [
            (keys[sorted_parts[start]], order[start:end])
            for start, end in zip(starts, [*starts[1:], len(order)], strict=True)
        ]

    def independent(self, symbols: NDArray[np.int32]) -> int:
        """The number of independent components of the state for calls of these symbols; 1: none."""
        if not self.parts or len(symbols) == 0:
            return 1
        if self.parts_of(symbols).min() < 0:
            return 1
        return len(self.part_numbers)

    def fits(self, history: History) -> bool:
        return history.signatures == self.signatures and history.values is self.values
