"""Mutants that programs written for them find with every seed, and generated programs do not."""

from __future__ import annotations

from collections.abc import Mapping

FIVE_CALLS = "Five calls in one order, with settings that few worlds have."

RARE: Mapping[str, str] = {
    "M53": "A reader has to rest between its look at a page and its retain, while the wrapper is "
    "emptied and filled with another key.",
    "DT-clear": FIVE_CALLS,
    "DT-due": FIVE_CALLS,
    "P08": "A pass by time and one by size have to interrupt each other between their slices, over "
    "three entries and under one policy of eight.",
    "P09": "As P08.",
    "AE1": "A removal has to empty a wrapper at which a size pass arrives, under one policy of "
    "eight.",
    "CM-change": "Two changes of the settings have to meet the end of a tick's task, and only the "
    "second one leaves too much in the cache.",
}
