"""The stack monitor: finds the values that can lie at the bottom, from the outside in.

A value is certainly on the stack from the return of its push to the invocation of its pop. A
maximal stretch of time in which some value is certainly on the stack needs a bottom value: pushed
before the stretch begins, and popped after it ends. Any such value will do; without it the stretch
splits into shorter ones.
"""

from __future__ import annotations

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc

import numpy as np


# Segment trees over n leaves: leaf i is at size + i, and node k has the children 2k and 2k + 1.
cdef struct Trees:
    int64_t size
    int32_t* covers       # by time: certain values; the minimum below a node, without ``added``
    int32_t* added        # the amount added to the whole node
    int64_t latest_size
    int64_t* latest       # by value, by beginning: the return of the pop; -1: used


cdef void cover(Trees* t, int64_t node, int64_t low, int64_t high, int64_t first, int64_t last,
                int32_t by) noexcept nogil:
    cdef int64_t middle
    if last <= low or high <= first:
        return
    if first <= low and high <= last:
        t.covers[node] += by
        t.added[node] += by
        return
    middle = (low + high) // 2
    cover(t, 2 * node, low, middle, first, last, by)
    cover(t, 2 * node + 1, middle, high, first, last, by)
    t.covers[node] = min(t.covers[2 * node], t.covers[2 * node + 1]) + t.added[node]


# The first uncovered time at or after ``first``; t.size if there is none.
cdef int64_t uncovered(const Trees* t, int64_t node, int64_t low, int64_t high, int64_t first,
                       int32_t above) noexcept nogil:
    cdef int64_t middle, found
    if high <= first or t.covers[node] + above > 0:
        return t.size
    if high - low == 1:
        return low
    middle = (low + high) // 2
    above += t.added[node]
    found = uncovered(t, 2 * node, low, middle, first, above)
    if found == t.size:
        found = uncovered(t, 2 * node + 1, middle, high, first, above)
    return found


cdef void set_latest(Trees* t, int64_t leaf, int64_t value) noexcept nogil:
    cdef int64_t node = t.latest_size + leaf
    t.latest[node] = value
    node //= 2
    while node:
        t.latest[node] = max(t.latest[2 * node], t.latest[2 * node + 1])
        node //= 2


# The leaf of the greatest value in [first, last); -1 if all are -1.
cdef int64_t latest_in(const Trees* t, int64_t first, int64_t last) noexcept nogil:
    cdef int64_t low = first + t.latest_size
    cdef int64_t high = last + t.latest_size
    cdef int64_t best = -1
    while low < high:
        if low & 1:
            if best < 0 or t.latest[low] > t.latest[best]:
                best = low
            low += 1
        if high & 1:
            high -= 1
            if best < 0 or t.latest[high] > t.latest[best]:
                best = high
        low //= 2
        high //= 2
    if best < 0 or t.latest[best] < 0:
        return -1
    while best < t.latest_size:
        best = 2 * best if t.latest[2 * best] == t.latest[best] else 2 * best + 1
    return best - t.latest_size


cdef int64_t power(int64_t n) noexcept nogil:
    cdef int64_t size = 1
    while size < n:
        size *= 2
    return size


# The next remaining value at or after ``leaf``.
cdef int64_t left_from(int64_t* following, int64_t leaf) noexcept nogil:
    cdef int64_t end = leaf
    cdef int64_t after
    while following[end] != end:
        end = following[end]
    while following[leaf] != leaf:
        after = following[leaf]
        following[leaf] = end
        leaf = after
    return end


# Writes the stretch without a bottom as (first leaf, time of its end) to out. Returns 1 if there is
# one, 0 if there is none, and -1 without memory. Arrays are by leaf: values in the order of their
# beginnings. ``waiting``: the leaves by their pushes.
cdef int solve(int64_t n, int64_t times, const int64_t* begin, const int64_t* end, const int64_t* pushed,
               const int64_t* popped, const int64_t* waiting, int64_t* out) noexcept nogil:
    cdef Trees t
    cdef int64_t* following = <int64_t*>malloc(<size_t>(n + 1) * sizeof(int64_t))
    cdef int64_t* stack = <int64_t*>malloc(2 * <size_t>(n + 1) * sizeof(int64_t))
    cdef int64_t depth = 0
    cdef int64_t awake = 0
    cdef int64_t first, until, begins, ends, leaf, past, i
    cdef int answer = 0
    t.size = power(times)
    t.latest_size = power(n + 1)
    t.covers = <int32_t*>calloc(2 * <size_t>t.size, sizeof(int32_t))
    t.added = <int32_t*>calloc(2 * <size_t>t.size, sizeof(int32_t))
    t.latest = <int64_t*>malloc(2 * <size_t>t.latest_size * sizeof(int64_t))
    if (following is NULL or stack is NULL or t.covers is NULL or t.added is NULL or t.latest is NULL):
        answer = -1
    else:
        for i in range(2 * t.latest_size):
            t.latest[i] = -1
        for i in range(n + 1):
            following[i] = i
        for i in range(n):
            cover(&t, 1, 0, t.size, begin[i], end[i], 1)
        # A stack of work items: the values from a leaf on whose stretches begin before a time.
        stack[0] = 0
        stack[1] = times
        depth = 1
        while depth:
            depth -= 1
            first = left_from(following, stack[2 * depth])
            until = stack[2 * depth + 1]
            if first == n or begin[first] >= until:
                continue
            begins = begin[first]
            ends = min(uncovered(&t, 1, 0, t.size, begins, 0), until)
            # Stretches come in the order of their beginnings, so a push that was early enough stays
            # so.
            while awake < n and pushed[waiting[awake]] < begins:
                if following[waiting[awake]] == waiting[awake]:
                    set_latest(&t, waiting[awake], popped[waiting[awake]])
                awake += 1
            past = first_at(begin, first, n, ends)
            leaf = latest_in(&t, first, past)
            if leaf < 0 or popped[leaf] < ends:
                out[0] = first
                out[1] = ends
                answer = 1
                break
            set_latest(&t, leaf, -1)
            following[leaf] = leaf + 1
            cover(&t, 1, 0, t.size, begin[leaf], end[leaf], -1)
            # The rest of this stretch comes first, then the values behind it.
            stack[2 * depth] = past
            stack[2 * depth + 1] = until
            stack[2 * depth + 2] = first
            stack[2 * depth + 3] = ends
            depth += 2
    free(following)
    free(stack)
    free(t.covers)
    free(t.added)
    free(t.latest)
    return answer


# The first leaf in [low, high) that begins at ``time`` or later.
cdef int64_t first_at(const int64_t* begin, int64_t low, int64_t high, int64_t time) noexcept nogil:
    cdef int64_t middle
    while low < high:
        middle = (low + high) // 2
        if begin[middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


def bottomless(begin, end, pushed, popped, int64_t times):
    """The values of a stretch of time without a possible bottom value; empty: the stack is legal.

    All four arrays are of int64, with one element for each value, of ranks below ``times``: the
    return of its push, and the later invocation of its pop; the invocation of its push, and the
    return of its pop.
    """
    cdef int64_t n = len(begin)
    cdef int64_t[2] out
    cdef int answer
    order = np.argsort(begin, kind="stable")
    begin, end, pushed, popped = [
        np.ascontiguousarray(each[order], dtype=np.int64) for each in (begin, end, pushed, popped)
    ]
    waiting = np.argsort(pushed, kind="stable")
    cdef const int64_t[::1] begins = begin
    cdef const int64_t[::1] ends = end
    cdef const int64_t[::1] pushes = pushed
    cdef const int64_t[::1] pops = popped
    cdef const int64_t[::1] waits = waiting
    if n == 0:
        return np.zeros(0, np.int64)
    with nogil:
        answer = solve(n, times, &begins[0], &ends[0], &pushes[0], &pops[0], &waits[0], out)
    if answer < 0:
        raise MemoryError(f"no memory to check a stack of {n} values")
    if answer == 0:
        return np.zeros(0, np.int64)
    # All values of the stretch, including those removed earlier: each is needed as evidence.
    inside = (begin >= begin[out[0]]) & (end <= out[1])
    return order[inside]


# The next uncovered gap at or after ``gap``; ``next_free`` leads there, and is shortened on the way.
cdef int64_t free_gap(int64_t* next_free, int64_t gap) noexcept nogil:
    cdef int64_t found = gap
    cdef int64_t after
    while next_free[found] != found:
        found = next_free[found]
    while next_free[gap] != found:
        after = next_free[gap]
        next_free[gap] = found
        gap = after
    return found


# Covers the gaps in which values must be there, the least value first; gap g lies between the times
# g and g + 1. Returns the first value that has no moment to be taken, or -1.
cdef int64_t cover_values(int64_t* next_free, const int64_t* put_from, const int64_t* put_by,
                          const int64_t* taken_from, const int64_t* taken_by, int64_t n) noexcept nogil:
    cdef int64_t i, gap, taken
    for i in range(n):
        # It is taken in a gap in which no lesser value is there, and not before it is put.
        taken = free_gap(next_free, max(put_from[i], taken_from[i]))
        if taken >= taken_by[i]:
            return i
        # Put in the same gap, or before it: then it is there from the end of the put on.
        if put_by[i] > taken:
            continue
        gap = free_gap(next_free, put_by[i])
        while gap < taken:
            next_free[gap] = gap + 1
            gap = free_gap(next_free, gap + 1)
    return -1


cdef int64_t* gaps(int64_t times) except NULL:
    cdef int64_t* next_free = <int64_t*>malloc((<size_t>times + 3) * sizeof(int64_t))
    cdef int64_t i
    if next_free is NULL:
        raise MemoryError("no memory for the moments of a history")
    for i in range(times + 3):
        next_free[i] = i
    return next_free


def earliest(const int64_t[::1] put_from, const int64_t[::1] put_by, const int64_t[::1] taken_from,
             const int64_t[::1] taken_by, int64_t times):
    """The first value of a priority queue that has no moment to be taken; -1: none.

    Values are in ascending order. Stamps are ranks below ``times``.
    """
    cdef int64_t n = len(put_from)
    cdef int64_t found = -1
    cdef int64_t* next_free = gaps(times)
    if n:
        with nogil:
            found = cover_values(next_free, &put_from[0], &put_by[0], &taken_from[0], &taken_by[0], n)
    free(next_free)
    return found


def nowhere_empty(const int64_t[::1] put_from, const int64_t[::1] put_by, const int64_t[::1] taken_from,
                  const int64_t[::1] taken_by, const int64_t[::1] invoked, const int64_t[::1] returned,
                  int64_t times):
    """The first of the calls that found nothing which has no moment without values; -1: none."""
    cdef int64_t n = len(put_from)
    cdef int64_t i
    cdef int64_t found = -1
    cdef int64_t* next_free = gaps(times)
    if n:
        cover_values(next_free, &put_from[0], &put_by[0], &taken_from[0], &taken_by[0], n)
    for i in range(len(invoked)):
        if free_gap(next_free, invoked[i]) >= returned[i]:
            found = i
            break
    free(next_free)
    return found
