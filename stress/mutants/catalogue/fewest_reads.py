"""Mistakes in structures/fewest_reads.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/fewest_reads.pxd"

SETTINGS = {"policy": (7, 7), "caches": (1, 1), "length_shift": (0, 0)}
PUTS = tuple(("put", 0, key, 0) for key in range(3))

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="P08",
        title="a time pass leaves what it removed in the plan of a size pass",
        origin="port",
        file=FILE,
        old="queue.planned = 0",
        new="pass",
        function="priority_drop",
        suite="eviction_policy",
        breaks="I22, I23, I24",
        calls=((*PUTS, ("free", 400, 1)), (("expire", 0, 1),)),
        settings=SETTINGS,
    ),
    Mutant(
        id="P09",
        title="a walk of a time pass goes on at a wrapper that another pass removed",
        origin="port",
        file=FILE,
        old="""
if not run.begun or run.serial != queue.serial:
    run.begun = True
    run.serial = queue.serial
    run.index = queue.list.oldest
""",
        new="""
if not run.begun:
    run.begun = True
    run.serial = queue.serial
    run.index = queue.list.oldest
""",
        suite="eviction_policy",
        breaks="I22, I23, I24",
        calls=((*PUTS, ("expire", 0, 1)), (("free", 400, 1), ("put", 0, 3, 0))),
        settings=SETTINGS,
    ),
    Mutant(
        id="PQ-most",
        title="a size pass takes the most expected reads first",
        origin="port",
        file=FILE,
        old="return one.expected < other.expected",
        new="return one.expected > other.expected",
        suite="eviction_policy",
        breaks="PQ-2",
        rare=True,
    ),
    Mutant(
        id="PQ-newest",
        title="of entries with the same expected reads a size pass takes the newest first",
        origin="port",
        file=FILE,
        old="return pass_is_before(one.timestamp, other.timestamp)",
        new="return pass_is_before(other.timestamp, one.timestamp)",
        suite="eviction_policy",
        breaks="PQ-2",
        rare=True,
    ),
)
