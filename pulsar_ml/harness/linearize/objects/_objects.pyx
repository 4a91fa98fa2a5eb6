"""The native search for the other models of this package: their steps need no model in Python.

A queue, a stack or a priority queue is a sequence of numbers; a set, a multiset and a map have a
part for each value or key, whose state is one number; a counter, a lock and a register are one
number each.
"""

from __future__ import annotations

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.cells._parts cimport Parts, Placed
from pulsar_ml.harness.linearize.objects.hints cimport (
    COUNTER, LOCK, MAP, MULTISET, PRIORITIES, QUEUE, REGISTER, SET, STACK, Hints, Kind, hopeful,
)
from pulsar_ml.harness.linearize.objects.sequences cimport (
    NO_SEQUENCE, Sequence, Sequences, sequence_with, sequence_without, sequences_free, sequences_start,
)
from pulsar_ml.harness.linearize.objects.takes cimport (
    ANYTHING, NOTHING, NO_VALUE, Effect, takes_free, takes_start,
)
from pulsar_ml.harness.linearize.objects.whole cimport (
    Whole, has_whole, whole_free, whole_place, whole_run,
)
from pulsar_ml.harness.linearize.search.depth cimport ANSWER_LEGAL, OUT_OF_MEMORY
from pulsar_ml.harness.linearize.search.lanes cimport REAL_TIME
from pulsar_ml.harness.linearize.search.pool cimport Pool, mixed, pool_add, pool_at, pool_free, pool_shape
from pulsar_ml.harness.linearize.search.table cimport ANY_CALL, mark_symbol, table_set

KINDS = ("queue", "stack", "priority queue", "set", "multiset", "map", "counter", "lock", "register")
ACTIONS = (
    "put", "take", "add", "remove", "contains", "count", "read", "adds", "add_and_get", "get_and_add",
    "increment", "decrement", "acquire", "try_acquire", "release", "write", "cas", "delete",
)

cdef enum Action:
    PUT, TAKE, ADD, REMOVE, CONTAINS, COUNT, READ, ADDS, ADD_AND_GET, GET_AND_ADD, INCREMENT, DECREMENT,
    ACQUIRE, TRY, RELEASE, WRITE, CAS, DELETE

# How results are stored; see history.Signature.
cdef enum Result:
    IS_NONE, IS_WORD, IS_FLAG, IS_VALUE

RESULTS = ("none", "word", "flag", "value")

cdef enum:
    MOST_OPERATIONS = 16
    WRONG = -1            # a record that the model must refuse
    PENDING_BIT = 1
    FREE = 0              # the state of a lock that no thread holds
    NO = 0
    YES = 1
    UNSURE = -1           # a result that is no truth value

cdef int64_t MOST_SUM = <int64_t>1 << 40
cdef int64_t ABSENT_WORD = <int64_t>(<uint64_t>1 << 63)


cdef struct Event:        # of a symbol
    int32_t action
    int32_t a, b          # the numbers of its arguments
    int32_t result        # the number of its result, or a truth value
    bint pending
    int64_t amount        # an argument, or a result, of a counter
    int64_t sum
    bint impossible       # its result is that of no state


cdef class Objects(Parts):
    """Searches for histories of one object, or of one for each key.

    Args:
        kind: an index into KINDS.
        actions: for each operation an index into ACTIONS.
        results: for each operation an index into RESULTS.
        values: for each of the history's values its number, which equal values share; for a
            counter the integer itself, and ABSENT for a value that is none. None: words are values.
        truths: for each of the history's values 1 if it is True, 0 if it is False, else -1; for a
            multiset the count that it is.
        falses: for each of them 1 if it is the object False.
        none: the number of None among ``values``; -1: none.
        ordered: for words of a priority queue, all of them in ascending order.
        initial: the first value of a register, of each key of a map (None) or of a counter, as a
            word or a number.
        keyed: the first argument of each call is a key.
    """

    cdef Hints hints
    cdef int32_t[16] actions
    cdef int32_t[16] results
    cdef int32_t operations
    cdef bint keyed
    cdef bint has_values
    cdef int64_t* values
    cdef int64_t* truths
    cdef int64_t* falses
    cdef int64_t* ordered
    cdef int64_t n_values, n_ordered
    cdef int64_t none
    cdef Pool codes             # numbers of words
    cdef Pool parts_by_key
    cdef Event* events          # by symbol
    cdef int64_t events_room
    cdef int32_t n_codes
    cdef Whole whole            # of a queue, a stack or a priority queue
    cdef bint in_whole          # the last search was one of these

    def __cinit__(self, int kind, actions, results, values, truths, falses, *, int64_t none=-1,
                  ordered=None, int64_t initial=0, bint keyed=False, int64_t memory=1 << 30):
        cdef int64_t word
        cdef int i
        cdef bint entered
        memset(&self.hints, 0, sizeof(Hints))
        memset(&self.codes, 0, sizeof(Pool))
        memset(&self.whole, 0, sizeof(Whole))
        memset(&self.parts_by_key, 0, sizeof(Pool))
        pool_shape(&self.codes, sizeof(int64_t), 8, memory)
        pool_shape(&self.hints.sums, sizeof(int64_t), 8, memory)
        pool_shape(&self.parts_by_key, 2 * sizeof(int64_t), 8, memory)
        self.hints.kind = <Kind>kind
        self.hints.depth = &self.depth
        self.operations = <int32_t>len(actions)
        if self.operations > MOST_OPERATIONS:
            raise ValueError(f"an object has at most {MOST_OPERATIONS} operations, not {len(actions)}")
        for i in range(self.operations):
            self.actions[i] = actions[i]
            self.results[i] = results[i]
        self.keyed = keyed
        self.none = none
        self.by_thread = kind == LOCK
        self.has_values = values is not None
        if values is not None:
            self.n_values = len(values)
            self.values = copied(values)
            self.truths = copied(truths)
            self.falses = copied(falses)
        if ordered is not None:
            self.n_ordered = len(ordered)
            self.ordered = copied(ordered)
        if not sequences_start(&self.hints.sequences, memory):
            raise MemoryError("no memory for the states of a search")
        if kind == COUNTER:
            word = initial
            self.first_state = <int32_t>pool_add(
                &self.hints.sums, &word, mixed(<uint64_t>word * 0x9E3779B97F4A7C15ULL), &entered
            )
        elif kind == REGISTER or kind == MAP:
            self.first_state = self.number(initial)

    def __dealloc__(self):
        takes_free(&self.hints.takes)
        whole_free(&self.whole)
        sequences_free(&self.hints.sequences)
        pool_free(&self.hints.sums)
        pool_free(&self.codes)
        pool_free(&self.parts_by_key)
        free(self.hints.effects)
        free(self.events)
        free(self.values)
        free(self.truths)
        free(self.falses)
        free(self.ordered)

    # The number of a word; -1 without memory, or for a word that is not among the ordered ones.
    cdef int32_t number(self, int64_t word) noexcept nogil:
        cdef int64_t low, high, middle
        cdef bint entered
        cdef int64_t found
        if self.n_ordered:
            low = 0
            high = self.n_ordered
            while low < high:
                middle = (low + high) // 2
                if self.ordered[middle] < word:
                    low = middle + 1
                else:
                    high = middle
            found = low if low < self.n_ordered and self.ordered[low] == word else -1
        elif self.has_values and self.hints.kind == PRIORITIES:
            found = word
        else:
            found = pool_add(&self.codes, &word, mixed(<uint64_t>word * 0x9E3779B97F4A7C15ULL), &entered)
        self.n_codes = max(self.n_codes, <int32_t>found + 1)
        return <int32_t>found

    # The value of a word of a record; False if it is none of the history's values.
    cdef bint value_of(self, int64_t word, int64_t* value) noexcept nogil:
        value[0] = word
        if self.has_values:
            if word < 0 or word >= self.n_values:
                return False
            value[0] = self.values[word]
        return True

    # The number of the part of a call about ``value``; -1 without memory.
    cdef int32_t part_for(self, int64_t key, int64_t value) noexcept nogil:
        cdef int64_t[2] pair
        cdef bint entered
        cdef int64_t found
        pair[0] = key
        pair[1] = value
        found = pool_add(&self.parts_by_key, pair,
                         mixed(<uint64_t>key * 0x9E3779B97F4A7C15ULL + mixed(<uint64_t>value)), &entered)
        if entered:
            self.parts += 1
        return <int32_t>found

    cdef bint events_reserve(self, int32_t symbol) noexcept nogil:
        cdef int64_t room
        cdef Event* events
        cdef Effect* effects
        if symbol < self.events_room:
            return True
        room = 2 * <int64_t>symbol + 64
        events = <Event*>realloc(self.events, <size_t>room * sizeof(Event))
        if events is NULL:
            return False
        self.events = events
        effects = <Effect*>realloc(self.hints.effects, <size_t>room * sizeof(Effect))
        if effects is NULL:
            return False
        self.hints.effects = effects
        self.events_room = room
        return True

    cdef int learn(self, int32_t symbol, const int64_t* row) noexcept nogil:
        cdef int64_t code = row[0] >> 1
        cdef int64_t key = 0
        cdef int64_t first = 0
        cdef int64_t second = 0
        cdef int64_t answer = ABSENT_WORD
        cdef int64_t part_value = 0
        cdef int32_t truth = UNSURE
        cdef bint is_none = True
        cdef bint is_false = False
        cdef bint pure = False
        cdef int32_t part, arguments, kind
        cdef Event* e
        cdef Effect* effect
        if code < 0 or code >= self.operations or not self.events_reserve(symbol):
            return WRONG if code < 0 or code >= self.operations else OUT_OF_MEMORY
        e = &self.events[symbol]
        effect = &self.hints.effects[symbol]
        memset(e, 0, sizeof(Event))
        memset(effect, 0, sizeof(Effect))
        effect.puts = effect.takes = NO_VALUE
        kind = self.hints.kind
        e.action = self.actions[code]
        e.pending = row[0] & PENDING_BIT
        if self.keyed and not self.value_of(row[2], &key):
            return WRONG
        arguments = 0
        if e.action in (PUT, ADD, REMOVE, CONTAINS, COUNT, ADDS, ADD_AND_GET, GET_AND_ADD, WRITE, DELETE):
            arguments = 1
        elif e.action == READ:
            arguments = kind == MAP
        if e.action == CAS or (kind == MAP and e.action == WRITE):
            arguments = 2
        if arguments and not self.value_of(row[2 + self.keyed], &first):
            return WRONG
        if arguments == 2 and not self.value_of(row[3 + self.keyed], &second):
            return WRONG
        if not e.pending:
            if self.results[code] == IS_VALUE:
                if not self.value_of(row[5], &answer):
                    return WRONG
                truth = <int32_t>self.truths[row[5]]
                is_none = row[5] == self.none
                is_false = self.falses[row[5]] == 1
            elif self.results[code] == IS_FLAG:
                truth = row[5] != 0
                answer = truth
                is_none = False
                is_false = truth == NO
            elif self.results[code] == IS_WORD:
                answer = row[5]
                is_none = answer == ABSENT_WORD
                if answer == 0 or answer == 1:
                    truth = <int32_t>answer
        e.result = truth
        if kind == QUEUE or kind == STACK or kind == PRIORITIES:
            if e.action == PUT:
                e.a = effect.puts = self.number(first)
            elif e.pending:
                effect.takes = ANYTHING
            elif is_none:
                effect.takes = NOTHING
                pure = True
            else:
                effect.takes = self.number(answer)
            e.result = effect.takes
            if effect.puts == -1 or (e.action == TAKE and effect.takes == -1 and not is_none):
                return WRONG
        elif kind == SET or kind == MULTISET:
            part_value = first
            pure = (e.action == CONTAINS or e.action == COUNT
                    or (is_false and (kind == SET or e.action == REMOVE)))
            e.sum = truth if self.has_values else answer
            if e.action == REMOVE and truth != YES and truth != NO:
                e.result = UNSURE
        elif kind == COUNTER:
            e.amount = first
            if e.action == INCREMENT or e.action == DECREMENT:
                e.amount = 1 if e.action == INCREMENT else -1
            if not -MOST_SUM < e.amount < MOST_SUM or (arguments and first == ABSENT_WORD):
                return WRONG
            effect.adds = e.amount
            if e.action in (READ, ADD_AND_GET, GET_AND_ADD) and not e.pending:
                e.sum = answer
                e.impossible = is_none or answer == ABSENT_WORD or not -MOST_SUM < answer < MOST_SUM
                if e.action == ADD_AND_GET and not e.impossible:
                    e.sum -= e.amount
                effect.reads = not e.impossible
                effect.sum = e.sum
            pure = e.action == READ
        elif kind == LOCK:
            if row[1] < 0 or row[1] >= INT32_MAX:
                return WRONG
            e.a = <int32_t>row[1] + 1
            if e.action == TRY and not e.pending and truth == UNSURE:
                if not is_none:
                    return WRONG  # Python's truth of other values is the model's business
                e.result = NO
            pure = e.action == TRY and is_false
        else:
            if kind == MAP:
                part_value = first
                first = second
            if e.action == WRITE or e.action == CAS:
                e.a = self.number(first)
                if e.a < 0:
                    return OUT_OF_MEMORY
            if e.action == CAS:
                e.b = self.number(second)
                if e.b < 0:
                    return OUT_OF_MEMORY
                e.result = NO if is_false else YES
            elif e.action == READ and not e.pending:
                e.result = self.number(answer)
                if e.result < 0:
                    return OUT_OF_MEMORY
            elif e.action == DELETE:
                e.a = self.first_state
            pure = e.action == READ or (e.action == CAS and is_false and not e.pending)
        return self.mark(symbol, key, part_value, pure)

    cdef int mark(self, int32_t symbol, int64_t key, int64_t value, bint pure) noexcept nogil:
        cdef int32_t part = self.part_for(key, value)
        if part < 0 or not mark_symbol(&self.table, symbol, pure, part, False, ANY_CALL):
            return OUT_OF_MEMORY
        return ANSWER_LEGAL

    cdef void begin(self, const Record* records) noexcept nogil:
        cdef int32_t kind = self.hints.kind
        if not self.ahead or self.depth.n_parts > 1:
            return
        if kind == QUEUE or kind == STACK or kind == PRIORITIES or kind == COUNTER:
            if takes_start(&self.hints.takes, &self.depth.lanes, self.hints.effects, self.n_codes):
                self.depth.hopeful = &hopeful
                self.depth.context = &self.hints

    cdef int one_part(self, const Record* records, const int32_t* chosen, const int32_t* symbols, int32_t n,
                      int32_t parts, int criterion, int64_t most_steps) noexcept nogil:
        self.in_whole = has_whole(&self.hints) and self.ahead and parts == 1 and criterion == REAL_TIME
        if not self.in_whole:
            return Parts.one_part(self, records, chosen, symbols, n, parts, criterion, most_steps)
        return whole_run(&self.whole, &self.hints, &self.table, records, chosen, symbols, n, self.n_codes,
                         most_steps, self.limit, self.deadline_ns)

    cdef int32_t place(self, const Record* records, Placed* places, int32_t placed) noexcept nogil:
        if self.in_whole:
            return whole_place(&self.whole, &self.hints, records, places, placed)
        return Parts.place(self, records, places, placed)

    cdef int answer_step(self, int32_t state, int32_t symbol) noexcept nogil:
        cdef const Event* e = &self.events[symbol]
        cdef int32_t kind = self.hints.kind
        cdef int32_t[2] answer
        cdef int32_t after = state
        cdef bint legal = True
        if kind == QUEUE or kind == STACK or kind == PRIORITIES:
            legal = self.line_step(e, state, &after)
        elif kind == SET:
            if e.action == CONTAINS:
                legal = e.pending or e.result == state
            elif e.action == ADD:
                legal = e.pending or e.result == UNSURE or e.result == 1 - state
                after = 1
            else:
                legal = e.pending or e.result == UNSURE or e.result == state
                after = 0
        elif kind == MULTISET:
            if e.action == CONTAINS:
                legal = e.pending or e.result == (state > 0)
            elif e.action == COUNT:
                legal = e.pending or e.sum == state
            elif e.action == ADD:
                after = state + 1
            elif e.pending or e.result == UNSURE:
                after = max(0, state - 1)
            else:
                legal = e.result == (state > 0)
                after = max(0, state - e.result)
        elif kind == COUNTER:
            legal = self.sum_step(e, state, &after)
        elif kind == LOCK:
            if e.action == RELEASE:
                legal = state == e.a
                after = FREE
            elif e.action == TRY and (e.pending or e.result == NO):
                legal = e.pending or state != FREE
                after = e.a if e.pending and state == FREE else state
            else:
                legal = state == FREE
                after = e.a
        elif e.action == READ:
            legal = e.pending or e.result == state
        elif e.action == CAS:
            legal = e.pending or e.result == (state == e.a)
            after = e.b if state == e.a else state
        else:
            after = e.a
        if after == NO_SEQUENCE:
            return OUT_OF_MEMORY
        answer[0] = after
        return ANSWER_LEGAL if table_set(&self.table, state, symbol, answer, legal) else OUT_OF_MEMORY

    cdef bint line_step(self, const Event* e, int32_t state, int32_t* after) noexcept nogil:
        cdef Sequences* all = &self.hints.sequences
        cdef const Sequence* held = &all.all[state]
        cdef const int32_t* words = all.words + held.offset
        cdef bint stack = self.hints.kind == STACK
        cdef int64_t place
        if e.action == PUT:
            place = held.length
            if self.hints.kind == PRIORITIES:
                while place > 0 and words[place - 1] > e.a:
                    place -= 1
            after[0] = sequence_with(all, state, place, e.a)
            return True
        if held.length == 0:
            return e.result == NOTHING or e.result == ANYTHING
        if e.result == ANYTHING or (words[held.length - 1] if stack else words[0]) == e.result:
            after[0] = sequence_without(all, state, stack)
            return True
        return False

    cdef bint sum_step(self, const Event* e, int32_t state, int32_t* after) noexcept nogil:
        cdef int64_t sum = (<const int64_t*>pool_at(&self.hints.sums, state))[0]
        cdef bint entered
        if e.impossible:
            return False
        if e.action in (READ, ADD_AND_GET, GET_AND_ADD) and not e.pending and e.sum != sum:
            return False
        sum += e.amount
        after[0] = <int32_t>pool_add(
            &self.hints.sums, &sum, mixed(<uint64_t>sum * 0x9E3779B97F4A7C15ULL), &entered
        )
        return True


cdef int64_t* copied(words) except NULL:
    cdef int64_t* into = <int64_t*>malloc((len(words) + 1) * sizeof(int64_t))
    if into is NULL:
        raise MemoryError("no memory for the values of a history")
    for i, word in enumerate(words):
        into[i] = word
    return into
