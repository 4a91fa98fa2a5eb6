"""Sketches estimate the number of distinct elements in little space: the K smallest hashes.

A sketch is a sorted tuple of at most :data:`SIZE` distinct 63-bit hashes. The sketch of a union is
:func:`union` of the sketches, in any order and with repeats, so sketches of trials, chunks and
waves add up on any machine, also in SQL. Bar-Yossef et al., Counting distinct elements in a data
stream (2002).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable

SIZE = 128
SPACE = 1 << 63  # hashes fit into a signed column

Sketch = tuple[int, ...]


def union(sketches: Iterable[Iterable[int]]) -> Sketch:
    """Return the sketch of the union of all elements."""
    return tuple(sorted(set().union(*sketches))[:SIZE])


def estimate(sketch: Sketch) -> int:
    """Return the number of elements: exact below :data:`SIZE`, else with 9 % standard error."""
    if len(sketch) < SIZE:
        return len(sketch)
    return round((SIZE - 1) * SPACE / (sketch[-1] + 1))


@functools.lru_cache(maxsize=1 << 16)
def hash_of(*words: str) -> int:
    """Hash words to 63 bits; equal on every machine."""
    digest = hashlib.blake2b("\0".join(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
