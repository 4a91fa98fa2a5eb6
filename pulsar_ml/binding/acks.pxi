# The acknowledgement state of a cursor as a Python object.

from collections import namedtuple
from struct import Struct

from cpython.bytes cimport PyBytes_FromStringAndSize

from pulsar_ml.structures.ack_codec cimport (
    ACK_DAMAGED, ACK_RESTORED, AckLimits, AckPlan, AckRestored,
)
from pulsar_ml.structures.ack_ranges cimport (
    ACK_INVALID, ACK_NEW, ACK_NO_MEMORY, RANGE_BYTES, AckChange,
)
from pulsar_ml.structures.ack_state cimport (
    ACK_EVERYTHING, ACK_IN_LEDGER, ACK_IN_STORE, DISPATCH_DELAYED, DISPATCH_NORMAL, DISPATCH_REPLAY, AckScope,
    AckState as NativeAckState, DispatchKind, ack_state_add, ack_state_add_all, ack_state_add_index,
    ack_state_add_up_to,
    ack_state_configure, ack_state_contains, ack_state_contains_index, ack_state_destroy, ack_state_encode,
    ack_state_end_ledger, ack_state_init, ack_state_mark, ack_state_may_dispatch, ack_state_restore,
    ack_state_set_metadata,
)

from pulsar_ml.errors import StorageError


cdef enum:
    FIVE_MIB = 5 * 1048576

cdef object STORED_RANGE = Struct("<qqqq")


EncodedAcks = namedtuple(
    "EncodedAcks",
    ("mark_delete_position", "data", "ranges", "batches", "ranges_left", "batches_left", "metadata_left",
     "size"))
EncodedAcks.__doc__ = """The result of :meth:`AckState.encode`.

The mark-delete position, the bytes of ``ranges`` ranges and ``batches`` partly acknowledged
batches, how many of each were left out, the bytes that metadata has beyond the limit, and the bytes
that everything would take.
"""
EncodedAcks.__module__ = "pulsar_ml._core"


cdef AckLimits to_limits(
    object max_bytes, object max_ranges, object max_batches, object max_ranges_in_metadata_store
) except *:
    cdef AckLimits limits
    limits.max_bytes = 0
    if max_bytes is not None:
        limits.max_bytes = to_size(max_bytes, "max_bytes")
        if not 1024 <= limits.max_bytes <= FIVE_MIB:
            raise InvalidSizeError(f"max_bytes={max_bytes!r} is outside 1024..{FIVE_MIB}; None is no limit")
    limits.max_ranges = to_size(max_ranges, "max_ranges")
    limits.max_batches = to_size(max_batches, "max_batches")
    limits.max_store_ranges = to_size(max_ranges_in_metadata_store, "max_ranges_in_metadata_store")
    return limits


@cython.final
cdef class AckState:
    """The acknowledgements of one cursor, within the limits of what is stored, and the pauses of
    its dispatcher.

    ``mark_delete_position``: everything up to it is acknowledged; (ledger, -1) is before a ledger's
    first entry.
    ``max_bytes``: of all metadata that is stored, 1024 to 5 MiB
    (managedLedgerMaxAckStateInBytesToPersist); a number takes the place of ``max_ranges``
    (managedLedgerMaxUnackedRangesToPersist), None leaves the decision to it. ``max_batches``:
    partly acknowledged batches (managedLedgerMaxBatchDeletedIndexToPersist), with or without a
    limit of bytes. ``max_ranges_in_metadata_store`` limits what is encoded for the metadata store.
    ``pause_dispatch``: dispatcherPauseOnAckStatePersistentEnabled. ``on_resume()`` is called, in
    the thread that acknowledged and outside every lock, when a dispatcher that was paused has to
    read on. What it raises goes to sys.unraisablehook.

    All methods may be called from any number of threads. Raises InvalidSizeError,
    InvalidPositionError, AllocationError. Origin: ``ManagedCursorImpl`` of Pulsar 4.1 and PIP-299.
    """

    cdef NativeAckState native
    cdef AckLimits limits
    cdef object on_resume

    def __cinit__(
        self, mark_delete_position, *, max_bytes=FIVE_MIB, max_ranges=10000, max_batches=10000,
        max_ranges_in_metadata_store=1000, bint pause_dispatch=False, on_resume=None
    ):
        self.on_resume = None if on_resume is None else check_callable(on_resume, "on_resume")
        self.limits = to_limits(max_bytes, max_ranges, max_batches, max_ranges_in_metadata_store)
        ack_state_init(&self.native, to_position(mark_delete_position, "mark_delete_position"), self.limits,
                       pause_dispatch)

    def __dealloc__(self):
        with nogil:
            native_enter()
            ack_state_destroy(&self.native)
            native_leave()

    # Ends a change: raises for a refused one, and resumes the dispatcher. What is not there, and
    # where; or without a place, the message.
    cdef bint finish(self, AckChange change, uint32_t resumed, str what, object at) except -1:
        if resumed and self.on_resume is not None:
            try:
                self.on_resume()
            except BaseException as error:
                # The change was made, whatever the dispatcher says.
                report_unraisable(error, self.on_resume)
        if change == ACK_NO_MEMORY:
            raise AllocationError("no native memory left; nothing was changed")
        if change == ACK_INVALID:
            if at is not None:
                what = f"there is no {what} {at}"
            raise InvalidPositionError(f"{what}, by what was said of ledgers and batches before")
        return change == ACK_NEW

    def acknowledge(self, position) -> bool:
        """Acknowledge one entry; False when it was acknowledged before. InvalidPositionError for an
        entry behind the end of its ledger.
        """
        cdef NativePosition place = to_stored(position, "position")
        cdef AckChange change
        cdef uint32_t resumed
        with nogil:
            native_enter()
            change = ack_state_add(&self.native, place, &resumed)
            native_leave()
        return self.finish(change, resumed, "entry", position)

    def acknowledge_all(self, positions) -> int:
        """Acknowledge many entries and return how many were not acknowledged before.

        ``positions`` is an array of 64-bit integers with the shape (n, 2), a ledger id and an entry
        id in each row, or a sequence of positions. Gives the GIL up once. InvalidPositionError for
        an entry behind the end of its ledger, and then nothing changed; AllocationError, and then
        those before are acknowledged.
        """
        cdef Block places = to_places(positions)
        cdef const NativePosition* at = <const NativePosition*>places.items
        cdef AckChange change
        cdef uint32_t resumed
        cdef int64_t added, done
        with nogil:
            native_enter()
            change = ack_state_add_all(&self.native, at, places.count, &done, &added, &resumed)
            native_leave()
        if done == places.count:
            self.finish(ACK_NEW, resumed, "entry", None)
        elif change == ACK_INVALID:
            self.finish(
                change, resumed, f"positions[{done}]: there is no entry {new_position(at[done])}", None)
        else:
            self.finish(change, resumed, "entry", None)
        return added

    def acknowledge_index(self, position, index, *, batch_size) -> bool:
        """Acknowledge one message of an entry that is a batch.

        The last one acknowledges the entry.
        """
        cdef NativePosition place = to_stored(position, "position")
        cdef int32_t size = to_count(batch_size, "batch_size", INT32_MAX)
        cdef int32_t which = to_count(index, "index", INT32_MAX)
        cdef AckChange change
        cdef uint32_t resumed
        with nogil:
            native_enter()
            change = ack_state_add_index(&self.native, place, size, which, &resumed)
            native_leave()
        if change == ACK_INVALID:
            return self.finish(change, resumed, f"message {which} of {size} in entry", position)
        return self.finish(change, resumed, "message", position)

    def mark_delete(self, position) -> bool:
        """Acknowledge everything up to an entry; False when that was acknowledged before."""
        cdef NativePosition place = to_position(position, "position")
        cdef AckChange change
        cdef uint32_t resumed
        with nogil:
            native_enter()
            change = ack_state_add_up_to(&self.native, place, &resumed)
            native_leave()
        return self.finish(change, resumed, "entry", position)

    def end_ledger(self, ledger_id, last_entry_id, following) -> bool:
        """Say that a ledger ends with an entry (-1: it has none) and the log goes on with entry 0
        of the ledger ``following``: ranges on both sides become one. InvalidPositionError when that
        cannot be, as something behind the end was acknowledged.
        """
        cdef NativePosition last = to_position((ledger_id, last_entry_id), "the end of a ledger")
        cdef int64_t next_ledger = to_id(following, "following")
        cdef AckChange change
        cdef uint32_t resumed
        with nogil:
            native_enter()
            change = ack_state_end_ledger(&self.native, last, next_ledger, &resumed)
            native_leave()
        if change == ACK_INVALID:
            return self.finish(
                change, resumed,
                f"ledger {ledger_id} cannot end with {last_entry_id} before ledger {following}", None)
        return self.finish(change, resumed, "", None)

    @property
    def mark_delete_position(self) -> Position:
        cdef NativePosition at
        with nogil:
            native_enter()
            at = ack_state_mark(&self.native)
            native_leave()
        return new_position(at)

    def __contains__(self, position) -> bool:
        """True if the whole entry is acknowledged."""
        cdef NativePosition place = to_position(position, "position")
        cdef bint found
        with nogil:
            native_enter()
            found = ack_state_contains(&self.native, place)
            native_leave()
        return found

    def contains_index(self, position, index) -> bool:
        """True if one message of a batch entry is acknowledged."""
        cdef NativePosition place = to_position(position, "position")
        cdef int32_t which = to_count(index, "index", INT32_MAX)
        cdef bint found
        with nogil:
            native_enter()
            found = ack_state_contains_index(&self.native, place, which)
            native_leave()
        return found

    def ranges(self) -> list:
        """The ranges behind the mark-delete position as pairs, first and last entry, ascending."""
        encoded = encode_acks(self, ACK_EVERYTHING)
        return [
            (Position(*stored[:1], stored[1] + 1), Position(*stored[2:]))
            for stored in STORED_RANGE.iter_unpack(encoded.data[:encoded.ranges * RANGE_BYTES])
        ]

    # Dispatch -------------------------------------------------------------------------------------

    def may_dispatch(self, *, bint replay=False, bint delayed=False) -> bool:
        """True if the dispatcher may read on. After False, ``on_resume`` is called once it may; the
        dispatcher then calls this again. ``delayed``: on behalf of messages that are due; they are
        held back alike, as in the proposal, and a dispatch of them takes no wake-up from a dispatch
        of others.

        With ``replay`` always: messages that were delivered before lie in the gaps between the
        ranges, and acknowledging them is what closes the gaps.
        """
        cdef DispatchKind kind = DISPATCH_DELAYED if delayed else DISPATCH_NORMAL
        cdef bint may
        if replay:
            kind = DISPATCH_REPLAY
        with nogil:
            native_enter()
            may = ack_state_may_dispatch(&self.native, kind)
            native_leave()
        return may

    def configure(
        self, *, max_bytes=FIVE_MIB, max_ranges=10000, max_batches=10000, max_ranges_in_metadata_store=1000,
        bint pause_dispatch=False
    ) -> None:
        """Other limits from now on; those that are not given are the usual ones."""
        cdef AckLimits limits = to_limits(max_bytes, max_ranges, max_batches, max_ranges_in_metadata_store)
        cdef uint32_t resumed
        with nogil:
            native_enter()
            ack_state_configure(&self.native, limits, pause_dispatch, &resumed)
            native_leave()
        self.finish(ACK_NEW, resumed, "entry", None)

    def set_metadata_bytes(self, metadata_bytes) -> None:
        """Set the bytes that subscription properties and sequence ids take; they are stored before
        the ranges.
        """
        cdef int64_t bytes_of_it = to_size(metadata_bytes, "metadata_bytes")
        cdef uint32_t resumed
        with nogil:
            native_enter()
            ack_state_set_metadata(&self.native, bytes_of_it, &resumed)
            native_leave()
        self.finish(ACK_NEW, resumed, "entry", None)

    @property
    def size(self) -> int:
        """Bytes of all metadata, had it all been stored:
        pulsar_cursor_metadata_size_in_memory_bytes.
        """
        return i64_load_relaxed(&self.native.size)

    # Storing --------------------------------------------------------------------------------------

    def encode(self, *, bint in_metadata_store=False) -> EncodedAcks:
        """Encode as much as the limits allow: the lowest ranges first, then the lowest batches."""
        return encode_acks(self, ACK_IN_STORE if in_metadata_store else ACK_IN_LEDGER)

    @classmethod
    def restore(cls, mark_delete_position, bytes data not None, ranges, batches, **limits) -> AckState:
        """The state that was encoded; other keywords as for the class. StorageError for damaged
        bytes.
        """
        cdef AckState state = cls(mark_delete_position, **limits)
        cdef int64_t n_ranges = to_size(ranges, "ranges")
        cdef int64_t n_batches = to_size(batches, "batches")
        cdef const unsigned char* at = data
        cdef int64_t length = len(data)
        cdef AckRestored restored
        with nogil:
            native_enter()
            restored = ack_state_restore(&state.native, at, length, n_ranges, n_batches)
            native_leave()
        if restored == ACK_DAMAGED:
            raise StorageError(
                f"{length} bytes are not {n_ranges} ascending ranges and {n_batches} batches behind "
                f"{mark_delete_position}")
        if restored != ACK_RESTORED:
            raise AllocationError("no native memory left for the acknowledgements")
        return state


cdef object encode_acks(AckState acks, AckScope scope):
    cdef AckPlan plan
    cdef unsigned char* data = NULL
    cdef Status status
    with nogil:
        native_enter()
        status = ack_state_encode(&acks.native, scope, &plan, &data)
        native_leave()
    check_status(status, plan.mark)
    try:
        copied = PyBytes_FromStringAndSize(<char*>data, plan.bytes) if plan.bytes else b""
    finally:
        release(data)
    return EncodedAcks(
        Position(plan.mark.ledger_id, plan.mark.entry_id), copied, plan.ranges, plan.batches,
        plan.ranges_left, plan.batches_left, plan.metadata_left, plan.size)
