# Where operations met in an execution that was made again.

cdef enum:
    MOST_MEETINGS = 1 << 12
    MOST_APART = 1 << 12


def meetings(explorer):
    """Numbers that stand for what met in the execution last made by Explorer.again().

    Two operations of two threads meet where one reads what the other stored, or takes the lock that
    the other gave back. The pair has a number below 2**32: 65536 times the code of the operation
    that stored, and the code of the other, both counted from 1. The pair with its two places of
    code has a larger number, and so has each operation with its status and the signs of its answer,
    alone and behind that of the operation before it in its thread.
    Equal numbers are equal meetings, in all programs of one build.
    """
    cdef uint64_t[::1] found = np.empty(MOST_MEETINGS, np.uint64)
    explorer.end()  # refuses when another explorer used the engine since
    return np.unique(np.asarray(found)[:engine_meetings(&found[0], MOST_MEETINGS)])


cdef int make_meet(Explorer explorer, apart) except -1:
    """Set the pairs that executions of a sampler make meet: rows of :func:`pairs_apart`."""
    cdef uint8_t[::1] room = np.zeros((len(apart) + 1) * sizeof(EnginePair), np.uint8)
    cdef EnginePair* pairs = <EnginePair*>&room[0]
    cdef int i, side
    explorer.apart_kept = room
    for i, pair in enumerate(apart):
        for side, (thread, call_at, at) in enumerate((pair[:3], pair[3:])):
            if not (0 <= thread < ENGINE_MOST_THREADS and 0 <= call_at <= at < 2**32):
                raise UsageError(f"{pair} is no pair of steps: thread, point of its call, its point; twice")
            pairs[i].thread[side] = thread
            pairs[i].call_at[side], pairs[i].at[side] = call_at, at
    explorer.config.pairs = pairs
    explorer.config.n_pairs = <int32_t>len(apart)
    return 0


def pairs_apart(explorer):
    """Pairs of steps at one location that could have met in that execution, and did not.

    Returns a row for each pair: the reader, and two of its scheduling points, of the first step of
    the call and of the step itself; and the same of the writer. And for each pair the two numbers
    of which :func:`meetings` would have one, if the two had met. Of pairs with equal numbers, which
    are of the same places of code, it returns the first one.
    """
    cdef EnginePair* found = <EnginePair*>calloc(MOST_APART, sizeof(EnginePair))
    cdef uint64_t[:, ::1] numbers = np.empty((MOST_APART, 2), np.uint64)
    cdef uint32_t[:, ::1] rows
    cdef int32_t i, count
    cdef int side
    if found is NULL:
        raise MemoryError("no memory for pairs of steps")
    try:
        explorer.end()  # refuses when another explorer used the engine since
        count = engine_apart(found, &numbers[0, 0], MOST_APART)
        rows = np.empty((count, 6), np.uint32)
        for i in range(count):
            for side in range(2):
                rows[i, 3 * side] = found[i].thread[side]
                rows[i, 3 * side + 1] = found[i].call_at[side]
                rows[i, 3 * side + 2] = found[i].at[side]
    finally:
        free(found)
    _, first = np.unique(np.asarray(numbers)[:count, 0], return_index=True)
    first.sort()
    return np.asarray(rows)[first], np.asarray(numbers)[first]
