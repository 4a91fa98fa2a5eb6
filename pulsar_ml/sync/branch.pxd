# Which way a branch mostly goes: the compiler puts that way in line and does not inline the other.


cdef extern from "pulsar_ml/sync/sync.h" nogil:
    bint likely "pml_likely"(bint condition) noexcept
    bint unlikely "pml_unlikely"(bint condition) noexcept
