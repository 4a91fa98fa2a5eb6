"""How many different things were seen, in little space: the K smallest of their hashes.

Sketches are sorted tuples of distinct hashes of 63 bits, at most :data:`SIZE` of them. The sketch of a union
is :func:`union` of the sketches, in any order and however often; so those of trials, chunks and waves add up
on whatever machine, also in SQL. Bar-Yossef et al., Counting distinct elements in a data stream (2002).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable

SIZE = 128
SPACE = 1 << 63  # hashes fit into a signed column

Sketch = tuple[int, ...]


def union(sketches: Iterable[Iterable[int]]) -> Sketch:
    """The sketch of everything that one of the sketches has seen."""
    return tuple(sorted(set().union(*sketches))[:SIZE])


def estimate(sketch: Sketch) -> int:
    """How many there were: exact below :data:`SIZE`, and with a standard error of 9 % from there."""
    if len(sketch) < SIZE:
        return len(sketch)
    return round((SIZE - 1) * SPACE / (sketch[-1] + 1))


@functools.lru_cache(maxsize=1 << 16)
def hash_of(*words: str) -> int:
    """The same on every machine."""
    digest = hashlib.blake2b("\0".join(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
