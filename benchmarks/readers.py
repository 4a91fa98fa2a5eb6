"""Readers of one cache: hits of two Python threads beside those of one.

The first two rows are the hits of two threads in a time over those of one thread in the same time:
2 where threads do not hinder each other, at most 1 with a GIL. They need two idle processors; on a
busy machine two threads get no more than one does. The next two rows are the processor time of a
hit beside another reader over that of a hit alone, for any machine: 1 where what they share costs
nothing. A thread that waits for the GIL takes no processor time, so with a GIL only the first rows
mean something. The last rows are the first two on 3.14, with and without the GIL, where
``tools/interpreters.py`` has built them.
"""

from __future__ import annotations

from functools import partial

from benchmarks.interpreters.other_readers import OTHER_READERS
from benchmarks.interpreters.reader_threads import SECOND, hindrance, scaling
from benchmarks.measure import Benchmark

BENCHMARKS = (
    Benchmark("readers: two threads over one", partial(scaling, SECOND["another"]), unit="x"),
    Benchmark(
        "readers: two threads over one, of one entry",
        partial(scaling, SECOND["same"]),
        unit="x",
        about="both count the references of the same entry",
    ),
    Benchmark(
        "readers: a hit beside another, processor time",
        partial(hindrance, SECOND["another"]),
        unit="x",
    ),
    Benchmark(
        "readers: a hit of one entry beside another, processor time",
        partial(hindrance, SECOND["same"]),
        unit="x",
    ),
    *OTHER_READERS,
)
