"""The native checker: searches over integer symbols and states.

A :class:`Checker` belongs to one model. It calls the model, in Python, once for each pair of a
state and a symbol; everything else runs without the GIL.
"""

from __future__ import annotations

from cpython.pycapsule cimport PyCapsule_New, PyCapsule_SetContext
from libc.stdint cimport INT64_MAX, int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.search._answers cimport Answers, Learned, enter
from pulsar_ml.harness.linearize.limits.address cimport address_of
from pulsar_ml.harness.linearize.search.depth cimport (
    ANSWER_ILLEGAL, ANSWER_LEGAL, MISSING_ANSWER, OUT_OF_MEMORY, OUT_OF_STEPS, OUT_OF_TIME, Depth,
    depth_free, depth_run, depth_start,
)
from pulsar_ml.harness.linearize.search.inside cimport KNOWN_STEPS, Inside, legal_as_known
from pulsar_ml.harness.linearize.search.lanes cimport REAL_TIME, lanes_build
from pulsar_ml.harness.linearize.search.outcomes cimport MOST_CALLS, canonical
from pulsar_ml.harness.linearize.search.pool cimport (
    Pool, pool_add, pool_at, pool_bytes, pool_free, pool_shape,
)
from pulsar_ml.harness.linearize.search.stream cimport (
    Stream, first_to_return, stream_free, stream_invoke, stream_open, stream_return,
)
from pulsar_ml.harness.linearize.search.table cimport (
    LEADS, WORDS, Table, mark_symbol, symbol_of, symbol_row, table_bytes, table_close, table_open,
    table_set,
)
from pulsar_ml.sync.clock cimport monotonic_ns

import numpy as np

from pulsar_ml.harness.histories.history import RECORD

cdef enum:
    STEPS_WITH_GIL = 64

ANSWERS = ("legal", "illegal", "out of steps", "out of memory", "out of time")

assert RECORD.itemsize == sizeof(Record), "history.RECORD must have the layout of Record"


cdef const Record* records_of(object records) except? NULL:
    if records.dtype != RECORD or not records.flags.c_contiguous:
        raise TypeError(f"records should be a contiguous array of history.RECORD, not of {records.dtype}")
    return <const Record*>address_of(records)


# Tells whether n records are legal from the first state on. 1: yes, by known answers; 2: yes, by
# answers that the model gave in a search; 0: a search is needed.
cdef int legal(void* context, const Record* records, int32_t n) noexcept nogil:
    cdef Inside* inside = <Inside*>context
    inside.depth.unknown_at = INT64_MAX
    if legal_as_known(inside, records, n):
        return 1
    return legal_when_asked(inside, records, n)


cdef int legal_when_asked(Inside* inside, const Record* records, int32_t n) noexcept with gil:
    return 2 if (<Checker>inside.checker).approves(records, n) else 0


cdef class Checker:
    """Searches for one model. Not thread-safe.

    ``learn(symbol, row)`` is called once for each new symbol, with its ten integers. It returns
    whether calls of the symbol are pure, the number of the part that they are about, whether they
    lead to one state from every state, and their Role. ``answer(state, symbol)`` returns the
    numbers of the states to which the call may lead; ``leads(state, symbol)`` is the model's
    method, see model.py. An :class:`Answers` as ``learn`` has both functions. ``memory`` bounds, in
    bytes, each of: symbols and transitions; the configurations of a search; the outcome table.
    """

    cdef object learn, answer, leads
    cdef Answers answers  # of the model; None: learn() and answer() have them
    cdef readonly bint by_thread
    cdef readonly int64_t memory
    cdef Table table
    cdef Depth depth
    cdef Inside inside
    cdef Pool outcomes
    cdef int64_t known
    cdef int32_t* symbols_memory
    cdef int32_t* everything
    cdef int64_t symbols_room
    cdef int64_t spent    # the steps of the last search, over all attempts
    cdef object raised    # an exception of the model without a caller to receive it
    cdef public int64_t most_steps
    cdef readonly int64_t searches, looked_up

    def __cinit__(self, learn, answer=None, leads=None, *, bint by_thread=False,
                  int64_t memory=1 << 30):
        self.learn, self.answer, self.leads = learn, answer, leads
        self.answers = learn if isinstance(learn, Answers) else None
        self.by_thread = by_thread
        self.memory = memory
        self.most_steps = INT64_MAX
        memset(&self.depth, 0, sizeof(Depth))
        self.depth.deadline.at_ns = INT64_MAX
        memset(&self.outcomes, 0, sizeof(Pool))
        table_open(&self.table, memory)
        self.table.leads = leads is not None
        self.inside = Inside(<void*>self, &self.table, &self.depth, &self.known, &self.symbols_memory,
                             &self.everything, &self.symbols_room, memory, by_thread, False)

    def __dealloc__(self):
        table_close(&self.table)
        depth_free(&self.depth)
        pool_free(&self.outcomes)
        free(self.symbols_memory)
        free(self.everything)

    @property
    def deadline_ns(self) -> int:
        """The moment of the monotonic clock at which searches end; 2**63 - 1: none."""
        return self.depth.deadline.at_ns

    @deadline_ns.setter
    def deadline_ns(self, int64_t moment):
        self.depth.deadline.at_ns = moment

    def close(self):
        """Let go of the model; there are no more searches."""
        self.learn = self.answer = self.leads = self.answers = None

    def release(self):
        """Free the configurations of earlier searches."""
        pool_free(&self.depth.seen)

    def bytes(self) -> int:
        """The bytes of memory that the checker holds."""
        return table_bytes(&self.table) + pool_bytes(&self.depth.seen) + pool_bytes(&self.outcomes)

    cdef int reserve(self, int64_t n) except -1:
        cdef int64_t i
        if n > self.symbols_room:
            n += n // 2
            free(self.symbols_memory)
            free(self.everything)
            self.symbols_memory = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
            self.everything = <int32_t*>malloc(<size_t>n * sizeof(int32_t))
            self.symbols_room = n if self.symbols_memory is not NULL and self.everything is not NULL else 0
            if self.symbols_room == 0:
                raise MemoryError("no memory for the symbols of a history")
            for i in range(n):
                self.everything[i] = <int32_t>i
        return 0

    # Writes the symbols of n records into ``into``; learns new ones, ``briefly`` only their parts.
    cdef int intern(self, const Record* records, int64_t n, int32_t* into, bint briefly=False) except -1:
        cdef int64_t i
        cdef bint full = False
        cdef int j
        cdef const int64_t* row
        cdef Learned new
        with nogil:
            for i in range(n):
                into[i] = symbol_of(&self.table, &records[i], self.by_thread)
                full = full or into[i] < 0
        if full:
            raise MemoryError("the symbols of this history need more memory than the checker may take")
        while self.known < self.table.symbols.used:
            row = symbol_row(&self.table, self.known)
            if self.answers is not None:
                self.answers.sort(row, &new)
            else:
                words = tuple([row[j] for j in range(WORDS)])
                new.pure, new.part, new.resets, new.role = self.learn(self.known, words)
            if not mark_symbol(&self.table, self.known, new.pure, new.part, new.resets, <uint8_t>new.role):
                raise MemoryError("no memory for the symbols of a history")
            self.known += 1
        if self.answers is not None and not briefly:
            self.answers.learn_symbols(&self.table, into, NULL, n)
        return 0

    # Enters the model's answer; False without memory.
    cdef bint inquire(self, int32_t state, int32_t symbol) except -1:
        cdef int64_t count
        if symbol & LEADS:
            return enter(&self.table, state, symbol, [0] if self.leads(state, symbol & ~LEADS) else [])
        if self.answers is None:
            return enter(&self.table, state, symbol, self.answer(state, symbol))
        count = self.answers.ask(state, symbol)
        return table_set(&self.table, state, symbol, self.answers.found, <int32_t>count)

    def row(self, int32_t symbol) -> tuple[int, ...]:
        """The ten words of a symbol's calls."""
        cdef const int64_t* row = symbol_row(&self.table, symbol)
        return tuple([row[i] for i in range(WORDS)])

    def symbols(self, records, *, bint briefly=False):
        """The symbol of each record, as an array of int32.

        ``briefly``: only the parts of new symbols are learned, and the rest when a search needs it.
        """
        cdef const Record* native = records_of(records)
        symbols = np.empty(len(records), np.int32)
        self.intern(native, len(records), <int32_t*>address_of(symbols), briefly)
        return symbols

    def oracle(self):
        """A capsule with a function for native code that tells whether records are legal.

        The function has the type ``int (*)(void*, const Record*, int32_t)``; its first argument is
        the capsule's context. It returns 1: legal by known answers; 2: legal by answers that the
        model gave in a sparing :meth:`search`; 0: unknown, or the model raised, and then the next
        search with ``tried`` raises it. The checker must outlive the capsule.
        """
        capsule = PyCapsule_New(<void*>&legal, b"pulsar_ml.harness.legal", NULL)
        PyCapsule_SetContext(capsule, &self.inside)
        return capsule

    cdef bint approves(self, const Record* records, int32_t n) noexcept:
        try:
            self.raised = None
            if not self.inside.built:
                self.reserve(n)
                self.intern(records, n, self.symbols_memory)
            return self.find_order(records, n, self.symbols_memory, self.everything, 0, 1, REAL_TIME,
                               self.most_steps, True) == ANSWER_LEGAL
        except BaseException as error:
            self.raised = error
            return False

    cdef int run(self) except -1:
        cdef int answer
        cdef int64_t most = self.depth.most_steps
        while True:
            # The next missing answer is often near: a few steps keep the GIL.
            self.depth.most_steps = min(most, self.depth.spent + STEPS_WITH_GIL)
            answer = depth_run(&self.depth, &self.table)
            self.depth.most_steps = most
            if answer == OUT_OF_STEPS and self.depth.spent <= most:
                with nogil:
                    answer = depth_run(&self.depth, &self.table)
            if answer != MISSING_ANSWER:
                return answer
            if monotonic_ns() > self.depth.deadline.at_ns:
                return OUT_OF_TIME
            if not self.inquire(self.depth.missing_state, self.depth.missing_symbol):
                return OUT_OF_MEMORY

    # Searches for an order of n chosen records; see search(). ``spent``: the steps of all attempts.
    cdef int find_order(self, const Record* records, int32_t n, const int32_t* symbols, const int32_t* chosen,
                    int32_t state, int32_t parts, int criterion, int64_t most_steps,
                    bint sparing) except -1:
        cdef int64_t few = min(KNOWN_STEPS * <int64_t>n, most_steps) if sparing else most_steps
        cdef int64_t from_step = INT64_MAX if sparing else 0
        cdef int answer
        self.spent = 0
        if sparing and self.depth.unknown_at != INT64_MAX:
            # The oracle tried this with the same records just before.
            from_step = max(<int64_t>0, self.depth.unknown_at)
            few = few if from_step else most_steps
        if not self.inside.built and not lanes_build(&self.depth.lanes, &self.table, records, chosen, symbols,
                                                     n, criterion, sparing):
            raise MemoryError(f"no memory to check {n} calls")
        self.inside.built = False
        self.depth.real_time = criterion == REAL_TIME
        self.searches += 1
        while True:
            if not depth_start(&self.depth, &self.table, state, parts, few, self.memory, from_step):
                raise MemoryError(f"no memory to check {n} calls")
            answer = self.run()
            self.spent += self.depth.spent
            if answer == ANSWER_LEGAL or from_step == 0:
                return answer
            # Next, ask the model only behind the known transitions, and then everywhere.
            from_step = max(<int64_t>0, self.depth.unknown_at) if from_step == INT64_MAX else 0
            few = min(few if from_step else most_steps, most_steps - self.spent)

    def search(self, records, *, symbols=None, chosen=None, int32_t state=0, int32_t parts=1,
               int criterion=0, int64_t most_steps=INT64_MAX, bint sparing=False,
               bint ahead=True, bint tried=False):
        """Searches depth first for an order of the ``chosen`` records (int32; default: all).

        Returns (answer, way, blocked, steps, configurations): the answer as an index into ANSWERS;
        the order, or the longest one found, and then the call that cannot follow it (-1: none).
        ``parts``: the number of independent parts of the state. ``symbols``: from :meth:`symbols`.
        ``sparing``: for a short history that resembles earlier ones; the model is called only if
        known answers do not decide, first behind the longest ways, and ends of calls that were over
        when they began are left out. ``tried``: :meth:`oracle` just failed on the records; an
        exception there is raised here. Without ``ahead`` the longest order found is the longest.
        """
        cdef const Record* native = records_of(records)
        cdef const int32_t* its_symbols
        cdef const int32_t* its_chosen
        cdef int64_t i, n = len(records)
        cdef int32_t at, lane
        cdef int answer
        raised, self.raised = self.raised, None
        if tried and raised is not None:
            raise raised
        self.table.leads = ahead and self.leads is not None
        self.reserve(n)
        if symbols is None:
            self.intern(native, n, self.symbols_memory)
            its_symbols = self.symbols_memory
        else:
            its_symbols = <const int32_t*>address_of(symbols)
        its_chosen = self.everything
        if chosen is not None:
            its_chosen = <const int32_t*>address_of(chosen)
            n = len(chosen)
        if self.answers is not None:
            self.answers.learn_symbols(&self.table, its_symbols, its_chosen, n)
        self.depth.unknown_at = 0 if tried else INT64_MAX
        self.inside.built = False
        answer = self.find_order(native, <int32_t>n, its_symbols, its_chosen, state, parts,
                                 criterion, most_steps, sparing)
        way, blocked = [], -1
        if answer == ANSWER_LEGAL:
            way = [0] * self.depth.depth
            # From the end: each lane gives up its calls from the last to the first.
            for i in range(self.depth.depth - 1, -1, -1):
                lane = self.depth.steps[i].lane
                self.depth.at[lane] -= 1
                way[i] = self.depth.lanes.ops[self.depth.at[lane]].index
        else:
            done = set()
            for i in range(self.depth.best_depth):
                at = self.depth.best[i]
                way.append(self.depth.lanes.ops[at].index)
                done.add(at)
            for at in range(self.depth.lanes.n_ops + self.depth.lanes.n):
                if self.depth.lanes.ops[at].returned == self.depth.best_returned and at not in done:
                    blocked = self.depth.lanes.ops[at].index
                    break
        return answer, way, blocked, self.spent, self.depth.seen.used

    def search_many(self, records, *, int32_t state=0, int64_t most_steps=INT64_MAX, bint remember=True):
        """Searches for each row of a two-dimensional array of records; returns an array of int8.

        With ``remember`` and rows of at most 64 calls, each canonical form is searched once.
        """
        cdef const Record* native = records_of(records)
        cdef int answer
        if records.ndim != 2:
            raise ValueError(f"search_many() takes rows of records, 2 dimensions, not {records.ndim}")
        cdef int64_t i, rows = len(records)
        cdef int32_t n = <int32_t>records.shape[1]
        self.reserve(rows * n)
        self.intern(native, rows * n, self.symbols_memory)
        answers = np.empty(rows, np.int8)
        cdef int8_t* into = <int8_t*>address_of(answers)
        cdef size_t length = 2 * <size_t>n * sizeof(uint64_t)
        if n > MOST_CALLS:
            remember = False
        elif remember and (self.outcomes.length != length or self.outcomes.stride == 0):
            pool_shape(&self.outcomes, length, 16, self.memory)
        i = 0
        cdef bint started = False
        while i < rows:
            with nogil:
                answer = self.batch(native, n, rows, &i, into, state, most_steps, remember, &started)
            if answer == MISSING_ANSWER:
                if not self.inquire(self.depth.missing_state, self.depth.missing_symbol):
                    into[i] = OUT_OF_MEMORY
                    i += 1
                    started = False
            elif answer == OUT_OF_MEMORY:
                raise MemoryError(f"no memory to check {n} calls")
        return answers

    # Continues from row *at until the end, or until a transition is missing.
    cdef int batch(self, const Record* records, int32_t n, int64_t rows, int64_t* at, int8_t* into,
                   int32_t state, int64_t most_steps, bint remember, bint* started) noexcept nogil:
        cdef uint64_t[2 * 64] form
        cdef uint64_t hash
        cdef int64_t index
        cdef int answer
        cdef bint entered
        cdef const Record* row
        cdef const int32_t* symbols
        while at[0] < rows:
            row = records + at[0] * n
            symbols = self.symbols_memory + at[0] * n
            index = -1
            if remember:
                hash = canonical(row, symbols, n, form)
                index = pool_add(&self.outcomes, form, hash, &entered)
                if index >= 0:
                    if entered:
                        pool_at(&self.outcomes, index)[self.outcomes.length] = 255
                    answer = pool_at(&self.outcomes, index)[self.outcomes.length]
                    if answer != 255:
                        into[at[0]] = <int8_t>answer
                        self.looked_up += 1
                        at[0] += 1
                        continue
            if not started[0]:
                if not lanes_build(&self.depth.lanes, &self.table, row, self.everything, symbols, n,
                                   REAL_TIME, False):
                    return OUT_OF_MEMORY
                self.depth.real_time = True
                if not depth_start(&self.depth, &self.table, state, 1, most_steps, self.memory, 0):
                    return OUT_OF_MEMORY
                self.searches += 1
                started[0] = True
            answer = depth_run(&self.depth, &self.table)
            if answer == MISSING_ANSWER:
                return MISSING_ANSWER
            started[0] = False
            into[at[0]] = <int8_t>answer
            if index >= 0:
                pool_at(&self.outcomes, index)[self.outcomes.length] = <uint8_t>answer
            at[0] += 1
        return ANSWER_LEGAL


cdef class Watch:
    """Just-in-time linearization of a history that arrives in pieces.

    Feed records in the order of their invocations. ``memory`` bounds the bytes in addition to the
    checker's own, for any length of the history.
    """

    cdef Checker checker
    cdef Stream stream
    cdef readonly int64_t fed
    cdef readonly int64_t blocked
    cdef int64_t latest
    cdef int answer_now

    def __cinit__(self, Checker checker not None, *, int32_t state=0, int64_t most_steps=INT64_MAX,
                  int64_t memory=1 << 30):
        self.checker = checker
        self.blocked = -1
        self.latest = -INT64_MAX
        if not stream_open(&self.stream, state, most_steps, checker.depth.deadline.at_ns, memory):
            raise MemoryError("no memory to watch a history")

    def __dealloc__(self):
        stream_free(&self.stream)

    @property
    def answer(self) -> int:
        """The answer so far, as an index into ANSWERS."""
        return self.answer_now

    @property
    def steps(self) -> int:
        return self.stream.spent

    @property
    def configurations(self) -> int:
        """The number of configurations at present."""
        return self.stream.now.used

    # Processes all returns before ``time``.
    cdef int returns(self, int64_t time) except -1:
        cdef int32_t slot
        cdef int answer = ANSWER_LEGAL
        while answer == ANSWER_LEGAL:
            slot = self.stream.returning if self.stream.leading else first_to_return(&self.stream, time)
            if slot < 0:
                return ANSWER_LEGAL
            with nogil:
                answer = stream_return(&self.stream, &self.checker.table, slot)
            if answer == MISSING_ANSWER and monotonic_ns() > self.stream.deadline.at_ns:
                answer = OUT_OF_TIME
            elif answer == MISSING_ANSWER:
                answer = OUT_OF_MEMORY
                if self.checker.inquire(self.stream.missing_state, self.stream.missing_symbol):
                    answer = ANSWER_LEGAL
            elif answer == ANSWER_ILLEGAL:
                self.blocked = self.stream.index[slot]
        return answer

    def feed(self, records) -> int:
        """Continues with these records; returns the answer so far, where "legal" can change."""
        cdef const Record* native = records_of(records)
        cdef int64_t n = len(records)
        cdef int64_t i
        symbols = self.checker.symbols(records)
        cdef const int32_t* its_symbols = <const int32_t*>address_of(symbols)
        for i in range(n):
            if self.answer_now != ANSWER_LEGAL:
                break
            if native[i].invoked < self.latest:
                raise ValueError(f"record {i} was invoked at {native[i].invoked}, before {self.latest}; "
                                 "feed records in the order of their invocations")
            self.latest = native[i].invoked
            self.answer_now = self.returns(native[i].invoked)
            if self.answer_now == ANSWER_LEGAL:
                if not stream_invoke(&self.stream, &native[i], self.fed, its_symbols[i], &self.checker.table):
                    self.answer_now = OUT_OF_MEMORY
            self.fed += 1
        return self.answer_now

    def finish(self) -> int:
        """Ends the history and returns the answer."""
        if self.answer_now == ANSWER_LEGAL:
            self.answer_now = self.returns(INT64_MAX)
        return self.answer_now
