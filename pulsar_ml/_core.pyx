"""The Python binding of the broker cache: argument checks, GIL release, errors, and nothing else.
"""

from __future__ import annotations

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo, PyBuffer_Release, PyBUF_SIMPLE, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.number cimport PyNumber_Index
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, UINT16_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsar_ml.structures.cache_manager cimport (
    MILLION, ManagerSettings, ManagerStats, cache_manager_configure, cache_manager_destroy,
    cache_manager_disabled, cache_manager_evict, cache_manager_expiry, cache_manager_get,
    cache_manager_hit, cache_manager_init, cache_manager_look, cache_manager_miss, cache_manager_next,
    cache_manager_put, cache_manager_remove, cache_manager_run, cache_manager_stats,
)
from pulsar_ml.structures.entry cimport (
    entry_at, entry_attach_metadata, entry_copy, entry_copy_bytes, entry_expect_read,
    entry_expected_reads, entry_has_callback, entry_length, entry_matches, entry_metadata,
    entry_new, entry_not_delivered, entry_payload, entry_references, entry_release, EntryPool,
    read_count_maybe_new,
)
from pulsar_ml.structures.eviction_policy cimport (
    eviction_destroy, eviction_init, eviction_row,
)
from pulsar_ml.structures.eviction_thread cimport (
    eviction_thread_forget, eviction_thread_go_on, eviction_thread_hold, eviction_thread_start,
    eviction_thread_serves, eviction_thread_stop,
)
from pulsar_ml.structures.object_pool cimport pool_in_use
from pulsar_ml.structures.payload cimport (
    Payload, payload_bytes, payload_length, payload_new, payload_release, payload_retain,
    payload_slice,
)
from pulsar_ml.structures.policy_pass cimport (
    EvictionPass, PolicyRow, PolicySettings, size_pass, time_pass,
)
from pulsar_ml.structures.position cimport position, position_is_stored, position_less
from pulsar_ml.structures.position_map cimport MapCursor
from pulsar_ml.structures.range_cache cimport (
    Removed as NativeRemoved, cache_memory_destroy, cache_memory_init, range_cache_cursor,
    range_cache_delete, range_cache_exists, range_cache_new, range_cache_size,
)
from pulsar_ml.structures.read_count cimport read_count_release
from pulsar_ml.structures.receive_buffer cimport (
    buffer_books_pinned, receive_buffer_append, receive_buffer_new, receive_buffer_release,
    receive_buffer_retain,
)
from pulsar_ml.structures.receive_size cimport receive_size_init, receive_size_next, receive_size_record
from pulsar_ml.structures.status cimport PML_DISABLED, PML_EXISTS, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    fence_seq_cst, i64_load_relaxed, pml_ptr, ptr_cas_strong_acq_rel, ptr_cas_strong_release,
    ptr_load_relaxed, u32_fetch_add_relaxed, u32_fetch_sub_release, u32_load_acquire,
    u32_load_relaxed, u32_store_release,
)
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.memory cimport allocate, allocate_zeroed, release
from pulsar_ml.sync.thread cimport thread_stripe
from pulsar_ml.sync.wait cimport wait_while_equal, wake_one

import os
import threading
import weakref
from types import MappingProxyType

from pulsar_ml.errors import (
    AllocationError, ClosedError, InvalidPositionError, InvalidSizeError, PositionMismatchError,
    ReleasedError, UsageError,
)
from pulsar_ml.positions import Evicted, Position, Removed
from pulsar_ml.stats import CacheStats


cdef enum:
    CHUNK_BITS = 12             # objects of a pool chunk: 4,096
    MOST_OBJECTS = 1 << 28      # of each kind in one manager
    SLICE = 1 << 16             # steps between two looks at pending signals
    MOST_BUFFER = 1 << 30       # bytes of a receive buffer
    GATHER = 256                # entries of a range fetched at a time
    MILLISECOND = 1000000       # nanoseconds


cdef NativePosition to_position(object value, str role) except *:
    try:
        ledger_id, entry_id = value
        return position(PyNumber_Index(ledger_id), PyNumber_Index(entry_id))
    except (TypeError, ValueError):
        raise InvalidPositionError(
            f"{role} must be a Position or a (ledger_id, entry_id) pair, not {value!r}") from None
    except OverflowError:
        raise InvalidPositionError(f"{role} {value!r} does not fit signed 64-bit ids") from None


cdef int64_t to_id(object value, str role) except? -1:
    try:
        return PyNumber_Index(value)
    except OverflowError:
        raise InvalidPositionError(f"{role}={value!r} does not fit a signed 64-bit id") from None


cdef NativePosition to_stored(object value) except *:
    cdef NativePosition at = to_position(value, "position")
    if not position_is_stored(at):
        raise InvalidPositionError(
            f"position {at.ledger_id}:{at.entry_id} names no stored entry; both ids must be >= 0")
    return at


cdef int check_range(NativePosition first, NativePosition last) except -1:
    if position_less(last, first):
        raise InvalidPositionError(
            f"the range {first.ledger_id}:{first.entry_id} .. {last.ledger_id}:{last.entry_id} ends "
            "before it begins")
    return 0


cdef int64_t to_time(object value, str role) except? -1:
    try:
        return PyNumber_Index(value)
    except OverflowError:
        raise InvalidSizeError(f"{role}={value!r} does not fit 64-bit nanoseconds") from None


# The time of an argument; None is now on the monotonic clock.
cdef int64_t to_now(object value, str role) except? -1:
    return monotonic_ns() if value is None else to_time(value, role)


# The time of a clock where a time was left out; no clock is the monotonic one.
cdef int64_t time_of(object clock, object value, str role) except? -1:
    if value is None:
        if clock is None:
            return monotonic_ns()
        value, role = clock(), "the clock's time"
    return to_time(value, role)


cdef int32_t to_count(object value, str role, int32_t most) except -1:
    value = PyNumber_Index(value)
    if not 0 <= value <= most:
        raise InvalidSizeError(f"{role}={value!r} is outside 0..{most}")
    return value


cdef int64_t to_size(object value, str role) except -1:
    value = PyNumber_Index(value)
    if not 0 <= value <= INT64_MAX:
        raise InvalidSizeError(f"{role}={value!r} must be at least 0 and fit 64 bits")
    return value


# The one place where a status becomes an exception.
cdef int check_status(Status status, NativePosition at) except -1:
    if status == PML_OK:
        return 0
    if status == Status.PML_NO_MEMORY:
        raise AllocationError("no native memory left; nothing was changed")
    if status == Status.PML_MISMATCH:
        raise PositionMismatchError(f"the entry is not the one at {at.ledger_id}:{at.entry_id}")
    raise ReleasedError("the entry has no reference left")


include "binding/gate.pxi"
include "binding/fork.pxi"
include "binding/callbacks.pxi"
include "binding/native_memory.pxi"
include "binding/buffers.pxi"
include "binding/entry.pxi"
include "binding/range_cache.pxi"
include "binding/range_iterator.pxi"
include "binding/manager.pxi"
include "binding/cursors.pxi"
include "binding/inflight_reads.pxi"
include "binding/pending_reads.pxi"
include "binding/acks.pxi"
include "binding/delayed.pxi"
include "binding/triggers.pxi"
include "binding/handed_out.pxi"
