"""The linearizability check: tries its algorithms in order until one has an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pulsar_ml.harness.histories.history import NEVER, History
from pulsar_ml.harness.linearize.checker import ModelChecker
from pulsar_ml.harness.linearize.effort import FOR_EVER, Effort
from pulsar_ml.harness.linearize.limits import _memory
from pulsar_ml.harness.linearize.limits._alarm import OutOfTime, alarm
from pulsar_ml.harness.linearize.options import DEFAULT, Options
from pulsar_ml.harness.linearize.parts import rounds
from pulsar_ml.harness.linearize.parts.rounds import Outcome, PartOfHistory, Rounds
from pulsar_ml.harness.linearize.parts.workers import (
    MOST_DEATHS,
    Death,
    Raised,
    WorkerError,
    Workers,
)
from pulsar_ml.harness.linearize.search._answers import StatesFull
from pulsar_ml.harness.linearize.searches import (
    MEMORY_FULL,
    STEPS,
    TIME,
    Chosen,
    Searches,
    answer_named,
)
from pulsar_ml.harness.linearize.verdict import (
    ILLEGAL,
    JUST_IN_TIME,
    LEGAL,
    SEARCH,
    UNKNOWN,
    Illegal,
    Verdict,
    unexplained,
)
from pulsar_ml.harness.models.conformance import refuse_others
from pulsar_ml.harness.models.model import Keyed, monitor_of

if TYPE_CHECKING:
    from pulsar_ml.harness.linearize.cells._parts import Parts
    from pulsar_ml.harness.linearize.parts.guide import Guide, Suspect

FEW_STEPS = 32  # search steps for each call before a monitor is tried
FIRST_STEPS = 2  # search steps for each call in the first round of parts
FIRST_STEPS_OF_NATIVE = 32  # like it, of parts that are searched without the model
GUIDED_STEPS = 8  # search steps for each call before the guide searches for long
GUIDES_FIRST_STEPS = 16  # of the guide for each call, before any other search
GUIDES_STEPS = 64  # like them, when other searches found no answer
SUSPECTS_SHARE = 16  # times as many steps for the part that the guide refutes
QUICK_STEPS = 4_000  # native steps that take less time than a monitor
MANY_RECORDS = 5_000  # a monitor takes less time than the symbols of more
DIED = f"{MOST_DEATHS} worker processes died"  # the first words of a reason

Finding = Verdict | Illegal
Open = tuple[PartOfHistory, Verdict]  # a part without an answer yet


def check(
    history: History,
    model: Any,
    *,
    options: Options = DEFAULT,
    checker: ModelChecker | None = None,
    effort: Effort | None = None,
) -> Verdict:
    """Checks whether ``history`` is linearizable with respect to ``model``.

    ``checker`` is an earlier one for the same model, signatures and values. ``effort`` has the
    limits of steps and time in place of the options', and can be read while the check runs. An
    explanation that reaches a limit leaves the answer as it is.

    Raises ModelError when the model breaks its contract, UsageError for what is no history or no
    model and for operations that the model does not have, and WorkerError when workers died whose
    part therefore has no answer, unless another part is illegal.
    """
    if checker is not None and not checker.fits(history):
        raise ValueError("the checker belongs to histories with other signatures or values")
    refuse_others(history, model)
    effort = effort or Effort.of(options.most_steps, options.timeout)
    found: Finding | None = None
    searches: Searches | None = None
    try:
        with _memory.bounded(options.memory), alarm(effort.deadline_ns):
            searches = Searches(history, model, options, effort, checker)
            found = Check(searches).run()
    except OutOfTime:
        pass  # an answer that was found just before stands
    finally:
        if searches is not None:
            searches.close()
    if found is None or searches is None:
        return Verdict(
            UNKNOWN,
            reason=effort.limit_reached(TIME),
            steps=effort.steps,
            configurations=effort.configurations,
        )
    if isinstance(found, Verdict):
        return found
    if not options.explain:
        return unexplained(found)
    illegal, left, of_cells = found, effort.seconds_left(), searches.cells is not None

    def explain() -> Verdict:
        from pulsar_ml.harness.linearize.explain import explained

        # Steps of explanations do not count as steps of the answer.
        own = Searches(history, model, options, Effort.of(FOR_EVER, left), checker)
        if not of_cells:
            own.all_parts()
            own.cells = None  # records of several cells
        try:
            with _memory.bounded(options.memory):
                return explained(illegal, own)
        finally:
            own.close()

    return found.verdict.explained_by(explain, lambda: unexplained(illegal))


class Check:
    """The state of one check."""

    def __init__(self, searches: Searches) -> None:
        self.searches = searches
        self.effort = searches.effort
        self.records = searches.records
        self.deaths: list[str] = []  # how worker processes died
        self._guide: Guide | None = None

    @property
    def guide(self) -> Guide:
        if self._guide is None:
            from pulsar_ml.harness.linearize.parts.guide import Guide  # only your models need it

            self._guide = Guide(self.searches)
        return self._guide

    def run(self) -> Finding:
        searches, options = self.searches, self.searches.options
        monitor = monitor_of(searches.model) if options.monitors else ""
        if monitor and len(self.records) > MANY_RECORDS:
            if (found := self.by_monitor(monitor)) is not None:
                return found
            monitor = ""
        keyed = type(searches.model) is Keyed
        if not keyed and searches.cells and (found := self.by_cell(monitor)) is not None:
            return found
        if not (keyed and options.partition):
            searches.all_parts()
            searches.cells = None  # no answer, or records of several cells
        if searches.parts is not None:
            found = self.by_parts(searches.parts, monitor)
            if found is not None:
                return found
        likely = -1  # a call of the part that the guide refutes
        try:
            if options.partition and hasattr(searches.model, "partition"):
                order = self.guide.order(GUIDES_FIRST_STEPS)
                if order is not None:
                    return self.legal(order)
                likely = (suspect := self.guide.easiest(GUIDES_STEPS)).call
                if likely >= 0 and (found := self.refuted(suspect)) is not None:
                    return found
            symbols, checker = searches.sorted_symbols(), searches.checker
            parts = checker.split(symbols) if options.partition and checker.parts else []
        except StatesFull as error:  # the first state alone is larger than the limit
            return self.unknown(None, str(error))
        if len(parts) < 2:
            part = PartOfHistory(parts[0][0] if parts else None)
            return self.in_time(part, self.of_whole(part, monitor))
        whole = [PartOfHistory(*one, number) for number, one in enumerate(parts)]
        suspects = [one.number for one in whole if likely in one.calls]
        return self.of_parts(whole, suspects=suspects)

    def refuted(self, suspect: Suspect) -> Illegal | None:
        """Search a part briefly that the guide refutes: another may be easier."""
        own = self.searches.part_with(suspect.call, self.guide.alike, suspect.until)
        if own is None:
            return None
        part = PartOfHistory(*own, until=suspect.until)
        few = min(self.effort.left, max(2 * suspect.steps, FIRST_STEPS * len(part.calls)))
        return found if isinstance(found := self.of_part(part, few), Illegal) else None

    def of_whole(self, part: PartOfHistory, monitor: str) -> Finding:
        """Check a history of one part: briefly, with an order of the guide, then to the end."""
        few = (FEW_STEPS if monitor else GUIDED_STEPS) * len(self.records)
        if few < self.effort.left:
            found = self.of_part(part, few)
            if isinstance(found, Illegal) or not found.reason.startswith(STEPS):
                return found
            if monitor:
                if (by_monitor := self.by_monitor(monitor)) is not None:
                    return by_monitor
            elif (order := self.guide.order(GUIDES_STEPS)) is not None:
                return self.legal(order)
        if self.searches.options.workers > 1:
            return self.raced(part)
        return self.of_part(part, self.effort.left)

    def raced(self, part: PartOfHistory) -> Finding:
        """Run the search and the one just in time side by side; the first answer wins.

        Only the steps of the winner are counted, and those of the search when there is none.
        """
        most, steps, deadline = self.effort.left, self.effort.steps, self.effort.deadline_ns
        self.effort.deadline_ns = self.effort.soon(rounds.SECONDS_ALONE)
        outcome = self.outcome(part, most)
        self.effort.deadline_ns = deadline
        if outcome.answer != TIME or self.effort.late:
            return self.finding(part, outcome)
        self.effort.steps = steps

        def work(just_in_time: bool) -> Outcome:
            return (self.streamed if just_in_time else self.outcome)(part, most)

        ends: dict[int, Outcome | Death] = {}
        share = self.searches.options.memory // 2
        with Workers(work, 2, lambda: _memory.limit(share)) as workers:
            for piece, outcome in workers.results([False, True]):
                self.deaths = workers.deaths
                if isinstance(outcome, Raised):
                    return self.finding(part, work(piece == 1))
                ends[piece] = outcome
                if isinstance(outcome, Outcome) and outcome.answer in (LEGAL, ILLEGAL):
                    self.effort.add(outcome.steps, outcome.configurations)
                    return self.finding(part, outcome)
        search = ends[0]
        if isinstance(search, Outcome) and search.answer == MEMORY_FULL:
            return self.of_part(part, most)  # alone, with all the memory
        if isinstance(search, Outcome):
            self.effort.add(search.steps, search.configurations)
        open_ = self.finding(part, search)
        assert isinstance(open_, Verdict)
        return self.without_answer([(part, open_)], 1)

    def of_parts(
        self, parts: list[PartOfHistory], native: Parts | None = None, suspects: Sequence[int] = ()
    ) -> Finding:
        """Check parts in rounds with four times the steps of the round before, side by side.

        A part that is easy to refute is found, however hard the others are. Those with the numbers
        ``suspects`` come first, with more steps. After two rounds, the guide's orders are tried.
        With ``native``, no part needs the model.
        """
        orders: list[tuple[int, ...] | None] = []
        unknown: list[Open] = []
        few = FIRST_STEPS if native is None else FIRST_STEPS_OF_NATIVE
        self.effort.parts = len(parts)

        def search(part: PartOfHistory, most: int) -> Outcome:
            return self.outcome(part, most, native)

        waiting = sorted(parts, key=lambda one: one.number not in suspects)
        alone = rounds.SECONDS_ALONE if native is None else 0.0  # a native search was before
        with Rounds(search, parts, self.effort, self.searches.options, alone) as run:
            self.deaths = run.workers.deaths
            while waiting:
                again: list[Open] = []
                share = [SUSPECTS_SHARE if one.number in suspects else 1 for one in waiting]
                most = [few * n * len(one.calls) for one, n in zip(waiting, share, strict=True)]
                for part, outcome in run.of(list(zip(waiting, most, strict=True))):
                    found = self.finding(part, outcome, native)
                    if isinstance(found, Illegal):
                        return found
                    if found.answer == LEGAL:
                        orders.append(found.linearization)
                        self.effort.legal_parts += 1
                    elif found.reason.startswith(STEPS):
                        again.append((part, found))
                    else:
                        unknown.append((part, found))
                if native is None and few == GUIDED_STEPS and again:
                    again, more = self.guided(again)
                    orders += more
                few = max(1, 4 * few)
                waiting = [part for part, _ in again]
                if self.effort.left == 0 or self.effort.late:
                    unknown += again
                    waiting = []
        unanswered: list[Open] = []
        for part, verdict in unknown:
            found = verdict if native is not None else self.in_time(part, verdict)
            if isinstance(found, Illegal):
                return found
            if found.answer == LEGAL:
                orders.append(found.linearization)
            else:
                unanswered.append((part, found))
        if unanswered:
            return self.without_answer(unanswered, len(parts))
        return self.legal(self.join_orders(orders))

    def without_answer(self, open_: list[Open], parts: int) -> Verdict:
        """Return the verdict on a history of which parts have no answer, and none is illegal."""
        for _, verdict in open_:
            if verdict.reason.startswith(DIED):
                raise WorkerError(f"{verdict.reason}; --workers 1 checks all parts in one process")
        _, verdict = min(open_, key=lambda one: one[0].number)
        reason = verdict.reason
        if reason.startswith((STEPS, TIME)):  # with the effort until now
            reason = self.effort.limit_reached(STEPS if reason.startswith(STEPS) else TIME)
        if parts > 1:
            reason += f"; {len(open_)} of {parts} keys have no answer"
        return self.unknown(verdict.key, reason)

    def guided(self, open_: list[Open]) -> tuple[list[Open], list[tuple[int, ...]]]:
        """Return the parts without an order of the guide, a suspect one first, and the orders."""
        suspect = self.guide.suspect(GUIDES_STEPS)
        if suspect >= 0:
            open_ = sorted(open_, key=lambda one: suspect not in one[0].calls)
        left, orders = [], []
        for one in open_:
            order = self.guide.order_of(one[0].calls)
            if order is None:
                left.append(one)
            else:
                orders.append(order)
        return left, orders

    def of_part(self, part: PartOfHistory, most: int) -> Finding:
        return self.finding(part, self.outcome(part, most))

    def outcome(self, part: PartOfHistory, most: int, native: Parts | None = None) -> Outcome:
        """Search a part: natively, or with the model, which takes what natives do not."""
        searches, effort, blocked = self.searches, self.effort, -1
        before = effort.steps, effort.configurations
        effort.steps = effort.configurations = 0
        way: Sequence[int]
        try:
            if native is not None:
                answer, way = searches.of_native_part(native, part.calls, most)
            else:
                answer, way = "", []
                if part.until == NEVER:
                    answer, way = searches.of_cell(part.chosen, most)
                if answer in ("", MEMORY_FULL):
                    answer, way, blocked = searches.of_model(part.chosen, most, until=part.until)
                    if answer == ILLEGAL and searches.checker.looks_ahead:
                        way, blocked = [], -1  # it gave up before it reached the blocked call
            full = ""
        except StatesFull as error:
            answer, way, full = MEMORY_FULL, [], str(error)
        steps, configurations = effort.steps, effort.configurations
        effort.steps, effort.configurations = before
        effort.add(steps, configurations)
        return Outcome(answer, way, blocked, steps, configurations, full)

    def finding(
        self, part: PartOfHistory, outcome: Outcome | Death, native: Parts | None = None
    ) -> Finding:
        """Return the verdict on a part, or what makes it illegal."""
        key = part.key if native is None else self.key_of(part.chosen)
        if isinstance(outcome, Death):
            whose = "" if key is None else f" of key {key!r}"
            return self.unknown(
                key, f"{DIED} while they checked the calls{whose}, the last by {outcome.how}"
            )
        method = outcome.method
        if outcome.full:
            return self.unknown(key, outcome.full)
        if outcome.answer == LEGAL:
            order = tuple(outcome.way) if method == SEARCH else None
            return self.verdict(LEGAL, method=method, linearization=order)
        if outcome.answer != ILLEGAL:
            return self.unknown(key, self.effort.limit_reached(outcome.answer))
        illegal = self.verdict(ILLEGAL, key=key, method=method)
        if native is not None:
            return Illegal(illegal, self.calls_of(key, part.chosen))
        return Illegal(illegal, part.chosen, tuple(outcome.way), outcome.blocked)

    def in_time(self, part: PartOfHistory, found: Finding) -> Finding:
        """Check a part again that ran out of memory, with a search that needs less."""
        if isinstance(found, Illegal) or not found.reason.startswith(MEMORY_FULL):
            return found
        return self.finding(part, self.streamed(part, self.effort.left))

    def streamed(self, part: PartOfHistory, most: int) -> Outcome:
        """Search a part just in time."""
        before = self.effort.steps
        try:
            answer, blocked = self.searches.just_in_time(part.chosen, most)
        except StatesFull as error:
            return Outcome(MEMORY_FULL, full=str(error))
        steps = self.effort.steps - before
        return Outcome(answer, (), blocked, steps, method=JUST_IN_TIME)

    def by_cell(self, monitor: str) -> Finding | None:
        """Run the native search for registers; None when it has no answer."""
        whole = PartOfHistory()
        quick = min(FEW_STEPS * len(self.records), self.effort.left)
        answer, way = self.searches.of_cell(None, quick if monitor else self.effort.left)
        if answer == STEPS and monitor:
            if (found := self.by_monitor(monitor)) is not None:
                return found
            answer, way = self.searches.of_cell(None, self.effort.left)
        return None if answer in ("", MEMORY_FULL) else self.finding(whole, Outcome(answer, way))

    def by_parts(self, native: Parts, monitor: str) -> Finding | None:
        """Run the native search for maps and other objects; None without an answer."""
        together = not self.searches.options.partition
        quick = max(FEW_STEPS * len(self.records), QUICK_STEPS)
        for most in (quick, None) if monitor else (None,):
            limit = self.effort.left if most is None else min(most, self.effort.left)
            several = self.searches.options.workers > 1 and native.parts > 1 and not together
            alone = most is None and several
            if alone:  # for as long as it takes to begin workers
                native.deadline_ns = self.effort.soon(rounds.NATIVELY * rounds.SECONDS_ALONE)
            answer, way, steps, configurations = native.search(
                self.records, together=together, most_steps=limit
            )
            native.deadline_ns = self.effort.deadline_ns
            name = answer_named(answer)
            if alone and name == TIME and not self.effort.late:
                found = self.of_parts(self.native_parts(native), native)
                if isinstance(found, Illegal) or not found.reason.startswith(MEMORY_FULL):
                    return found
                name = MEMORY_FULL
            if name in ("", MEMORY_FULL):
                self.searches.parts = None
                return None
            self.effort.add(steps, configurations)
            if name == LEGAL:
                return self.legal(tuple(way))
            if name == ILLEGAL:
                chosen = native.calls_of_part(self.records) if native.parts > 1 else None
                key = self.key_of(chosen)
                return Illegal(self.verdict(ILLEGAL, key=key), self.calls_of(key, chosen))
            if most is not None and (by_monitor := self.by_monitor(monitor)) is not None:
                return by_monitor
        reason = self.effort.limit_reached(name)
        if native.parts > 1 and not together:
            reason += f"; {native.unanswered} of {native.parts} keys have no answer"
        chosen = native.calls_of_part(self.records) if native.parts > 1 else None
        return self.unknown(self.key_of(chosen), reason)

    def native_parts(self, native: Parts) -> list[PartOfHistory]:
        """Return the parts of the records; the key of each is found when it is needed."""
        pieces = native.pieces(self.records)
        return [PartOfHistory(None, one, at) for at, one in enumerate(pieces)]

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
        effort = self.effort
        remarks = tuple(
            [f"a worker process died ({how}); its calls were checked again" for how in self.deaths]
        )
        return Verdict(
            answer, steps=effort.steps, configurations=effort.configurations, remarks=remarks,
            **more,
        )  # fmt: skip

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
