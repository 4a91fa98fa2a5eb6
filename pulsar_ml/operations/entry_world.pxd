# The world of the operations on entries: their positions, bytes and books, and the checks of a
# holder.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlViolation
from pulsar_ml.operations.hands cimport Hands
from pulsar_ml.operations.support cimport mix, violate
from pulsar_ml.structures.entry cimport (
    Entry, EntryPool, entry_at, entry_matches, entry_metadata, entry_payload, entry_read_count,
    entry_references,
)
from pulsar_ml.structures.payload cimport Payload, payload_bytes, payload_length
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.read_count cimport read_count_at
from pulsar_ml.structures.refcount cimport refcount_value
from pulsar_ml.sync.atomics cimport pml_i64, pml_u64, u64_load_relaxed


cdef enum:
    EN_MOST_THREADS = 64
    EN_MOST_HANDLES = 64
    EN_MAILBOXES = 4
    EN_MOST_BYTES = 200


# The note of the thread that set an entry's callback, for the thread that runs it. Plain: published
# with the entry's references.
cdef struct EntryNote:
    uint32_t read_count
    uint32_t counts


# A reference is serial << 8 | handle. A serial is (number << 6 | thread) << 8 | bytes.
cdef struct EntryHolder:
    uint64_t number         # serials drawn so far
    uint64_t stale          # the reference released last
    char[112] apart


cdef struct EntryRun:
    EntryPool pool
    int32_t threads
    char[60] apart
    pml_u64[4] mailboxes
    pml_i64 callbacks_set
    pml_i64 callbacks_run
    pml_i64 values_set          # parsed values: an entry's is its serial
    pml_i64 values_released
    pml_i64 callbacks_wrong     # run twice, for another incarnation, or without the payload
    pml_i64[64] expected        # by handle of the read count: what it should be
    pml_u64[64] family          # likewise: the serial of the entries that share it
    pml_u64[64] armed           # by handle of the entry: the reference its callback was set for
    EntryNote[64] notes         # likewise
    Hands[64] hands
    EntryHolder[64] holders


cdef inline Position entry_position(uint64_t serial) noexcept nogil:
    return position(<int64_t>(serial >> 8 & 3), <int64_t>serial)


# Bytes -------------------------------------------------------------------------------------------

cdef inline char entry_byte(uint64_t pattern, int64_t i) noexcept nogil:
    return <char>((pattern >> ((i & 7) * 8)) + <uint64_t>i)


# The first byte that is not the pattern's, or -1.
cdef inline int64_t entry_wrong_byte(const Entry* entry, uint64_t serial) noexcept nogil:
    cdef Payload* payload = entry_payload(entry)
    cdef uint64_t pattern = mix(serial)
    cdef int64_t i
    if payload is NULL or payload_length(payload) != (serial & 0xFF):
        return EN_MOST_BYTES
    for i in range(payload_length(payload)):
        if payload_bytes(payload)[i] != entry_byte(pattern, i):
            return i
    return -1


# Checks the invariants that a holder of a reference can rely on.
cdef inline void entry_look(
    EntryRun* run, uint32_t handle, uint64_t serial, PmlViolation* violation
) noexcept nogil:
    cdef int64_t wrong
    if not entry_matches(&run.pool, handle, entry_position(serial)):
        violate(violation, b"I18", b"entry %lld is %lld now, but its holder retained %lld", handle,
                entry_at(&run.pool, handle).entry_id, <int64_t>serial)
        return
    if entry_references(&run.pool, handle) < 1:
        violate(violation, b"I3", b"entry %lld has %lld references although it is held", handle,
                entry_references(&run.pool, handle), 0)
        return
    wrong = entry_wrong_byte(entry_at(&run.pool, handle), serial)
    if wrong >= 0:
        violate(violation, b"I2", b"byte %lld of entry %lld (serial %lld) changed while it was held",
                wrong, handle, <int64_t>serial)


# True if the first copy makes the read count, at a moment that the books do not see.
cdef inline bint entry_made_late(uint64_t serial) noexcept nogil:
    return serial >> 14 & 1


# Checks all fields for a holder that may read them: not one by a stale handle, which may have met
# the entry before its creator set the callback.
cdef inline void entry_look_whole(
    EntryRun* run, uint32_t handle, uint64_t serial, PmlViolation* violation
) noexcept nogil:
    cdef uint32_t read_count
    cdef int64_t value
    entry_look(run, handle, serial, violation)
    if violation.found:
        return
    if entry_metadata(&run.pool, handle, &value) and value != <int64_t>serial:
        violate(violation, b"EN-7", b"entry %lld has the parsed value of entry %lld", <int64_t>serial,
                value, 0)
        return
    read_count = entry_read_count(&run.pool, handle)
    if not read_count or entry_made_late(serial):
        return
    if u64_load_relaxed(&run.family[read_count]) != serial:
        violate(violation, b"I70", b"read count %lld of entry %lld serves entry %lld now", read_count,
                <int64_t>serial, <int64_t>u64_load_relaxed(&run.family[read_count]))
    elif refcount_value(&read_count_at(&run.pool.read_counts, read_count).references) < 1:
        violate(violation, b"I70", b"read count %lld of entry %lld has %lld references", read_count,
                <int64_t>serial,
                refcount_value(&read_count_at(&run.pool.read_counts, read_count).references))
