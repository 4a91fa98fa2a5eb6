# The judgement of a position map's short way, for its suite.

from libc.stdint cimport uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlViolation
from pulsar_ml.operations.support cimport violate
from pulsar_ml.structures.map_pages cimport MapPage
from pulsar_ml.structures.position cimport Position
from pulsar_ml.structures.position_map cimport PositionMap, map_recall, map_shown, map_shows


# What the short way shows under a thread's own key is what the thread put there, even if the page
# serves another map meanwhile.
cdef inline void map_judge_shown(
    const PositionMap* map, uint32_t known, Position at, PmlViolation* violation
) noexcept nogil:
    cdef uint64_t proof
    cdef const MapPage* page = map_recall(map, at, &proof)
    cdef uint32_t shown = 0 if page is NULL else map_shown(page, at)
    if shown and map_shows(page, at, shown, proof) and shown != known:
        violate(violation, b"I11", b"handle %lld is in the map, but (%lld, ...) shows %lld", known,
                at.ledger_id, shown)
