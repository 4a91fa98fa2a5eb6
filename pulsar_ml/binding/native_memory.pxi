# The native memory that a manager, its caches and its entries share and keep alive.

# Not internal: an extension that cimports a class below imports this one too. Holds no Python
# object, so entries and buffers, which keep it, can be in no cycle.
@cython.final
@cython.no_gc
cdef class NativeMemory:
    """The native memory, eviction policy, books and thread of one manager; of use to extensions
    only.

    It lives as long as the manager, a cache or an entry of it.
    """

    def __cinit__(self, int64_t policy):
        cdef Status status
        cdef ManagerSettings settings = unchanged_settings()
        self.memory = <CacheMemory*>allocate_zeroed(1, sizeof(CacheMemory))
        self.policy = <EvictionPolicy*>allocate_zeroed(1, sizeof(EvictionPolicy))
        if self.memory is NULL or self.policy is NULL:
            raise AllocationError("no native memory for a cache manager")
        status = cache_memory_init(self.memory, CHUNK_BITS, MOST_OBJECTS)
        if status == PML_OK:
            status = eviction_init(
                self.policy, policy, self.memory, CHUNK_BITS, PolicySettings(0, False, 0))
        check_status(status, position(0, 0))
        self.manager = <CacheManager*>allocate_zeroed(1, sizeof(CacheManager))
        if self.manager is NULL or cache_manager_init(self.manager, self.policy, &settings) != PML_OK:
            release(self.manager)
            self.manager = NULL
            raise AllocationError("no native memory for a cache manager")

    def __dealloc__(self):
        with nogil:
            native_enter()
            if self.manager is not NULL:
                eviction_thread_stop(self.manager)
                cache_manager_destroy(self.manager)
            if self.policy is not NULL:
                eviction_destroy(self.policy)
            if self.memory is not NULL:
                cache_memory_destroy(self.memory)
            release(self.manager)
            release(self.policy)
            release(self.memory)
            native_leave()


cdef ManagerSettings unchanged_settings() noexcept:
    return ManagerSettings(-1, -1, -1, -1, -1, -1, -1)
