# The heartbeat that a watchdog in another process reads.

cdef object _heart = None


def beat_into(buffer) -> None:
    """Keep the number of the execution under way and the number begun in two words of ``buffer``.

    Shared memory tells a watchdog in another process how far this one has come. None: nowhere.
    """
    global _heart
    cdef uint64_t[::1] words
    if buffer is None:
        engine_beat(NULL)
    else:
        words = memoryview(buffer).cast("Q")
        if words.shape[0] < 2:
            raise ValueError(f"the buffer holds {words.shape[0]} words; two are needed")
        engine_beat(&words[0])
        buffer = words.base
    _heart = buffer
