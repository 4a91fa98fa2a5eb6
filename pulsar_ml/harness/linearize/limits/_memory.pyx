"""The memory of this process, and the limit at which searches give up.

A search looks at the resident memory of the process where it looks at the clock, so the limit holds
for everything that a check takes together: states of a model with all that they refer to,
configurations, answers. It is one limit for the process.
"""

from __future__ import annotations

from libc.stdint cimport INT64_MAX, int64_t

import gc

cdef extern from *:
    """
    #include <fcntl.h>
    #include <stdlib.h>
    #include <unistd.h>

    /* The resident pages of this process; -1 if the system does not tell. The file belongs to the
       process that opened it, so a fork opens its own. */
    static long long pml_resident(void)
    {
        static int file = -1;
        static pid_t owner = 0;
        char text[128];
        char *resident;
        ssize_t length;

        if (owner != getpid()) {
            if (file >= 0)
                close(file);
            file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
            owner = getpid();
        }
        length = pread(file, text, sizeof text - 1, 0);
        if (length <= 0)
            return -1;
        text[length] = 0;
        strtoll(text, &resident, 10);
        return strtoll(resident, NULL, 10);
    }

    static long long pml_page_size(void) { return sysconf(_SC_PAGESIZE); }
    """
    int64_t pml_resident() noexcept nogil
    int64_t pml_page_size() noexcept nogil

cdef int64_t most_pages = INT64_MAX  # resident pages at which searches give up
cdef bint reached = False
cdef volatile bint stopped = False
cdef int FEW_COLLECTIONS = 20_000  # new objects before garbage is collected, while a check runs


# Tells whether the limit is reached, and remembers that it was.
cdef bint is_full() noexcept nogil:
    global reached
    if stopped:
        return True
    if most_pages == INT64_MAX or pml_resident() <= most_pages:
        return False
    reached = True
    return True


# Tells whether so many bytes more stay below the limit.
cdef bint fits(int64_t more) noexcept nogil:
    return most_pages == INT64_MAX or pml_resident() + more // pml_page_size() <= most_pages


def resident() -> int:
    """The bytes of resident memory of this process; negative: not known."""
    return pml_resident() * pml_page_size()


def limit(int64_t more) -> None:
    """Let searches give up when the process has ``more`` bytes above its present memory."""
    global most_pages, reached, stopped
    reached = stopped = False
    most_pages = pml_resident() + more // pml_page_size()


def no_limit() -> None:
    """Lift the limit."""
    global most_pages, stopped
    most_pages = INT64_MAX
    stopped = False


cdef class bounded:
    """A block in which searches give up when the process has ``memory`` bytes more than before.

    A check inside another one has the limit of the outer one. A model's states stay, so garbage is
    collected after more new objects than usual inside the block, unless it never is.
    """

    cdef int64_t memory
    cdef bint outer
    cdef object collecting  # the thresholds of the collector outside the block; None: as inside

    def __cinit__(self, int64_t memory):
        self.memory = memory

    def __enter__(self):
        self.outer = most_pages == INT64_MAX
        if self.outer:
            limit(self.memory)
        thresholds = gc.get_threshold()
        if 0 < thresholds[0] < FEW_COLLECTIONS:
            self.collecting = thresholds
            gc.set_threshold(FEW_COLLECTIONS)

    def __exit__(self, *error):
        if self.collecting is not None:
            gc.set_threshold(*self.collecting)
        if self.outer:
            no_limit()


def stop() -> None:
    """Let the search that is under way, in another thread, give up; for Ctrl-C."""
    global stopped
    stopped = True


def was_reached() -> bool:
    """True when a search met the limit since it was set, or since the last call."""
    global reached
    found = reached
    reached = False
    return bool(found)
