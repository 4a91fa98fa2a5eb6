# Where the threads of a run stand: on which of the processors that the process may use.
#
# In many runs the threads of each stride stand in another way: as the system likes, all on one
# processor, each on the next one, or as far from each other as there is room (as the stress tests
# of jcstress do). Threads on one processor meet where the system interrupts one of them, inside an
# operation as well; on several they meet in any instruction, and how soon one sees what another
# wrote depends on the way between them.

from libc.stdint cimport int32_t, int64_t
from pulsar_ml.harness.posix cimport CPU_SET, CPU_ZERO, cpu_set_t, sched_getcpu, sched_setaffinity


cdef enum:
    MOST_PROCESSORS = 1024  # that a set of the C library holds


cdef enum Placement:
    FREE            # on any processor
    TOGETHER        # all on one
    NEIGHBOURS      # each on the next one
    APART           # as far from each other as there is room
    PLACEMENTS


cdef struct Processors:
    int32_t count
    int32_t[1024] numbers   # near ones stand side by side
    cpu_set_t allowed


# The placement of a stride, by its number. Without more processors than threads, apart would be no
# further than next.
cdef inline Placement placement_of(
    const Processors* processors, int32_t threads, int64_t stride
) noexcept nogil:
    cdef Placement placement = <Placement>(stride % PLACEMENTS)
    if processors.count < 2 or (placement == APART and processors.count <= threads):
        return FREE
    return placement


# Puts the calling thread, by its number, where a stride wants it. `home` are the processors that it
# may use from then on.
cdef inline void stand(
    const Processors* processors, int32_t thread, int32_t threads, int64_t stride, cpu_set_t* home
) noexcept nogil:
    cdef Placement placement = placement_of(processors, threads, stride)
    # Behind each round of placements they stand one processor further.
    cdef int64_t at = stride // PLACEMENTS
    home[0] = processors.allowed
    if placement != FREE:
        if placement == NEIGHBOURS:
            at += thread
        elif placement == APART:
            at += thread * (processors.count // threads)
        CPU_ZERO(home)
        CPU_SET(processors.numbers[at % processors.count], home)
    if processors.count > 1:
        sched_setaffinity(0, sizeof(cpu_set_t), home)


# Moves the calling thread to a processor so many further than the next one. Then the system may
# move it again, to one of its home.
cdef inline void move(const Processors* processors, int32_t further, const cpu_set_t* home) noexcept nogil:
    cdef int here = sched_getcpu()
    cdef int32_t at = 0
    cdef cpu_set_t target
    while at < processors.count - 1 and processors.numbers[at] != here:
        at += 1
    at = (at + 1 + further % (processors.count - 1)) % processors.count
    CPU_ZERO(&target)
    CPU_SET(processors.numbers[at], &target)
    sched_setaffinity(0, sizeof(cpu_set_t), &target)
    sched_setaffinity(0, sizeof(cpu_set_t), home)
