# A position names one entry of a managed ledger: (ledger id, entry id), ordered lexicographically.
#
# Origin       org.apache.bookkeeper.mledger.Position (Pulsar 4.1). Here a plain value, no object.
# Threads      Immutable values; any thread.
# Invariants   A stored position has both ids >= 0. Bounds of a range may hold any 64-bit value.
# Ordering     None needed.
# Reclamation  None needed.
# Not promised Arithmetic across ledgers: the position after the last entry of a ledger is unknown.

from libc.stdint cimport int64_t


cdef struct Position:
    int64_t ledger_id
    int64_t entry_id


cdef inline Position position(int64_t ledger_id, int64_t entry_id) noexcept nogil:
    cdef Position value
    value.ledger_id = ledger_id
    value.entry_id = entry_id
    return value


cdef inline bint position_equal(Position a, Position b) noexcept nogil:
    return a.ledger_id == b.ledger_id and a.entry_id == b.entry_id


cdef inline bint position_less(Position a, Position b) noexcept nogil:
    if a.ledger_id != b.ledger_id:
        return a.ledger_id < b.ledger_id
    return a.entry_id < b.entry_id


cdef inline bint position_is_stored(Position p) noexcept nogil:
    return p.ledger_id >= 0 and p.entry_id >= 0
