# Where operations met in an execution that was made again.

cdef enum:
    MOST_MEETINGS = 1 << 12


def meetings(explorer):
    """Numbers that stand for what met in the execution last made by Explorer.again().

    Each pair of operations of two threads of which one read what the other stored, or took the lock
    that the other gave back, has a number; each such pair with its two places of code; and each
    operation with its status and the signs of its answer. Equal numbers are equal meetings, in all
    programs of one build.
    """
    cdef uint64_t[::1] found = np.empty(MOST_MEETINGS, np.uint64)
    explorer.end()  # refuses when another explorer used the engine since
    return np.unique(np.asarray(found)[:engine_meetings(&found[0], MOST_MEETINGS)])
