"""Program order of threads that go on after a call that did not return.

The native search keeps the order of a thread up to such a call. Here the call moves to a thread of
its own, and a wrapper of the model keeps the call behind the earlier calls of its old thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pulsar_ml.harness.histories.history import RETURNED, Call, History, Signature, frozen


class Mark(NamedTuple):
    """A call with a place in a thread: its name and thread, and the milestones that it concerns.

    ``reaches`` and ``needs`` are numbers of milestones; -1: none.
    """

    name: str
    thread: int
    reaches: int = -1
    needs: int = -1


class Milestones:
    """A model whose marked calls take effect only behind others.

    A state is a state of ``model``, and the milestones that were reached.
    """

    def __init__(self, model: Any, marks: Mapping[str, Mark]) -> None:
        self.model = model
        self.marks = marks
        self.by_thread = bool(getattr(model, "by_thread", False))
        if hasattr(model, "equal"):
            self.equal = lambda one, two: one[1] == two[1] and model.equal(one[0], two[0])
            self.hash = lambda state: hash((model.hash(state[0]), state[1]))
        if hasattr(model, "key"):
            self.key = lambda state: (model.key(state[0]), state[1])

    def init(self) -> Any:
        return self.model.init(), frozenset()

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        inner, reached = state
        mark = self.marks.get(call.name)
        if mark is not None:
            if mark.needs >= 0 and mark.needs not in reached:
                return
            call = call._replace(name=mark.name, thread=mark.thread if self.by_thread else -1)
            reached = reached | {mark.reaches} if mark.reaches >= 0 else reached
        for after in self.model.step(inner, call):
            yield after, reached

    def pure(self, call: Call) -> bool:
        known = call.name not in self.marks and hasattr(self.model, "pure")
        return known and bool(self.model.pure(call))


def in_program_order(history: History, model: Any) -> tuple[History, Any]:
    """Return a history and a model for a search in program order; most often they are the same.

    The operations keep their indices.
    """
    records = history.records
    order = np.lexsort((np.arange(len(records)), records["invoked"], records["thread"])).tolist()
    threads, endings = records["thread"].tolist(), records["ending"].tolist()
    going_on = [
        at
        for at, index in enumerate(order[:-1])
        if endings[index] != RETURNED and threads[order[at + 1]] == threads[index]
    ]
    if not going_on:
        return history, model
    changed = records.copy()
    signatures = list(history.signatures)
    marks: dict[str, Mark] = {}
    marked: dict[int, Mark] = {}
    next_thread = max(threads) + 1
    for number, at in enumerate(going_on):
        index = order[at]
        before = at - 1
        while before >= 0 and endings[order[before]] != RETURNED:
            before -= 1
        needs = -1
        if before >= 0 and threads[order[before]] == threads[index]:
            last = order[before]
            name = history.signatures[records["operation"][last]].name
            found = marked.setdefault(last, Mark(name, threads[last], reaches=number))
            needs = found.reaches
        name = history.signatures[records["operation"][index]].name
        marked[index] = Mark(name, threads[index], needs=needs)
        changed["thread"][index] = next_thread + number
    for index, mark in marked.items():
        signature = history.signatures[records["operation"][index]]
        text = f"{mark.name} {mark.thread} {mark.reaches} {mark.needs}"
        if text not in marks:
            marks[text] = mark
            signatures.append(Signature(text, signature.arguments, signature.result))
        changed["operation"][index] = next(
            code for code, one in enumerate(signatures) if one.name == text
        )
    moved = replace(history, signatures=tuple(signatures), records=frozen(changed), threads=())
    return moved, Milestones(model, marks)
