# A lock with an exclusive mode, a shared mode, and optimistic reads that take nothing.
#
# Origin       java.util.concurrent.locks.StampedLock as Pulsar's entry wrapper uses it (#22818).
#              Here one 32-bit word: bits 0-3 count shared holders, bit 4 is the writer, the 27 bits
#              above count write sections. No queue: waiters spin, then yield.
# Threads      Any thread. Not reentrant, not owned by a thread.
# Invariants   SL-1 (I29) each write section makes the version larger by one, modulo 2**27, over
#              every reuse of the object around it.
#              SL-2 a writer is alone: no other writer and no shared reader is inside with it.
#              SL-3 (I9) an optimistic read that validates saw the writes of one write section only,
#              unless a multiple of 2**27 of them came between.
# Ordering     unlock_write (release) -> lock_write, lock_read (acquire), optimistic stamp
#              (acquire). unlock_read (release) -> lock_write (acquire). Optimistic reads: the
#              acquire fence in stamped_validate keeps the field loads above the second load of the
#              word; the release fence in lock_write keeps the field stores below the writer bit.
#              Fields read under an optimistic stamp are relaxed atomic cells.
# Reclamation  None. The word is never reset: a stamp of an earlier incarnation does not validate.
# Not promised Fairness. Upgrading. A stamp does not exclude shared holders, which change nothing.
#              A stamp validates again after exactly 2**27 write sections, or a multiple of that.

from libc.stdint cimport uint32_t

from pulsar_ml.sync.atomics cimport (
    fence_acquire, fence_release, pml_u32, u32_cas_weak_acquire, u32_fetch_sub_release,
    u32_load_acquire, u32_load_relaxed, u32_store_release,
)
from pulsar_ml.sync.branch cimport unlikely
from pulsar_ml.sync.wait cimport spin


cdef enum:
    STAMPED_READERS = 0xF
    STAMPED_WRITER = 0x10
    STAMPED_MOST_READERS = 0xE


cdef inline void stamped_lock_write(pml_u32* lock) noexcept nogil:
    cdef uint32_t seen = u32_load_relaxed(lock)
    cdef uint32_t turn = 0
    # Ends when the writer and all readers inside have left.
    while True:
        if seen & (STAMPED_WRITER | STAMPED_READERS):
            turn = spin(turn)
            seen = u32_load_relaxed(lock)
        elif u32_cas_weak_acquire(lock, &seen, seen | STAMPED_WRITER):
            break
    # Pairs with the acquire fence in stamped_validate.
    fence_release()


cdef inline void stamped_unlock_write(pml_u32* lock) noexcept nogil:
    # The carry out of the writer bit counts the section. Nobody else writes the word meanwhile.
    u32_store_release(lock, u32_load_relaxed(lock) + STAMPED_WRITER)


cdef inline void stamped_lock_read(pml_u32* lock) noexcept nogil:
    cdef uint32_t seen = u32_load_relaxed(lock)
    cdef uint32_t turn = 0
    # Ends when the writer has left, or one of 14 readers where so many are inside.
    while True:
        if seen & STAMPED_WRITER or (seen & STAMPED_READERS) == STAMPED_MOST_READERS:
            turn = spin(turn)
            seen = u32_load_relaxed(lock)
        elif u32_cas_weak_acquire(lock, &seen, seen + 1):
            return


cdef inline void stamped_unlock_read(pml_u32* lock) noexcept nogil:
    u32_fetch_sub_release(lock, 1)


cdef inline uint32_t stamped_optimistic(const pml_u32* lock) noexcept nogil:
    # Pairs with the release in stamped_unlock_write. A stamp taken inside a write section carries
    # the writer bit and never validates.
    return u32_load_acquire(lock)


# A stamp without the writer bit: waits for a write section that is running, and takes nothing.
cdef inline uint32_t stamped_wait(const pml_u32* lock) noexcept nogil:
    cdef uint32_t stamp = stamped_optimistic(lock)
    cdef uint32_t turn = 0
    # Ends when the writer has left.
    while unlikely((stamp & STAMPED_WRITER) != 0):
        turn = spin(turn)
        stamp = stamped_optimistic(lock)
    return stamp


cdef inline bint stamped_validate(const pml_u32* lock, uint32_t stamp) noexcept nogil:
    # Pairs with the release fence in stamped_lock_write: a field store that was seen above makes
    # the writer bit of its section visible below.
    fence_acquire()
    return (not stamp & STAMPED_WRITER
            and not ((u32_load_relaxed(lock) ^ stamp) & ~<uint32_t>STAMPED_READERS))
