"""Mistakes in structures/delayed_manager.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/delayed_manager.pxd"

# One thread's clock is late: its messages are before the cursor of the other thread's view.
BEHIND = (
    (("add", 0, 1, 30), ("pass_time", 40), ("scheduled", 0, 40)),
    (("add", 2, 2, 30), ("add", 2, 3, 25)),
)
DUE = "return table_collect(&view.manager.table, &cursor, {}, limit, &first, 1, False) > 0"
SEEK = """\
if not done:
    # Not while a prune relies on the higher position.
    stamped_lock_write(&manager.views_lock)
    stamped_lock_write(&view.lock)
    closed = view.closed
    if not closed:
        if not view_moves_on(view, to):
            view.cursor = delay_cursor(-1, position(-1, -1))
        view.mark_delete = to
    stamped_unlock_write(&view.lock)
    stamped_unlock_write(&manager.views_lock)
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="DD05",
        title="a prune ignores views that marked nothing",
        origin="port",
        file=FILE,
        old="marked = view.marked\nif position_less(view.mark_delete, least):\n    least = view.mark_delete",
        new="if view.marked and position_less(view.mark_delete, least):\n    least = view.mark_delete",
        suite="delayed_manager",
        breaks="I97",
    ),
    Mutant(
        id="DD06",
        title="a view seeks back while a prune relies on its position",
        origin="port",
        file=FILE,
        old=SEEK,
        new=SEEK.replace("stamped_lock_write(&manager.views_lock)\n    ", "").replace(
            "    stamped_unlock_write(&manager.views_lock)\n", ""
        ),
        suite="delayed_manager",
        breaks="I97, I94",
        # A prune runs at the same time: rare on real threads.
        mode="sc",
        within=12_000,
        calls=(
            (("mark_delete", 0, 9), ("mark_delete", 2, 9)),
            (("mark_delete", 0, 3), ("add", 0, 5, 40), ("count", 0, 40)),
        ),
        settings={"tick": (0, 10), "prune_interval": (0, 0), "spread": (5, 5)},
    ),
    Mutant(
        id="DD07",
        title="a trigger is called outside the section that a close waits for",
        origin="port",
        file=FILE,
        old="""
# In the section, which a close waits for.
manager.factory.trigger(manager.factory.context, view.argument)
""",
        new="""
stamped_unlock_read(&view.lock)
stamped_unlock_read(&manager.views_lock)
manager.factory.trigger(manager.factory.context, view.argument)
stamped_lock_read(&manager.views_lock)
stamped_lock_read(&view.lock)
""",
        suite="delayed_manager",
        breaks="I100",
        # A close ends in between: rare on real threads.
        mode="sc",
        within=24_000,
        calls=((("add", 0, 1, 30), ("pass_time", 40), ("fire", 0)), (("close", 0),)),
        settings={"tick": (0, 10)},
    ),
    Mutant(
        id="DD08",
        title="a closed view is cleared like an open one",
        origin="port",
        file=FILE,
        old="""
closed = view.closed
if not closed:
    view.cursor = delay_cursor(-1, position(-1, -1))
""",
        new="""
closed = False
view.cursor = delay_cursor(-1, position(-1, -1))
""",
        suite="delayed_manager",
        breaks="I100",
        within=4_000,
        calls=((("close", 0), ("clear", 0)), (("add", 0, 1, 30),)),
    ),
    Mutant(
        id="DD09",
        title="a view returns the same messages until it marks them",
        origin="#24927",
        file=FILE,
        old="""
n = table_collect(
    table, &view.cursor, view_above(view), table_limit(table, now), out, most, True)
""",
        new="""
n = table_collect(
    table, &view.cursor, view_above(view), table_limit(table, now), out, most, True)
view.cursor = delay_cursor(-1, position(-1, -1))
""",
        suite="delayed_manager",
        breaks="I94, linearizability",
    ),
    Mutant(
        id="DD10",
        title="a message that the view marked is reported as available",
        origin="#24927",
        file=FILE,
        old=DUE.format("view_above(view)"),
        new=DUE.format("position(-1, -1)"),
        suite="delayed_manager",
        breaks="linearizability",
        within=4_000,
        calls=(
            (("add", 0, 1, 30), ("mark_delete", 0, 1), ("pass_time", 40), ("has_message", 0)),
            (("timer", 0),),
        ),
        settings={"tick": (0, 10), "spread": (5, 5)},
    ),
    Mutant(
        id="DD11",
        title="a view counts all messages of its topic",
        origin="#24927",
        file=FILE,
        old="""
n = table_count_above(
    &view.manager.table, view_from(view, i64_load_acquire(&view.late)), view_above(view), enough)
""",
        new="n = min(enough, i64_load_relaxed(&view.manager.table.count))",
        suite="delayed_manager",
        breaks="I94, linearizability",
    ),
    Mutant(
        id="DD12",
        title="a message before the cursor of a view does not move it back",
        origin="port",
        file=FILE,
        old="""
# Pairs with the acquire in view_from.
if i64_cas_weak_release(&view.late, &seen, key):
    break
""",
        new="break",
        suite="delayed_manager",
        breaks="I94",
        within=4_000,
        calls=BEHIND,
        settings={"tick": (0, 10), "spread": (5, 5)},
    ),
    Mutant(
        id="DD-bytes",
        title="the bytes of a topic lack its buckets",
        origin="port",
        file=FILE,
        old="""
return (i64_load_relaxed(&manager.table.bytes)
        + delayed_manager_buckets(manager) * <int64_t>sizeof(DelayBucket))
""",
        new="return i64_load_relaxed(&manager.table.bytes)",
        suite="delayed_manager",
        breaks="ES-3",
    ),
)
