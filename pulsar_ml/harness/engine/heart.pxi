# The watch of another process: it reads the heartbeat, and where the threads stand.

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


def steps_in(int pid) -> int:
    """A number that changes with each step of the execution under way in a child; 0 if unknown."""
    return engine_steps_in(pid)


def places_in(int pid, uint64_t sp) -> list[tuple[int, int]]:
    """(thread, code address) of each unfinished thread of the execution under way in a child.

    The child ``pid`` is a stopped fork of this process whose stack pointer is ``sp``. Thread -1 is
    the main thread; address 0 is a place that was not found.
    """
    cdef int32_t[ENGINE_MOST_THREADS + 1] numbers
    cdef uint64_t[ENGINE_MOST_THREADS + 1] places
    cdef int32_t i, n = engine_places_in(pid, sp, numbers, places, ENGINE_MOST_THREADS + 1)
    return [(numbers[i], places[i]) for i in range(n)]
