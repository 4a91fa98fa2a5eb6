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
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, UINT16_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsar_ml.structures.cache_manager cimport (
    MILLION, ManagerSettings, ManagerStats, cache_manager_configure, cache_manager_destroy,
    cache_manager_disabled, cache_manager_evict, cache_manager_expiry, cache_manager_get,
    cache_manager_hit, cache_manager_init, cache_manager_look, cache_manager_miss, cache_manager_next,
    cache_manager_put, cache_manager_remove, cache_manager_run, cache_manager_stats,
)
from pulsar_ml.structures.cached_state cimport CachedState, range_cache_look
from pulsar_ml.structures.entry cimport (
    Entry as NativeEntry, entry_at, entry_attach_metadata, entry_copy, entry_copy_bytes,
    entry_expect_read, entry_expected_reads, entry_has_callback, entry_length, entry_matches,
    entry_metadata, entry_new, entry_not_delivered, entry_payload, entry_pool_keep_payloads,
    entry_references, entry_release,
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
from pulsar_ml.structures.payload_memory cimport KEPT_PAYLOAD_BYTES
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
    ptr_load_acquire,
    ptr_load_relaxed, u32_cas_weak_acquire, u32_exchange_acquire, u32_fetch_add_relaxed,
    u32_fetch_sub_release, u32_load_acquire, u32_load_relaxed, u32_store_relaxed, u32_store_release,
)
from pulsar_ml.sync.clock cimport monotonic_ns
from pulsar_ml.sync.memory cimport allocate, allocate_zeroed, release
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

    /* Reads a plain number of 64 bits; 0 for anything else. */
    static int pml_plain_number(PyObject *value, long long *number)
    {
        int overflow = 0;
        if (!PyLong_CheckExact(value))
            return 0;
        *number = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow;
    }
    """
    object native_new_position "pml_new_position"(PyObject* type, long long ledger_id, long long entry_id)
    bint plain_position "pml_plain_position"(
        object value, PyObject* type, long long* ledger_id, long long* entry_id)
    bint plain_number "pml_plain_number"(object value, long long* number)


cdef PyObject* position_type = <PyObject*>Position     # the module keeps it


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


cdef NativePosition to_stored(object value, str role) except *:
    cdef NativePosition at = to_position(value, role)
    if not position_is_stored(at):
        raise InvalidPositionError(
            f"{role} {at.ledger_id}:{at.entry_id} names no stored entry; both ids must be >= 0")
    return at


cdef int check_range(NativePosition first, NativePosition last) except -1:
    if position_less(last, first):
        raise InvalidPositionError(
            f"the range {first.ledger_id}:{first.entry_id} .. {last.ledger_id}:{last.entry_id} ends "
            "before it begins")
    return 0


# A whole number; others raise InvalidSizeError.
cdef int64_t to_number(object value, str role, int64_t least, int64_t most) except? -1:
    cdef long long number
    if plain_number(value, &number):
        if least <= number <= most:
            return number
    else:
        value = PyNumber_Index(value)
        if least <= value <= most:
            return value
    raise InvalidSizeError(f"{role}={value!r} is outside {least}..{most}")


cdef int64_t to_size(object value, str role) except? -1:
    return to_number(value, role, 0, INT64_MAX)


cdef int32_t to_count(object value, str role, int32_t most) except? -1:
    return <int32_t>to_number(value, role, 0, most)


# Milliseconds as nanoseconds.
cdef int64_t to_span(object value, str role, int64_t least) except? -1:
    return to_number(value, role, least, INT64_MAX // MILLISECOND) * MILLISECOND


# A time, which may be before the clock's zero.
cdef int64_t to_time(object value, str role) except? -1:
    return to_number(value, role, INT64_MIN, INT64_MAX)


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


# The one place where a status becomes an exception.
cdef int check_status(Status status, NativePosition at) except -1:
    if status == PML_OK:
        return 0
    if status == Status.PML_NO_MEMORY:
        raise AllocationError("no native memory left; nothing was changed")
    if status == Status.PML_MISMATCH:
        raise PositionMismatchError(f"the entry is not the one at {at.ledger_id}:{at.entry_id}")
    raise ReleasedError("the entry has no reference left")


# Arguments of calls for many, which were checked and copied: what becomes of the originals does not
# matter. Also the memory of results.
@cython.final
@cython.internal
@cython.no_gc
cdef class Block:
    cdef void* items
    cdef Py_ssize_t count

    def __dealloc__(self):
        PyMem_Free(self.items)


cdef Block new_block(Py_ssize_t count, size_t size):
    cdef Block block = Block.__new__(Block)
    block.items = PyMem_Malloc(<size_t>(count if count else 1) * size)
    if block.items is NULL:
        raise AllocationError(f"no memory for {count} items; nothing was changed")
    block.count = count
    return block


cdef int check_length(Py_ssize_t expected, Py_ssize_t length, str role) except -1:
    if length != expected:
        raise UsageError(f"{expected} positions have {length} {role}")
    return 0


cdef bint is_int64(const Py_buffer* view) noexcept:
    cdef const char* code = view.format
    if view.itemsize != 8 or code is NULL:
        return False
    if code[0] == b"=" or code[0] == b"@":
        code += 1
    return (code[0] == b"q" or code[0] == b"l") and code[1] == 0


# The items of an array of 64-bit integers: rows of so many columns, or numbers for one column. None
# where the value is no array.
cdef Block from_array(object value, Py_ssize_t columns, object error, str role, str form):
    cdef Block block
    cdef Py_buffer view
    cdef Py_ssize_t i
    if not PyObject_CheckBuffer(value):
        return None
    try:
        PyObject_GetBuffer(value, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | PyBUF_ND)
    except (BufferError, ValueError) as failure:
        raise error(f"an array of {role} must be contiguous: {failure}") from None
    try:
        if not is_int64(&view) or view.ndim != (1 if columns == 1 else 2) or (
                columns > 1 and view.shape[1] != columns):
            raise error(f"an array of {role} has 64-bit integers and the shape {form}")
        block = new_block(view.shape[0], <size_t>columns * sizeof(int64_t))
        for i in range(block.count * columns):
            (<int64_t*>block.items)[i] = (<const int64_t*>view.buf)[i]
        return block
    finally:
        PyBuffer_Release(&view)


# A tuple of its own: conversions run Python code, which may change a list.
cdef tuple to_rows(object value, object error, str role, str form):
    try:
        rows = iter(value)
    except TypeError:
        raise error(f"{role} must be an array or a sequence of {form}, not {value!r}") from None
    return tuple(rows)


# An array of ids, or a sequence of positions. All are stored ones, unless `any_place`.
cdef Block to_places(object value, bint any_place=False):
    cdef Block places = from_array(
        value, 2, InvalidPositionError, "positions", "(n, 2): a ledger id and an entry id in each row")
    cdef NativePosition* at
    cdef long long ledger_id, entry_id
    cdef Py_ssize_t i
    cdef tuple rows = None
    if places is None:
        rows = to_rows(value, InvalidPositionError, "positions", "positions")
        places = new_block(len(rows), sizeof(NativePosition))
    at = <NativePosition*>places.items
    for i in range(places.count):
        if rows is not None:
            if plain_position(rows[i], position_type, &ledger_id, &entry_id):
                at[i] = position(ledger_id, entry_id)
            else:
                at[i] = to_position(rows[i], f"positions[{i}]")
        if not any_place and not position_is_stored(at[i]):
            to_stored(new_position(at[i]), f"positions[{i}]")
    return places


# An array of numbers, or a sequence of them.
cdef Block to_numbers(object value, str role):
    cdef Block numbers = from_array(value, 1, InvalidSizeError, role, "(n,)")
    cdef long long number
    cdef Py_ssize_t i
    cdef tuple rows
    if numbers is None:
        rows = to_rows(value, InvalidSizeError, role, "numbers")
        numbers = new_block(len(rows), sizeof(int64_t))
        for i in range(numbers.count):
            if not plain_number(rows[i], &number):
                number = to_time(rows[i], f"{role}[{i}]")
            (<int64_t*>numbers.items)[i] = number
    return numbers


include "binding/gate.pxi"
include "binding/fork.pxi"
include "binding/callbacks.pxi"
include "binding/memory_share.pxi"
include "binding/buffers.pxi"
include "binding/entry.pxi"
include "binding/range_cache.pxi"
include "binding/range_iterator.pxi"
include "binding/manager.pxi"
include "binding/cursors.pxi"
include "binding/inflight_reads.pxi"
include "binding/pending_reads.pxi"
include "binding/acks.pxi"
include "binding/delayed/tracker.pxi"
include "binding/delayed/view.pxi"
include "binding/delayed/triggers.pxi"
include "binding/handed_out.pxi"
include "binding/methods.pxi"
