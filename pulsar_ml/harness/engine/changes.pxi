# Changes of the code under test, see hooks/changes.c; the engine's lock while answers are read.

cdef int change_code(Explorer self, changes) except -1:
    cdef int i
    rows = sorted(changes)
    if len({row[0] for row in rows}) != len(rows):
        raise UsageError("two changes are of the same place of code; make them one")
    self.changes = <EngineChange*>calloc(len(rows) + 1, sizeof(EngineChange))
    if self.changes is NULL:
        raise MemoryError("no memory for the changes")
    for i, (place, order, fence, lock) in enumerate(rows):
        self.changes[i].pc = place
        self.changes[i].order = number_of_order(order, ("none",))
        self.changes[i].fence = number_of_order(fence, ())
        self.changes[i].lock = LOCKS[lock]
    self.config.changes = self.changes
    self.config.n_changes = <int32_t>len(rows)
    return 0


@cython.final
@cython.internal
cdef class Reading:
    """The time in which one thread reads answers of the engine; no explorer runs meanwhile."""

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _lock.release()


cdef Reading _reading = Reading.__new__(Reading)
