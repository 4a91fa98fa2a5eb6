# The memory of this process, and the limit at which searches give up.

cdef bint is_full() noexcept nogil
