"""The linearizability check: tries its algorithms in order until one has an answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize.cells._parts import Parts
from pulsar_ml.harness.linearize.checker import ModelChecker
from pulsar_ml.harness.linearize.effort import FOR_EVER, Effort
from pulsar_ml.harness.linearize.explain import Illegal, explained, unexplained
from pulsar_ml.harness.linearize.options import DEFAULT, Options
from pulsar_ml.harness.linearize.parts.guide import FEW_STEPS_OF_GUIDE, Proposal, follows, proposal
from pulsar_ml.harness.linearize.search._answers import StatesFull
from pulsar_ml.harness.linearize.search._native import ANSWERS
from pulsar_ml.harness.linearize.searches import MEMORY_FULL, STEPS, Chosen, Searches
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL, UNKNOWN, Verdict
from pulsar_ml.harness.models.model import Keyed

FEW_STEPS = 32  # search steps for each call before a monitor is tried
FIRST_STEPS = 2  # search steps for each call in the first round of parts
GUIDED_STEPS = 8  # search steps for each call before the guide is asked
QUICK_STEPS = 4_000  # native steps that take less time than a monitor
MANY_RECORDS = 5_000  # a monitor takes less time than the symbols of more

Finding = Verdict | Illegal
Part = tuple[object, Chosen]  # a key, and its calls
Open = tuple[Part, Verdict]  # a part without an answer yet


def check(
    history: History, model: Any, *, options: Options = DEFAULT, checker: ModelChecker | None = None
) -> Verdict:
    """Checks whether ``history`` is linearizable with respect to ``model``.

    ``checker`` is an earlier one for the same model, signatures and values. An explanation that
    reaches a limit leaves the answer as it is. Raises ModelError when the model breaks its
    contract, and UsageError for operations that the model does not have, and for a timeout that is
    not a positive number.
    """
    if checker is not None and not checker.fits(history):
        raise ValueError("the checker belongs to histories with other signatures or values")
    if options.timeout is not None and not 0 < options.timeout < float("inf"):
        raise UsageError(f"the timeout is {options.timeout}; it should be a number of seconds > 0")
    effort = Effort.of(options.most_steps, options.timeout)
    searches = Searches(history, model, options, effort, checker)
    try:
        found = Check(searches).run()
    finally:
        searches.close()
    if isinstance(found, Verdict):
        return found
    if not options.explain:
        return unexplained(found)
    illegal, left, of_cells = found, effort.seconds_left(), searches.cells is not None

    def explain() -> Verdict:
        # Steps of explanations do not count as steps of the answer.
        own = Searches(history, model, options, Effort.of(FOR_EVER, left), checker)
        if not of_cells:
            own.all_parts()
            own.cells = None  # records of several cells
        try:
            return explained(illegal, own)
        finally:
            own.close()

    return found.verdict.explained_by(explain)


class Check:
    """The state of one check."""

    def __init__(self, searches: Searches) -> None:
        self.searches = searches
        self.effort = searches.effort
        self.records = searches.records

    def run(self) -> Finding:
        searches, options = self.searches, self.searches.options
        monitor = monitor_of(searches.model) if options.monitors else ""
        if monitor and len(self.records) > MANY_RECORDS:
            if (found := self.by_monitor(monitor)) is not None:
                return found
            monitor = ""
        keyed = type(searches.model) is Keyed
        everything: Part = (None, None)
        found = None if keyed else self.by_cell(everything, monitor, self.effort.left)
        if found is not None:
            return found
        if not (keyed and options.partition):
            searches.all_parts()
            searches.cells = None  # no answer, or records of several cells
        if searches.parts is not None:
            found = self.by_parts(searches.parts, monitor)
            if found is not None:
                return found
        guide = Proposal()
        try:
            if options.partition and hasattr(searches.model, "partition"):
                guide = proposal(searches, FEW_STEPS_OF_GUIDE)
                if guide.order is not None and follows(searches, guide.order):
                    return self.legal(tuple(guide.order.tolist()))
            symbols, checker = searches.sorted_symbols(), searches.checker
            parts = checker.split(symbols) if options.partition and checker.parts else []
        except StatesFull as error:  # the first state alone is larger than the limit
            return self.unknown(None, str(error))
        if len(parts) < 2:
            part: Part = (parts[0][0] if parts else None, None)
            return self.in_time(part, self.of_whole(part, monitor))
        if guide.suspect >= 0:
            suspect = next(one for one in parts if guide.suspect in indices(one))
            few = GUIDED_STEPS * len(indices(suspect))  # another part may be easier to refute
            found = self.of_part(suspect, "", min(self.effort.left, few))
            if isinstance(found, Illegal):
                return found
        return self.of_parts(list(parts))

    def of_whole(self, part: Part, monitor: str) -> Finding:
        """Check a history of one part: briefly, then with an order of the guide."""
        few = GUIDED_STEPS * len(self.records)
        if not monitor and few < self.effort.left:
            found = self.of_part(part, "", few)
            if isinstance(found, Illegal) or not found.reason.startswith(STEPS):
                return found
            order = proposal(self.searches).order
            if order is not None and follows(self.searches, order):
                return self.legal(tuple(order.tolist()))
        return self.of_part(part, monitor, self.effort.left)

    def of_parts(self, parts: list[Part]) -> Finding:
        """Check parts in rounds with four times the steps of the round before.

        A part that is easy to refute is found, however hard the others are. After two rounds,
        the guide's orders are tried.
        """
        orders: list[tuple[int, ...] | None] = []
        unknown: list[Open] = []
        waiting, few = parts, FIRST_STEPS
        while waiting:
            again: list[Open] = []
            for part in waiting:
                chosen = part[1]
                size = len(self.records) if chosen is None else len(chosen)
                found = self.of_part(part, "", min(self.effort.left, few * size))
                if isinstance(found, Illegal):
                    return found
                if found.answer == LEGAL:
                    orders.append(found.linearization)
                elif found.reason.startswith(STEPS):
                    again.append((part, found))
                else:
                    unknown.append((part, found))
            if few == GUIDED_STEPS and again:
                again, more = self.guided(again)
                orders += more
            few = max(1, 4 * few)
            waiting = [part for part, _ in again]
            if self.effort.left == 0 or self.effort.late:
                unknown += again
                waiting = []
        unanswered: list[Verdict] = []
        for part, verdict in unknown:
            found = self.in_time(part, verdict)
            if isinstance(found, Illegal):
                return found
            if found.answer == LEGAL:
                orders.append(found.linearization)
            else:
                unanswered.append(found)
        if unanswered:
            first = unanswered[0]
            count = f"{len(unanswered)} of {len(parts)} keys have no answer"
            return self.unknown(first.key, f"{first.reason}; {count}")
        return self.legal(self.join_orders(orders))

    def guided(self, open_: list[Open]) -> tuple[list[Open], list[tuple[int, ...]]]:
        """Return the parts without an order of the guide, a suspect one first, and the orders."""
        guide = proposal(self.searches)
        if guide.suspect >= 0:
            open_ = sorted(open_, key=lambda one: guide.suspect not in indices(one[0]))
        if guide.order is None:
            return open_, []
        left, orders = [], []
        for one in open_:
            order = guide.order[np.isin(guide.order, indices(one[0]))]
            if follows(self.searches, order):
                orders.append(tuple(order.tolist()))
            else:
                left.append(one)
        return left, orders

    def of_part(self, part: Part, monitor: str, most: int) -> Finding:
        """Check the calls of one key: a short search first, then algorithms that may be faster."""
        key, chosen = part
        searches = self.searches
        try:
            if (found := self.by_cell(part, "", most)) is not None:
                return found
            quick = FEW_STEPS * len(self.records)
            answer, way, blocked = searches.of_model(chosen, min(quick, most) if monitor else most)
            if answer == STEPS and monitor:
                if (found := self.by_monitor(monitor)) is not None:
                    return found
                answer, way, blocked = searches.of_model(chosen, self.effort.left)
        except StatesFull as error:
            return self.unknown(key, str(error))
        if answer == LEGAL:
            return self.legal(tuple(way))
        if answer == ILLEGAL:
            if searches.checker.looks_ahead:
                way, blocked = [], -1  # it gave up before it reached the blocked call
            return Illegal(self.verdict(ILLEGAL, key=key), chosen, tuple(way), blocked)
        return self.unknown(key, self.effort.limit_reached(answer))

    def in_time(self, part: Part, found: Finding) -> Finding:
        """Check a part again that ran out of memory, with a search that needs less."""
        if isinstance(found, Illegal) or not found.reason.startswith(MEMORY_FULL):
            return found
        key, chosen = part
        try:
            answer, blocked = self.searches.just_in_time(chosen, self.effort.left)
        except StatesFull as error:
            return self.unknown(key, str(error))
        if answer == LEGAL:
            return self.verdict(LEGAL, method="just in time")
        if answer == ILLEGAL:
            illegal = self.verdict(ILLEGAL, key=key, method="just in time")
            return Illegal(illegal, chosen, (), blocked)
        return self.unknown(key, self.effort.limit_reached(answer))

    def by_cell(self, part: Part, monitor: str, most: int) -> Finding | None:
        """Run the native search for registers; None when it has no answer."""
        key, chosen = part
        quick = FEW_STEPS * len(self.records)
        answer, way = self.searches.of_cell(chosen, min(quick, most) if monitor else most)
        if answer == STEPS and monitor:
            if (found := self.by_monitor(monitor)) is not None:
                return found
            answer, way = self.searches.of_cell(chosen, self.effort.left)
        if answer == LEGAL:
            return self.legal(tuple(way))
        if answer == ILLEGAL:
            return Illegal(self.verdict(ILLEGAL, key=key), chosen)
        if answer in ("", MEMORY_FULL):
            return None
        return self.unknown(key, self.effort.limit_reached(answer))

    def by_parts(self, native: Parts, monitor: str) -> Finding | None:
        """Run the native search for maps and other objects; None without an answer."""
        together = not self.searches.options.partition
        quick = max(FEW_STEPS * len(self.records), QUICK_STEPS)
        for most in (quick, None) if monitor else (None,):
            limit = self.effort.left if most is None else min(most, self.effort.left)
            answer, way, steps, configurations = native.search(
                self.records, together=together, most_steps=limit
            )
            if answer < 0 or ANSWERS[answer] == MEMORY_FULL:
                self.searches.parts = None
                return None
            self.effort.add(steps, configurations)
            if ANSWERS[answer] == LEGAL:
                return self.legal(tuple(way))
            if ANSWERS[answer] == ILLEGAL:
                chosen = native.calls_of_part(self.records) if native.parts > 1 else None
                key = self.key_of(chosen)
                return Illegal(self.verdict(ILLEGAL, key=key), self.calls_of(key, chosen))
            if most is not None and (found := self.by_monitor(monitor)) is not None:
                return found
        reason = self.effort.limit_reached(ANSWERS[answer])
        if native.parts > 1 and not together:
            reason += f"; {native.unanswered} of {native.parts} keys have no answer"
        chosen = native.calls_of_part(self.records) if native.parts > 1 else None
        return self.unknown(self.key_of(chosen), reason)

    def key_of(self, chosen: Chosen) -> object:
        """The key of the calls of one part; None: they are all calls."""
        if chosen is None or not len(chosen):
            return None
        return self.searches.model.partition(self.searches.history.call(int(chosen[0])))

    def calls_of(self, key: object, chosen: Chosen) -> Chosen:
        """The calls of a key; a native search may refute a part of them, such as one member."""
        model, history = self.searches.model, self.searches.history
        if chosen is None or not hasattr(getattr(model, "model", None), "partition"):
            return chosen
        keys = [model.partition(history.call(index)) for index in range(len(history))]
        return np.flatnonzero([one == key for one in keys]).astype(np.int32)

    def by_monitor(self, monitor: str) -> Finding | None:
        """Run a monitor; None when the history does not qualify."""
        from pulsar_ml.harness.linearize.monitors import judge

        judgement = judge(monitor, self.searches.history, self.searches.model)
        if judgement is None:
            return None
        if judgement.legal:
            return self.verdict(LEGAL, method="monitor")
        witness = np.sort(np.array(judgement.witness, dtype=np.int32))
        return Illegal(self.verdict(ILLEGAL, method="monitor"), witness)

    def verdict(self, answer: str, **more: Any) -> Verdict:
        return Verdict(
            answer, steps=self.effort.steps, configurations=self.effort.configurations, **more
        )

    def legal(self, order: tuple[int, ...] | None) -> Verdict:
        return self.verdict(LEGAL, linearization=order)

    def unknown(self, key: object, reason: str) -> Verdict:
        return self.verdict(UNKNOWN, key=key, reason=reason)

    def join_orders(self, orders: list[tuple[int, ...] | None]) -> tuple[int, ...] | None:
        """Merge the orders of the keys: every call takes effect at a moment of its interval."""
        if any(order is None for order in orders):
            return None
        invoked = self.records["invoked"]
        placed = [np.array(order, dtype=np.int64) for order in orders]
        moments = [np.maximum.accumulate(invoked[order]) for order in placed]
        first = np.argsort(np.concatenate(moments), kind="stable")
        return tuple(np.concatenate(placed)[first].tolist())


def monitor_of(model: Any) -> str:
    """Return the name of a model's monitor, or "" if it is that of a base with other steps."""
    kind = type(model)
    owner = next((one for one in kind.__mro__ if "monitor" in vars(one)), kind)
    same = getattr(kind, "step", None) is getattr(owner, "step", None)
    return str(getattr(model, "monitor", "")) if same else ""


def indices(part: Part) -> NDArray[np.int32]:
    """Return the calls of one of several parts."""
    assert part[1] is not None
    return part[1]
