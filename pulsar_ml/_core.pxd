# The classes of the Python face, for extensions that cimport them.

from libc.stdint cimport int64_t, uint32_t

from pulsar_ml.structures.position cimport Position as NativePosition
from pulsar_ml.structures.range_cache cimport CacheMemory, RangeCache as NativeCache
from pulsar_ml.structures.removal_queue cimport RemovalPass, RemovalQueue


cdef class NativeMemory:
    cdef CacheMemory* memory
    cdef RemovalQueue* queue


cdef class Entry:
    cdef NativeMemory owner
    cdef uint32_t handle            # 0 once the reference was given back
    cdef Py_ssize_t exports         # views that are open
    cdef bint released
    cdef int give_back(self) except -1


cdef class RangeCache:
    cdef NativeMemory owner
    cdef readonly str name
    cdef NativeCache* native
    cdef bint is_closed
    cdef int check_open(self) except -1
    cdef uint32_t cache_copy(self, NativePosition key, object value, object expected_reads) except 0
    cdef object remove(self, NativePosition first, NativePosition last)


cdef class EntryCacheManager:
    cdef NativeMemory owner
    cdef dict caches
    cdef bint is_closed
    cdef int check_open(self) except -1
    cdef object run(self, RemovalPass* run)
