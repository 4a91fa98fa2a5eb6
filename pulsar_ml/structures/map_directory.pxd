# The sorted list of a position map's branches, replaced as a whole on each change.
#
# Origin       Ours: a copy-on-write array in place of the upper levels of the original's skip list.
#              Its readers are those of a sequence lock, but a stopped writer does not hold them up.
# Threads      Reading: any thread, no lock. add, drop: any thread, one at a time by the lock. init,
#              destroy: alone.
# Invariants   MD-1 records ascend by (ledger, block) and name each block once.
#              MD-2 a node that was found in an array, and proved afterwards, was in the installed
#              array.
#              MD-3 drop needs no memory.
# Ordering     Installing an array (release) -> finding it (acquire). A record's branch (release) ->
#              finding the branch (acquire), which holds in a reused array too. The version is
#              stored (release) after that; the release fence before a retired array is written
#              pairs with the acquire fence of the proof: a thread that reads a record of a reused
#              array also reads a later version.
# Reclamation  Retired arrays are reused and stay mapped until the directory is destroyed.
# Not promised A change copies 24 bytes for every block in use. Ids scattered over very many blocks
#              make changes linear in their number.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsar_ml.structures.map_pages cimport MapMemory, branch_at, node_is_sealed
from pulsar_ml.structures.object_pool cimport pool_give
from pulsar_ml.structures.stamped_lock cimport stamped_lock_write, stamped_unlock_write
from pulsar_ml.structures.status cimport PML_EXISTS, PML_NO_MEMORY, PML_OK, Status
from pulsar_ml.sync.atomics cimport (
    fence_acquire, fence_release, i64_load_relaxed, i64_store_relaxed, pml_i64, pml_ptr, pml_u32, pml_u64,
    ptr_load_acquire, ptr_load_relaxed, ptr_store_release, u64_load_acquire, u64_load_relaxed,
    u64_store_release,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef struct DirectoryRecord:
    pml_i64 ledger_id
    pml_i64 block           # entry id >> BLOCK_BITS
    pml_u64 branch


cdef struct BranchArray:
    BranchArray* next_retired
    int64_t capacity
    pml_i64 count
    DirectoryRecord[1] records


cdef struct Directory:
    pml_ptr installed       # BranchArray
    pml_u64 version         # counts installations
    pml_u32 lock            # serialises changes
    BranchArray* retired    # under the lock


cdef inline BranchArray* array_new(int64_t capacity) noexcept nogil:
    cdef BranchArray* array = <BranchArray*>allocate_zeroed(
        1, sizeof(BranchArray) + <size_t>(capacity - 1) * sizeof(DirectoryRecord))
    if array is not NULL:
        array.capacity = capacity
    return array


# In zeroed memory, or memory of a directory that was destroyed.
cdef inline Status directory_init(Directory* directory) noexcept nogil:
    cdef BranchArray* initial = array_new(2)
    if initial is NULL:
        return PML_NO_MEMORY
    ptr_store_release(&directory.installed, initial)
    return PML_OK


# After the last record is gone; waits for the thread that dropped it to leave.
cdef inline void directory_destroy(Directory* directory) noexcept nogil:
    cdef BranchArray* retired
    cdef BranchArray* following
    stamped_lock_write(&directory.lock)
    retired = directory.retired
    while retired is not NULL:
        following = retired.next_retired
        release(retired)
        retired = following
    release(ptr_load_relaxed(&directory.installed))
    ptr_store_release(&directory.installed, NULL)
    directory.retired = NULL
    stamped_unlock_write(&directory.lock)


# Reading -----------------------------------------------------------------------------------------

# The installed array, and what directory_proved needs to tell later whether it still was.
cdef inline BranchArray* directory_enter(const Directory* directory, uint64_t* proof) noexcept nogil:
    # Pairs with the release in directory_install: this version or a later one's array follows.
    proof[0] = u64_load_acquire(&directory.version)
    return <BranchArray*>ptr_load_acquire(&directory.installed)


# True if everything read since directory_enter came from the installed array.
cdef inline bint directory_proved(const Directory* directory, uint64_t proof) noexcept nogil:
    # Pairs with the release fence in directory_spare.
    fence_acquire()
    return u64_load_relaxed(&directory.version) == proof


cdef inline bint array_is(
    const BranchArray* array, int64_t index, int64_t ledger_id, int64_t block
) noexcept nogil:
    return (i64_load_relaxed(&array.records[index].block) == block
            and i64_load_relaxed(&array.records[index].ledger_id) == ledger_id)


# True if the last record stands before (ledger, block).
cdef inline bint array_ends_before(
    const BranchArray* array, int64_t count, int64_t ledger_id, int64_t block
) noexcept nogil:
    cdef int64_t last = i64_load_relaxed(&array.records[count - 1].ledger_id)
    return last < ledger_id or (
        last == ledger_id and i64_load_relaxed(&array.records[count - 1].block) < block)


# The index of the first record at or after (ledger, block).
cdef inline int64_t array_seek(
    const BranchArray* array, int64_t count, int64_t ledger_id, int64_t block
) noexcept nogil:
    cdef int64_t low = 0
    cdef int64_t high = count
    cdef int64_t middle, seen
    while low < high:
        middle = (low + high) >> 1
        seen = i64_load_relaxed(&array.records[middle].ledger_id)
        if seen < ledger_id or (
            seen == ledger_id and i64_load_relaxed(&array.records[middle].block) < block
        ):
            low = middle + 1
        else:
            high = middle
    return low


# The branch of (ledger, block), 0 if none. The answer holds if it is proved: an array that is being
# reused names branches that are not in the directory yet.
cdef inline uint32_t directory_find(
    const Directory* directory, int64_t ledger_id, int64_t block, uint64_t* proof
) noexcept nogil:
    cdef BranchArray* array = directory_enter(directory, proof)
    cdef int64_t count = i64_load_relaxed(&array.count)
    # Dense ids of one ledger stand in order, so the first record says where: right for a cache
    # that reads its only ledger. Any number may come out otherwise, and the record is compared.
    cdef int64_t index = <int64_t>(
        <uint64_t>block - <uint64_t>i64_load_relaxed(&array.records[0].block))
    if not (0 <= index < count and array_is(array, index, ledger_id, block)):
        # A read at the end of what is cached: nothing is behind the last record.
        if count == 0 or array_ends_before(array, count, ledger_id, block):
            return 0
        index = array_seek(array, count, ledger_id, block)
        if index >= count or not array_is(array, index, ledger_id, block):
            return 0
    # Pairs with the release of the record: a caller that does not ask for the proof may come here
    # by an array that was reused under it, and goes on to touch the branch.
    return <uint32_t>u64_load_acquire(&array.records[index].branch)


# True if the directory has no branch; exact at quiescence.
cdef inline bint directory_is_empty(const Directory* directory) noexcept nogil:
    return i64_load_relaxed(&(<BranchArray*>ptr_load_acquire(&directory.installed)).count) == 0


# Changing, under the lock ------------------------------------------------------------------------

# An array to fill: one that an earlier change retired, or a new one. NULL without memory.
cdef inline BranchArray* directory_spare(Directory* directory, int64_t count) noexcept nogil:
    cdef BranchArray* previous = NULL
    cdef BranchArray* candidate = directory.retired
    # The latest retired stands first, and new ones double: few to look at.
    while candidate is not NULL and candidate.capacity < count:
        previous = candidate
        candidate = candidate.next_retired
    if candidate is NULL:
        return array_new(2 * count)
    if previous is NULL:
        directory.retired = candidate.next_retired
    else:
        previous.next_retired = candidate.next_retired
    # Pairs with the acquire fence in directory_proved: a thread that reads what is written from
    # here on also reads the version of the installation that retired this array.
    fence_release()
    return candidate


cdef inline void array_copy(
    BranchArray* target, int64_t at, const BranchArray* source, int64_t first, int64_t end
) noexcept nogil:
    cdef int64_t i
    for i in range(first, end):
        i64_store_relaxed(&target.records[at].ledger_id, i64_load_relaxed(&source.records[i].ledger_id))
        i64_store_relaxed(&target.records[at].block, i64_load_relaxed(&source.records[i].block))
        u64_store_release(&target.records[at].branch, u64_load_relaxed(&source.records[i].branch))
        at += 1


cdef inline void directory_install(
    Directory* directory, BranchArray* fresh, BranchArray* old
) noexcept nogil:
    ptr_store_release(&directory.installed, fresh)
    # After the array and before the old one is reused: see directory_spare.
    u64_store_release(&directory.version, u64_load_relaxed(&directory.version) + 1)
    old.next_retired = directory.retired
    directory.retired = old


# Links the branch of (ledger, block): PML_OK, PML_EXISTS if there is one, or PML_NO_MEMORY.
cdef inline Status directory_add(
    Directory* directory, int64_t ledger_id, int64_t block, uint32_t branch
) noexcept nogil:
    cdef BranchArray* old
    cdef BranchArray* fresh
    cdef int64_t count, index
    cdef Status status = PML_OK
    stamped_lock_write(&directory.lock)
    old = <BranchArray*>ptr_load_relaxed(&directory.installed)
    count = i64_load_relaxed(&old.count)
    index = array_seek(old, count, ledger_id, block)
    if index < count and array_is(old, index, ledger_id, block):
        status = PML_EXISTS
    else:
        fresh = directory_spare(directory, count + 1)
        if fresh is NULL:
            status = PML_NO_MEMORY
        else:
            array_copy(fresh, 0, old, 0, index)
            i64_store_relaxed(&fresh.records[index].ledger_id, ledger_id)
            i64_store_relaxed(&fresh.records[index].block, block)
            u64_store_release(&fresh.records[index].branch, branch)
            array_copy(fresh, index + 1, old, index, count)
            i64_store_relaxed(&fresh.count, count + 1)
            directory_install(directory, fresh, old)
    stamped_unlock_write(&directory.lock)
    return status


# Unlinks the branch of (ledger, block) if it is sealed, and gives it back to the memory. Needs no
# allocation: the array that the last change retired has room for one record less than there are.
cdef inline void directory_drop(
    Directory* directory, MapMemory* memory, int64_t ledger_id, int64_t block
) noexcept nogil:
    cdef BranchArray* old
    cdef BranchArray* fresh
    cdef int64_t count, index
    cdef uint32_t branch
    stamped_lock_write(&directory.lock)
    old = <BranchArray*>ptr_load_relaxed(&directory.installed)
    # NULL: a thread of another map sealed the branch by a stale handle, another thread dropped it,
    # and the map was destroyed meanwhile.
    count = i64_load_relaxed(&old.count) if old is not NULL else 0
    index = array_seek(old, count, ledger_id, block)
    if index < count and array_is(old, index, ledger_id, block):
        branch = <uint32_t>u64_load_relaxed(&old.records[index].branch)
        if node_is_sealed(&branch_at(memory, branch).node):
            fresh = directory_spare(directory, count - 1)
            array_copy(fresh, 0, old, 0, index)
            array_copy(fresh, index, old, index + 1, count)
            i64_store_relaxed(&fresh.count, count - 1)
            directory_install(directory, fresh, old)
            pool_give(&memory.branches, branch)
    stamped_unlock_write(&directory.lock)
