"""Calls of range caches that take their time: the keys they are about, and what they began with."""

from __future__ import annotations

from typing import NamedTuple

Key = tuple[int, int]  # cache and key


class Span(NamedTuple):
    """A call under way: the keys it is about (of all caches: -1), and of those the ones that had
    been put when it began, with how often and how sure the caller could be of the latest."""

    cache: int
    first: int
    last: int
    began: tuple[tuple[Key, int, int], ...]
    takes: bool
    tells: bool

    def covers(self, key: Key) -> bool:
        return self.cache in (-1, key[0]) and self.first <= key[1] <= self.last
