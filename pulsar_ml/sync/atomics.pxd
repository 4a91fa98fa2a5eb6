# The atomic cells of sync.h, as opaque types: `cell += 1` does not compile, and every operation
# names its memory order. There is no default order.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "pulsar_ml/sync/sync.h" nogil:
    ctypedef struct pml_u8:
        pass
    ctypedef struct pml_i32:
        pass
    ctypedef struct pml_u32:
        pass
    ctypedef struct pml_i64:
        pass
    ctypedef struct pml_u64:
        pass
    ctypedef struct pml_ptr:
        pass

    uint8_t u8_load_relaxed "pml_u8_load_relaxed"(const pml_u8* cell) noexcept
    uint8_t u8_load_acquire "pml_u8_load_acquire"(const pml_u8* cell) noexcept
    void u8_store_relaxed "pml_u8_store_relaxed"(pml_u8* cell, uint8_t value) noexcept
    void u8_store_release "pml_u8_store_release"(pml_u8* cell, uint8_t value) noexcept
    bint u8_cas_strong_release "pml_u8_cas_strong_release"(
        pml_u8* cell, uint8_t* seen, uint8_t value
    ) noexcept
    bint u8_cas_strong_acq_rel "pml_u8_cas_strong_acq_rel"(
        pml_u8* cell, uint8_t* seen, uint8_t value
    ) noexcept

    int32_t i32_load_relaxed "pml_i32_load_relaxed"(const pml_i32* cell) noexcept
    int32_t i32_load_acquire "pml_i32_load_acquire"(const pml_i32* cell) noexcept
    void i32_store_relaxed "pml_i32_store_relaxed"(pml_i32* cell, int32_t value) noexcept
    void i32_store_release "pml_i32_store_release"(pml_i32* cell, int32_t value) noexcept
    bint i32_cas_strong_release "pml_i32_cas_strong_release"(
        pml_i32* cell, int32_t* seen, int32_t value
    ) noexcept
    bint i32_cas_strong_acq_rel "pml_i32_cas_strong_acq_rel"(
        pml_i32* cell, int32_t* seen, int32_t value
    ) noexcept
    bint i32_cas_weak_relaxed "pml_i32_cas_weak_relaxed"(pml_i32* cell, int32_t* seen, int32_t value) noexcept
    bint i32_cas_weak_acquire "pml_i32_cas_weak_acquire"(pml_i32* cell, int32_t* seen, int32_t value) noexcept
    bint i32_cas_weak_release "pml_i32_cas_weak_release"(pml_i32* cell, int32_t* seen, int32_t value) noexcept
    bint i32_cas_weak_acq_rel "pml_i32_cas_weak_acq_rel"(pml_i32* cell, int32_t* seen, int32_t value) noexcept
    int32_t i32_exchange_acquire "pml_i32_exchange_acquire"(pml_i32* cell, int32_t value) noexcept
    int32_t i32_exchange_release "pml_i32_exchange_release"(pml_i32* cell, int32_t value) noexcept
    int32_t i32_fetch_add_relaxed "pml_i32_fetch_add_relaxed"(pml_i32* cell, int32_t value) noexcept
    int32_t i32_fetch_add_release "pml_i32_fetch_add_release"(pml_i32* cell, int32_t value) noexcept
    int32_t i32_fetch_sub_relaxed "pml_i32_fetch_sub_relaxed"(pml_i32* cell, int32_t value) noexcept
    int32_t i32_fetch_sub_release "pml_i32_fetch_sub_release"(pml_i32* cell, int32_t value) noexcept

    uint32_t u32_load_relaxed "pml_u32_load_relaxed"(const pml_u32* cell) noexcept
    uint32_t u32_load_acquire "pml_u32_load_acquire"(const pml_u32* cell) noexcept
    void u32_store_relaxed "pml_u32_store_relaxed"(pml_u32* cell, uint32_t value) noexcept
    void u32_store_release "pml_u32_store_release"(pml_u32* cell, uint32_t value) noexcept
    bint u32_cas_strong_release "pml_u32_cas_strong_release"(
        pml_u32* cell, uint32_t* seen, uint32_t value
    ) noexcept
    bint u32_cas_strong_acq_rel "pml_u32_cas_strong_acq_rel"(
        pml_u32* cell, uint32_t* seen, uint32_t value
    ) noexcept
    bint u32_cas_weak_relaxed "pml_u32_cas_weak_relaxed"(
        pml_u32* cell, uint32_t* seen, uint32_t value
    ) noexcept
    bint u32_cas_weak_acquire "pml_u32_cas_weak_acquire"(
        pml_u32* cell, uint32_t* seen, uint32_t value
    ) noexcept
    bint u32_cas_weak_release "pml_u32_cas_weak_release"(
        pml_u32* cell, uint32_t* seen, uint32_t value
    ) noexcept
    bint u32_cas_weak_acq_rel "pml_u32_cas_weak_acq_rel"(
        pml_u32* cell, uint32_t* seen, uint32_t value
    ) noexcept
    uint32_t u32_exchange_acquire "pml_u32_exchange_acquire"(pml_u32* cell, uint32_t value) noexcept
    uint32_t u32_exchange_release "pml_u32_exchange_release"(pml_u32* cell, uint32_t value) noexcept
    uint32_t u32_exchange_acq_rel "pml_u32_exchange_acq_rel"(pml_u32* cell, uint32_t value) noexcept
    uint32_t u32_fetch_add_relaxed "pml_u32_fetch_add_relaxed"(pml_u32* cell, uint32_t value) noexcept
    uint32_t u32_fetch_add_release "pml_u32_fetch_add_release"(pml_u32* cell, uint32_t value) noexcept
    uint32_t u32_fetch_sub_relaxed "pml_u32_fetch_sub_relaxed"(pml_u32* cell, uint32_t value) noexcept
    uint32_t u32_fetch_sub_release "pml_u32_fetch_sub_release"(pml_u32* cell, uint32_t value) noexcept

    int64_t i64_load_relaxed "pml_i64_load_relaxed"(const pml_i64* cell) noexcept
    int64_t i64_load_acquire "pml_i64_load_acquire"(const pml_i64* cell) noexcept
    void i64_store_relaxed "pml_i64_store_relaxed"(pml_i64* cell, int64_t value) noexcept
    void i64_store_release "pml_i64_store_release"(pml_i64* cell, int64_t value) noexcept
    bint i64_cas_strong_release "pml_i64_cas_strong_release"(
        pml_i64* cell, int64_t* seen, int64_t value
    ) noexcept
    bint i64_cas_strong_acq_rel "pml_i64_cas_strong_acq_rel"(
        pml_i64* cell, int64_t* seen, int64_t value
    ) noexcept
    bint i64_cas_weak_relaxed "pml_i64_cas_weak_relaxed"(pml_i64* cell, int64_t* seen, int64_t value) noexcept
    bint i64_cas_weak_acquire "pml_i64_cas_weak_acquire"(pml_i64* cell, int64_t* seen, int64_t value) noexcept
    bint i64_cas_weak_release "pml_i64_cas_weak_release"(pml_i64* cell, int64_t* seen, int64_t value) noexcept
    bint i64_cas_weak_acq_rel "pml_i64_cas_weak_acq_rel"(pml_i64* cell, int64_t* seen, int64_t value) noexcept
    int64_t i64_exchange_acquire "pml_i64_exchange_acquire"(pml_i64* cell, int64_t value) noexcept
    int64_t i64_exchange_release "pml_i64_exchange_release"(pml_i64* cell, int64_t value) noexcept
    int64_t i64_fetch_add_relaxed "pml_i64_fetch_add_relaxed"(pml_i64* cell, int64_t value) noexcept
    int64_t i64_fetch_add_release "pml_i64_fetch_add_release"(pml_i64* cell, int64_t value) noexcept
    int64_t i64_fetch_add_acq_rel "pml_i64_fetch_add_acq_rel"(pml_i64* cell, int64_t value) noexcept
    int64_t i64_fetch_sub_relaxed "pml_i64_fetch_sub_relaxed"(pml_i64* cell, int64_t value) noexcept
    int64_t i64_fetch_sub_release "pml_i64_fetch_sub_release"(pml_i64* cell, int64_t value) noexcept

    uint64_t u64_load_relaxed "pml_u64_load_relaxed"(const pml_u64* cell) noexcept
    uint64_t u64_load_acquire "pml_u64_load_acquire"(const pml_u64* cell) noexcept
    void u64_store_relaxed "pml_u64_store_relaxed"(pml_u64* cell, uint64_t value) noexcept
    void u64_store_release "pml_u64_store_release"(pml_u64* cell, uint64_t value) noexcept
    bint u64_cas_strong_release "pml_u64_cas_strong_release"(
        pml_u64* cell, uint64_t* seen, uint64_t value
    ) noexcept
    bint u64_cas_strong_acq_rel "pml_u64_cas_strong_acq_rel"(
        pml_u64* cell, uint64_t* seen, uint64_t value
    ) noexcept
    bint u64_cas_weak_relaxed "pml_u64_cas_weak_relaxed"(
        pml_u64* cell, uint64_t* seen, uint64_t value
    ) noexcept
    bint u64_cas_weak_acquire "pml_u64_cas_weak_acquire"(
        pml_u64* cell, uint64_t* seen, uint64_t value
    ) noexcept
    bint u64_cas_weak_release "pml_u64_cas_weak_release"(
        pml_u64* cell, uint64_t* seen, uint64_t value
    ) noexcept
    bint u64_cas_weak_acq_rel "pml_u64_cas_weak_acq_rel"(
        pml_u64* cell, uint64_t* seen, uint64_t value
    ) noexcept
    uint64_t u64_exchange_acquire "pml_u64_exchange_acquire"(pml_u64* cell, uint64_t value) noexcept
    uint64_t u64_exchange_release "pml_u64_exchange_release"(pml_u64* cell, uint64_t value) noexcept
    uint64_t u64_fetch_add_relaxed "pml_u64_fetch_add_relaxed"(pml_u64* cell, uint64_t value) noexcept
    uint64_t u64_fetch_add_release "pml_u64_fetch_add_release"(pml_u64* cell, uint64_t value) noexcept
    uint64_t u64_fetch_sub_relaxed "pml_u64_fetch_sub_relaxed"(pml_u64* cell, uint64_t value) noexcept
    uint64_t u64_fetch_sub_release "pml_u64_fetch_sub_release"(pml_u64* cell, uint64_t value) noexcept

    void* ptr_load_relaxed "pml_ptr_load_relaxed"(const pml_ptr* cell) noexcept
    void* ptr_load_acquire "pml_ptr_load_acquire"(const pml_ptr* cell) noexcept
    void ptr_store_relaxed "pml_ptr_store_relaxed"(pml_ptr* cell, void* value) noexcept
    void ptr_store_release "pml_ptr_store_release"(pml_ptr* cell, void* value) noexcept
    bint ptr_cas_strong_release "pml_ptr_cas_strong_release"(pml_ptr* cell, void** seen, void* value) noexcept
    bint ptr_cas_strong_acq_rel "pml_ptr_cas_strong_acq_rel"(pml_ptr* cell, void** seen, void* value) noexcept

    void fence_acquire "pml_fence_acquire"() noexcept
    void fence_release "pml_fence_release"() noexcept
    void fence_seq_cst "pml_fence_seq_cst"() noexcept
