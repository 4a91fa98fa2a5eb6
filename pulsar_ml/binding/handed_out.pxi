# Classes whose objects only this module makes: Python code gets them from a method, and a TypeError
# that names it instead of an object.
#
# The slot tp_new is replaced when the module is imported, and its short cut tp_vectorcall cleared.
# Code of this module reaches the former function by ``Class.__new__(Class)``, which Cython compiles
# to a direct call.

from cpython.object cimport PyTypeObject

cdef extern from "Python.h":
    ctypedef PyObject* (*NewFunction)(PyTypeObject*, PyObject*, PyObject*) noexcept
    ctypedef struct NewSlot "PyTypeObject":
        NewFunction tp_new
        void* tp_vectorcall

cdef dict SOURCES = {
    Entry: "entries come from EntryCacheManager.entry, RangeCache.get and the like",
    RangeCache: "a range cache comes from EntryCacheManager.range_cache(name)",
    RangeIterator: "a range iterator comes from RangeCache.iterate(first, last)",
    CachedIterator: "an iterator of descriptions comes from RangeCache.iterate_cached(first, last)",
    ReceiveBuffer: "a receive buffer comes from EntryCacheManager.receive_buffer(capacity)",
    BufferSlice: "a slice comes from ReceiveBuffer.slice(offset, length)",
    Permits: "permits come from InflightReadsLimiter.acquire",
    InMemoryTopicDelayedDeliveryTrackerView:
        "a view comes from InMemoryDelayedDeliveryTrackerFactory.new_tracker(topic)",
    IdleTopic: "an idle topic comes with the factory of delayed-delivery trackers",
    NativeMemory: "native memory comes with an EntryCacheManager",
    MemoryShare: "a share of native memory comes with an Entry",
    MemoryShares: "shares of native memory come with an EntryCacheManager",
    Callback: "callbacks come from the calls that take one",
    WaitingPermits: "a waiting request comes from InflightReadsLimiter.acquire",
    PendingRequester: "a pending request comes from PendingReadsManager.read",
    NativeCursorMemory: "the memory of cursor containers is one for all",
    GatedLock: "locks of the core come with the objects that have one",
    TriggerRun: "a trigger's run comes from a fire of its view",
}


cdef PyObject* refuse_new(PyTypeObject* kind, PyObject* args, PyObject* kwargs) noexcept:
    try:
        raise TypeError(SOURCES[<object>kind])
    except TypeError as error:
        PyErr_SetObject(type(error), error)
    return NULL


for _kind in SOURCES:
    (<NewSlot*><PyObject*>_kind).tp_new = refuse_new
    (<NewSlot*><PyObject*>_kind).tp_vectorcall = NULL
del _kind
