# The classes of the Python binding, for extensions that cimport them.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t

from pulsar_ml.structures.cache_manager cimport CacheManager
from pulsar_ml.structures.entry cimport Payload
from pulsar_ml.structures.eviction_policy cimport EvictionPolicy
from pulsar_ml.structures.policy_pass cimport EvictionPass
from pulsar_ml.structures.position cimport Position as NativePosition
from pulsar_ml.structures.range_cache cimport CacheMemory, RangeCache as NativeCache
from pulsar_ml.structures.receive_buffer cimport ReceiveBuffer as NativeBuffer
from pulsar_ml.structures.receive_size cimport ReceiveSize
from pulsar_ml.sync.atomics cimport pml_ptr, pml_u32


cdef class NativeMemory:
    cdef CacheMemory* memory
    cdef EvictionPolicy* policy
    cdef CacheManager* manager
    cdef bint copy_entries          # whether cached entries have bytes of their own
    cdef object __weakref__


cdef class MemoryShare:
    cdef NativeMemory owner
    cdef CacheMemory* memory        # the owner's


ctypedef struct NativeShares:
    PyObject* owner
    pml_ptr[16] shares              # of each stripe (gate.pxi) a MemoryShare, or NULL


cdef class MemoryShares:
    cdef NativeMemory owner
    cdef NativeShares native


cdef class ReceiveBuffer:
    cdef NativeMemory owner
    cdef NativeBuffer* native       # NULL once it was released
    cdef int check_usable(self) except -1
    cdef bint give_up(self) noexcept


cdef class BufferSlice:
    cdef NativeMemory owner
    cdef Payload* payload


cdef class ReceiveBufferSize:
    cdef ReceiveSize native


cdef class Entry:
    cdef MemoryShare share
    cdef uint32_t handle            # 0 once the reference was given back
    cdef pml_u32 uses               # views and calls under way, and marks; see entry.pxi


cdef class RangeCache:
    cdef NativeMemory owner
    cdef MemoryShares shares
    cdef object clock               # as in its manager
    cdef readonly str name
    cdef NativeCache* native
    cdef pml_u32 closed_mark        # 1 once close() was called
    cdef pml_u32 putting            # native puts that are under way
    cdef bint is_closed(self) noexcept
    cdef int check_open(self) except -1
    cdef uint32_t cache_copy(self, NativePosition key, object value, object expected_reads) except 0
    cdef object remove(self, NativePosition first, NativePosition last)


cdef class EntryCacheManager:
    cdef NativeMemory owner
    cdef MemoryShares shares
    cdef object clock               # None: the monotonic clock; else called for nanoseconds
    cdef dict caches
    cdef object naming              # held while a cache comes or goes
    cdef readonly str policy
    cdef pml_u32 closed_mark        # 1 once close() was called
    cdef bint is_closed(self) noexcept
    cdef int check_open(self) except -1
    cdef object run(self, EvictionPass* run)
