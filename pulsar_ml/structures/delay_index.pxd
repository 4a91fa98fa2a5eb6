# The buckets of delayed_tracker and delayed_manager by their time, ascending.
#
# Origin       ConcurrentSkipListMap in Pulsar's delayed trackers. Here a sorted list of pages of
#              sorted keys: a lookup is two binary searches, and an insertion moves a page and at
#              most the list of pages.
# Threads      Under a lock, shared for what changes nothing.
# Invariants   DX-1 keys ascend strictly, over all pages; no page is empty.
# Ordering     That of the lock around it.
# Reclamation  A page goes with its last key.
# Not promised Speed beyond some millions of buckets.

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy, memmove

from pulsar_ml.sync.memory cimport allocate, release


cdef enum:
    INDEX_KEYS = 64         # of a page


cdef struct IndexPage:
    int32_t used
    uint32_t[64] handles
    int64_t[64] keys


# All zero: empty.
cdef struct DelayIndex:
    IndexPage** pages
    int32_t used, room
    int64_t count           # keys


# Where a key stands, or would.
cdef struct IndexPlace:
    int32_t page, slot
    bint found


# The first key that is not below that; its page is `used` when there is none.
cdef inline IndexPlace index_search(const DelayIndex* index, int64_t key) noexcept nogil:
    cdef IndexPlace place
    cdef IndexPage* page
    cdef int32_t low = 0
    cdef int32_t high = index.used
    cdef int32_t middle
    # The first page whose last key is not below.
    while low < high:
        middle = (low + high) >> 1
        page = index.pages[middle]
        if page.keys[page.used - 1] < key:
            low = middle + 1
        else:
            high = middle
    place = IndexPlace(low, 0, False)
    if low == index.used:
        return place
    page = index.pages[low]
    low = 0
    high = page.used
    while low < high:
        middle = (low + high) >> 1
        if page.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    place.slot = low
    place.found = page.keys[low] == key
    return place


# The handle of the first key that is not below that one, which it replaces; 0 when there is none.
cdef inline uint32_t index_first(const DelayIndex* index, int64_t* key) noexcept nogil:
    cdef IndexPlace place = index_search(index, key[0])
    if place.page == index.used:
        return 0
    key[0] = index.pages[place.page].keys[place.slot]
    return index.pages[place.page].handles[place.slot]


cdef inline uint32_t index_find(const DelayIndex* index, int64_t key) noexcept nogil:
    cdef IndexPlace place = index_search(index, key)
    return index.pages[place.page].handles[place.slot] if place.found else 0


# An empty page at a place of the list; False without memory.
cdef inline bint index_add_page(DelayIndex* index, int32_t at) noexcept nogil:
    cdef IndexPage* page = <IndexPage*>allocate(sizeof(IndexPage))
    cdef IndexPage** pages
    cdef int32_t room
    if page is NULL:
        return False
    if index.used == index.room:
        room = 2 * index.room if index.room else 1
        pages = <IndexPage**>allocate(<size_t>room * sizeof(IndexPage*))
        if pages is NULL:
            release(page)
            return False
        if index.used:
            memcpy(pages, index.pages, <size_t>index.used * sizeof(IndexPage*))
        release(index.pages)
        index.pages = pages
        index.room = room
    if at < index.used:
        memmove(&index.pages[at + 1], &index.pages[at], <size_t>(index.used - at) * sizeof(IndexPage*))
    page.used = 0
    index.pages[at] = page
    index.used += 1
    return True


cdef inline void index_move(
    IndexPage* to, int32_t at, const IndexPage* source, int32_t first, int32_t count
) noexcept nogil:
    memmove(&to.keys[at], &source.keys[first], <size_t>count * sizeof(int64_t))
    memmove(&to.handles[at], &source.handles[first], <size_t>count * sizeof(uint32_t))


# Adds a key that is not there; False without memory, and then nothing changed.
cdef inline bint index_insert(DelayIndex* index, int64_t key, uint32_t handle) noexcept nogil:
    cdef IndexPlace place = index_search(index, key)
    cdef IndexPage* page
    cdef int32_t half = INDEX_KEYS // 2
    if place.page == index.used:
        # Above all others: into the last page, or a new one, so that ascending keys fill their
        # pages.
        if not index.used or index.pages[index.used - 1].used == INDEX_KEYS:
            if not index_add_page(index, index.used):
                return False
        place.page = index.used - 1
        place.slot = index.pages[place.page].used
    elif index.pages[place.page].used == INDEX_KEYS:
        if not index_add_page(index, place.page + 1):
            return False
        page = index.pages[place.page]
        index_move(index.pages[place.page + 1], 0, page, half, INDEX_KEYS - half)
        index.pages[place.page + 1].used = INDEX_KEYS - half
        page.used = half
        if place.slot > half:
            place.page += 1
            place.slot -= half
    page = index.pages[place.page]
    index_move(page, place.slot + 1, page, place.slot, page.used - place.slot)
    page.keys[place.slot] = key
    page.handles[place.slot] = handle
    page.used += 1
    index.count += 1
    return True


# Takes out a key that is there.
cdef inline void index_remove(DelayIndex* index, int64_t key) noexcept nogil:
    cdef IndexPlace place = index_search(index, key)
    cdef IndexPage* page
    if not place.found:
        return
    page = index.pages[place.page]
    page.used -= 1
    index.count -= 1
    index_move(page, place.slot, page, place.slot + 1, page.used - place.slot)
    if page.used:
        return
    release(page)
    index.used -= 1
    memmove(&index.pages[place.page], &index.pages[place.page + 1],
            <size_t>(index.used - place.page) * sizeof(IndexPage*))
    if not index.used:
        release(index.pages)
        index.pages = NULL
        index.room = 0
