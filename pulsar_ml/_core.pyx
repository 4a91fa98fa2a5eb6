"""The Python binding of the broker cache: argument checks, GIL release, errors, and nothing else.
"""

from __future__ import annotations

cimport cython
from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_ND, PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release,
    PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
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
    Entry as NativeEntry, entry_at, entry_attach_metadata, entry_copy, entry_copy_bytes,
    entry_expect_read, entry_expected_reads, entry_has_callback, entry_length, entry_matches,
    entry_metadata, entry_new, entry_not_delivered, entry_payload, entry_references, entry_release,
    EntryPool,
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
from pulsar_ml.structures.position cimport (
    position, position_equal, position_is_stored, position_less,
)
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
    SHORT_ENTRY = 4096          # bytes that are copied with the GIL held
    MILLISECOND = 1000000       # nanoseconds


cdef extern from *:
    """
    /* A Position without a call of its constructor; NULL with MemoryError. */
    static PyObject *pml_new_position(PyObject *type, long long ledger_id, long long entry_id)
    {
        PyObject *first = PyLong_FromLongLong(ledger_id), *second = PyLong_FromLongLong(entry_id);
        PyObject *result = NULL;
        if (first != NULL && second != NULL)
            result = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 2);
        if (result == NULL) {
            Py_XDECREF(first);
            Py_XDECREF(second);
            return NULL;
        }
        PyTuple_SET_ITEM(result, 0, first);
        PyTuple_SET_ITEM(result, 1, second);
        return result;
    }

    /* Reads a tuple, or a Position, of two plain numbers of 64 bits; 0 for anything else. */
    static int pml_plain_position(
        PyObject *value, PyObject *type, long long *ledger_id, long long *entry_id)
    {
        int first = 0, second = 0;
        if ((!PyTuple_CheckExact(value) && (PyObject *)Py_TYPE(value) != type)
                || PyTuple_GET_SIZE(value) != 2
                || !PyLong_CheckExact(PyTuple_GET_ITEM(value, 0))
                || !PyLong_CheckExact(PyTuple_GET_ITEM(value, 1)))
            return 0;
        *ledger_id = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(value, 0), &first);
        *entry_id = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(value, 1), &second);
        return !first && !second;
    }
    """
    object native_new_position "pml_new_position"(object type, long long ledger_id, long long entry_id)
    bint plain_position "pml_plain_position"(
        object value, object type, long long* ledger_id, long long* entry_id)


cdef object position_type = Position


cdef inline object new_position(NativePosition at):
    return native_new_position(position_type, at.ledger_id, at.entry_id)


cdef NativePosition to_position(object value, str role) except *:
    cdef long long plain_ledger, plain_entry
    if plain_position(value, position_type, &plain_ledger, &plain_entry):
        return position(plain_ledger, plain_entry)
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


# Stored positions that were checked and copied: what becomes of the argument does not matter.
@cython.final
@cython.internal
@cython.no_gc
cdef class Places:
    cdef NativePosition* at
    cdef Py_ssize_t count

    def __dealloc__(self):
        PyMem_Free(self.at)

    cdef int reserve(self, Py_ssize_t count) except -1:
        self.at = <NativePosition*>PyMem_Malloc(<size_t>(count if count else 1) * sizeof(NativePosition))
        if self.at is NULL:
            raise AllocationError(f"no memory for {count} positions; nothing was changed")
        self.count = count
        return 0


cdef bint is_int64(const Py_buffer* view) noexcept:
    cdef const char* code = view.format
    if view.itemsize != 8 or code is NULL:
        return False
    if code[0] == b"=" or code[0] == b"@":
        code += 1
    return (code[0] == b"q" or code[0] == b"l") and code[1] == 0


# An array of ids, or a sequence of positions.
cdef Places to_places(object value):
    cdef Places places = Places.__new__(Places)
    cdef Py_buffer view
    cdef const int64_t* ids
    cdef Py_ssize_t i
    if PyObject_CheckBuffer(value):
        try:
            PyObject_GetBuffer(value, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_ND)
        except (BufferError, ValueError) as error:
            raise InvalidPositionError(f"an array of positions must be contiguous: {error}") from None
        try:
            if not is_int64(&view) or view.ndim != 2 or view.shape[1] != 2:
                raise InvalidPositionError(
                    "an array of positions has 64-bit integers and the shape (n, 2): a ledger id and "
                    "an entry id in each row")
            places.reserve(view.shape[0])
            ids = <const int64_t*>view.buf
            for i in range(places.count):
                places.at[i] = position(ids[2 * i], ids[2 * i + 1])
        finally:
            PyBuffer_Release(&view)
        for i in range(places.count):
            if not position_is_stored(places.at[i]):
                to_stored((places.at[i].ledger_id, places.at[i].entry_id))
        return places
    # A tuple of its own: conversions run Python code, which may change a list.
    try:
        rows = iter(value)
    except TypeError:
        raise InvalidPositionError(
            f"positions must be an array or a sequence of positions, not {value!r}") from None
    value = tuple(rows)
    places.reserve(len(value))
    for i in range(places.count):
        places.at[i] = to_stored(value[i])
    return places


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
