# References that a thread holds, and mailboxes through which threads pass them on.
#
# A reference is a word above 0 whose meaning the structure's table defines. Hands belong to one
# thread. A mailbox is a cell that all threads exchange with: the thread that takes a word out owns
# that reference, and the exchange orders all that the former owner did before.

from libc.stdint cimport int32_t, int64_t, uint64_t

from pulsar_ml.harness.subjects.subject cimport PmlOperation
from pulsar_ml.operations.support cimport SubjectTable, operation_argument, table_operation
from pulsar_ml.sync.atomics cimport pml_u64, u64_cas_weak_acq_rel, u64_load_relaxed


cdef enum:
    HANDS = 8


cdef struct Hands:
    int32_t held
    uint64_t[8] words
    char[56] apart          # rounds it up to two cache lines


cdef inline bint hands_full(const Hands* hands) noexcept nogil:
    return hands.held == HANDS


cdef inline void hands_put(Hands* hands, uint64_t word) noexcept nogil:
    hands.words[hands.held] = word
    hands.held += 1


# The word number `which`, counted around; there is one.
cdef inline uint64_t hands_at(const Hands* hands, int64_t which) noexcept nogil:
    return hands.words[which % hands.held]


# Takes an item out of the hands; the last item moves to its place.
cdef inline uint64_t hands_pick(Hands* hands, int64_t which) noexcept nogil:
    cdef int64_t index = which % hands.held
    cdef uint64_t word = hands.words[index]
    hands.held -= 1
    hands.words[index] = hands.words[hands.held]
    return word


# Leaves the last word in the mailbox, if there is one, and takes what was there; the taken word, or
# 0.
cdef inline uint64_t hands_pass(Hands* hands, pml_u64* mailbox) noexcept nogil:
    cdef uint64_t mine = 0
    cdef uint64_t seen = u64_load_relaxed(mailbox)
    if hands.held:
        hands.held -= 1
        mine = hands.words[hands.held]
    # The exchange fails when another thread passed something on.
    while not u64_cas_weak_acq_rel(mailbox, &seen, mine):
        pass
    if seen:
        hands_put(hands, seen)
    return seen


# The next operation of a table, for any thread, whose first argument says which word in the hands.
cdef inline PmlOperation* hands_operation(
    SubjectTable* table, int32_t code, const char* name, int32_t weight
) noexcept nogil:
    cdef PmlOperation* operation = table_operation(table, code, name, weight, 0)
    operation_argument(operation, b"which", 0, HANDS - 1)
    return operation
