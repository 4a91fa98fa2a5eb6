# The values of map keys as numbers: 0 is no value, and each distinct text has another number.

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcmp, memcpy, memset
from pulsar_ml.harness.linearize.limits.arrays cimport array_free, array_grown, slots_emptied
from pulsar_ml.harness.linearize.search.pool cimport mixed


cdef enum:
    NOTHING_HELD = 0
    NO_ROOM = -1


cdef struct Text:
    int64_t offset
    int64_t length
    uint64_t hash


cdef struct Texts:
    char* bytes
    int64_t used, room
    Text* texts           # by number; the one of 0 is not used
    int64_t count, texts_room
    int32_t* slots        # numbers; 0: free
    uint64_t mask
    int64_t limit         # bytes


cdef inline void texts_free(Texts* t) noexcept nogil:
    array_free(t.bytes, t.room)
    array_free(t.texts, t.texts_room * <int64_t>sizeof(Text))
    array_free(t.slots, 4 * <int64_t>(t.mask + 1))
    memset(t, 0, sizeof(Texts))


cdef inline int64_t texts_bytes(const Texts* t) noexcept nogil:
    return t.room + t.texts_room * <int64_t>sizeof(Text) + 4 * <int64_t>(t.mask + 1)


# Continues the hash of the preceding bytes: the bytes are the digits of a number. Eight of them are
# multiplied side by side.
cdef inline uint64_t hashed(uint64_t hash, const char* bytes, int64_t length) noexcept nogil:
    cdef const unsigned char* at = <const unsigned char*>bytes
    cdef uint64_t one = 0x9E3779B97F4A7C15ULL
    cdef uint64_t two = one * one
    cdef uint64_t three = two * one
    cdef uint64_t four = two * two
    cdef uint64_t eight = four * four
    cdef int64_t i = 0
    while i + 8 <= length:
        hash = (hash * eight
                + ((at[i] * three + at[i + 1] * two) + (at[i + 2] * one + at[i + 3])) * four
                + ((at[i + 4] * three + at[i + 5] * two) + (at[i + 6] * one + at[i + 7])))
        i += 8
    while i < length:
        hash = hash * one + at[i]
        i += 1
    return hash


cdef inline bint texts_grow_slots(Texts* t) noexcept nogil:
    cdef int64_t before = <int64_t>t.mask + 1 if t.slots is not NULL else 0
    cdef uint64_t size = 2 * <uint64_t>before if before else 256
    cdef int32_t* slots = <int32_t*>slots_emptied(t.slots, 4 * before, 4 * <int64_t>size)
    cdef uint64_t at
    cdef int64_t i
    if slots is NULL:
        return before > 0 and 8 * t.count < 7 * before
    for i in range(1, t.count):
        at = mixed(t.texts[i].hash) & (size - 1)
        while slots[at]:
            at = (at + 1) & (size - 1)
        slots[at] = <int32_t>i
    t.slots = slots
    t.mask = size - 1
    return True


cdef inline bint texts_reserve(Texts* t, int64_t length) noexcept nogil:
    cdef void* grown
    if t.used + length > t.room:
        grown = array_grown(t.bytes, &t.room, t.used + length, 1)
        if grown is NULL:
            return False
        t.bytes = <char*>grown
    if t.count >= t.texts_room - 1:
        grown = array_grown(t.texts, &t.texts_room, t.count, sizeof(Text))
        if grown is NULL:
            return False
        t.texts = <Text*>grown
        if t.count == 0:
            t.count = 1
    if t.slots is NULL or 4 * t.count >= 3 * <int64_t>(t.mask + 1):
        return texts_grow_slots(t)
    return True


# The number of the text that consists of the text ``before`` (a number) and these bytes, or
# NO_ROOM.
cdef inline int32_t text_after(Texts* t, int32_t before, const char* more, int64_t length) noexcept nogil:
    cdef int64_t head, whole
    cdef uint64_t hash, at
    cdef const Text* other
    cdef const char* begin
    if before != NOTHING_HELD:
        head = t.texts[before].length
        hash = t.texts[before].hash
    else:
        head = 0
        hash = 0xCBF29CE484222325ULL
    whole = head + length
    if texts_bytes(t) + whole > t.limit or t.count >= 0x3FFFFFFF or not texts_reserve(t, whole):
        return NO_ROOM
    hash = hashed(hash, more, length)
    begin = t.bytes + t.texts[before].offset if head else NULL
    at = mixed(hash) & t.mask
    while t.slots[at]:
        other = &t.texts[t.slots[at]]
        if (other.hash == hash and other.length == whole
                and (head == 0 or memcmp(t.bytes + other.offset, begin, <size_t>head) == 0)
                and (length == 0 or memcmp(t.bytes + other.offset + head, more, <size_t>length) == 0)):
            return t.slots[at]
        at = (at + 1) & t.mask
    if head:
        memcpy(t.bytes + t.used, begin, <size_t>head)
    if length:
        memcpy(t.bytes + t.used + head, more, <size_t>length)
    t.texts[t.count].offset = t.used
    t.texts[t.count].length = whole
    t.texts[t.count].hash = hash
    t.used += whole
    t.slots[at] = <int32_t>t.count
    t.count += 1
    return <int32_t>(t.count - 1)


# True when one text is a prefix of the other.
cdef inline bint text_begins(const Texts* t, int32_t whole, int32_t part) noexcept nogil:
    cdef const Text* one = &t.texts[whole]
    cdef const Text* other = &t.texts[part]
    return (one.length >= other.length
            and (other.length == 0
                 or memcmp(t.bytes + one.offset, t.bytes + other.offset, <size_t>other.length) == 0))
