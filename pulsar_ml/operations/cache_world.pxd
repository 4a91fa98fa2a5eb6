# The world of the operations on range caches: one memory, one eviction policy, one to three range
# caches, a virtual clock, and for every thread the references it keeps, the payloads it watches and
# the entries it put in and took out.
#
# A payload says which entry it belongs to and which incarnation of it, and every read checks all of
# it. When an entry is deallocated its payload is marked dead, so that a read after that is seen
# even where the memory was not reused. With the setting `keep` most payloads outlive their entry by
# a while, which makes such a read harmless; without it, an address sanitizer sees the read as well.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlViolation
from pulsar_ml.operations.support cimport dirty, expect_equal, mix, violate
from pulsar_ml.structures.cache_manager cimport CacheManager
from pulsar_ml.structures.entry cimport (
    Payload, entry_at, entry_expected_reads, entry_matches, entry_new, entry_on_deallocate, entry_payload,
    entry_references, entry_release, payload_bytes, payload_length, payload_new, payload_release,
    payload_slice, read_count_maybe_new,
)
from pulsar_ml.structures.eviction_policy cimport EvictionPolicy, eviction_destroy, eviction_init
from pulsar_ml.structures.object_pool cimport Pool, pool_link
from pulsar_ml.structures.policy_pass cimport PolicySettings
from pulsar_ml.structures.position cimport Position, position
from pulsar_ml.structures.range_cache cimport (
    CacheMemory, RangeCache, cache_memory_destroy, cache_memory_init, range_cache_delete, range_cache_new,
)
from pulsar_ml.structures.read_count cimport read_count_release
from pulsar_ml.structures.refcount cimport (
    RELEASED_LAST, RELEASED_TOO_OFTEN, ReleaseResult, refcount_retain,
)
from pulsar_ml.structures.receive_buffer cimport (
    ReceiveBuffer, receive_buffer_append, receive_buffer_new, receive_buffer_release,
)
from pulsar_ml.structures.status cimport PML_OK
from pulsar_ml.sync.atomics cimport (
    i32_load_acquire, i64_fetch_add_relaxed, i64_load_relaxed, i64_store_relaxed, pml_i64, pml_u32,
    u32_load_relaxed, u32_store_relaxed, u64_load_relaxed,
)
from pulsar_ml.sync.memory cimport allocate_zeroed, release


cdef enum:
    MOST_KEYS = 128         # of one cache; bitmaps and buffers count on 64 keys a range
    MOST_RANGE = 64
    PLACES = 16             # references a thread keeps
    SLACK = 24              # bytes of a receive buffer beyond its slice

cdef extern from *:
    """
    /* A checked build makes and checks a world for each execution of a few operations, and each
     * pool has a directory as long as its limit. */
    #ifdef PML_CHECKED
    enum { KEPT = 16, OBJECT_LIMIT = 1 << 12 };
    #else
    enum { KEPT = 256, OBJECT_LIMIT = 1 << 22 };
    #endif
    """
    enum:
        KEPT                # payloads a thread keeps alive
        OBJECT_LIMIT        # entries, wrappers, pages, ... each

cdef enum:
    # A tick of the virtual clock is 2**32. No timestamp is before the first one; the clock itself
    # begins so much later that a late put fits in, and soon passes the largest number. The lower
    # half of all timestamps is 0, which a free list takes for its end: a wrapper that is filled
    # while it is in its pool, where timestamps are links, loses others but sends nobody astray.
    TICK_BITS = 32
    FIRST_TICK = 0x7FFFFFC0
    MOST_LATE = 40
    LONG_LIFE = 100         # ticks, of entries that still expect reads

cdef enum:
    # the first half of the keys; the second half ends at both largest numbers
    LEDGER = 5


cdef struct Held:
    uint32_t entry          # handle; 0: the place is free
    int32_t cache
    int64_t key


# The private part of one thread.
cdef struct WorldThread:
    Held[16] held
    Payload* kept[KEPT]
    int64_t incarnations    # begun
    int64_t n_entries       # entries that came to be, and the sum of their incarnation numbers
    int64_t entry_sum
    int64_t dispatched      # counting copies
    int64_t[3] put_entries  # by cache
    int64_t[3] put_bytes
    int64_t[3] removed_entries
    int64_t[3] removed_bytes
    int64_t passed_entries  # by passes of the removal queue, over all caches
    int64_t passed_bytes
    int64_t missing
    int64_t hits            # counted reads, by entries and by bytes
    int64_t hit_bytes
    char[112] apart


cdef struct CacheWorld:
    CacheMemory memory
    EvictionPolicy policy
    CacheManager* manager   # NULL: caches are used without books
    RangeCache* caches[3]
    WorldThread* threads
    int32_t n_threads
    int32_t n_caches
    int64_t n_keys
    int32_t length_shift
    bint keep
    bint has_policy
    int64_t policy_number
    char[64] apart
    pml_i64 clock
    pml_i64 given_back      # ticks, by puts without memory
    pml_i64 deallocated
    pml_i64 deallocated_sum
    pml_u32 dead_twice      # an incarnation was deallocated twice
    pml_u32 broken          # a violation was reported; nothing inside can be relied on


# Violations ---------------------------------------------------------------------------------------

# Reports a broken invariant, see violate; the world is not to be relied on from here.
cdef inline void world_violate(
    CacheWorld* world, PmlViolation* violation, const char* invariant, const char* message,
    int64_t a, int64_t b, int64_t c
) noexcept nogil:
    u32_store_relaxed(&world.broken, 1)
    violate(violation, invariant, message, a, b, c)


cdef inline bint world_equal(
    CacheWorld* world, PmlViolation* violation, const char* invariant, const char* what,
    int64_t seen, int64_t expected
) noexcept nogil:
    if seen == expected:
        return True
    u32_store_relaxed(&world.broken, 1)
    expect_equal(violation, invariant, what, seen, expected)
    return False


# Keys and payloads --------------------------------------------------------------------------------

# Keys ascend with their positions. The first half stands in clusters of four in ledger 5, across
# pages of 64; the second half lies apart in the last ledger, up to the largest entry id, across
# blocks of 4,096.
cdef inline Position world_position(const CacheWorld* world, int64_t key) noexcept nogil:
    if key < world.n_keys // 2:
        return position(LEDGER, (key // 4) * 61 + key % 4)
    return position(INT64_MAX, INT64_MAX - (world.n_keys - 1 - key) * 97)


# A position beside that of the key, in the same page or the next, that is never put.
cdef inline Position world_vacancy(const CacheWorld* world, int64_t key) noexcept nogil:
    if key < world.n_keys // 2:
        return position(LEDGER, (key // 4) * 61 + key % 4 + 4)
    return position(INT64_MAX, INT64_MAX - (world.n_keys - 1 - key) * 97 - 1)


# The key of a position, -1 if it is none.
cdef inline int64_t world_key(const CacheWorld* world, Position at) noexcept nogil:
    cdef int64_t key = -1
    cdef Position back
    if at.ledger_id == LEDGER:
        key = at.entry_id // 61 * 4 + at.entry_id % 61
    elif at.ledger_id == INT64_MAX:
        key = world.n_keys - 1 - (INT64_MAX - at.entry_id) // 97
    if key < 0 or key >= world.n_keys:
        return -1
    back = world_position(world, key)
    return key if back.ledger_id == at.ledger_id and back.entry_id == at.entry_id else -1


cdef inline uint32_t world_length(int64_t key) noexcept nogil:
    return <uint32_t>(24 + key % 5 * 8)


# Bytes counted for an entry: its length, or a large multiple that makes sums pass 32 bits.
cdef inline uint32_t world_counted(const CacheWorld* world, int64_t key) noexcept nogil:
    return world_length(key) << world.length_shift


cdef inline uint64_t payload_tag(int64_t cache, int64_t key) noexcept nogil:
    return mix(<uint64_t>(cache * MOST_KEYS + key + 1))


cdef inline uint64_t payload_word(uint64_t tag, uint64_t second, int64_t index) noexcept nogil:
    return mix(tag ^ second) + <uint64_t>index


cdef inline uint64_t* payload_words(Payload* payload) noexcept nogil:
    return <uint64_t*>payload_bytes(payload)


# Every second incarnation is a slice of a receive buffer that nobody else keeps.
cdef inline Payload* world_bytes(CacheWorld* world, uint32_t length, int64_t incarnation) noexcept nogil:
    cdef ReceiveBuffer* buffer
    cdef Payload* payload = NULL
    if incarnation & 1:
        return payload_new(&world.memory.entries.payloads, length)
    buffer = receive_buffer_new(&world.memory.buffers, length + SLACK)
    if buffer is not NULL:
        receive_buffer_append(buffer, length)
        payload = payload_slice(buffer, 0, length)
        receive_buffer_release(buffer)
    return payload


# The second word is the incarnation, and in its last bit whether a keeper shares the payload.
cdef inline Payload* world_payload(
    CacheWorld* world, int64_t cache, int64_t key, int64_t incarnation, bint kept
) noexcept nogil:
    cdef Payload* payload = world_bytes(world, world_length(key), incarnation)
    cdef uint64_t* words
    cdef int64_t i
    if payload is NULL:
        return NULL
    words = payload_words(payload)
    words[0] = payload_tag(cache, key)
    words[1] = <uint64_t>(incarnation << 1 | kept)
    for i in range(2, world_length(key) // 8):
        words[i] = payload_word(words[0], words[1], i)
    return payload


# Runs when an entry is deallocated, before it gives its payload back.
cdef inline void world_deallocated(void* context, int64_t argument) noexcept nogil:
    cdef CacheWorld* world = <CacheWorld*>context
    cdef Payload* payload = <Payload*>argument
    cdef uint64_t* words = payload_words(payload)
    if words[0] == 0:
        u32_store_relaxed(&world.dead_twice, 1)
        return
    i64_fetch_add_relaxed(&world.deallocated, 1)
    i64_fetch_add_relaxed(&world.deallocated_sum, <int64_t>(words[1] >> 1))
    # If only this entry and the keeper share it, nobody else can come to share it any more.
    # Acquire: other sharers have read the bytes before.
    if i32_load_acquire(&payload.references) == 1 + <int32_t>(words[1] & 1):
        words[0] = 0


# True if the entry, of which the caller holds a reference, is the one put for the key.
cdef inline bint world_verify(
    CacheWorld* world, int64_t cache, int64_t key, uint32_t entry, PmlViolation* violation
) noexcept nogil:
    cdef Payload* payload
    cdef uint64_t* words
    cdef int64_t i
    cdef int32_t references = entry_references(&world.memory.entries, entry)
    if references < 1:
        world_violate(world, violation, b"I3", b"key %lld of cache %lld is held and has %lld references",
                      key, cache, references)
        return False
    if not entry_matches(&world.memory.entries, entry, world_position(world, key)):
        world_violate(world, violation, b"I1", b"under key %lld stands an entry with id %lld, not %lld", key,
                      entry_at(&world.memory.entries, entry).entry_id, world_position(world, key).entry_id)
        return False
    payload = entry_payload(entry_at(&world.memory.entries, entry))
    if <size_t>payload <= OBJECT_LIMIT:
        world_violate(world, violation, b"I18", b"the entry of key %lld is held and in its pool", key, 0, 0)
        return False
    words = payload_words(payload)
    if words[0] == 0:
        world_violate(world, violation, b"I2", b"the payload of key %lld was given back while it is held",
                      key, 0, 0)
        return False
    if words[0] != payload_tag(cache, key):
        world_violate(world, violation, b"I11", b"the payload of key %lld of cache %lld is not its own",
                      key, cache, 0)
        return False
    if payload_length(payload) != world_length(key):
        world_violate(world, violation, b"I2", b"the payload of key %lld has %lld bytes, not %lld", key,
                      payload_length(payload), world_length(key))
        return False
    for i in range(2, payload_length(payload) // 8):
        if words[i] != payload_word(words[0], words[1], i):
            world_violate(world, violation, b"I2", b"word %lld of the payload of key %lld changed", i, key, 0)
            return False
    return world_alive(world, violation)


# True if every incarnation was deallocated at most once so far.
cdef inline bint world_alive(CacheWorld* world, PmlViolation* violation) noexcept nogil:
    if u32_load_relaxed(&world.dead_twice):
        world_violate(world, violation, b"I14", b"an incarnation was deallocated twice", 0, 0, 0)
        return False
    return True


cdef inline int64_t world_incarnation(const CacheWorld* world, uint32_t entry) noexcept nogil:
    return <int64_t>(payload_words(entry_payload(entry_at(&world.memory.entries, entry)))[1] >> 1)


cdef inline int64_t world_expected(CacheWorld* world, uint32_t entry) noexcept nogil:
    return entry_expected_reads(&world.memory.entries, entry)


# Entries and references ---------------------------------------------------------------------------

# A new entry for the key with one reference, the caller's; 0 without memory.
cdef inline uint32_t world_entry(
    CacheWorld* world, int32_t thread, int64_t cache, int64_t key, int64_t expected_reads
) noexcept nogil:
    cdef WorldThread* me = &world.threads[thread]
    cdef int64_t incarnation
    cdef uint32_t entry
    cdef uint32_t read_count = ~<uint32_t>0     # until the call says which
    cdef Payload* payload
    me.incarnations += 1
    incarnation = <int64_t>thread << 40 | me.incarnations
    payload = world_payload(world, cache, key, incarnation, world.keep and world_can_keep(me))
    if payload is NULL:
        return 0
    if not read_count_maybe_new(&world.memory.entries, <int32_t>expected_reads, &read_count):
        payload_release(&world.memory.entries.payloads, payload)
        return 0
    entry = entry_new(&world.memory.entries, world_position(world, key), payload, read_count, False)
    if not entry:
        payload_release(&world.memory.entries.payloads, payload)
        if read_count:
            read_count_release(&world.memory.entries.read_counts, read_count)
        return 0
    if entry_on_deallocate(&world.memory.entries, entry, world_deallocated, world,
                           <int64_t>payload) != PML_OK:
        entry_release(&world.memory.entries, entry, 1)
        return 0
    me.n_entries += 1
    me.entry_sum += incarnation
    if payload_words(payload)[1] & 1:
        world_keep(world, me, payload)
    return entry


# True if only the keeper shares the payload whose place the next one would take. Otherwise it
# stays, because its keeper must outlive all others.
cdef inline bint world_can_keep(const WorldThread* me) noexcept nogil:
    cdef Payload* before = me.kept[(me.n_entries + 1) % KEPT]
    return before is NULL or i32_load_acquire(&before.references) == 1


cdef inline void world_keep(CacheWorld* world, WorldThread* me, Payload* payload) noexcept nogil:
    cdef int64_t place = me.n_entries % KEPT
    refcount_retain(&payload.references)
    if me.kept[place] is not NULL:
        payload_release(&world.memory.entries.payloads, me.kept[place])
    me.kept[place] = payload


# Gives one reference back that the caller holds; whether it was the last.
cdef inline bint world_release(CacheWorld* world, uint32_t entry, PmlViolation* violation) noexcept nogil:
    cdef ReleaseResult released = entry_release(&world.memory.entries, entry, 1)
    if released == RELEASED_TOO_OFTEN:
        world_violate(world, violation, b"I13", b"a held reference could not be released", 0, 0, 0)
    world_alive(world, violation)
    return released == RELEASED_LAST


# Takes over the caller's reference. The reference that was kept for longest goes.
cdef inline void world_hold(
    CacheWorld* world, int32_t thread, int64_t place, int64_t cache, int64_t key, uint32_t entry,
    PmlViolation* violation
) noexcept nogil:
    cdef Held* held = &world.threads[thread].held[place % PLACES]
    world_give_back(world, held, violation)
    held.entry = entry
    held.cache = <int32_t>cache
    held.key = key


# Checks what was held once more and gives it back; whether it was the last reference.
cdef inline bint world_give_back(CacheWorld* world, Held* held, PmlViolation* violation) noexcept nogil:
    cdef uint32_t entry = held.entry
    if not entry or u32_load_relaxed(&world.broken):
        return False
    held.entry = 0
    if not world_verify(world, held.cache, held.key, entry, violation):
        return False
    return world_release(world, entry, violation)


cdef inline int64_t world_ticks(int64_t ticks) noexcept nogil:
    return ticks * (<int64_t>1 << TICK_BITS)


# A moment so many ticks after another one, or before it.
cdef inline int64_t world_later(int64_t moment, int64_t ticks) noexcept nogil:
    return <int64_t>(<uint64_t>moment + <uint64_t>world_ticks(ticks))


# True if a moment is before another one that is less than half of all moments away.
cdef inline bint world_is_before(int64_t moment, int64_t other) noexcept nogil:
    return <int64_t>(<uint64_t>moment - <uint64_t>other) < 0


cdef inline int64_t world_tick(CacheWorld* world) noexcept nogil:
    return world_later(i64_fetch_add_relaxed(&world.clock, world_ticks(1)), 1)


# Life ---------------------------------------------------------------------------------------------

cdef inline PolicySettings world_settings(int64_t max_requeue, bint extend) noexcept nogil:
    return PolicySettings(<int32_t>max_requeue, extend, world_ticks(LONG_LIFE))


# Settings: caches, keys, chunk_bits, queue_chunk_bits, max_requeue, extend, length_shift, keep,
# policy. NULL without memory, and nothing is left behind.
cdef inline void* world_create(const int64_t* settings, int32_t threads) noexcept nogil:
    cdef CacheWorld* world = <CacheWorld*>allocate_zeroed(1, sizeof(CacheWorld))
    cdef int32_t i
    if world is NULL:
        return NULL
    world.n_threads = threads
    world.n_keys = settings[1]
    world.length_shift = <int32_t>settings[6]
    world.keep = settings[7] != 0
    i64_store_relaxed(&world.clock, world_ticks(FIRST_TICK + MOST_LATE))
    world.threads = <WorldThread*>allocate_zeroed(threads, sizeof(WorldThread))
    if world.threads is NULL:
        release(world)
        return NULL
    dirty(&world.memory, sizeof(CacheMemory))
    dirty(&world.policy, sizeof(EvictionPolicy))
    if cache_memory_init(&world.memory, <uint32_t>settings[2], OBJECT_LIMIT) != PML_OK:
        release(world.threads)
        release(world)
        return NULL
    world.policy_number = settings[8]
    world.has_policy = eviction_init(
        &world.policy, settings[8], &world.memory, <uint32_t>settings[3],
        world_settings(settings[4], settings[5] != 0)) == PML_OK
    if not world.has_policy:
        world_free(world)
        return NULL
    for i in range(<int32_t>settings[0]):
        world.caches[i] = range_cache_new(&world.memory, &world.policy.base.intake)
        if world.caches[i] is NULL:
            world_free(world)
            return NULL
        world.n_caches += 1
    return world


# Everything was removed, or nothing was put. In a world where a violation was seen nothing can be
# relied on, and waiting for an empty map might take for ever: what is left in it is not looked at,
# and payloads and directories leak.
cdef inline void world_free(CacheWorld* world) noexcept nogil:
    cdef int32_t i
    cdef bint whole = not u32_load_relaxed(&world.broken)
    if whole and world.has_policy:
        for i in range(world.n_caches):
            range_cache_delete(world.caches[i])
        eviction_destroy(&world.policy)
    cache_memory_destroy(&world.memory)
    release(world.threads)
    release(world)


cdef inline void world_release_kept(CacheWorld* world) noexcept nogil:
    cdef int32_t thread, i
    for thread in range(world.n_threads):
        for i in range(KEPT):
            if world.threads[thread].kept[i] is not NULL:
                payload_release(&world.memory.entries.payloads, world.threads[thread].kept[i])
                world.threads[thread].kept[i] = NULL


# Objects of a pool in use, -1 when its free list is not a list of different free objects. Unlike
# pool_in_use it ends in that case too.
cdef inline int64_t world_in_use(const Pool* pool) noexcept nogil:
    cdef uint32_t used = u32_load_relaxed(&pool.used)
    cdef int64_t in_use = <int64_t>used - 1
    cdef uint32_t handle = <uint32_t>u64_load_relaxed(&pool.head)
    while handle:
        in_use -= 1
        if in_use < 0 or handle >= used:
            return -1
        handle = <uint32_t>i64_load_relaxed(pool_link(pool, handle))
    return in_use
