"""Classes of executions that add up over the slices of a test, in bounded memory.

The engine keeps the hashes of classes that end in ``shift`` zero bits: all at first, and a uniform
sample when there are many. Samples of several slices are put together by the smaller one's rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MOST = 1 << 16  # hashes

Hashes = NDArray[np.uint64]


@dataclass(slots=True)
class Seen:
    """The classes that a test showed so far; of many, a sample."""

    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64), repr=False)
    shift: int = 0

    @property
    def count(self) -> int:
        """The number of classes; an estimate where there is a sample."""
        return len(self.hashes) << self.shift

    def add(self, sample: Hashes, count: int) -> int:
        """Add the classes of a slice, all ``count`` or a sample; return how many are new."""
        if len(sample) == 0:
            return 0
        self.shift = max(self.shift, (count // len(sample)).bit_length() - 1)
        known, found = self.sampled(self.hashes), np.unique(self.sampled(sample))
        both = np.union1d(known, found)
        new = (len(both) - len(known)) << self.shift
        self.hashes = both
        while len(self.hashes) > MOST:
            self.shift += 1
            self.hashes = self.sampled(self.hashes)
        return new

    def sampled(self, hashes: Hashes) -> Hashes:
        """Those of ``hashes`` that the sample keeps."""
        kept: Hashes = hashes[hashes & np.uint64((1 << self.shift) - 1) == 0]
        return kept
