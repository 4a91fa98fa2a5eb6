"""Mistakes in structures/active_cursors.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/active_cursors.pxd"

SLOWEST = """
stamped_lock_write(&container.registry.lock)
active_flush(container)
slowest = registry_slowest(&container.registry)
stamped_unlock_write(&container.registry.lock)
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H18b",
        title="removed cursors stay until the next query",
        origin="#26511",
        file=FILE,
        old="""
if active_is_crowded(container):
    active_flush(container)
""",
        new="pass",
        suite="active_cursors",
        breaks="I78",
    ),
    Mutant(
        id="M67",
        # A cursor that is linked twice would close a loop, and no check would end.
        title="a pending cursor is counted twice",
        origin="port",
        file=FILE,
        old="""
if cursor.changed:
    return
""",
        new="""
if cursor.changed:
    i64_store_relaxed(&container.pending, i64_load_relaxed(&container.pending) + 1)
    return
""",
        suite="active_cursors",
        breaks="I75, I76",
    ),
    Mutant(
        id="M68",
        title="a rank is answered without the pending changes",
        origin="port",
        file=FILE,
        old="""
active_flush(container)
rank = active_rank(container, id)
""",
        new="rank = active_rank(container, id)",
        suite="active_cursors",
        breaks="I73, I76",
    ),
    Mutant(
        id="M68b",
        title="cursors at a position are counted without the pending changes",
        origin="port",
        file=FILE,
        old="""
active_flush(container)
cursor = <ActiveCursor*>registry_find(&container.registry, id)
if cursor is not NULL:
    group = cursor_group(cursor)
""",
        new="""
cursor = <ActiveCursor*>registry_find(&container.registry, id)
if cursor is not NULL:
    group = cursor_group(cursor)
""",
        suite="active_cursors",
        breaks="I73, I76",
    ),
    Mutant(
        id="M68c",
        title="a count at a position begins at a cursor behind it",
        origin="port",
        file=FILE,
        old="""
if group is NULL or position_less(at, group.at):
    group = container.groups.head
""",
        new="""
if group is NULL:
    group = container.groups.head
""",
        suite="active_cursors",
        breaks="I73",
    ),
    Mutant(
        id="C01",
        title="the update of a cursor that is already pending is lost",
        origin="port",
        file=FILE,
        old="""
cursor.target = target
active_change(container, cursor)
version = registry_changed(&container.registry)
""",
        new="""
if not cursor.changed:
    cursor.target = target
active_change(container, cursor)
version = registry_changed(&container.registry)
""",
        suite="active_cursors",
        breaks="I73, I80",
    ),
    # For the engine ----------------------------------------------------------------------
    # Real threads see it too, but may loop for ever in the damaged structure.
    Mutant(
        id="H18a",
        title="the slowest query applies changes under the shared lock",
        origin="#26511",
        file=FILE,
        old=SLOWEST,
        new=SLOWEST.replace("lock_write", "lock_read"),
        suite="active_cursors",
        breaks="I77, I72, I73",
        cimports="from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read",
        mode="sc",
        within=20_000,
    ),
    Mutant(
        id="C02",
        title="a slowest position copied under a stamp is used without validation",
        origin="port",
        file=FILE,
        old="""
slowest = registry_slowest(&container.registry)
if stamped_validate(&container.registry.lock, stamp):
    return slowest
""",
        new="return registry_slowest(&container.registry)",
        suite="active_cursors",
        breaks="I80",
        mode="sc",
        within=20_000,
    ),
    Mutant(
        id="AC-look",
        title="a look at a cursor shows its place before the pending changes",
        origin="port",
        file=FILE,
        old="""
state = registry_state(
    <CursorNode*>cursor, untracked() if cursor is NULL else cursor.target)
""",
        new="""
state = registry_state(
    <CursorNode*>cursor, untracked() if cursor is NULL or cursor_group(cursor) is NULL
    else tracked_at(cursor_group(cursor).at))
""",
        suite="active_cursors",
        breaks="CR-4",
        rare=True,
        cimports="from pulsar_ml.structures.cursor_registry cimport tracked_at",
    ),
    Mutant(
        id="AC-first",
        title="of several cursors at the slowest position the last registered one is shown",
        origin="port",
        file=FILE,
        old="""
if place.tracked and (slowest is NULL or position_less(place.at, least.at)):
    slowest = node
    least = place
""",
        new="""
if place.tracked and (slowest is NULL or not position_less(least.at, place.at)):
    slowest = node
    least = place
""",
        suite="active_cursors",
        breaks="CR-4",
        rare=True,
    ),
)
