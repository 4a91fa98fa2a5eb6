"""The monitor of registers, with and without compare-and-set."""

from __future__ import annotations

import numpy as np

from pulsar_ml.harness.linearize.monitors.view import (
    LEGAL,
    Ints,
    Judgement,
    NotDistinct,
    View,
    extreme,
    found_in,
    sorted_distinct,
)


def register(view: View, initial: int) -> Judgement:
    """A write needs a zone of time to itself, with the calls that see its value.

    For reads and writes this is the algorithm of Gibbons and Korach. A compare-and-set that
    succeeded belongs to the zone of the value that it replaced, so that a zone is that of a chain:
    a write, its reads, the exchange of its value, the reads of the new value, and so on. One that
    failed is left out, which makes no legal history illegal.
    """
    view.known("read", "write", "cas")
    writes = np.flatnonzero(view.of("write"))
    reads = np.flatnonzero(view.of("read") & view.ended)
    swaps = exchanges(view, reads)
    # The initial value counts as written before all calls.
    puts = np.concatenate([writes, swaps, [-1]])
    values = np.concatenate([view.argument[writes], view.second[swaps], [initial]])
    order = sorted_distinct(values)
    values, writer = values[order], puts[order]
    seen = found_in(values, np.concatenate([view.result[reads], view.argument[swaps]]))
    cluster, replaced = seen[: len(reads)], seen[len(reads) :]
    if np.any(cluster < 0):
        return Judgement(False, (int(reads[np.argmin(cluster)]),))
    twice = np.flatnonzero(np.bincount(replaced[replaced >= 0], minlength=1) > 1)
    parent = np.full(len(values), -1)
    put = found_in(values, view.second[swaps])
    parent[put] = np.where(replaced < 0, put, replaced)  # nobody wrote it, or it itself did
    chain, depth = chains(parent)

    def witness(of: list[int], *calls: int) -> Judgement:
        members = np.flatnonzero(np.isin(chain, of))
        found = {*writer[members].tolist(), *calls} - {-1}
        for member in members[~np.append(view.ended, True)[writer[members]]].tolist():
            found.update(reads[cluster == member][:1].tolist())  # it took effect, as a call saw it
        return Judgement(False, tuple(sorted(found)))

    if len(twice):
        return witness([chain[twice[0]]], *swaps[replaced == twice[0]].tolist())
    if np.any(depth < 0):  # they replace one another's values in a circle
        return witness([chain[int(np.argmin(depth))]])
    invoked, returned = np.append(view.invoked, -1), np.append(view.returned, -1)
    calls = np.concatenate([writer, reads])
    whose = chain[np.concatenate([np.arange(len(values)), cluster])]
    place = np.concatenate([2 * depth, 2 * depth[cluster] + 1])
    late, sooner = out_of_turn(whose, place, invoked[calls], returned[calls])
    if late >= 0:
        return witness([whose[late]], int(calls[late]), int(calls[sooner]))
    count = int(chain.max()) + 1
    finish, finisher = extreme(count, whose, returned[calls], calls, least=True)
    start, starter = extreme(count, whose, invoked[calls], calls, least=False)

    def clashing(one: int, other: int) -> Judgement:
        ends = {int(who[each]) for each in (one, other) for who in (finisher, starter)}
        return witness([one, other], *ends)

    forward = np.flatnonzero(finish < start)
    forward = forward[np.argsort(finish[forward])]
    clash = np.flatnonzero(finish[forward][1:] < start[forward][:-1])
    if len(clash):
        return clashing(int(forward[clash[0]]), int(forward[clash[0] + 1]))
    backward = np.flatnonzero(finish >= start)
    around = np.searchsorted(finish[forward], start[backward]) - 1
    inside = (around >= 0) & (finish[backward] < np.append(start[forward], -1)[around])
    if np.any(inside):
        at = int(np.argmax(inside))
        return clashing(int(backward[at]), int(forward[around[at]]))
    failed = np.flatnonzero(view.of("cas") & view.ended & view.denied())
    if np.any(found_in(values, view.argument[failed]) >= 0):
        raise NotDistinct  # whether it found another value is not seen from zones
    return LEGAL


def exchanges(view: View, reads: Ints) -> Ints:
    """The compare-and-sets that took effect: those whose new value was seen, if not ended."""
    cas = view.of("cas")
    sure = np.flatnonzero(cas & view.ended & ~view.denied())
    open_ = np.flatnonzero(cas & ~view.ended)
    while len(open_):
        seen = np.concatenate([view.result[reads], view.argument[sure]])
        new = np.isin(view.second[open_], seen)
        if not np.any(new):
            break
        sure, open_ = np.concatenate([sure, open_[new]]), open_[~new]
    return sure


def chains(parent: Ints) -> tuple[Ints, Ints]:
    """The number of the chain of each member, and its place there; -1 for members of a circle."""
    count = len(parent)
    root = np.where(parent < 0, np.arange(count), parent)
    depth = (parent >= 0).astype(np.int64)
    for _ in range(count.bit_length()):
        if not np.any(parent[root] >= 0):
            break
        depth, root = depth + depth[root], root[root]
    in_circle = parent[root] >= 0
    # After so many steps up, members of a circle, and behind it, stand at a member of the circle.
    depth[in_circle] = -1
    root[in_circle] = np.min(root[in_circle], initial=count)
    return np.unique(root, return_inverse=True)[1], depth


def out_of_turn(chain: Ints, place: Ints, invoked: Ints, returned: Ints) -> tuple[int, int]:
    """A call that returned before one with a lesser place in its chain was invoked, and that one.

    -1: none.
    """
    order = np.lexsort((place, chain))
    span = int(invoked.max(initial=0)) + 3  # the times of a chain are behind those of another
    base = chain[order] * span
    latest = np.append(-2, np.maximum.accumulate(invoked[order] + base))
    begins = np.append(True, (np.diff(chain[order]) != 0) | (np.diff(place[order]) != 0))
    before = latest[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
    late = np.flatnonzero(before > np.minimum(returned[order], span - 2) + base)
    if len(late) == 0:
        return -1, -1
    call = int(order[late[0]])
    sooner = (chain == chain[call]) & (place < place[call]) & (invoked > returned[call])
    return call, int(np.argmax(sooner))
