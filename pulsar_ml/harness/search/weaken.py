"""Automatic mutants: each atomic operation of the code under test one step weaker, or a fence less.

The engine weakens the order, so that no source changes and any structure can be tested. An order
whose weaker form no execution notices is stronger than necessary, or not tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pulsar_ml.harness.engine import ORDERS, Explorer
from pulsar_ml.harness.search.symbols import describe_pc, look_up_pcs
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

NO_FENCE = "none"
ATOMICS = ("load", "store", "rmw", "cas", "fence")

# The next weaker orders, by operation and order. A read-modify-write with acq_rel loses either
# side.
WEAKER: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("load", "seq_cst"): ("acquire",),
    ("load", "acquire"): ("relaxed",),
    ("store", "seq_cst"): ("release",),
    ("store", "release"): ("relaxed",),
    **{
        (op, order): weaker
        for op in ("rmw", "cas")
        for order, weaker in {
            "seq_cst": ("acq_rel",),
            "acq_rel": ("acquire", "release"),
            "acquire": ("relaxed",),
            "release": ("relaxed",),
        }.items()
    },
    **{("fence", order): (NO_FENCE,) for order in ORDERS},
}


def order_at(pcs: Iterable[int], order: str) -> tuple[tuple[int, str, str, str], ...]:
    """The engine's changes that give the atomic operations at ``pcs`` another order."""
    return tuple((pc, order, "", "") for pc in pcs)


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """One atomic operation or fence of the source.

    Attributes:
        place: function and file:line.
        op: "load", "store", "rmw", "cas" or "fence".
        order: its memory order in the source.
        pcs: its code addresses, one for each function into which it was compiled.
    """

    place: str
    op: str
    order: str
    pcs: tuple[int, ...]

    def weaker(self) -> tuple[str, ...]:
        """Return the weaker orders to try; none for a relaxed one."""
        return WEAKER.get((self.op, self.order), ())


def sites(
    subject: Subject,
    programs: Iterable[Program],
    *,
    executions: int = 30,
    mode: str = "c11",
    seed: int = 0,
) -> list[Site]:
    """Return the atomics of ``executions`` random executions of each program, sorted by place."""
    seen: set[tuple[int, str, str]] = set()
    for program in programs:
        explorer = Explorer(subject, program, mode=mode, strategy="random", seed=seed)
        for number in range(executions):
            explorer.again(number)
            for event in explorer.trace():
                if event["op"] in ATOMICS and event["pc"]:
                    pc = int(event["pc"])  # type: ignore[call-overload]
                    order = ORDERS[int(event["order"])]  # type: ignore[call-overload]
                    seen.add((pc, str(event["op"]), order))
    look_up_pcs(pc for pc, _, _ in seen)
    found: dict[tuple[str, str, str], set[int]] = {}
    for pc, op, order in seen:
        found.setdefault((describe_pc(pc), op, order), set()).add(pc)
    return sorted(Site(*key, tuple(sorted(pcs))) for key, pcs in found.items())
