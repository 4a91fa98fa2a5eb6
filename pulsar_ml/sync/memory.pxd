# Allocation. NULL means that the allocation failed; nothing here raises.

cdef extern from "pulsar_ml/sync/sync.h" nogil:
    void* allocate "pml_alloc"(size_t size) noexcept
    void* allocate_zeroed "pml_alloc_zeroed"(size_t count, size_t size) noexcept
    void release "pml_free"(void* memory) noexcept
    void prefetch "pml_prefetch"(const void* memory) noexcept
