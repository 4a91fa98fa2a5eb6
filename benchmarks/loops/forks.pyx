"""Native calls through the gate of forks and past it: loops without the GIL. The gate is a copy of
the core's, for this module alone.
"""

from libc.stdint cimport int64_t, uint32_t

from pulsar_ml.structures.inflight_limiter cimport (
    InflightLimiter, limiter_acquire, limiter_destroy, limiter_init, limiter_release,
)
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    u32_fetch_add_relaxed, u32_fetch_sub_release, u32_load_acquire, u32_store_release, pml_u32,
)
from pulsar_ml.sync.wait cimport wait_while_equal, wake_one

include "../../pulsar_ml/binding/gate.pxi"

cdef enum:
    PERMITS = 1000


cdef bint take(void* context, int64_t argument, int64_t permits, bint granted) noexcept nogil:
    (<int64_t*>context)[0] = permits
    return True


def permits(int64_t count, bint gated) -> None:
    """Permits taken and given back, each by a call that takes a lock."""
    cdef InflightLimiter limiter
    cdef int64_t i, taken, granted = 0
    if limiter_init(&limiter, PERMITS, 1, 16, 4, 16) != PML_OK:
        raise MemoryError
    with nogil:
        for i in range(count):
            if gated:
                native_enter()
            limiter_acquire(&limiter, PERMITS, 0, take, &granted, 0, &taken)
            if gated:
                native_leave()
                native_enter()
            limiter_release(&limiter, taken)
            if gated:
                native_leave()
    limiter_destroy(&limiter)


def passes(int64_t count) -> None:
    """The gate entered and left."""
    cdef int64_t i
    with nogil:
        for i in range(count):
            native_enter()
            native_leave()


def forks(int64_t count) -> None:
    """The gate shut and opened again, as a fork does in the parent, while no thread is inside."""
    cdef int64_t i
    with nogil:
        for i in range(count):
            gate_close()
            gate_open(False)
