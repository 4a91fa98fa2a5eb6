# Arrays of the searches that grow: they ask for memory before they take it.
#
# An array of a mebibyte or more is mapped. Its pages move when it grows, so nothing is there twice,
# and a page counts once it is used.

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset
from pulsar_ml.harness.linearize.limits._memory cimport fits

cdef extern from "<sys/mman.h>" nogil:
    int MAP_ANONYMOUS, MAP_PRIVATE, MREMAP_MAYMOVE, PROT_READ, PROT_WRITE
    void* MAP_FAILED
    void* mmap(void* at, size_t bytes, int protection, int flags, int file, int64_t offset)
    void* mremap(void* array, size_t before, size_t bytes, int flags)
    int munmap(void* array, size_t bytes)

cdef extern from *:
    """
    #include <stdint.h>
    #include <sys/mman.h>

    /* Takes the pages of the bytes from ``before`` on at once, which costs less than one after the
       other; where the system cannot do that, they come one after the other. */
    static inline void pml_take_pages(char *array, int64_t before, int64_t bytes)
    {
    #ifdef MADV_POPULATE_WRITE
        int64_t begin = before & ~(int64_t)4095;
        madvise(array + begin, (size_t)(bytes - begin), MADV_POPULATE_WRITE);
    #endif
    }
    """
    void pml_take_pages(char* array, int64_t before, int64_t bytes) nogil


cdef enum:
    PIECE = 1 << 20       # bytes that are worth a look at the memory of the process
    GROWTH = 16           # a mapped array grows by so many parts of itself


cdef inline void array_free(void* array, int64_t bytes) noexcept nogil:
    if array is NULL:
        return
    if bytes >= PIECE:
        munmap(array, <size_t>bytes)
    else:
        free(array)


# The array with ``bytes`` in place of the fewer ``before``; NULL without memory, when the old one
# stays.
cdef inline void* array_resized(void* array, int64_t before, int64_t bytes) noexcept nogil:
    cdef void* grown
    if bytes < PIECE:
        return realloc(array, <size_t>bytes)
    if not fits(bytes - before):
        return NULL
    if before >= PIECE:
        grown = mremap(array, <size_t>before, <size_t>bytes, MREMAP_MAYMOVE)
    else:
        grown = mmap(NULL, <size_t>bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if grown == MAP_FAILED:
        return NULL
    pml_take_pages(<char*>grown, before if before >= PIECE else 0, bytes)
    if before < PIECE and array is not NULL:
        memcpy(grown, array, <size_t>before)
        free(array)
    return grown


# The items, ``least`` and more, for which an array gets room at once.
cdef inline int64_t room_for(int64_t least, size_t size) noexcept nogil:
    if (2 * least + 64) * <int64_t>size < PIECE:
        return 2 * least + 64
    return least + max(PIECE // <int64_t>size, least // GROWTH) + 1


# The array with room for ``least`` items and more; NULL without memory, when the old one stays.
cdef inline void* array_grown(void* array, int64_t* room, int64_t least, size_t size) noexcept nogil:
    cdef int64_t more = room_for(least, size)
    cdef void* grown = array_resized(array, room[0] * <int64_t>size, more * <int64_t>size)
    if grown is not NULL:
        room[0] = more
    return grown


# The slots of a hash table, ``before`` bytes, as ``bytes`` of zeros; NULL without memory, when the
# old ones stay.
cdef inline void* slots_emptied(void* slots, int64_t before, int64_t bytes) noexcept nogil:
    cdef void* grown = array_resized(slots, before, bytes)
    if grown is not NULL:
        memset(grown, 0, <size_t>bytes)
    return grown
