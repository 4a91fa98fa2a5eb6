# The answer of an operation of the core. The binding turns a status into an exception; nothing else
# does.

cdef enum Status:
    PML_OK = 0
    PML_EXISTS = 1          # the position is taken; nothing changed
    PML_MISMATCH = 2        # the entry is not the one its position says; nothing changed
    PML_NO_MEMORY = 3       # an allocation failed; nothing changed
    PML_DEALLOCATED = 4     # the reference count is zero (or would overflow); nothing changed
    PML_DISABLED = 5        # the cache has size zero and takes nothing; nothing changed
