"""Mistakes in structures/delayed_table.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.delayed_manager import BEHIND
from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/delayed_table.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="L05",
        title="the prune clock starts at zero",
        origin="#24927",
        file=FILE,
        old="due = not table.pruned or <int64_t>(<uint64_t>now - <uint64_t>table.last_prune) >= interval",
        new="due = <int64_t>(<uint64_t>now - <uint64_t>table.last_prune) >= interval",
        suite="delayed_manager",
        breaks="DM-9",
        # Long programs pass the time that hides it.
        mode="sc",
        within=4_000,
    ),
    Mutant(
        id="DD01",
        title="a bucket is used under a lock that is no longer its own",
        origin="#24927",
        file=FILE,
        old="return bucket.owner == <void*>table and bucket.key == key",
        new="return True",
        suite="delayed_manager",
        breaks="I98, I94",
        # A thread waits for a bucket that disappears meanwhile: rare on real threads.
        mode="sc",
        within=4_000,
        calls=(
            (("add", 0, 1, 30), ("mark_delete", 0, 1), ("mark_delete", 2, 1)),
            (("add", 0, 2, 30), ("count", 0, 40)),
        ),
        settings={"tick": (0, 10), "prune_interval": (0, 0), "spread": (5, 5)},
    ),
    Mutant(
        id="DD02",
        title="a view passes a bucket without announcing it",
        origin="port",
        file=FILE,
        old="seen = i64_load_relaxed(&table.passed)",
        new="seen = INT64_MAX",
        suite="delayed_manager",
        breaks="I94, I95",
        within=4_000,
        calls=BEHIND,
        settings={"tick": (0, 10), "spread": (5, 5)},
    ),
    Mutant(
        id="DD03",
        title="a timer that fires is not armed for later messages",
        origin="port",
        file=FILE,
        old="if table_next(table, &key, INT64_MAX, False):\n    table_arm(table, key)",
        new="pass",
        suite="delayed_manager",
        breaks="I95",
    ),
    Mutant(
        id="DD13",
        title="a message that is there counts again",
        origin="#25617, for a topic",
        file=FILE,
        old="if added == SET_ADDED:\n    i64_fetch_add_relaxed(&table.count, 1)",
        new="if added != SET_NO_MEMORY:\n    i64_fetch_add_relaxed(&table.count, 1)",
        suite="delayed_manager",
        breaks="I91",
    ),
)
