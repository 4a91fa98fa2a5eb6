# Sequences of numbers, each with a number of its own: the states of queues and stacks. The empty
# sequence is number 0.

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcmp, memcpy, memset
from pulsar_ml.harness.linearize.limits.arrays cimport array_free, array_grown, slots_emptied
from pulsar_ml.harness.linearize.search.pool cimport mixed


cdef enum:
    NO_SEQUENCE = -1      # no memory


cdef struct Sequence:
    int64_t offset        # in words; sequences share them
    int64_t length
    uint64_t hash


cdef struct Sequences:
    int32_t* words
    int64_t used, room
    Sequence* all         # by number
    int64_t count, count_room
    int32_t* slots        # numbers + 1; 0: free
    uint64_t mask
    int64_t limit         # bytes


cdef inline void sequences_free(Sequences* s) noexcept nogil:
    array_free(s.words, s.room * <int64_t>sizeof(int32_t))
    array_free(s.all, s.count_room * <int64_t>sizeof(Sequence))
    array_free(s.slots, 4 * <int64_t>(s.mask + 1))
    memset(s, 0, sizeof(Sequences))


cdef inline int64_t sequences_bytes(const Sequences* s) noexcept nogil:
    return (4 * s.room + s.count_room * <int64_t>sizeof(Sequence)
            + (4 * <int64_t>(s.mask + 1) if s.slots is not NULL else 0))


cdef inline bint sequences_slots(Sequences* s) noexcept nogil:
    cdef int64_t before = <int64_t>s.mask + 1 if s.slots is not NULL else 0
    cdef uint64_t size = 2 * <uint64_t>before if before else 256
    cdef int32_t* slots = <int32_t*>slots_emptied(s.slots, 4 * before, 4 * <int64_t>size)
    cdef uint64_t at
    cdef int64_t i
    if slots is NULL:
        return before > 0 and 8 * s.count < 7 * before
    for i in range(s.count):
        at = s.all[i].hash & (size - 1)
        while slots[at]:
            at = (at + 1) & (size - 1)
        slots[at] = <int32_t>i + 1
    s.slots = slots
    s.mask = size - 1
    return True


# Makes room for one more sequence of this length.
cdef inline bint sequences_reserve(Sequences* s, int64_t length) noexcept nogil:
    cdef void* grown
    if s.used + length > s.room:
        grown = array_grown(s.words, &s.room, s.used + length, sizeof(int32_t))
        if grown is NULL:
            return False
        s.words = <int32_t*>grown
    if s.count == s.count_room:
        grown = array_grown(s.all, &s.count_room, s.count, sizeof(Sequence))
        if grown is NULL:
            return False
        s.all = <Sequence*>grown
    if s.slots is NULL or 4 * s.count >= 3 * <int64_t>(s.mask + 1):
        return sequences_slots(s)
    return True


# The number of the sequence of these words, or NO_SEQUENCE. The words are at the beginning of the
# free room (see sequences_scratch), or inside another sequence, whose words it then shares.
cdef inline int32_t sequence_at(Sequences* s, int64_t offset, int64_t length) noexcept nogil:
    cdef uint64_t hash = <uint64_t>length
    cdef uint64_t at
    cdef int64_t i
    cdef const int32_t* words = s.words + offset
    cdef const Sequence* other
    for i in range(length):
        hash = (hash ^ <uint64_t>words[i]) * 0x9E3779B97F4A7C15ULL
        hash ^= hash >> 29
    hash = mixed(hash)
    at = hash & s.mask
    while s.slots[at]:
        other = &s.all[s.slots[at] - 1]
        if (other.hash == hash and other.length == length
                and (length == 0 or other.offset == offset
                     or memcmp(s.words + other.offset, words, <size_t>length * sizeof(int32_t)) == 0)):
            return s.slots[at] - 1
        at = (at + 1) & s.mask
    if s.count >= 0x3FFFFFFE or sequences_bytes(s) > s.limit:
        return NO_SEQUENCE
    s.all[s.count].offset = offset
    s.all[s.count].length = length
    s.all[s.count].hash = hash
    if offset == s.used:
        s.used += length
    s.slots[at] = <int32_t>s.count + 1
    s.count += 1
    return <int32_t>(s.count - 1)


# The sequence ``before`` with the word ``more`` inserted at ``place``.
cdef inline int32_t sequence_with(Sequences* s, int32_t before, int64_t place, int32_t more) noexcept nogil:
    cdef int64_t length = s.all[before].length
    cdef int64_t offset = s.all[before].offset
    if not sequences_reserve(s, length + 1):
        return NO_SEQUENCE
    memcpy(s.words + s.used, s.words + offset, <size_t>place * sizeof(int32_t))
    s.words[s.used + place] = more
    memcpy(s.words + s.used + place + 1, s.words + offset + place, <size_t>(length - place) * sizeof(int32_t))
    return sequence_at(s, s.used, length + 1)


# The sequence ``before`` without its first or last word.
cdef inline int32_t sequence_without(Sequences* s, int32_t before, bint last) noexcept nogil:
    cdef const Sequence* old = &s.all[before]
    cdef int64_t offset = old.offset + (0 if last else 1)
    cdef int64_t length = old.length - 1
    if not sequences_reserve(s, 0):
        return NO_SEQUENCE
    return sequence_at(s, offset, length)


# Forgets all sequences but the empty one; False without memory.
cdef inline bint sequences_start(Sequences* s, int64_t limit) noexcept nogil:
    s.limit = limit
    if not sequences_reserve(s, 1):
        return False
    s.used = s.count = 0
    memset(s.slots, 0, (s.mask + 1) * sizeof(int32_t))
    return sequence_at(s, 0, 0) == 0
