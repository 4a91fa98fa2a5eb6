# A range cache's view of its eviction policy: the queue of new wrappers, and the function that a
# hit calls.
#
# Origin       The queue is that of RangeCacheRemovalQueue (Pulsar 4.1), and with it the monitor;
#              other policies take from the same queue what they keep elsewhere.
# Threads      queue: see mpsc_queue.pxd; its consumer's side under the monitor. touch: any thread.
#              The rest is constant.
# Invariants   PI-1 (I22, I26) the thread that polls a wrapper keeps or recycles it; no other thread
#              recycles it.
#              PI-2 (I101) the monitor comes before wrapper locks, and `touch` is called outside
#              them.
# Ordering     See mpsc_queue.pxd and monitor.pxd.
# Reclamation  None.
# Not promised That a policy knows of a hit: most look at the entry's mark only.

from libc.stdint cimport uint32_t

from pulsar_ml.structures.entry_wrapper cimport EntryWrapper
from pulsar_ml.structures.mpsc_queue cimport MpscQueue
from pulsar_ml.sync.atomics cimport pml_u32


cdef struct PolicyIntake

# A hit, outside the wrapper's lock: by now the wrapper may be empty, or hold something else.
ctypedef void (*Touch)(PolicyIntake* intake, uint32_t handle, EntryWrapper* wrapper) noexcept nogil


cdef struct PolicyIntake:
    MpscQueue queue         # what was put and no pass has looked at
    pml_u32 monitor         # held by passes and by changes of settings
    # False: nothing is queued, and the thread that removes an entry recycles its wrapper
    bint queued
    # a duplicate's expected reads are added, and what leaves is marked as evicted
    bint merges_counts
    Touch touch             # NULL: the entry's mark says enough
