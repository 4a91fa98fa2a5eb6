"""Mistakes in structures/cursor_heap.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/cursor_heap.pxd"

VALIDATE = """
if stamped_validate(&heap.registry.lock, stamp):
    return slowest
"""

# The section in which a cursor moves.
UPDATE = """
stamped_lock_write(&heap.registry.lock)
cursor = <HeapCursor*>registry_find(&heap.registry, id)
if cursor is not NULL and cursor.index != HEAP_NOWHERE:
    change.previous = registry_slowest(&heap.registry)
    heap_set(heap, cursor, target)
    change.slowest = registry_slowest(&heap.registry)
    version = registry_changed(&heap.registry)
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="L02",
        title="the cursor that fills the gap of a removed one is sifted down only",
        origin="the revision read",
        file=FILE,
        old="heap_settle(heap, index, heap.places[heap.tracked])",
        new="heap_sift_down(heap, index, heap.places[heap.tracked])",
        suite="cursor_heap",
        breaks="I80, I81",
    ),
    Mutant(
        id="H21",
        title="a seek forward does not reach the heap",
        origin="#16054",
        file=FILE,
        old=UPDATE,
        new="""
stamped_lock_write(&heap.registry.lock)
cursor = <HeapCursor*>registry_find(&heap.registry, id)
if cursor is not NULL and cursor.index != HEAP_NOWHERE:
    change.previous = registry_slowest(&heap.registry)
    if not target.tracked or position_less(target.at, heap.places[cursor.index].at):
        heap_set(heap, cursor, target)
    change.slowest = registry_slowest(&heap.registry)
    version = registry_changed(&heap.registry)
""",
        suite="cursor_heap",
        breaks="I80",
    ),
    Mutant(
        id="C04",
        title="a sifted cursor does not learn its index",
        origin="port",
        file=FILE,
        old="""
heap.places[index] = held
held.cursor.index = index
""",
        new="""
heap.places[index] = held
if held.cursor.index == HEAP_NOWHERE:
    held.cursor.index = index
""",
        suite="cursor_heap",
        breaks="I81",
    ),
    # For the engine ----------------------------------------------------------------------
    Mutant(
        id="H20",
        title="the slowest cursor is read from the heap without the lock",
        origin="#16049",
        file=FILE,
        old=VALIDATE,
        new="return tracked_at(heap.places[0].at) if heap.tracked else untracked()",
        suite="cursor_heap",
        breaks="I77, I81",
        mode="sc",
        within=4_000,
    ),
    Mutant(
        id="C05",
        title="a slowest position copied under a stamp is used without validation",
        origin="port",
        file=FILE,
        old=VALIDATE,
        new="return slowest",
        suite="cursor_heap",
        breaks="I80",
        mode="sc",
        within=4_000,
    ),
    Mutant(
        id="CH-look",
        title="a look at a cursor takes no lock",
        origin="port",
        file=FILE,
        old="""
stamped_lock_read(&heap.registry.lock)
cursor = <HeapCursor*>registry_find(&heap.registry, id)
state = registry_state(<CursorNode*>cursor, heap_where(heap, cursor))
stamped_unlock_read(&heap.registry.lock)
""",
        new="""
cursor = <HeapCursor*>registry_find(&heap.registry, id)
state = registry_state(<CursorNode*>cursor, heap_where(heap, cursor))
""",
        suite="cursor_heap",
        breaks="CR-4",
        rare=True,
    ),
    Mutant(
        id="CH-first",
        title="of several cursors at the slowest position the top of the heap is shown",
        origin="port",
        file=FILE,
        old="node = heap.registry.first if slowest.tracked else NULL",
        new="node = <CursorNode*>heap.places[0].cursor if slowest.tracked else NULL",
        suite="cursor_heap",
        breaks="CR-4",
        rare=True,
    ),
)
