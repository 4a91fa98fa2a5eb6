# distutils: language = c++
# cython: language_level=3, boundscheck=False, cdivision=True
"""A set of integers without locks: open addressing, keys are claimed by compare-and-exchange."""

from libcpp cimport bool
from libcpp.atomic cimport atomic

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    int pthread_create(pthread_t*, void*, void* (*)(void*) noexcept nogil, void*)
    int pthread_join(pthread_t, void**)

cdef enum:
    CAPACITY = 8
    EMPTY = 0


cdef cppclass HashSet:
    atomic[long] keys[CAPACITY]
    atomic[int] size

    HashSet():
        for i in range(CAPACITY):
            this.keys[i].store(EMPTY)
        this.size.store(0)

    bool add(long key) nogil:
        cdef long slot = key * 31 % CAPACITY
        cdef long seen
        while True:
            seen = EMPTY
            if this.keys[slot].compare_exchange_strong(seen, key):
                this.size.fetch_add(1)
                return True
            if seen == key:
                return False
            slot = (slot + 1) % CAPACITY

    bool add_buggy(long key) nogil:
        # The slot may be taken between the look and the store.
        cdef long slot = key * 31 % CAPACITY
        cdef long seen
        while True:
            seen = this.keys[slot].load()
            if seen == EMPTY:
                this.keys[slot].store(key)
                this.size.fetch_add(1)
                return True
            if seen == key:
                return False
            slot = (slot + 1) % CAPACITY

    bool contains(long key) nogil:
        cdef long slot = key * 31 % CAPACITY
        cdef long seen
        while True:
            seen = this.keys[slot].load()
            if seen == key:
                return True
            if seen == EMPTY:
                return False
            slot = (slot + 1) % CAPACITY


cdef struct Work:
    HashSet* numbers
    bool careful
    long first
    int added


cdef void* add_two(void* argument) noexcept nogil:
    cdef Work* work = <Work*>argument
    cdef long key
    for key in range(work.first, work.first + 2):
        if work.careful:
            work.added += work.numbers.add(key)
        else:
            work.added += work.numbers.add_buggy(key)
    return NULL


cdef int fill(bool careful) except -1:
    """Two threads add 1, 2 and 2, 3."""
    cdef HashSet* numbers = new HashSet()
    cdef Work work[2]
    cdef pthread_t threads[2]
    cdef int i
    cdef long key
    try:
        with nogil:
            for i in range(2):
                work[i] = Work(numbers, careful, i + 1, 0)
                pthread_create(&threads[i], NULL, add_two, &work[i])
            for i in range(2):
                pthread_join(threads[i], NULL)
        for key in (1, 2, 3):
            assert numbers.contains(key), f"{key} was lost"
        assert work[0].added + work[1].added == 3
        assert numbers.size.load() == 3
    finally:
        del numbers
    return 0


def test_hash_set():
    fill(True)


def test_hash_set_buggy():
    fill(False)
