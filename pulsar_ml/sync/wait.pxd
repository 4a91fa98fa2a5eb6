# Waiting: a pause inside a spin loop, giving up the processor, and sleeping on a word.

from libc.stdint cimport uint32_t
from pulsar_ml.sync.atomics cimport pml_u32


cdef extern from "pulsar_ml/sync/sync.h" nogil:
    void pause "pml_pause"() noexcept
    void yield_cpu "pml_yield"() noexcept
    void wait_while_equal "pml_wait"(pml_u32* word, uint32_t expected) noexcept
    void wake_one "pml_wake_one"(pml_u32* word) noexcept


# One turn of a spin loop: short pauses first, then the processor is given away, so that a
# preempted owner can run even with more threads than cores.
cdef inline uint32_t spin(uint32_t turn) noexcept nogil:
    if turn < 32:
        pause()
        return turn + 1
    yield_cpu()
    return turn
