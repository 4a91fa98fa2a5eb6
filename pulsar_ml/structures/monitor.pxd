# A blocking mutual-exclusion lock for sections too long to spin on.
#
# Origin       The monitor of Pulsar's removal queue. The word is that of Drepper, "Futexes Are
#              Tricky" (2011), mutex 2: 0 free, 1 held, 2 held and a thread may sleep.
# Threads      Any thread. Not reentrant, not owned by a thread.
# Invariants   MO-1 (I61) at most one thread is between enter and leave.
# Ordering     leave (release) -> enter (acquire).
# Reclamation  None.
# Not promised Fairness. Where the system has no futex, waiting yields instead of sleeping.

from libc.stdint cimport uint32_t

from pulsar_ml.sync.atomics cimport (
    pml_u32, u32_cas_weak_acquire, u32_exchange_acquire, u32_exchange_release,
)
from pulsar_ml.sync.wait cimport pause, wait_while_equal, wake_one


cdef inline void monitor_enter(pml_u32* monitor) noexcept nogil:
    cdef uint32_t seen
    cdef uint32_t turn
    for turn in range(64):
        seen = 0
        if u32_cas_weak_acquire(monitor, &seen, 1):
            return
        pause()
    # The word is 2 from here on, so that the thread that leaves wakes a sleeper. Ends when the
    # holder left.
    while u32_exchange_acquire(monitor, 2) != 0:
        wait_while_equal(monitor, 2)


cdef inline void monitor_leave(pml_u32* monitor) noexcept nogil:
    if u32_exchange_release(monitor, 0) == 2:
        wake_one(monitor)
