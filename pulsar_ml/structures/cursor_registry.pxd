# The registry of either cursor container: ids, order of registration, counts, the slowest position.
#
# Origin       The map from name to node of ManagedCursorContainer (Pulsar 4.1). Names belong to the
#              binding; here a cursor is named by a number that is never used again, so an operation
#              on a cursor that has left finds nothing, and a name that is added twice leaves no
#              orphan.
# Threads      size, durable, version and the optimistic slowest: any thread. register, withdraw,
#              publish: inside the container's write section. find: inside a section, or under a
#              stamp that is validated. next: any thread; it takes the shared lock.
# Invariants   CR-1 (I79) the size is the number of cursors in the list, which are those with an id
#              other than 0, and a walk meets a cursor that stays once, in the order of
#              registration.
#              CR-2 an id is never given twice: a pooled cursor keeps its serial number.
#              CR-3 the data version grows by one with every change that a caller requested.
#              CR-4 a look at a cursor shows its newest place and durability; of the cursors at the
#              slowest position the one that was registered first is shown.
# Ordering     See stamped_lock.pxd. `left_at` is written before the size goes to zero (release) and
#              read after a size of zero was seen (acquire).
# Reclamation  Cursors come from a pool and go back there: the container says when.
# Not promised Uniqueness of ids after 2**32 reuses of one pooled cursor.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsar_ml.structures.object_pool cimport Pool, pool_at, pool_give, pool_take
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.stamped_lock cimport stamped_lock_read, stamped_unlock_read
from pulsar_ml.sync.atomics cimport (
    i64_load_acquire, i64_load_relaxed, i64_store_relaxed, i64_store_release, pml_i64, pml_ptr, pml_u32,
    pml_u64, ptr_load_relaxed, ptr_store_relaxed, u32_load_relaxed, u32_store_relaxed, u64_load_relaxed,
    u64_store_relaxed,
)


# Where a cursor stands, or that it is registered without a position.
cdef struct CursorPosition:
    bint tracked
    Position at


# The first field of each container's cursors.
cdef struct CursorNode:
    pml_u64 id              # serial << 32 | handle; 0 when it is not registered
    pml_ptr registry
    pml_i64 link            # next free cursor while pooled
    uint32_t handle
    uint32_t serial
    CursorNode* before      # in the order of registration
    CursorNode* after
    int64_t number          # of the registration
    bint durable


cdef struct CursorRegistry:
    pml_u32 lock            # of the whole container; see stamped_lock.pxd
    Pool* cursors
    CursorNode* first
    CursorNode* last
    int64_t numbers         # registrations so far
    pml_i64 size
    pml_i64 durable         # durable ones among them
    pml_i64 version
    pml_i64 left_at         # when the last cursor left, or the container began
    # The slowest position as of the last publish.
    pml_u32 slowest_tracked
    pml_i64 slowest_ledger
    pml_i64 slowest_entry


# A registered cursor, as a section or the shared lock shows it; an id of 0: there is none.
cdef struct CursorState:
    uint64_t id
    CursorPosition place
    bint durable


# A walk over the registered cursors.
cdef struct CursorWalk:
    uint64_t id
    int64_t number


cdef inline CursorPosition tracked_at(Position at) noexcept nogil:
    cdef CursorPosition target
    target.tracked = True
    target.at = at
    return target


cdef inline CursorPosition untracked() noexcept nogil:
    cdef CursorPosition target
    target.tracked = False
    target.at = position(0, 0)
    return target


# The cursors of the pool begin with a CursorNode, whose `link` is the pool's.
cdef inline void registry_init(CursorRegistry* registry, Pool* cursors, int64_t now) noexcept nogil:
    memset(registry, 0, sizeof(CursorRegistry))
    registry.cursors = cursors
    i64_store_relaxed(&registry.left_at, now)


# A cursor that is nowhere registered, or NULL without memory.
cdef inline CursorNode* registry_take(CursorRegistry* registry) noexcept nogil:
    cdef uint32_t handle = pool_take(registry.cursors)
    cdef CursorNode* node
    if not handle:
        return NULL
    node = <CursorNode*>pool_at(registry.cursors, handle)
    node.handle = handle
    node.serial += 1
    return node


# Gives back a cursor that was withdrawn, or never registered, and that nobody uses any more.
cdef inline void registry_give(CursorRegistry* registry, CursorNode* node) noexcept nogil:
    pool_give(registry.cursors, node.handle)


# Counts a change that a caller requested, after the change; answers the container's new version.
cdef inline int64_t registry_changed(CursorRegistry* registry) noexcept nogil:
    cdef int64_t version = i64_load_relaxed(&registry.version) + 1
    i64_store_relaxed(&registry.version, version)
    return version


cdef inline uint64_t registry_register(
    CursorRegistry* registry, CursorNode* node, bint durable
) noexcept nogil:
    cdef uint64_t id = <uint64_t>node.serial << 32 | node.handle
    registry.numbers += 1
    node.number = registry.numbers
    node.durable = durable
    node.before = registry.last
    node.after = NULL
    if node.before is NULL:
        registry.first = node
    else:
        node.before.after = node
    registry.last = node
    ptr_store_relaxed(&node.registry, registry)
    u64_store_relaxed(&node.id, id)
    i64_store_relaxed(&registry.size, i64_load_relaxed(&registry.size) + 1)
    i64_store_relaxed(&registry.durable, i64_load_relaxed(&registry.durable) + durable)
    return id


# Its id finds nothing from now on.
cdef inline void registry_withdraw(CursorRegistry* registry, CursorNode* node, int64_t now) noexcept nogil:
    cdef int64_t size = i64_load_relaxed(&registry.size) - 1
    if node.before is NULL:
        registry.first = node.after
    else:
        node.before.after = node.after
    if node.after is NULL:
        registry.last = node.before
    else:
        node.after.before = node.before
    u64_store_relaxed(&node.id, 0)
    i64_store_relaxed(&registry.durable, i64_load_relaxed(&registry.durable) - node.durable)
    if size == 0:
        i64_store_relaxed(&registry.left_at, now)
    # Pairs with the acquire in registry_idle.
    i64_store_release(&registry.size, size)


cdef inline void registry_set_durable(
    CursorRegistry* registry, CursorNode* node, bint durable
) noexcept nogil:
    i64_store_relaxed(&registry.durable, i64_load_relaxed(&registry.durable) + durable - node.durable)
    node.durable = durable


# A cursor at a place; NULL is none. Inside a section, or under the shared lock.
cdef inline CursorState registry_state(const CursorNode* node, CursorPosition place) noexcept nogil:
    cdef CursorState state
    state.id = 0 if node is NULL else u64_load_relaxed(&node.id)
    state.place = place
    state.durable = node is not NULL and node.durable
    return state


# The registered cursor of an id that this memory gave, or NULL.
cdef inline CursorNode* registry_find(const CursorRegistry* registry, uint64_t id) noexcept nogil:
    cdef CursorNode* node
    if not id:
        return NULL
    node = <CursorNode*>pool_at(registry.cursors, <uint32_t>id)
    if u64_load_relaxed(&node.id) != id or ptr_load_relaxed(&node.registry) != <void*>registry:
        return NULL
    return node


cdef inline int64_t registry_size(const CursorRegistry* registry) noexcept nogil:
    return i64_load_relaxed(&registry.size)


cdef inline bint registry_has_durable(const CursorRegistry* registry) noexcept nogil:
    return i64_load_relaxed(&registry.durable) > 0


cdef inline int64_t registry_version(const CursorRegistry* registry) noexcept nogil:
    return i64_load_relaxed(&registry.version)


# True if no cursor is registered and the last one left at least `grace` ago; a grace of 0 or less
# always is over.
cdef inline bint registry_idle(const CursorRegistry* registry, int64_t now, int64_t grace) noexcept nogil:
    if i64_load_acquire(&registry.size) > 0:
        return False
    # The difference, not the values, is compared: clocks may be negative or wrap.
    return grace <= 0 or <int64_t>(<uint64_t>now - <uint64_t>i64_load_relaxed(&registry.left_at)) >= grace


cdef inline void registry_publish_slowest(CursorRegistry* registry, CursorPosition slowest) noexcept nogil:
    u32_store_relaxed(&registry.slowest_tracked, slowest.tracked)
    i64_store_relaxed(&registry.slowest_ledger, slowest.at.ledger_id)
    i64_store_relaxed(&registry.slowest_entry, slowest.at.entry_id)


# Inside a section, or good only after the stamp was validated.
cdef inline CursorPosition registry_slowest(const CursorRegistry* registry) noexcept nogil:
    cdef CursorPosition slowest
    slowest.tracked = u32_load_relaxed(&registry.slowest_tracked) != 0
    slowest.at.ledger_id = i64_load_relaxed(&registry.slowest_ledger)
    slowest.at.entry_id = i64_load_relaxed(&registry.slowest_entry)
    return slowest


cdef inline CursorWalk cursor_walk() noexcept nogil:
    cdef CursorWalk walk
    walk.id = 0
    walk.number = 0
    return walk


# The id of the next cursor in the order of registration, or 0 at the end. What is registered during
# the whole walk is seen once; what comes or goes meanwhile may be seen or not.
cdef inline uint64_t registry_next(CursorRegistry* registry, CursorWalk* walk) noexcept nogil:
    cdef CursorNode* node
    cdef uint64_t found = 0
    stamped_lock_read(&registry.lock)
    node = registry_find(registry, walk.id)
    if node is not NULL:
        node = node.after
    else:
        # The last one seen has left: its number says where to go on.
        node = registry.first
        while node is not NULL and node.number <= walk.number:
            node = node.after
    if node is not NULL:
        found = u64_load_relaxed(&node.id)
        walk.number = node.number
    walk.id = found
    stamped_unlock_read(&registry.lock)
    return found
