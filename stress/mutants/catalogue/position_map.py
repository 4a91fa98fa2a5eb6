"""Mistakes in structures/position_map.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/position_map.pxd"

# A page that comes to the other map and back under a thread that looks at it; its branch stays.
BACK = (
    (
        ("put", 9, 0),
        ("put", 9, 1),
        ("put", 0, 0),
        ("remove", 0, 0),
        ("put", 0, 1),
        ("remove", 0, 1),
        ("put", 0, 0),
    ),
    (("recall", 0, 0), ("look",)),
)

RECALL = """
proof[0] = u64_load_acquire(&page.node.version)
if not node_serves(&page.node, map, at.ledger_id, map_first_id(at.entry_id)):
    return NULL
return page
"""

SHOWS = "return map_shown(page, at) == entry and u64_load_relaxed(&page.node.version) == proof"

FOUND_PAGE = """    found[0] = handle
    return page
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H06d",
        title="a removal takes out any handle at the position",
        origin="before #22789",
        file=FILE,
        old="""
if u32_load_relaxed(slot) != handle:
    return False
""",
        new="""
if u32_load_relaxed(slot) == 0:
    return False
""",
        suite="position_map",
        breaks="I36, PM-2",
    ),
    Mutant(
        id="PM-near",
        title="a removal looks into the page of the one before and nowhere else",
        origin="port",
        file=FILE,
        function="map_remove_near",
        old="""
branch = directory_find(&map.directory, at.ledger_id, map_block(at.entry_id), &proof)
""",
        new="""
if near.page:
    return False
branch = directory_find(&map.directory, at.ledger_id, map_block(at.entry_id), &proof)
""",
        suite="range_cache",
        breaks="I59",
    ),
    Mutant(
        id="PM-leave",
        title="the places freed in a page are given back as one",
        origin="port",
        file=FILE,
        function="map_leave_near",
        old="page_leave(memory, page_at(memory, near.page), near.page, near.reservations)",
        new="page_leave(memory, page_at(memory, near.page), near.page, 1)",
        suite="range_cache",
        breaks="I39",
    ),
    Mutant(
        id="PM-shown",
        title="a position that was removed is still shown",
        origin="port",
        file=FILE,
        old="u32_store_relaxed(&page.shown[map_entry_slot(at.entry_id)], 0)",
        new="pass",
        suite="range_cache",
        breaks="I8, I11",
    ),
    Mutant(
        id="PM-version",
        title="what a page shows is not proved by its version",
        origin="port",
        file=FILE,
        old=SHOWS,
        new="return map_shown(page, at) == entry",
        suite="position_map",
        breaks="I11",
    ),
    Mutant(
        id="PM-late",
        title="the version of a page is read after its label",
        origin="port",
        file=FILE,
        old=RECALL,
        new="""
if not node_serves(&page.node, map, at.ledger_id, map_first_id(at.entry_id)):
    return NULL
proof[0] = u64_load_acquire(&page.node.version)
return page
""",
        suite="position_map",
        breaks="I11",
        rare=True,
    ),
    Mutant(
        id="PM-proof",
        title="the version of a page is read relaxed before its label",
        origin="port",
        file=FILE,
        old=RECALL,
        new="""
proof[0] = u64_load_relaxed(&page.node.version)
if not node_serves(&page.node, map, at.ledger_id, map_first_id(at.entry_id)):
    return NULL
return page
""",
        suite="position_map",
        breaks="I11",
        mode="c11",
    ),
    Mutant(
        id="PM-fence",
        title="what a page shows is looked at again without the acquire fence",
        origin="port",
        file=FILE,
        old="fence_acquire()",
        new="pass",
        function="map_shows",
        suite="position_map",
        breaks="I11",
        mode="c11",
        calls=BACK,
        settings={"limit": (8, 8), "spread": (5, 5)},
    ),
    Mutant(
        id="PM-look",
        title="what a page shows is read relaxed before it is looked at",
        origin="port",
        file=FILE,
        old="return u32_load_acquire(&page.shown[map_entry_slot(at.entry_id)])",
        new="return u32_load_relaxed(&page.shown[map_entry_slot(at.entry_id)])",
        suite="range_cache",
        breaks="I18",
        mode="c11",
        # The page is one thread's, and what it shows another's, in memory of its own.
        calls=(
            (("put", 0, 0, 0), ("put", 0, 1, 0), ("put", 0, 2, 0)),
            (("put", 0, 3, 0),),
            (("get", 0, 3),),
        ),
        settings={
            name: (low, low) for name, low in {"caches": 1, "keys": 8, "chunk_bits": 2}.items()
        },
    ),
    Mutant(
        id="PM-again",
        title="a proof of a page is taken for the entry that it shows",
        origin="port",
        file=FILE,
        old=SHOWS,
        new="return u64_load_relaxed(&page.node.version) == proof",
        suite="range_cache",
        breaks="I11",
    ),
    Mutant(
        id="M09",
        title="a wrapper is linked in its slot by a relaxed exchange",
        origin="port",
        file=FILE,
        old="""
if u32_cas_strong_acq_rel(&page.slots[map_entry_slot(at.entry_id)], &seen, handle):
    place[0] = map_place(page_handle, at.entry_id)
    page_start_slot(page, map_entry_slot(at.entry_id))
    return PML_OK
""",
        new="""
if u32_cas_weak_relaxed(&page.slots[map_entry_slot(at.entry_id)], &seen, handle):
    place[0] = map_place(page_handle, at.entry_id)
    page_start_slot(page, map_entry_slot(at.entry_id))
    return PML_OK
if seen == 0:
    page_leave(map.memory, page, page_handle, 1)
    return map_put_if_absent(map, at, handle, place)
""",
        suite="range_cache",
        breaks="I30",
        cimports="from pulsar_ml.sync.atomics cimport u32_cas_weak_relaxed",
    ),
    Mutant(
        id="M09b",
        title="a page is linked in its branch by a relaxed exchange",
        origin="port",
        file=FILE,
        old="""
if u64_cas_strong_acq_rel(&branch.pages[slot], &seen, ((seen >> 32) + 1) << 32 | handle):
    u32_store_relaxed(&page.node.parent, parent)
    ptr_store_release(&map.recent[map_recent_slot(at.entry_id)], page)
    found[0] = handle
    return page
""",
        new="""
if u64_cas_weak_relaxed(&branch.pages[slot], &seen, ((seen >> 32) + 1) << 32 | handle):
    u32_store_relaxed(&page.node.parent, parent)
    ptr_store_release(&map.recent[map_recent_slot(at.entry_id)], page)
    found[0] = handle
    return page
""",
        suite="position_map",
        breaks="I38",
        cimports="from pulsar_ml.sync.atomics cimport u64_cas_weak_relaxed",
        mode="c11",
        within=4_000,
    ),
    Mutant(
        id="D01",
        title="a reserved page with the right label is mistaken for the linked one",
        origin="found here by the engine in the position_map suite",
        file=FILE,
        old="""
if (node_serves(&page.node, map, at.ledger_id, first_id)
        and u64_load_relaxed(&branch.pages[slot]) == seen):
"""
        + FOUND_PAGE,
        new="if node_serves(&page.node, map, at.ledger_id, first_id):\n" + FOUND_PAGE,
        suite="position_map",
        breaks="I7, I39",
        mode="c11",
        rare=True,
        calls=(
            (("put", 0, 1),),
            (("remove_own", 0, 0), ("put_own", 0, 1), ("find_own", 0, 1)),
            (("put", 62, 1), ("put", 0, 0), ("remove", 58, 1)),
        ),
        settings={"chunk_bits": (0, 0), "limit": (38, 38), "spread": (0, 0)},
    ),
    Mutant(
        id="D02",
        title="a reserved branch with the right label is mistaken for the one in the directory",
        origin="found here by the engine in the position_map suite",
        file=FILE,
        old="""
if (node_serves(&branch.node, map, at.ledger_id, first_id)
        and directory_proved(&map.directory, proof)):
    return handle
""",
        new="""
if node_serves(&branch.node, map, at.ledger_id, first_id):
    return handle
""",
        suite="position_map",
        breaks="I7, I39",
        mode="c11",
        rare=True,
        calls=(
            (("put", 0, 1),),
            (("put_own", 0, 1), ("find_own", 0, 1)),
            (("put", 62, 1), ("remove", 58, 1)),
        ),
        settings={"chunk_bits": (0, 0), "limit": (38, 38), "spread": (0, 0)},
    ),
    Mutant(
        id="M64",
        title="a put that finds its position taken keeps the page reserved",
        origin="port",
        file=FILE,
        old="""
page_leave(map.memory, page, page_handle, 1)
return PML_EXISTS
""",
        new="return PML_EXISTS",
        suite="position_map",
        breaks="I39",
    ),
)
