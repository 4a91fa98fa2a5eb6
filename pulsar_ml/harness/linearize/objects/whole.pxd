# The searches for a queue, a stack and a priority queue, of which one is used.

from libc.stdint cimport int32_t, int64_t
from pulsar_ml.harness.histories.history cimport Record
from pulsar_ml.harness.linearize.cells._parts cimport Placed
from pulsar_ml.harness.linearize.objects.hints cimport PRIORITIES, QUEUE, STACK, Hints
from pulsar_ml.harness.linearize.objects.nested cimport (
    Nested, nested_free, nested_place, nested_run, nested_start,
)
from pulsar_ml.harness.linearize.objects.pairs cimport (
    Pairs, pairs_free, pairs_place, pairs_run, pairs_start,
)
from pulsar_ml.harness.linearize.objects.ranked cimport (
    Ranked, ranked_free, ranked_place, ranked_run, ranked_start,
)
from pulsar_ml.harness.linearize.search.depth cimport OUT_OF_MEMORY, Depth
from pulsar_ml.harness.linearize.search.lanes cimport REAL_TIME, lanes_build
from pulsar_ml.harness.linearize.search.table cimport Table


cdef struct Whole:
    Pairs pairs
    Nested nested
    Ranked ranked


cdef inline void whole_free(Whole* w) noexcept nogil:
    pairs_free(&w.pairs)
    nested_free(&w.nested)
    ranked_free(&w.ranked)


cdef inline bint has_whole(const Hints* hints) noexcept nogil:
    return hints.kind == QUEUE or hints.kind == STACK or hints.kind == PRIORITIES


# Searches for an order of n calls of one object.
cdef inline int whole_run(Whole* w, Hints* hints, const Table* table, const Record* records,
                          const int32_t* chosen, const int32_t* symbols, int32_t n, int32_t n_values,
                          int64_t most_steps, int64_t limit, int64_t deadline_ns) noexcept nogil:
    cdef Depth* depth = hints.depth
    cdef int answer
    if hints.kind == QUEUE:
        w.pairs.deadline.at_ns = deadline_ns
        if not pairs_start(&w.pairs, &depth.seen, table, hints.effects, records, chosen, symbols, n, limit):
            return OUT_OF_MEMORY
        answer = pairs_run(&w.pairs, &depth.seen, hints.effects, most_steps)
        depth.spent = w.pairs.spent
        return answer
    if not lanes_build(&depth.lanes, table, records, chosen, symbols, n, REAL_TIME, False):
        return OUT_OF_MEMORY
    if hints.kind == STACK:
        w.nested.deadline.at_ns = deadline_ns
        if not nested_start(&w.nested, &depth.lanes, &depth.seen, hints.effects, limit):
            return OUT_OF_MEMORY
        answer = nested_run(&w.nested, most_steps)
        depth.spent = w.nested.spent
        return answer
    w.ranked.deadline.at_ns = deadline_ns
    if not ranked_start(&w.ranked, &depth.lanes, &depth.seen, hints.effects, n_values, limit):
        return OUT_OF_MEMORY
    answer = ranked_run(&w.ranked, &depth.seen, most_steps)
    depth.spent = w.ranked.spent
    return answer


# Places the calls of the order that was found behind those that were placed before. Returns the
# number of placed calls.
cdef inline int32_t whole_place(Whole* w, const Hints* hints, const Record* records, Placed* places,
                                int32_t placed) noexcept nogil:
    if hints.kind == QUEUE:
        return pairs_place(&w.pairs, places, placed)
    if hints.kind == STACK:
        return nested_place(&w.nested, records, places, placed)
    return ranked_place(&w.ranked, records, places, placed)
