"""Mistakes in structures/cursor_registry.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/cursor_registry.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="C06",
        title="the id of a pooled cursor is reused",
        origin="port",
        file=FILE,
        old="node.serial += 1",
        new="pass",
        suite="active_cursors",
        breaks="CR-2, I79",
    ),
    Mutant(
        id="C07",
        title="the time when the last cursor left is not kept",
        origin="port",
        file=FILE,
        old="""
if size == 0:
    i64_store_relaxed(&registry.left_at, now)
""",
        new="pass",
        suite="active_cursors",
        breaks="I79",
    ),
    Mutant(
        id="CR-durable",
        title="a look says that every cursor is durable",
        origin="port",
        file=FILE,
        old="state.durable = node is not NULL and node.durable",
        new="state.durable = node is not NULL",
        suite="cursor_heap",
        breaks="CR-4",
        rare=True,
    ),
)
