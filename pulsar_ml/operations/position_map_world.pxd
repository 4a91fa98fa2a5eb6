# The handles of the position map's suite, which name their map and position, and the judgement of
# the short way by them.

from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlViolation
from pulsar_ml.operations.support cimport violate
from pulsar_ml.structures.map_pages cimport BLOCK_BITS, SLOT_BITS, MapPage, map_block
from pulsar_ml.structures.position cimport Position, position, position_equal
from pulsar_ml.structures.position_map cimport PositionMap, map_recall, map_shown, map_shows


cdef enum:
    PM_PLACES = 27          # pages: three ledgers, three blocks, three pages of a block
    PM_OWN = 128            # keys from here on belong to the thread


# A handle: serial << 15 | map << 14 | thread << 8 | key. Keys of threads 32 to 63 lie in ledgers of
# their own, so that 32 of the 64 slots of a page are enough.
cdef inline Position map_position_of(uint32_t handle) noexcept nogil:
    cdef int64_t thread = handle >> 8 & 63
    cdef int64_t key = handle & 0xFF
    cdef int64_t place = key - PM_OWN if key >= PM_OWN else key % PM_PLACES
    cdef int64_t slot, ledger, block, page
    if key >= PM_OWN:
        slot = 2 + thread % 32
    else:
        slot = key // PM_PLACES
        if slot >= 2:
            slot += 60
    ledger = place % 3
    # Two follow each other: behind the last block of one a walk goes on in the next.
    ledger = INT64_MAX if ledger == 2 else ledger
    if key >= PM_OWN and thread >= 32:
        ledger = INT64_MAX - 1 if ledger == INT64_MAX else ledger + 3
    block = place // 3 % 3
    block = map_block(INT64_MAX) if block == 2 else block
    page = place // 9
    page = 63 if page == 2 else page
    return position(ledger, block << BLOCK_BITS | page << SLOT_BITS | slot)


cdef inline uint32_t map_handle(int64_t map, int64_t thread, int64_t key, uint32_t serial) noexcept nogil:
    return serial << 15 | <uint32_t>(map << 14 | thread << 8 | key)


# True if a handle that was found under a position in a map belongs there. If not, the page served
# another range meanwhile, and the wrapper's key check would reject it.
cdef inline bint map_handle_fits(uint32_t handle, int64_t map, Position at) noexcept nogil:
    return (handle >> 14 & 1) == map and position_equal(map_position_of(handle), at)


# The page that a thread came to by the short way, and keeps in mind for later.
cdef struct MapLook:
    uint32_t wanted         # a handle of the position and map; 0: none
    const MapPage* page
    uint64_t proof


cdef inline void map_keep_in_mind(MapLook* look, const PositionMap* map, uint32_t wanted) noexcept nogil:
    look.page = map_recall(map, map_position_of(wanted), &look.proof)
    look.wanted = 0 if look.page is NULL else wanted


# What the page shows belongs to the position, even if it served others or the other map meanwhile:
# the handle, or 0.
cdef inline uint32_t map_judge_look(const MapLook* look, PmlViolation* violation) noexcept nogil:
    cdef Position at = map_position_of(look.wanted)
    cdef uint32_t shown = map_shown(look.page, at) if look.wanted else 0
    if not shown or not map_shows(look.page, at, shown, look.proof):
        return 0
    if not map_handle_fits(shown, look.wanted >> 14 & 1, at):
        violate(violation, b"I11", b"handle %lld is of another position or map than (%lld, %lld)", shown,
                at.ledger_id, at.entry_id)
    return shown
