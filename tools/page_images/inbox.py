"""A model of the inbox: the words come out in the order in which they were put in."""

from __future__ import annotations

from typing import Any

Words = tuple[int, ...]


class InOrder:
    """A queue of words; ``get`` of an empty one returns 0."""

    def init(self) -> Words:
        return ()

    def step(self, words: Words, call: Any) -> list[Words]:
        if call.name == "put":
            return [(*words, call.arguments[0])]
        first, rest = (words[0], words[1:]) if words else (0, ())
        return [rest] if call.pending or call.result == first else []
