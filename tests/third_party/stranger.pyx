"""Uses the seam, structures and the classes of an installed pulsar_ml, in native code."""

from libc.stdint cimport int64_t, uint32_t

from pulsar_ml._core cimport Entry, RangeCache
from pulsar_ml.structures.entry cimport entry_length, entry_release
from pulsar_ml.structures.mpsc_queue cimport (
    MpscQueue, mpsc_destroy, mpsc_init, mpsc_offer, mpsc_peek, mpsc_poll,
)
from pulsar_ml.structures.position cimport position
from pulsar_ml.structures.range_cache cimport RangeCache as NativeCache, range_cache_get
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport i64_fetch_add_relaxed, i64_load_relaxed, pml_i64


cdef class Counter:
    """Counts with an atomic cell of the seam."""

    cdef pml_i64 cell

    def add(self, int64_t amount) -> None:
        with nogil:
            i64_fetch_add_relaxed(&self.cell, amount)

    @property
    def value(self) -> int:
        return i64_load_relaxed(&self.cell)


def through_a_queue(handles) -> list[int]:
    """Each handle through a queue of the structures, in chunks of three."""
    cdef MpscQueue queue
    cdef uint32_t handle
    if mpsc_init(&queue, 2) != PML_OK:
        raise MemoryError
    for handle in handles:
        if mpsc_offer(&queue, handle) != PML_OK:
            raise MemoryError
    found = []
    while True:
        handle = mpsc_peek(&queue)
        if not handle:
            break
        found.append(handle)
        mpsc_poll(&queue)
    mpsc_destroy(&queue)
    return found


cdef int64_t bytes_of(NativeCache* cache, int64_t ledger_id, int64_t first, int64_t end) noexcept nogil:
    cdef int64_t total = 0
    cdef int64_t entry_id
    cdef uint32_t handle
    for entry_id in range(first, end):
        handle = range_cache_get(cache, position(ledger_id, entry_id))
        if handle:
            total += entry_length(&cache.memory.entries, handle)
            entry_release(&cache.memory.entries, handle, 1)
    return total


def cached_bytes(RangeCache cache not None, int64_t ledger_id, int64_t first, int64_t end) -> int:
    """Payload bytes cached for [first, end) of a ledger, read without the GIL."""
    cdef int64_t total
    with nogil:
        total = bytes_of(cache.native, ledger_id, first, end)
    return total


def handle_of(Entry entry not None) -> int:
    """The native handle of an entry."""
    return entry.handle
