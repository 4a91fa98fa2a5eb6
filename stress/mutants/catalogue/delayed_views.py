"""Mistakes in structures/delayed_views.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/delayed_views.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="DD04",
        title="the last close leaves the factory after others may have found the manager",
        origin="#24927",
        file=FILE,
        old="""
last = manager.open_views == 0
stamped_unlock_write(&manager.views_lock)
""",
        new="""
last = manager.open_views == 0
stamped_unlock_write(&manager.views_lock)
if last:
    monitor_leave(&manager.factory.monitor)
    monitor_enter(&manager.factory.monitor)
""",
        suite="delayed_manager",
        breaks="I94, DM-8",
        # A subscription opens at that moment: rare on real threads.
        mode="sc",
        within=4_000,
        calls=((("close", 0), ("close", 2)), (("open", 0), ("add", 0, 1, 40))),
    ),
    Mutant(
        id="DD15",
        title="a subscription that comes back gets a second view beside its first one",
        origin="#24927",
        file=FILE,
        old="""
if view.subscription == subscription:
    stamped_lock_read(&view.lock)
    found = not view.closed
    stamped_unlock_read(&view.lock)
    if found:
        return view
""",
        new="found = False",
        suite="delayed_manager",
        breaks="DM-10",
    ),
    Mutant(
        id="DD14",
        title="an open of a registered subscription returns its view without a holder more",
        origin="port",
        file=FILE,
        old="view.holders += 1",
        new="view.holders += 0",
        suite="delayed_manager",
        breaks="I100",
    ),
)
