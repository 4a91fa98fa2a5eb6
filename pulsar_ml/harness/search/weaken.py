"""Automatic mutants: each atomic of the code under test one step weaker, each fence left out.

The fault is made by the engine, so no source changes and it works for anybody's structure. A weaker order
that no execution notices is stronger than it has to be, or not tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pulsar_ml.harness.engine import ORDERS, Campaign
from pulsar_ml.harness.search.symbols import describe_pc, look_up_pcs
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

NO_FENCE = "none"
ATOMICS = ("load", "store", "rmw", "cas", "fence")

# One step down, for each operation and order. A read-modify-write that does both loses either.
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


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """One atomic operation or fence of the source.

    Attributes:
        place: function and file:line.
        op: "load", "store", "rmw", "cas" or "fence"; ``order`` what the source says.
        pcs: its places in the code, one for each function that it was compiled into.
    """

    place: str
    op: str
    order: str
    pcs: tuple[int, ...]

    def weaker(self) -> tuple[str, ...]:
        """The orders to try in its place; empty for a relaxed one."""
        return WEAKER.get((self.op, self.order), ())


def sites(
    subject: Subject,
    programs: Iterable[Program],
    *,
    executions: int = 30,
    mode: str = "c11",
    seed: int = 0,
) -> list[Site]:
    """The atomics that ``executions`` random executions of each program made, by place."""
    seen: set[tuple[int, str, str]] = set()
    for program in programs:
        campaign = Campaign(subject, program, mode=mode, strategy="random", seed=seed)
        for number in range(executions):
            campaign.again(number)
            for event in campaign.trace():
                if event["op"] in ATOMICS and event["pc"]:
                    pc = int(event["pc"])  # type: ignore[call-overload]
                    order = ORDERS[int(event["order"])]  # type: ignore[call-overload]
                    seen.add((pc, str(event["op"]), order))
    look_up_pcs(pc for pc, _, _ in seen)
    found: dict[tuple[str, str, str], set[int]] = {}
    for pc, op, order in seen:
        found.setdefault((describe_pc(pc), op, order), set()).add(pc)
    return sorted(Site(*key, tuple(sorted(pcs))) for key, pcs in found.items())
