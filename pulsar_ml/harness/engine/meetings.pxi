# Where operations met in an execution that was made again.

cdef enum:
    MOST_MEETINGS = 1 << 12


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
