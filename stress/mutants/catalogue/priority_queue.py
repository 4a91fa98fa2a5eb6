"""Mistakes in structures/priority_queue.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/priority_queue.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="P08",
        title="a time pass leaves what it removed in the plan of a size pass",
        origin="port",
        file=FILE,
        old="queue.planned = 0\nlru_unlink(&queue.list, handle)",
        new="lru_unlink(&queue.list, handle)",
        suite="eviction_policy",
        breaks="I22, I23, I24",
    ),
    Mutant(
        id="P09",
        title="a walk of a time pass goes on at a wrapper that another pass removed",
        origin="port",
        file=FILE,
        old="if not run.begun or run.serial != queue.serial:",
        new="if not run.begun:",
        suite="eviction_policy",
        breaks="I22, I23, I24",
    ),
)
