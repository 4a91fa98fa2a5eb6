# Programs drawn without Python: the same as those of Program.generate, from the same seed.
#
# The words are those of Philox 4x64 with ten rounds, as NumPy's bit generator returns them.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from pulsar_ml.harness.subjects.subject cimport PmlArgument, PmlCall, PmlOperation, PmlSubject


cdef extern from *:
    """
    typedef unsigned __int128 pml_u128;
    """
    ctypedef unsigned long long pml_u128  # the compiler knows that it has twice as many bits


# Values of PmlCall.noise: above 0 that many pauses, 0 nothing, -1 give the processor away, -2 - k
# move to another of the allowed processors, k further than the next one.
cdef enum:
    NOISE_YIELD = -1
    NOISE_MOVE = -2

cdef enum:
    SETTINGS_STREAM = 1
    ROLES_STREAM = 2
    PROGRAMS_STREAM = 5   # of the seeds of a trial's further programs
    THREAD_STREAM_BIT = 32
    MAX_SPIN_BITS = 10
    MOST_OPERATIONS = 64  # of a subject, for many runs


# What decides the programs of a subject but for their seeds.
cdef struct Drawing:
    int64_t n_calls       # of each thread
    int64_t[64] weights   # of the operations, by code
    int64_t[16] lows      # of the settings, inclusive as the next
    int64_t[16] highs
    int32_t[64] roles     # in ascending order
    int32_t n_roles
    bint noise


# The stream of words of a seed.
cdef struct Words:
    uint64_t[2] key
    uint64_t next_block
    uint64_t[4] block
    int32_t used


cdef inline void words_of(Words* words, uint64_t seed, uint64_t stream, uint64_t block) noexcept nogil:
    words.key[0] = seed
    words.key[1] = stream
    words.next_block = block + 1
    words.used = 4


cdef inline uint64_t next_word(Words* words) noexcept nogil:
    if words.used == 4:
        fill(words)
    words.used += 1
    return words.block[words.used - 1]


cdef inline void fill(Words* words) noexcept nogil:
    cdef uint64_t a = words.next_block, b = 0, c = 0, d = 0
    cdef uint64_t first = words.key[0], second = words.key[1]
    cdef pml_u128 left, right
    cdef int turn
    for turn in range(10):
        left = <pml_u128>a * <uint64_t>0xD2E7470EE14C6C93
        right = <pml_u128>c * <uint64_t>0xCA5A826395121157
        a = <uint64_t>(right >> 64) ^ b ^ first
        c = <uint64_t>(left >> 64) ^ d ^ second
        b = <uint64_t>right
        d = <uint64_t>left
        first += <uint64_t>0x9E3779B97F4A7C15
        second += <uint64_t>0xBB67AE8584CAA73B
    words.block[0] = a
    words.block[1] = b
    words.block[2] = c
    words.block[3] = d
    words.next_block += 1
    words.used = 0


# The seed of a trial's further program; that of number 0 is not the trial's own.
cdef inline uint64_t program_seed(uint64_t seed, int64_t number) noexcept nogil:
    cdef Words words
    words_of(&words, seed, PROGRAMS_STREAM, <uint64_t>number)
    return next_word(&words) >> 1


cdef inline void draw_settings(
    const PmlSubject* table, const Drawing* drawing, uint64_t seed, int64_t* settings
) noexcept nogil:
    cdef Words words
    cdef pml_u128 span
    cdef int i
    words_of(&words, seed, SETTINGS_STREAM, 0)
    for i in range(table.n_settings):
        span = <uint64_t>(drawing.highs[i] - drawing.lows[i]) + <pml_u128>1
        settings[i] = drawing.lows[i] + <int64_t>(next_word(&words) * span >> 64)


# Draws the calls of one thread; returns their number, 0 if it may call nothing.
cdef inline int64_t draw_calls(
    const PmlSubject* table, const Drawing* drawing, uint64_t seed, int32_t thread, int32_t threads,
    PmlCall* calls
) noexcept nogil:
    cdef Words words
    cdef int64_t[64] bounds
    cdef uint64_t total = thread_bounds(table, drawing, seed, thread, threads, bounds)
    cdef int32_t width = 0
    cdef int32_t rate, code, i
    cdef int64_t number, at
    cdef uint64_t word, argument
    if total == 0:
        return 0
    for i in range(table.n_operations):
        width = max(width, table.operations[i].n_arguments)
    words_of(&words, seed, (<uint64_t>1 << THREAD_STREAM_BIT) + <uint64_t>thread, 0)
    rate = noise_rate(next_word(&words), drawing.noise)
    for i in range(width):
        next_word(&words)
    for number in range(drawing.n_calls):
        word = next_word(&words)
        at = scaled(word, total)
        code = 0
        while bounds[code] <= at:
            code += 1
        calls[number].code = code
        calls[number].noise = noise_of(<uint32_t>word, rate)
        for i in range(3):
            calls[number].arguments[i] = 0
        for i in range(width):
            argument = next_word(&words)
            if i < table.operations[code].n_arguments:
                calls[number].arguments[i] = argument_of(&table.operations[code].arguments[i], argument)
    return drawing.n_calls


# Adds up the weights of the operations that a thread may call; returns their sum. The owner of a
# role has the weight of all threads.
cdef inline uint64_t thread_bounds(
    const PmlSubject* table, const Drawing* drawing, uint64_t seed, int32_t thread, int32_t threads,
    int64_t* bounds
) noexcept nogil:
    cdef Words words
    cdef uint64_t owners = 0  # the roles that the thread plays, by their place in the order
    cdef int64_t total = 0, weight
    cdef int32_t i, place
    words_of(&words, seed, ROLES_STREAM, 0)
    for i in range(drawing.n_roles):
        if scaled(next_word(&words), threads) == thread:
            owners |= <uint64_t>1 << i
    for i in range(table.n_operations):
        weight = drawing.weights[i]
        if table.operations[i].role != 0:
            place = 0
            while drawing.roles[place] != table.operations[i].role:
                place += 1
            weight = weight * threads if owners >> place & 1 else 0
        total += weight
        bounds[i] = total
    return total


# Scales the upper half of a word to 0..span-1.
cdef inline int64_t scaled(uint64_t word, uint64_t span) noexcept nogil:
    return (word >> 32) * span >> 32


# Small ranges by scaling, wide ones by remainder.
cdef inline int64_t argument_of(const PmlArgument* argument, uint64_t word) noexcept nogil:
    cdef uint64_t most = <uint64_t>argument.high - <uint64_t>argument.low
    if most < <uint64_t>1 << 32:
        return argument.low + scaled(word, most + 1)
    if most + 1 != 0:
        word %= most + 1
    return <int64_t>(word + <uint64_t>argument.low)


# Disturbed calls among 65,536: each thread of a program draws its own rate.
cdef inline int32_t noise_rate(uint64_t style, bint noise) noexcept nogil:
    if not noise or style & 3 == 0:
        return 0
    return 64 << 3 * ((style & 3) - 1)


cdef inline int32_t noise_of(uint64_t lower, int32_t rate) noexcept nogil:
    cdef uint64_t kind = lower >> 12 & 15
    if <int32_t>(lower >> 16) >= rate:
        return 0
    if kind == 15:
        return NOISE_MOVE - <int32_t>(lower & 0xFF)
    if kind >= 10:
        return NOISE_YIELD
    return 1 << (lower >> 8 & 15) % (MAX_SPIN_BITS + 1)
