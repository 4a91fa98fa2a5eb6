# A compressed set of the entry ids of one ledger, a part of delayed_tracker and delayed_manager.
#
# Origin       Roaring64Bitmap, which Pulsar's delayed trackers use (Lemire et al., "Roaring
#              Bitmaps: Implementation of an Optimized Software Library", 2018). Blocks of 65,536
#              ids, each a sorted array, a list of runs or a bitmap, whichever is small. Here the
#              form is chosen when a block has no room left, not by an explicit call.
# Threads      One at a time; readers together when nobody changes the set.
# Invariants   ES-1 (I91) the count is the number of members, in each block and in the set.
#              ES-2 blocks ascend and none is empty; values and runs ascend, and runs do not touch
#              each other.
#              ES-3 the bytes that the calls report are the bytes that are allocated.
#              ES-4 an array that grows has more than a quarter as many runs as values.
# Ordering     That of the lock around it.
# Reclamation  The memory goes with its last member.
# Not promised The smallest form at every moment.

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from pulsar_ml.sync.bits cimport count_ones, lowest_one
from pulsar_ml.sync.memory cimport allocate, allocate_zeroed, release


cdef enum:
    SET_LEAST = 4           # values of the first array, and blocks of a set when it grows
    SET_ARRAY_MOST = 4096   # values, or ends of runs, in as many bytes as a bitmap
    SET_SHRINK = 1024       # members of a bitmap that becomes an array again
    SET_WORDS = 1024        # of a bitmap


cdef enum BlockForm:
    BLOCK_ARRAY = 0
    BLOCK_RUNS = 1          # pairs: first and last of each run
    BLOCK_BITMAP = 2


cdef enum SetAdded:
    SET_ADDED = 0
    SET_EXISTS = 1
    SET_NO_MEMORY = 2       # nothing changed


cdef struct SetBlock:
    int64_t base            # the ids' upper 48 bits
    uint16_t* values
    int32_t room            # values allocated
    int32_t used            # values in use
    int32_t count           # members
    uint32_t form


# All zero: empty.
cdef struct EntrySet:
    SetBlock* blocks
    int32_t used, room
    int64_t count


# Blocks ------------------------------------------------------------------------------------------

# The first value that is not below v, or `used`.
cdef inline int32_t block_bound(const SetBlock* block, uint16_t v) noexcept nogil:
    cdef int32_t low = 0
    cdef int32_t high = block.used
    cdef int32_t middle
    if high and block.values[high - 1] < v:
        return high
    while low < high:
        middle = (low + high) >> 1
        if block.values[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


# The first run whose last member is not below v, or the number of runs.
cdef inline int32_t block_run(const SetBlock* block, uint16_t v) noexcept nogil:
    cdef int32_t low = 0
    cdef int32_t high = block.used >> 1
    cdef int32_t middle
    if high and block.values[2 * high - 1] < v:
        return high
    while low < high:
        middle = (low + high) >> 1
        if block.values[2 * middle + 1] < v:
            low = middle + 1
        else:
            high = middle
    return low


# Copies members from `low` on, ascending, in 64 bits; how many.
cdef inline int64_t block_copy(
    const SetBlock* block, int64_t low, int64_t* out, int64_t most
) noexcept nogil:
    cdef int64_t base = block.base << 16
    cdef int64_t n = 0
    cdef int64_t v
    cdef int32_t i
    cdef const uint64_t* words
    cdef uint64_t word
    if block.form == BLOCK_ARRAY:
        i = block_bound(block, <uint16_t>low)
        n = min(<int64_t>block.used - i, most)
        for v in range(n):
            out[v] = base | block.values[i + v]
    elif block.form == BLOCK_RUNS:
        i = block_run(block, <uint16_t>low)
        while 2 * i < block.used and n < most:
            v = max(low, <int64_t>block.values[2 * i])
            while v <= block.values[2 * i + 1] and n < most:
                out[n] = base | v
                n += 1
                v += 1
            i += 1
    else:
        words = <const uint64_t*>block.values
        i = <int32_t>(low >> 6)
        word = words[i] & (~<uint64_t>0 << (low & 63))
        while n < most:
            if not word:
                i += 1
                if i == SET_WORDS:
                    break
                word = words[i]
                continue
            out[n] = base | <int64_t>i << 6 | lowest_one(word)
            n += 1
            word &= word - 1
    return n


# Members of `low` and above.
cdef inline int64_t block_count_from(const SetBlock* block, int64_t low) noexcept nogil:
    cdef int64_t n = 0
    cdef int32_t i
    cdef const uint64_t* words
    if low == 0:
        return block.count
    if block.form == BLOCK_ARRAY:
        return block.used - block_bound(block, <uint16_t>low)
    if block.form == BLOCK_RUNS:
        for i in range(block_run(block, <uint16_t>low), block.used >> 1):
            n += block.values[2 * i + 1] - max(low, <int64_t>block.values[2 * i]) + 1
        return n
    words = <const uint64_t*>block.values
    n = count_ones(words[low >> 6] & (~<uint64_t>0 << (low & 63)))
    for i in range(<int32_t>(low >> 6) + 1, SET_WORDS):
        n += count_ones(words[i])
    return n


# Runs that the values of an array would make.
cdef inline int32_t block_count_runs(const SetBlock* block) noexcept nogil:
    cdef int32_t runs = 1
    cdef int32_t i
    for i in range(1, block.used):
        runs += block.values[i] != block.values[i - 1] + 1
    return runs


# Gives a block another form with room for more; False without memory.
cdef inline bint block_convert(SetBlock* block, BlockForm form, int32_t room, int64_t* bytes) noexcept nogil:
    cdef uint16_t* values
    cdef int64_t[64] members
    cdef int64_t next_member = 0
    cdef int32_t used = 0
    cdef int64_t n, i
    cdef uint16_t v
    values = <uint16_t*>allocate_zeroed(<size_t>room, sizeof(uint16_t))
    if values is NULL:
        return False
    while next_member <= 0xFFFF:
        n = block_copy(block, next_member, members, 64)
        for i in range(n):
            v = <uint16_t>members[i]
            if form == BLOCK_ARRAY:
                values[used] = v
                used += 1
            elif form == BLOCK_BITMAP:
                (<uint64_t*>values)[v >> 6] |= <uint64_t>1 << (v & 63)
            elif used and values[used - 1] + 1 == v:
                values[used - 1] = v
            else:
                values[used] = values[used + 1] = v
                used += 2
        if n < 64:
            break
        next_member = (members[n - 1] & 0xFFFF) + 1
    bytes[0] += (<int64_t>room - block.room) * <int64_t>sizeof(uint16_t)
    release(block.values)
    block.values = values
    block.room = room
    block.used = SET_ARRAY_MOST if form == BLOCK_BITMAP else used
    block.form = form
    return True


# Room for two more values, in the form that is smallest now; False without memory.
cdef inline bint block_make_room(SetBlock* block, int64_t* bytes) noexcept nogil:
    cdef int32_t runs
    if block.form == BLOCK_BITMAP or block.used + 2 <= block.room:
        return True
    if block.form == BLOCK_ARRAY:
        runs = block_count_runs(block)
        if 4 * runs <= block.used:
            return block_convert(block, BLOCK_RUNS, 4 * runs, bytes)
    elif block.used > block.count and block.count < SET_ARRAY_MOST - 2:
        return block_convert(block, BLOCK_ARRAY, min(2 * block.count, <int32_t>SET_ARRAY_MOST), bytes)
    if block.used + 2 > SET_ARRAY_MOST:
        return block_convert(block, BLOCK_BITMAP, SET_ARRAY_MOST, bytes)
    return block_convert(block, <BlockForm>block.form, min(2 * block.room, <int32_t>SET_ARRAY_MOST), bytes)


cdef inline bint block_has(const SetBlock* block, uint16_t v) noexcept nogil:
    cdef int32_t i
    if block.form == BLOCK_ARRAY:
        i = block_bound(block, v)
        return i < block.used and block.values[i] == v
    if block.form == BLOCK_RUNS:
        i = block_run(block, v)
        return 2 * i < block.used and block.values[2 * i] <= v
    return (<const uint64_t*>block.values)[v >> 6] >> (v & 63) & 1


# Moves `count` values up from a place, for others to stand there.
cdef inline void block_open(SetBlock* block, int32_t at, int32_t count) noexcept nogil:
    if at < block.used:
        memmove(&block.values[at + count], &block.values[at],
                <size_t>(block.used - at) * sizeof(uint16_t))
    block.used += count


# The run i ends where v stood before it, or the next one begins there, or v is a run of its own.
cdef inline void block_add_run(SetBlock* block, uint16_t v) noexcept nogil:
    cdef int32_t at = 2 * block_run(block, v)
    cdef bint below = at > 0 and block.values[at - 1] + 1 == v
    cdef bint above = at < block.used and block.values[at] == v + 1
    if below and above:
        block.used -= 2
        block.values[at - 1] = block.values[at + 1]
        if at < block.used:
            memmove(&block.values[at], &block.values[at + 2],
                    <size_t>(block.used - at) * sizeof(uint16_t))
    elif below:
        block.values[at - 1] = v
    elif above:
        block.values[at] = v
    else:
        block_open(block, at, 2)
        block.values[at] = block.values[at + 1] = v


cdef inline SetAdded block_add(SetBlock* block, uint16_t v, int64_t* bytes) noexcept nogil:
    cdef int32_t at
    if block_has(block, v):
        return SET_EXISTS
    if not block_make_room(block, bytes):
        return SET_NO_MEMORY
    if block.form == BLOCK_ARRAY:
        at = block_bound(block, v)
        block_open(block, at, 1)
        block.values[at] = v
    elif block.form == BLOCK_RUNS:
        block_add_run(block, v)
    else:
        (<uint64_t*>block.values)[v >> 6] |= <uint64_t>1 << (v & 63)
    block.count += 1
    return SET_ADDED


# Takes out the members below `low`, not all of them.
cdef inline void block_trim(SetBlock* block, int64_t low, int64_t* bytes) noexcept nogil:
    cdef int32_t at, i
    cdef uint64_t* words
    block.count = <int32_t>block_count_from(block, low)
    if block.form == BLOCK_BITMAP:
        words = <uint64_t*>block.values
        for i in range(<int32_t>(low >> 6)):
            words[i] = 0
        words[low >> 6] &= ~<uint64_t>0 << (low & 63)
        if block.count <= SET_SHRINK:
            # Without memory it stays what it is.
            block_convert(block, BLOCK_ARRAY, SET_SHRINK + 2, bytes)
        return
    if block.form == BLOCK_ARRAY:
        at = block_bound(block, <uint16_t>low)
    else:
        at = 2 * block_run(block, <uint16_t>low)
        block.values[at] = <uint16_t>max(low, <int64_t>block.values[at])
    block.used -= at
    memmove(block.values, &block.values[at], <size_t>block.used * sizeof(uint16_t))


# The set -----------------------------------------------------------------------------------------

# The first block whose base is not below that, or `used`.
cdef inline int32_t set_bound(const EntrySet* entries, int64_t base) noexcept nogil:
    cdef int32_t low = 0
    cdef int32_t high = entries.used
    cdef int32_t middle
    if high and entries.blocks[high - 1].base < base:
        return high
    while low < high:
        middle = (low + high) >> 1
        if entries.blocks[middle].base < base:
            low = middle + 1
        else:
            high = middle
    return low


# A new block with one member at place `at`; False without memory.
cdef inline bint set_insert(EntrySet* entries, int32_t at, int64_t entry, int64_t* bytes) noexcept nogil:
    cdef uint16_t* values = <uint16_t*>allocate(SET_LEAST * sizeof(uint16_t))
    cdef SetBlock* blocks
    cdef int32_t room
    if values is NULL:
        return False
    if entries.used == entries.room:
        room = 2 * entries.room if entries.room else 1
        blocks = <SetBlock*>allocate(<size_t>room * sizeof(SetBlock))
        if blocks is NULL:
            release(values)
            return False
        if entries.used:
            memcpy(blocks, entries.blocks, <size_t>entries.used * sizeof(SetBlock))
        bytes[0] += (<int64_t>room - entries.room) * <int64_t>sizeof(SetBlock)
        release(entries.blocks)
        entries.blocks = blocks
        entries.room = room
    if at < entries.used:
        memmove(&entries.blocks[at + 1], &entries.blocks[at],
                <size_t>(entries.used - at) * sizeof(SetBlock))
    values[0] = <uint16_t>entry
    entries.blocks[at] = SetBlock(entry >> 16, values, SET_LEAST, 1, 1, BLOCK_ARRAY)
    entries.used += 1
    bytes[0] += SET_LEAST * <int64_t>sizeof(uint16_t)
    return True


# Adds an id >= 0. What was allocated and freed is added to the bytes.
cdef inline SetAdded entry_set_add(EntrySet* entries, int64_t entry, int64_t* bytes) noexcept nogil:
    cdef int32_t at = set_bound(entries, entry >> 16)
    cdef SetAdded added
    if at < entries.used and entries.blocks[at].base == entry >> 16:
        added = block_add(&entries.blocks[at], <uint16_t>entry, bytes)
    else:
        added = SET_ADDED if set_insert(entries, at, entry, bytes) else SET_NO_MEMORY
    entries.count += added == SET_ADDED
    return added


# Copies members from `low` on, ascending; how many.
cdef inline int64_t entry_set_copy(
    const EntrySet* entries, int64_t low, int64_t* out, int64_t most
) noexcept nogil:
    cdef int32_t at = set_bound(entries, low >> 16)
    cdef int64_t n = 0
    while at < entries.used and n < most:
        n += block_copy(&entries.blocks[at], low & 0xFFFF if entries.blocks[at].base == low >> 16 else 0,
                        out + n, most - n)
        at += 1
    return n


# The number of members that are `low` or above.
cdef inline int64_t entry_set_count_from(const EntrySet* entries, int64_t low) noexcept nogil:
    cdef int32_t at = set_bound(entries, low >> 16)
    cdef int64_t n = 0
    if at == 0 and (not entries.used or entries.blocks[0].base > low >> 16):
        return entries.count
    while at < entries.used:
        n += block_count_from(
            &entries.blocks[at], low & 0xFFFF if entries.blocks[at].base == low >> 16 else 0)
        at += 1
    return n


# Takes out all members up to `last`; how many.
cdef inline int64_t entry_set_remove_to(EntrySet* entries, int64_t last, int64_t* bytes) noexcept nogil:
    cdef int64_t removed = entries.count
    cdef int64_t low = last + 1 if last < INT64_MAX else INT64_MAX
    cdef int32_t at = 0
    cdef SetBlock* block
    while at < entries.used:
        block = &entries.blocks[at]
        if block.base > low >> 16:
            break
        if last == INT64_MAX or block.base < low >> 16 or block_count_from(block, low & 0xFFFF) == 0:
            bytes[0] -= block.room * <int64_t>sizeof(uint16_t)
            entries.count -= block.count
            release(block.values)
            at += 1
            continue
        entries.count -= block.count
        block_trim(block, low & 0xFFFF, bytes)
        entries.count += block.count
        break
    if at:
        entries.used -= at
        memmove(entries.blocks, &entries.blocks[at], <size_t>entries.used * sizeof(SetBlock))
    if not entries.used:
        bytes[0] -= entries.room * <int64_t>sizeof(SetBlock)
        release(entries.blocks)
        entries.blocks = NULL
        entries.room = 0
    return removed - entries.count
