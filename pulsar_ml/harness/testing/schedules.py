"""Strategies of Hypothesis for schedules of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pulsar_ml.harness.engine import CHOICES, FAULTS
from pulsar_ml.harness.search.failure import Decision

THREAD = CHOICES.index("thread")
READ = CHOICES.index("read")
INSERT = CHOICES.index("insert")
FLUSH = CHOICES.index("flush")

# The kinds of decisions in each mode, besides those of faults.
OFFERED: Mapping[str, tuple[int, ...]] = {
    "sc": (THREAD,),
    "tso": (THREAD, FLUSH),
    "c11": (THREAD, READ, INSERT),
}


def schedules(
    *,
    threads: int,
    mode: str = "c11",
    faults: Sequence[str] = (),
    points: int = 64,
    decisions: int = 5,
) -> SearchStrategy[tuple[Decision, ...]]:
    """Draw up to ``decisions`` departures from the engine's default policy.

    They lie within the first ``points`` scheduling points of each thread. ``mode`` and ``faults``
    say which kinds there are: switches, and in "c11" stale reads and inserted stores.
    """
    kinds = OFFERED[mode] + tuple(CHOICES.index(fault) for fault in FAULTS if fault in faults)

    def value(kind: int) -> SearchStrategy[int]:
        return st.integers(1, threads) if kind == THREAD else st.integers(1, 3)

    def decision(kind: int) -> SearchStrategy[Decision]:
        return st.tuples(
            st.integers(0, points), st.integers(0, threads - 1), st.just(kind), value(kind)
        )

    drawn = st.lists(
        st.one_of([decision(kind) for kind in kinds]),
        max_size=decisions,
        unique_by=lambda each: each[:3],
    )
    return drawn.map(lambda found: tuple(sorted(found)))
