"""The monitor of sets and multisets."""

from __future__ import annotations

import numpy as np

from pulsar_ml.harness.histories.history import NEVER
from pulsar_ml.harness.linearize.monitors.view import LEGAL, Ints, Judgement, NotDistinct, View


def members(view: View, *, counted: bool = False) -> Judgement:
    """Each value was added and removed at most once: all other calls saw it present, or absent.

    ``counted``: of a multiset, to which each call of add adds.
    """
    view.known("add", "remove", "contains")
    true, false = view.true(), view.false()
    if counted:
        added = view.of("add")
        true, false = true | added, false & ~added
    changes = view.of("add") | view.of("remove")
    if np.any(changes & ~(view.ended & (true | false))):
        raise NotDistinct
    kept = np.flatnonzero(view.ended)
    values, which = np.unique(view.argument[kept], return_inverse=True)
    n = len(values)

    def only(name: str) -> tuple[Ints, Ints]:
        calls = np.flatnonzero((view.of(name) & true)[kept])
        if len(np.unique(which[calls])) < len(calls):
            raise NotDistinct
        began, ended = np.full(n, NEVER), np.full(n, NEVER)
        began[which[calls]] = view.invoked[kept[calls]]
        ended[which[calls]] = view.returned[kept[calls]]
        return began, ended

    added_from, added_by = only("add")
    removed_from, removed_by = only("remove")
    there = ((view.of("contains") & true) | (view.of("add") & false))[kept]
    absent = ((view.of("contains") | view.of("remove")) & false)[kept]
    seen_by, seen_from = np.full(n, NEVER), np.full(n, -1)
    np.minimum.at(seen_by, which[there], view.returned[kept[there]])
    np.maximum.at(seen_from, which[there], view.invoked[kept[there]])
    # The latest beginning and the earliest end that the calls which saw the value allow.
    begins = np.minimum(added_by, seen_by)
    ends = np.where(removed_from == NEVER, NEVER, np.maximum(removed_from, seen_from))
    never = added_from == NEVER
    wrong = np.where(never, (seen_from >= 0) | (removed_from != NEVER), begins <= added_from)
    wrong |= ~never & (removed_from != NEVER) & ((ends >= removed_by) | (added_from > removed_by))
    sure = (begins <= ends) & ~never
    inside = view.invoked[kept[absent]] >= begins[which[absent]]
    inside &= view.returned[kept[absent]] <= ends[which[absent]]
    np.logical_or.at(wrong, which[absent], inside & sure[which[absent]])
    if not np.any(wrong):
        return LEGAL
    return Judgement(False, tuple(kept[which == np.argmax(wrong)].tolist()))
