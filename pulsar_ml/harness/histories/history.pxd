# The layout of history.RECORD for native code.

from libc.stdint cimport int32_t, int64_t


cdef struct Record:
    int32_t thread
    int32_t operation
    int64_t[3] arguments
    int64_t[5] result
    int64_t invoked
    int64_t returned
    int32_t ending        # 0: it returned
    int32_t moment       # at which it took effect, perhaps; 0: not known. Searches try it first
