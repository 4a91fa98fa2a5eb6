# The memory of this process, and the limit at which searches give up.

from libc.stdint cimport int64_t

cdef bint is_full() noexcept nogil
cdef bint fits(int64_t more) noexcept nogil
